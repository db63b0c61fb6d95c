"use strict";
// The page: its tabs, its scenarios, and the link to it as it is.

// What one can begin with: the tab, and what is not as usual there.
const SCENARIOS = [
  ["Retry storm", "storm", {}],
  ["30 s outage", "storm", { length: 30 }],
  ["Cron at midnight", "storm", { trouble: "spike", load: 50 }],
  ["Three layers", "storm", { layers: 3, attempts: 4, load: 30 }],
  ["AWS 2015", "contention", {}],
  ["Rate limit", "contention", {
    clients: 300, resource: { kind: "rate", rate: 50, says: true },
    policies: ["full", "equal", "exponential"].map((name) =>
      ({ name, text: TEXTS[name].replace("10ms", "100ms") })),
  }],
];

const TABS = ["storm", "contention", "advise", "plan"];

class Page {
  constructor(engine, module) {
    Object.assign(this, { engine, module, panels: {} });
    this.find = (id) => document.getElementById(id);
    this.find("chart-style").textContent = engine.style();
    for (const [i, tab] of TABS.entries()) {
      const button = this.find(`tab-${tab}`);
      button.addEventListener("click", () => this.open(tab));
      button.addEventListener("keydown", ({ key }) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
        if (!step) return;
        const next = TABS[(i + step + TABS.length) % TABS.length];
        this.open(next);
        this.find(`tab-${next}`).focus();
      });
    }
    this.find("scenarios").append(...SCENARIOS.map(([words, tab, said]) =>
      element("button", {
        type: "button", class: "chip", onclick: () => this.open(tab, said),
      }, words)));
    this.meaning = new Meaning();
    for (const place of document.querySelectorAll(".legend, thead, .note, .lead"))
      explain(place);
    this.follow();
    window.addEventListener("hashchange", () => this.follow());
  }

  follow() {
    const { tab, said } = readLink(location.hash.slice(1));
    this.open(TABS.includes(tab) ? tab : TABS[0], said);
  }

  // said: what is not as usual; without it the panel stays as it is.
  open(tab, said) {
    for (const each of TABS) {
      const is = each === tab;
      this.find(each).hidden = !is;
      this.find(`tab-${each}`).setAttribute("aria-selected", is);
      this.find(`tab-${each}`).tabIndex = is ? 0 : -1;
      if (!is) this.panels[each]?.leave?.();
    }
    this.tab = tab;
    const isNew = !this.panels[tab];
    this.panels[tab] ||= this.make(tab);
    if (isNew || said) this.panels[tab].take(said || {});
    window[tab] = this.panels[tab];
  }

  make(tab) {
    const { engine, module } = this;
    const linked = () => this.link();
    return {
      storm: () => new Storm(engine, module, linked),
      contention: () => new Contention(engine, module, linked),
      advise: () => new Advise(module, linked,
        (text) => this.open("plan", { text })),
      plan: () => new Plan(engine, linked),
    }[tab]();
  }

  // The link to the tab as it is, which the address then is, too.
  link() {
    history.replaceState(null, "",
      `#${linkText(this.tab, this.panels[this.tab].delta())}`);
    return location.href;
  }
}

async function begin() {
  const text = document.getElementById("engine").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const module = await WebAssembly.compile(bytes);
  window.page = new Page(new Engine(module), module);
}

begin().catch((error) => {
  const place = document.getElementById("failed");
  place.textContent = `This browser cannot run the simulator: ${error.message}`;
  place.hidden = false;
  console.error(error);
});
