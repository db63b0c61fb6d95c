"use strict";
// A cross-hair over all panels of a chart: what each has where the pointer, a
// finger or the arrow keys are. The numbers are the titles that the chart has
// in it (src/chart/svg_hover.c), a column of each panel for each x.

class CrossHair {
  // place: what holds one <svg class="stg">, whatever is drawn there later.
  // pointed, if there is one, gets the share of the x axis that is pressed.
  constructor(place, pointed) {
    Object.assign(this, { place, pointed });
    this.line = element("div", { class: "hair", hidden: true });
    this.words = element("div", { class: "hair-words", hidden: true });
    this.said = element("p", { class: "unseen", role: "status" });
    const box = element("div", { class: "hair-place" });
    place.before(box);
    box.append(place, this.said, this.line, this.words);
    const at = (event) => this.at(event);
    place.addEventListener("pointermove", at);
    place.addEventListener("pointerdown", at);
    place.addEventListener("pointerleave", () => this.hide());
    place.addEventListener("blur", () => this.hide());
    place.addEventListener("keydown", (event) => this.key(event));
  }

  // The columns of the chart as it is now: where they are, and what they say.
  look() {
    const svg = this.place.querySelector("svg.stg");
    if (svg === this.svg) return;
    this.svg = svg;
    this.columns = [...svg?.querySelectorAll("path.h") || []].map((path) => {
      const [left, top, right, bottom] =
        path.getAttribute("d").match(/-?[\d.]+/g).map(Number);
      return { left, top, right, bottom, title: path.textContent };
    });
    if (this.columns.length) {
      this.place.tabIndex = 0;
      this.place.setAttribute("role", "group");
      this.place.setAttribute("aria-label",
        "Chart; arrow keys read its numbers");
    } else this.place.removeAttribute("tabindex");
    const all = (which, key) =>
      which(...this.columns.map((each) => each[key]));
    this.left = all(Math.min, "left");
    this.right = all(Math.max, "right");
    this.top = all(Math.min, "top");
    this.bottom = all(Math.max, "bottom");
    this.names = [...svg?.querySelectorAll("text.n") || []].map((text) =>
      [Number(text.getAttribute("x")), Number(text.getAttribute("y")),
        text.textContent]).filter(([x]) => x < this.left);
  }

  scale() {
    return this.svg.getBoundingClientRect().width /
      this.svg.viewBox.baseVal.width;
  }

  // The name of the panel that begins there.
  nameOf(top) {
    const above = this.names.filter(([, y]) => y < top);
    return above.length ? above.at(-1)[2] : "";
  }

  at(event) {
    this.look();
    if (!this.columns.length) return;
    const x = (event.clientX - this.svg.getBoundingClientRect().left) /
      this.scale();
    if (event.buttons && this.pointed)
      this.pointed(Math.max(0, Math.min(1,
        (x - this.left) / (this.right - this.left))));
    this.show(x);
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.hide();
    if (!step) return;
    event.preventDefault();
    this.look();
    const edges = [...new Set(this.columns.map((each) => each.left))]
      .sort((a, b) => a - b);
    const now = this.x === undefined ? step > 0 ? -1 : edges.length
      : edges.findLastIndex((left) => left <= this.x);
    const next = edges[Math.max(0, Math.min(edges.length - 1, now + step))];
    this.show(next + 0.01);
    this.said.textContent = this.words.innerText;
  }

  show(x) {
    const found = this.columns.filter((each) =>
      each.left <= x && x < each.right);
    this.x = x;
    if (!found.length) {
      this.hide();
      return;
    }
    const [head] = found[0].title.split("\n");
    this.words.replaceChildren(element("b", {}, head),
      ...found.flatMap((each) => {
        const name = this.nameOf(each.top);
        return [...name ? [element("i", {}, name)] : [],
          ...each.title.split("\n").slice(1).map((line) => element("span", {},
            line.replace(/, standard error (.*)/, " (± $1)")))];
      }));
    const { scale, top, height } = this.axis();
    this.line.style.left = `${x * scale}px`;
    this.line.style.top = `${top}px`;
    this.line.style.height = `${height}px`;
    this.line.hidden = this.words.hidden = false;
    const room = this.place.clientWidth;
    const width = this.words.offsetWidth;
    this.words.style.left = `${Math.max(0, x * scale + 12 + width > room
      ? x * scale - 12 - width : x * scale + 12)}px`;
    this.words.style.top = this.line.style.top;
  }

  hide() {
    this.x = undefined;
    this.line.hidden = this.words.hidden = true;
  }

  // Where the panels are, in pixels of the place; null without any.
  axis() {
    this.look();
    if (!this.columns.length) return null;
    const scale = this.scale();
    return {
      scale, left: this.left * scale, width: (this.right - this.left) * scale,
      top: this.top * scale, height: (this.bottom - this.top) * scale,
    };
  }
}
