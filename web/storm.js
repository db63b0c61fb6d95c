"use strict";
// A storm: knobs, a picture that moves, and what it comes to, in words.

const CAPACITY = 1000; // requests a second that the server can do
const WORKERS = 10;
const QUEUE = 1000; // places
const FROM = 8; // seconds until the trouble begins
const REST = 45; // seconds that are shown after it
const RUNS = 5;
const PINS_MAX = 4; // as many as STG_WASM_STORMS_MAX lets stand beside one

const TROUBLES = {
  outage: { words: "it is down", trigger: "outage", the: "the outage",
    now: "down", of: "A server is down for" },
  stall: { words: "it hangs", trigger: "stall", the: "the stall",
    now: "hangs", of: "A server hangs for" },
  slow: { words: "it is three times slower", trigger: "slow:3",
    the: "the slow-down", now: "slow", of: "A server is three times slower for" },
  spike: { words: "four times the load", trigger: "spike:4", the: "the spike",
    now: "4 × load", of: "Four times as much work begins for" },
  errors: { words: "half of its answers are errors", trigger: "errors:50%",
    the: "the trouble", now: "errors", of: "Half of a server's answers fail for" },
};

const JITTERS = {
  none: "none: all wait as long", equal: "equal: half is chance",
  full: "full: all is chance",
};
const BREAKERS = {
  none: "none", "10:5s": "opens after 10 failures, for 5 s",
};

const per = (share) => `${share} %`;
const KNOBS = {
  load: { label: "load, of what the server can do", usual: 70,
    steps: [10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 100, 110, 120],
    words: (load) => `${per(load)}: ${load * CAPACITY / 100}/s` },
  trouble: { label: "the trouble", usual: "outage", options:
    Object.entries(TROUBLES).map(([kind, { words }]) => [kind, words]) },
  length: { label: "for how long", usual: 5, steps: [1, 2, 3, 4, 5, 7, 10, 15, 20, 30,
    45, 60], words: (s) => `${s} s` },
  attempts: { label: "attempts, the first one counted", usual: 6,
    steps: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], words: String },
  jitter: { label: "jitter of the waits", usual: "full",
    about: "chance, so that clients do not come back together",
    options: Object.entries(JITTERS) },
  layers: { label: "services in a row", usual: 1, steps: [1, 2, 3, 4],
    about: "each calls the next, and retries as clients do; the last one has " +
      "the trouble", words: String },
  budget: { label: "retry budget", usual: 0,
    about: "how many retries all clients together may make",
    steps: [0, 1, 2, 5, 10, 15, 20, 30, 50, 100],
    words: (share) => share === 0 ? "none"
      : `${per(share)} of the operations` },
  breaker: { label: "circuit breaker", usual: "none",
    about: "stops calling a server that keeps failing",
    options: Object.entries(BREAKERS) },
};

const usualStorm = () => Object.fromEntries(
  Object.entries(KNOBS).map(([key, { usual }]) => [key, usual]));

// What a link says of the knobs, where it is one of their places.
function stormOf(said) {
  const storm = usualStorm();
  if (typeof said !== "object") return storm;
  for (const [key, { steps, options }] of Object.entries(KNOBS))
    if (steps?.includes(said?.[key]) ||
        options?.some(([value]) => value === said?.[key]))
      storm[key] = said[key];
  return storm;
}

function policyOf(storm) {
  const { attempts, jitter, budget, breaker } = storm;
  return ["exponential base=500ms cap=5s", `jitter=${jitter}`,
    `attempts=${attempts}`,
    ...budget > 0 ? [`budget=ratio:${budget / 100}`] : [],
    ...breaker !== "none" ? [`breaker=${breaker}`] : []].join(" ");
}

function settingsOf({ load, trouble, length, layers }) {
  return {
    rate: load * CAPACITY / 100, trigger: TROUBLES[trouble].trigger,
    from: `${FROM}s`, to: `${FROM + length}s`,
    duration: `${FROM + length + REST}s`, ...layers > 1 ? { layers } : {},
  };
}

const retryingBetween = (layers) => layers === 1 ? "" :
  layers === 2 ? ", and so does the service between them" :
    `, and so do ${layers - 1} services between them`;

const isSameStorm = (a, b) =>
  Object.keys(KNOBS).every((key) => a[key] === b[key]);

// Names for the charts: what storms beside one another do not share, and where
// that is much, what of it is not as usual.
function stormNames(storms) {
  const said = storms.map((storm) => ({
    budget: storm.budget === 0 ? "no-budget" : `budget-${storm.budget}%`,
    attempts: `${storm.attempts}-attempts`, jitter: `${storm.jitter}-jitter`,
    breaker: storm.breaker === "none" ? "no-breaker" : "breaker",
    layers: storm.layers === 1 ? "one-layer" : `${storm.layers}-layers`,
    load: `load-${storm.load}%`, length: `${storm.length}s`,
    trouble: storm.trouble,
  }));
  const apart = Object.keys(said[0]).filter((key) =>
    said.some((each) => each[key] !== said[0][key]));
  return said.map((each, i) => apart.length === 0 ? each.budget
    : apart.filter((key) => apart.length <= 2 ||
      storms[i][key] !== KNOBS[key].usual).map((key) => each[key]).join("-") ||
      "as-usual");
}

// -- the panel

class Storm {
  constructor(engine, module, linked) {
    Object.assign(this, { engine, linked, t: 0, isPlaying: false, pins: [] });
    this.find = (id) => document.getElementById(id);
    this.scene = new Scene(this.find("scene"));
    this.computer = new Computer(module, (message) => this.show(message));
    this.say = (words) => { this.find("storm-copied").textContent = words; };
    this.figures = new Figures([this.find("rates"), this.find("storm-charts")],
      this.computer, this.say, (share) =>
        this.seek(Math.min(this.series.end, share * this.chartEnd)));
    this.head = element("div", { class: "playhead", hidden: true });
    this.makeKnobs();
    this.makeControls();
    new ResizeObserver(() => this.fit()).observe(this.find("stage"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.scene.dye();
      this.draw();
    });
    this.motion = matchMedia("(prefers-reduced-motion: reduce)");
  }

  makeKnobs() {
    this.knobs = {};
    for (const [key, knob] of Object.entries(KNOBS)) {
      const made = (knob.steps ? slider : choice)({ ...knob,
        moved: (value) => {
          this.state[key] = value;
          this.changed();
          this.replay(false);
        } });
      this.knobs[key] = made;
      this.find("knobs").append(made.field, ...knob.about
        ? [element("p", { class: "about" }, knob.about)] : []);
    }
    explain(this.find("knobs"));
  }

  makeControls() {
    const on = (id, event, run) => this.find(id).addEventListener(event, run);
    on("play", "click", () => this.play(!this.isPlaying));
    on("scrub", "input", () => {
      this.play(false);
      this.seek(Number(this.find("scrub").value) / 10);
    });
    on("scene", "click", () => this.play(!this.isPlaying));
    on("speed", "change", () => this.draw());
    on("budget-button", "click", () => this.turnBudget());
    on("pin", "click", () => {
      this.pin();
      this.changed();
    });
    on("storm-reset", "click", () => this.take({}));
    on("storm-link", "click", async () =>
      this.say(await copyText(this.linked(), "The link")));
    on("storm-copy", "click", async () => this.say(
      await copyText(this.find("storm-command").textContent, "The command")));
    on("storm-save", "click", () =>
      saveFile(new Blob([this.csv], { type: "text/csv" }), "storm.csv"));
    on("knobs", "submit", (event) => event.preventDefault());
    on("storm", "keydown", (event) => {
      if (event.key !== " " || event.target.closest("button, input, select"))
        return;
      event.preventDefault();
      this.play(!this.isPlaying);
    });
  }

  isPinned() { return this.pins.some((pin) => isSameStorm(pin, this.state)); }

  // Keeps the run as it is now; the first one goes where there are too many.
  pin() {
    if (!this.isPinned())
      this.pins = [...this.pins, { ...this.state }].slice(-PINS_MAX);
  }

  showPins(storms) {
    const isFull = this.pins.length === PINS_MAX;
    this.find("pin").disabled = isFull || this.isPinned();
    this.find("pin").textContent = this.isPinned() ? "This run is pinned"
      : isFull ? `${PINS_MAX} runs are pinned` : "Pin this run";
    this.find("pins").hidden = this.pins.length === 0;
    this.find("pins").replaceChildren("Pinned:", ...this.pins.map((pin) => {
      const i = storms.findIndex((storm) => isSameStorm(storm, pin));
      const swatch = element("span", { class: "swatch" });
      swatch.innerHTML = marker(this.engine, i);
      return element("button", {
        type: "button", class: "chip", "aria-label": `Unpin ${this.names[i]}`,
        onclick: () => {
          this.pins = this.pins.filter((each) => each !== pin);
          this.changed();
          this.find("pin").focus();
        },
      }, swatch, this.names[i], element("span", { "aria-hidden": "true" }, "×"));
    }));
  }

  // Adds a budget, or takes it away, beside what there was without it.
  turnBudget() {
    this.pin();
    this.state.budget = this.state.budget === 0 ? 10 : 0;
    this.showKnobs();
    this.changed();
    this.replay(true);
  }

  // -- what is asked for

  delta() {
    return deltaOf({ ...this.state,
      ...this.pins.length ? { pins: this.pins.map((pin) =>
        deltaOf(pin, usualStorm()) || {}) } : {} }, usualStorm());
  }

  take(said) {
    this.state = stormOf(said);
    this.pins = (Array.isArray(said.pins) ? said.pins : []).map(stormOf)
      .filter((pin, i, all) => all.findIndex((each) =>
        isSameStorm(each, pin)) === i).slice(0, PINS_MAX);
    this.showKnobs();
    this.changed();
    this.replay(true);
  }

  showKnobs() {
    for (const [key, knob] of Object.entries(this.knobs))
      knob.show(this.state[key]);
  }

  changed() {
    const { state } = this;
    const storms = [state, ...this.pins.filter((pin) =>
      !isSameStorm(pin, state))];
    this.find("storm").classList.add("stale");
    this.names = stormNames(storms);
    this.run = { reps: RUNS, seed: 1, storms: storms.map((storm, i) => ({
      name: this.names[i], policy: policyOf(storm),
      settings: Object.entries(settingsOf(storm)).map(([key, value]) =>
        `${key}=${value}`).join("\n"),
    })) };
    this.showPins(storms);
    this.find("storm-title").textContent = `${TROUBLES[state.trouble].of} ` +
      `${state.length} s. ${state.attempts === 1 ? "Nobody retries" :
        `Clients retry${retryingBetween(state.layers)}`}.`;
    this.find("budget-button").textContent = state.budget === 0
      ? "Add a retry budget" : "Take the budget away";
    this.find("storm-command").textContent = this.command();
    if (this.isAsking) return;
    this.isAsking = true;
    setTimeout(() => {
      this.isAsking = false;
      this.asked = { ...this.state };
      this.askedEnd = Math.max(...storms.map(({ length }) =>
        FROM + length + REST));
      this.computer.ask(this.run, this.figures.widthNow());
    });
  }

  command() {
    const [{ name, policy }] = this.run.storms;
    return ["stagger sim overload", `--reps ${RUNS}`, "--seed 1",
      ...Object.entries(settingsOf(this.state)).map(([key, value]) =>
        `--${key} ${value}`), `--policy ${quoted(`${name}=${policy}`)}`]
      .join(" \\\n    ");
  }

  // -- what came of it

  show(message) {
    const refused = this.find("storm-refused");
    refused.hidden = message.error === undefined;
    if (message.error !== undefined) {
      refused.textContent = message.error;
      return;
    }
    if (message.first) {
      const { trouble, length } = this.asked;
      this.series = new Series(message.first, message.sums[0].bin / 1000,
        { kind: trouble, from: FROM, until: FROM + length });
      this.find("scrub").max = Math.round(this.series.end * 10);
      this.seek(Math.min(this.t, this.series.end));
      this.showVerdict(message.sums[0]);
      return;
    }
    this.csv = message.csv;
    this.figures.show(message.charts);
    this.chartEnd = this.askedEnd;
    this.alignTime();
    this.showVerdict(message.sums[0]);
    this.showTable(message.sums);
    this.find("storm").classList.remove("stale");
    this.find("storm").dataset.done = message.id;
    this.draw();
  }

  showVerdict(sums) {
    const verdict = verdictOf(this.asked, sums, this.series);
    this.find("verdict").className = verdict.kind;
    this.find("verdict-title").textContent = verdict.title;
    sayExplained(this.find("verdict-why"), verdict.why);
  }

  showTable(sums) {
    const cell = (words) => element("td", {}, words);
    const recovers = ({ recovered, runs, recovery, bin }) =>
      recovered === 0 ? "no" : (recovered < runs
        ? `${recovered} of ${runs} runs, ` : "") +
        (recovery < bin ? "at once" : `after ${timeWords(recovery)}`);
    this.find("storm-table").tBodies[0].replaceChildren(...sums.map((each, i) =>
      element("tr", {},
        element("th", { scope: "row" }, this.names[i]),
        cell(recovers(each)),
        ...["before", "during", "after"].map((key) =>
          cell(each[key] < 0 ? "–" : `${plain(each[key])}/s`)),
        cell(numberWords(each.amplification)), cell(`${plain(each.peak)}/s`),
        cell(per(numberWords(each.success * 100))))));
  }

  // -- time

  speed() { return Number(this.find("speed").value); }

  play(is) {
    if (is && this.series && this.t >= this.series.end - 0.05) this.t = 0;
    this.isPlaying = is;
    this.find("play").textContent = is ? "Pause" : "Play";
    cancelAnimationFrame(this.frame);
    if (!is) {
      this.tell();
      return;
    }
    let last = null;
    const step = (now) => {
      if (this.series && last !== null)
        this.t += Math.min(0.1, (now - last) / 1000) * this.speed();
      last = now;
      if (this.series && this.t >= this.series.end) {
        this.t = this.series.end;
        this.play(false);
      }
      this.draw();
      if (this.isPlaying) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  leave() { this.play(false); }

  // What a storm of other settings begins with: it plays from before the
  // trouble, or stands at its end for who wants no motion. One that somebody
  // has stopped, or that plays, stays where it is unless it has to.
  replay(hasTo) {
    const end = FROM + this.state.length + REST;
    if (this.motion.matches) {
      this.play(false);
      this.seek(end);
    } else if (hasTo || this.t >= this.series?.end) {
      this.seek(FROM - 3);
      this.play(true);
    }
  }

  seek(t) {
    this.t = t;
    this.draw();
    this.tell();
  }

  fit() {
    const width = this.find("stage").clientWidth;
    if (width === 0 || width === this.scene.width) return;
    this.scene.resize(width);
    this.draw();
  }

  // The slider and the line are where the charts have their time.
  alignTime() {
    const { chart, hair } = this.figures.all[0];
    const thumb = 8; // pixels: half of it
    this.axis = hair.axis();
    chart.after(this.head);
    this.head.hidden = !this.axis;
    if (!this.axis) return;
    const { left, top, width, height } = this.axis;
    Object.assign(this.head.style,
      { left: `${left - 1}px`, top: `${top}px`, height: `${height}px` });
    Object.assign(this.find("scrub").style,
      { marginLeft: `${left - thumb}px`, width:
        `${width * this.series.end / this.chartEnd + 2 * thumb}px` });
  }

  // A frame.
  draw() {
    if (!this.series || !this.scene.width) return;
    const t = Math.min(this.t, this.series.end);
    this.scene.draw(this.series, t, this.speed());
    this.find("scrub").value = Math.round(t * 10);
    this.find("time").textContent = `${t.toFixed(1)} s`;
    const words = phaseOf(this.asked, this.series, t);
    if (this.find("phase").textContent !== words)
      this.find("phase").textContent = words;
    if (this.axis) this.head.style.transform =
      `translateX(${this.axis.width * t / this.chartEnd}px)`;
  }

  // For those who do not see the picture.
  tell() {
    if (!this.series) return;
    const { series } = this;
    const rate = (name) => plain(series.rate(name, this.t));
    const words = `${this.t.toFixed(1)} s: ${rate("succeeded")} operations ` +
      `succeed a second, ${rate("sent")} requests arrive, ${rate("retried")} ` +
      `of them retries; ${plain(series.level("queue", this.t))} wait in the ` +
      `server's queue, and ${plain(series.waiting(this.t))} clients wait.`;
    this.find("scrub").setAttribute("aria-valuetext", words);
    this.find("scene").setAttribute("aria-label", `The storm at ${words}`);
  }
}
