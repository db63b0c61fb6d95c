"use strict";
// The parts of the form: each is made once, shows what it is told, and tells
// when it was moved.

// element("p", {class: "about"}, "text", another)
function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  made.append(...inside);
  return made;
}

let fields = 0;

// A slider over the steps of a list. words: a step for people; moved: gets the
// step. show(value) puts it where the value is, or near.
function slider({ label, steps, words, moved }) {
  const id = `field-${++fields}`;
  const output = element("output", { for: id });
  const input = element("input", {
    id, type: "range", min: 0, max: steps.length - 1, step: 1,
    oninput: () => {
      const value = steps[Number(input.value)];
      say(value);
      moved(value);
    },
  });
  const say = (value) => {
    output.textContent = words(value);
    input.setAttribute("aria-valuetext", words(value));
  };
  const field = element("div", { class: "field slider" },
    element("label", { for: id }, label), output, input);
  return {
    field,
    input,
    show(value) {
      input.value = nearest(steps, value);
      say(value);
    },
    allow(is) {
      input.disabled = !is;
      field.classList.toggle("off", !is);
    },
  };
}

// A slider and a box for the exact number.
function sliderWithBox({ label, steps, least, most, moved }) {
  const id = `field-${++fields}`;
  const box = element("input", {
    id, type: "number", min: least, max: most, step: 1, inputmode: "numeric",
    oninput: () => {
      const value = Number(box.value);
      const is = Number.isInteger(value) && value >= least && value <= most;
      box.setAttribute("aria-invalid", !is);
      if (!is) return;
      range.value = nearest(steps, value);
      moved(value);
    },
  });
  const range = element("input", {
    type: "range", min: 0, max: steps.length - 1, step: 1,
    "aria-label": `${label}, slider`,
    oninput: () => {
      box.value = steps[Number(range.value)];
      range.setAttribute("aria-valuetext", box.value);
      box.setAttribute("aria-invalid", false);
      moved(Number(box.value));
    },
  });
  return {
    field: element("div", { class: "field slider" },
      element("label", { for: id }, label), box, range),
    show(value) {
      box.value = value;
      range.value = nearest(steps, value);
      range.setAttribute("aria-valuetext", String(value));
      box.setAttribute("aria-invalid", false);
    },
  };
}

// A choice of few. options: [[value, words], ...].
function choice({ label, options, moved }) {
  const id = `field-${++fields}`;
  const select = element("select", { id, onchange: () => moved(select.value) },
    ...options.map(([value, words]) => element("option", { value }, words)));
  return {
    field: element("div", { class: "field" },
      element("label", { for: id }, label), select),
    show(value) {
      select.value = value;
    },
    allow(is) {
      select.disabled = !is;
    },
  };
}

function checkbox({ label, moved }) {
  const id = `field-${++fields}`;
  const input = element("input", {
    id, type: "checkbox", onchange: () => moved(input.checked),
  });
  return {
    field: element("div", { class: "field check" }, input,
      element("label", { for: id }, label)),
    show(value) {
      input.checked = value;
    },
  };
}

// -- a policy: its name, its text, and sliders for the most of it

const ATTEMPTS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100, 0];
const FACTORS = [1000, 1100, 1200, 1500, 1750, 2000, 2500, 3000, 4000, 5000,
  10000];

// moved(name, text) and removed() tell of it; engine says what a text means.
class Card {
  constructor(engine, colour, { moved, removed }) {
    const id = `policy-${++fields}`;
    Object.assign(this, { engine, moved });
    this.name = element("input", {
      type: "text", "aria-label": "Name of the policy", maxlength: 24,
      spellcheck: "false", class: "name",
      oninput: () => this.tell(),
    });
    this.text = element("textarea", {
      id: `${id}-text`, rows: 2, spellcheck: "false", autocapitalize: "off",
      "aria-label": "The policy as a text", "aria-describedby": `${id}-says`,
      oninput: () => {
        this.look();
        this.tell();
      },
    });
    this.says = element("p", { id: `${id}-says`, class: "says" });
    this.swatch = element("span", { class: "swatch" });
    this.remove = element("button", {
      type: "button", class: "remove", onclick: removed,
    }, "Remove");
    this.sliders = this.makeSliders();
    this.field = element("div", { class: "card", role: "group" },
      element("div", { class: "row" }, this.swatch, this.name, this.remove),
      this.text, this.says,
      element("details", {}, element("summary", {}, "Parameters"),
        ...Object.values(this.sliders).map((each) => each.field)));
    this.dye(colour);
  }

  makeSliders() {
    const set = (key) => (value) => {
      this.text.value = withSetting(this.text.value, key, value);
      this.look();
      this.tell();
    };
    const time = (label, key, least) => slider({
      label, steps: stepsOf(TIMES, least, 3600e9), words: timeText,
      moved: (ns) => set(key)(timeText(ns)),
    });
    return {
      base: time("base: the first window", "base", 0),
      cap: time("cap: no window is longer", "cap", 1e6),
      factor: slider({
        label: "factor: a window to the next", steps: FACTORS,
        words: (thousandths) => String(thousandths / 1000),
        moved: (thousandths) => set("factor")(thousandths / 1000),
      }),
      jitter: choice({
        label: "jitter",
        options: [["none", "none: at the window's end"],
          ["full", "full: anywhere in it"], ["equal", "equal: its later half"],
          ["decorrelated", "decorrelated"], ["polly", "Polly's"],
          ["10%", "10 %"], ["20%", "20 %"],
          ["50%", "50 %"]],
        moved: set("jitter"),
      }),
      attempts: slider({
        label: "attempts, the first one counted", steps: ATTEMPTS,
        words: (count) => count === 0 ? "no limit" : String(count),
        moved: (count) => set("attempts")(count === 0 ? "unlimited" : count),
      }),
    };
  }

  dye(colour) {
    this.swatch.innerHTML = marker(this.engine, colour);
  }

  show(name, text) {
    this.name.value = name;
    this.text.value = text;
    this.look();
  }

  tell() {
    this.field.setAttribute("aria-label", `Policy ${this.name.value}`);
    this.remove.setAttribute("aria-label", `Remove ${this.name.value}`);
    this.moved(this.name.value, this.text.value);
  }

  // Says what the text means, or what is wrong with it.
  look() {
    const policy = this.engine.policy(this.text.value);
    const is = policy.error === undefined;
    this.field.setAttribute("aria-label", `Policy ${this.name.value}`);
    this.remove.setAttribute("aria-label", `Remove ${this.name.value}`);
    this.text.setAttribute("aria-invalid", !is);
    this.says.classList.toggle("error", !is);
    if (is) this.showMeaning(policy);
    else this.says.textContent = policy.error;
    for (const each of Object.values(this.sliders)) each.allow(is);
    if (is) {
      this.sliders.cap.allow(policy.growth !== "fixed" &&
        policy.growth !== "list");
      this.sliders.factor.allow(policy.growth === "exponential" &&
        !["decorrelated", "polly"].includes(policy.jitter));
      this.sliders.base.allow(policy.growth !== "list");
    }
  }

  showMeaning(policy) {
    this.says.textContent = waitsWords(policy);
    this.sliders.base.show(Number(policy.base));
    this.sliders.cap.show(Number(policy.cap) || 3600e9);
    this.sliders.factor.show(Number(policy.factor));
    this.sliders.jitter.show(policy.jitter);
    this.sliders.attempts.show(Number(policy.attempts));
  }
}

// Where the waits fall, for people.
function waitsWords(policy) {
  const windows = policy.windows.split(" ").map((ns) => Number(ns) / MS);
  const [first] = windows;
  const upTo = policy.jitter === "none" ? "Waits of" : "Waits in windows of";
  if (policy.attempts === "1") return "No retry.";
  if (policy.jitter === "decorrelated")
    return `Waits from ${timeWords(first)} to three times the last one.`;
  if (policy.jitter === "polly")
    return `Waits about ${windows.slice(0, 7).map(timeWords).join(", ")} …`;
  if (windows.every((each) => each === first))
    return first === 0 ? "Retries at once." : `${upTo} ${timeWords(first)}.`;
  return `${upTo} ${windows.slice(0, 7).map(timeWords).join(", ")} …`;
}

// The shape and colour that a policy has in all charts.
function marker(engine, colour) {
  return `<svg class="stg" viewBox="0 0 16 16" width="16" height="16" ` +
    `aria-hidden="true"><g class="c${colour % 8}">` +
    `<path class="m" d="${engine.marker(colour)}"/></g></svg>`;
}
