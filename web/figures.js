"use strict";
// The charts of a run, each with its finding, a cross-hair, and ways to take it
// along.

class Figures {
  // places: for each chart the element that it is put into, the last one for
  // all others; say: tells in words what was copied; pointed: see CrossHair.
  constructor(places, computer, say, pointed) {
    Object.assign(this, { places, computer, say, pointed, all: [] });
    new ResizeObserver(() => {
      if (this.width !== this.widthNow()) computer.draw(this.widthNow());
    }).observe(places[0]);
  }

  widthNow() {
    this.width = Math.max(280, Math.min(1500, this.places[0].clientWidth));
    return this.width;
  }

  make(i) {
    const copy = async (how) => {
      const files = await this.computer.files();
      this.say(await how(files[i].svg));
    };
    const button = (words, how) => element("button",
      { type: "button", onclick: () => copy(how) }, words);
    const chart = element("div", { class: "chart" });
    const figure = element("figure", {}, element("figcaption", {}), chart,
      element("div", { class: "row under" }, element("p", { class: "note" }),
        button("Copy SVG", (svg) => copyText(svg, "The picture (SVG)")),
        button("Copy PNG", (svg) => copyPng(svg, `stagger-${i + 1}.png`))));
    this.places[Math.min(i, this.places.length - 1)].append(figure);
    return {
      figure, chart, hair: new CrossHair(chart, i === 0 && this.pointed),
    };
  }

  // What is said of a chart, and words that only the picture has.
  showNote(place, note, chart) {
    place.textContent = note;
    explain(place);
    const names = [...chart.querySelectorAll("text.n, text.u")].map((text) =>
      text.textContent).join(" ").toLowerCase();
    const more = Object.keys(MEANINGS).filter((word) =>
      names.includes(word) && !note.toLowerCase().includes(word));
    if (more.length) place.append(" What is: ", ...more.flatMap((word, i) =>
      [i ? ", " : "", meantButton(word)]), "?");
  }

  show(charts) {
    charts.forEach(({ title, note, svg }, i) => {
      this.all[i] ||= this.make(i);
      const { figure, chart, hair } = this.all[i];
      figure.querySelector("figcaption").textContent = title;
      chart.innerHTML = svg;
      hair.look();
      this.showNote(figure.querySelector(".note"), note, chart);
    });
  }
}
