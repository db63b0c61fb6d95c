"use strict";
// Contention: what is asked for, and what came of it.

const POLICIES_MAX = 8;
const UNLIMITED = "attempts=unlimited deadline=none";

// The experiment that made jitter known.
const TEXTS = {
  none: `fixed base=0 jitter=none ${UNLIMITED}`,
  exponential: `exponential base=10ms cap=2s jitter=none ${UNLIMITED}`,
  equal: `exponential base=10ms cap=2s jitter=equal ${UNLIMITED}`,
  full: `exponential base=10ms cap=2s jitter=full ${UNLIMITED}`,
  decorrelated: `exponential base=5ms cap=2s jitter=decorrelated ${UNLIMITED}`,
};

const RESOURCES = {
  optimistic: {
    words: "optimistic concurrency",
    about: "A version number. A client reads it, and writes with what it read; " +
      "the write is refused if another was first.",
    text: () => "optimistic",
  },
  lock: {
    words: "a lock",
    about: "Held by one client for a time; a call is refused while it is held.",
    text: (r) => `lock hold=${timeText(r.hold)}`,
    fields: ["hold"],
  },
  rate: {
    words: "a rate limit",
    about: "So many calls in each window of time; the others are refused.",
    text: (r) => `rate=${r.rate}/${timeText(r.window)}` +
      (r.says ? " retry-after=yes" : ""),
    fields: ["rate", "window", "says"],
  },
  workers: {
    words: "workers with a queue",
    about: "They serve in the order of arrival; a call is refused when the " +
      "queue is full.",
    text: (r) => `workers=${r.workers} service=exponential:` +
      `${timeText(r.service)} queue=${r.queue}`,
    fields: ["workers", "service", "queue"],
  },
  round: {
    words: "one a round",
    about: "Time is cut into rounds: the first call of each succeeds, and all " +
      "are told at its end.",
    text: (r) => `round=${timeText(r.round)}`,
    fields: ["round"],
  },
};

function usual() {
  return {
    clients: 100, reps: 20, seed: 1,
    network: { mean: 10 * MS, spread: 2 * MS },
    resource: {
      kind: "optimistic", hold: 10 * MS, rate: 100, window: 1000 * MS,
      says: false, workers: 4, service: 50 * MS, queue: 20, round: 40 * MS,
    },
    policies: Object.entries(TEXTS).map(([name, text]) => ({ name, text })),
  };
}

// What the engine and the command are told.
function runOf(state) {
  const { mean, spread } = state.network;
  const names = new Set();
  return {
    clients: state.clients, reps: state.reps, seed: state.seed,
    resource: RESOURCES[state.resource.kind].text(state.resource),
    network: spread === 0 ? timeText(mean)
      : `normal:${timeText(mean)}:${timeText(spread)}`,
    policies: state.policies.map(({ name, text }, i) => {
      let plain = plainName(name) || `policy-${i + 1}`;
      while (names.has(plain)) plain += `-${i + 1}`;
      names.add(plain);
      return { name: plain, text: text.trim() };
    }),
  };
}

function commandOf(run) {
  return ["stagger sim contention", `--clients ${run.clients}`,
    `--reps ${run.reps}`, `--seed ${run.seed}`,
    `--resource ${quoted(run.resource)}`, `--network ${run.network}`,
    ...run.policies.map(({ name, text }) =>
      `--policy ${quoted(`${name}=${text}`)}`)].join(" \\\n    ");
}

// -- the panel

class Contention {
  constructor(engine, module, linked) {
    this.engine = engine;
    this.linked = linked;
    this.find = (id) => document.getElementById(id);
    this.computer = new Computer(module, (message) => this.show(message));
    this.figures = new Figures([this.find("charts")], this.computer,
      (words) => { this.find("copied").textContent = words; });
    this.makeForm();
  }

  widthNow() { return this.figures.widthNow(); }

  // -- the form

  makeForm() {
    const set = (place, key) => (value) => {
      (place ? this.state[place] : this.state)[key] = value;
      this.changed();
    };
    const time = (place, key, label, least, most) => slider({
      label, steps: stepsOf(TIMES, least, most), words: timeText,
      moved: set(place, key),
    });
    const count = (place, key, label, most, least = 1) => sliderWithBox({
      label, steps: least === 0 ? [0, ...stepsOf(COUNTS, 1, most)]
        : stepsOf(COUNTS, least, most), least, most, moved: set(place, key),
    });
    this.clients = count(null, "clients", "clients", 10000);
    this.reps = count(null, "reps", "repetitions", 1000);
    this.seed = sliderWithBox({
      label: "seed", steps: stepsOf(COUNTS, 1, 100), least: 0,
      most: 4294967295, moved: set(null, "seed"),
    });
    this.network = {
      mean: time("network", "mean", "a message takes", 0, 10e9),
      spread: time("network", "spread", "give or take (deviation)", 0, 10e9),
    };
    this.resource = {
      hold: time("resource", "hold", "held for", 0, 60e9),
      rate: count("resource", "rate", "calls in a window", 10000),
      window: time("resource", "window", "the window", 1e6, 600e9),
      says: checkbox({
        label: "says when it ends (Retry-After)", moved: set("resource", "says"),
      }),
      workers: count("resource", "workers", "workers", 1000),
      service: time("resource", "service", "a call takes, in the mean", 1e5,
        60e9),
      queue: count("resource", "queue", "places in the queue", 10000, 0),
      round: time("resource", "round", "a round", 1e6, 60e9),
    };
    this.find("clients").append(this.clients.field);
    this.find("chance").append(this.reps.field, this.seed.field);
    this.find("network").append(
      ...Object.values(this.network).map((each) => each.field));
    this.makeChoices();
    this.makeButtons();
  }

  makeChoices() {
    const kind = this.find("resource-kind");
    kind.append(...Object.entries(RESOURCES).map(([value, { words }]) =>
      element("option", { value }, words)));
    kind.addEventListener("change", () => {
      this.state.resource.kind = kind.value;
      this.showResource();
      this.changed();
    });
    this.find("new-policy").append(
      element("optgroup", { label: "the experiment's" },
        ...Object.keys(TEXTS).map((name) => element("option", {}, name))),
      element("optgroup", { label: "presets" },
        ...this.engine.presets().map(({ name, use }) =>
          element("option", { value: `preset ${name}` }, `${name}: ${use}`))));
    this.find("new-policy").value = "full";
  }

  makeButtons() {
    const copy = async (text, what) => {
      this.find("copied").textContent = await copyText(text, what);
    };
    this.find("add-policy").addEventListener("click", () => this.addPolicy());
    this.find("reset").addEventListener("click", () => this.put(usual()));
    this.find("copy-command").addEventListener("click", () =>
      copy(this.find("command").textContent, "The command"));
    this.find("copy-link").addEventListener("click", () =>
      copy(this.linked(), "The link"));
    this.find("save").addEventListener("click", () =>
      saveFile(new Blob([this.csv], { type: "text/csv" }), "contention.csv"));
    this.find("controls").addEventListener("submit", (event) =>
      event.preventDefault());
  }

  addPolicy() {
    const chosen = this.find("new-policy").value;
    const name = chosen.replace("preset ", "");
    const text = TEXTS[chosen] || name;
    const same = this.state.policies.filter((each) =>
      each.name === name || each.name.startsWith(`${name}-`)).length;
    this.state.policies.push({
      name: same === 0 ? name : `${name}-${same + 1}`, text,
    });
    this.showPolicies();
    this.cards.at(-1).text.focus();
    this.changed();
  }

  removePolicy(i) {
    this.state.policies.splice(i, 1);
    this.showPolicies();
    const near = this.cards[Math.min(i, this.cards.length - 1)];
    (near ? near.name : this.find("add-policy")).focus();
    this.changed();
  }

  // -- showing what is asked for

  put(state) {
    this.state = state;
    this.clients.show(state.clients);
    this.reps.show(state.reps);
    this.seed.show(state.seed);
    for (const [key, field] of Object.entries(this.network))
      field.show(state.network[key]);
    this.showResource();
    this.showPolicies();
    this.changed();
  }

  showResource() {
    const { kind } = this.state.resource;
    this.find("resource-kind").value = kind;
    this.find("resource-about").textContent = RESOURCES[kind].about;
    const fields = RESOURCES[kind].fields || [];
    this.find("resource").replaceChildren(
      ...fields.map((key) => this.resource[key].field));
    for (const key of fields)
      this.resource[key].show(this.state.resource[key]);
  }

  showPolicies() {
    const { policies } = this.state;
    this.cards = policies.map((policy, i) => {
      const card = new Card(this.engine, i, {
        moved: (name, text) => {
          Object.assign(policy, { name, text });
          this.changed();
        },
        removed: () => this.removePolicy(i),
      });
      card.show(policy.name, policy.text);
      return card;
    });
    this.find("policies").replaceChildren(
      ...this.cards.map((card) => card.field));
    this.find("add-policy").disabled = policies.length >= POLICIES_MAX;
  }

  // -- asking for it

  // Something was moved: what is shown now is of before.
  changed() {
    this.find("results").classList.add("stale");
    if (this.isAsking) return;
    this.isAsking = true;
    // Not the next frame: a page in the background has none.
    setTimeout(() => {
      this.isAsking = false;
      this.ask();
    });
  }

  ask() {
    const run = runOf(this.state);
    this.run = run;
    this.find("command").textContent = commandOf(run);
    const wrong = run.policies.find(({ text }) =>
      this.engine.policy(text).error !== undefined);
    if (run.policies.length === 0 || wrong) {
      this.refuse(wrong ? `The policy ${wrong.name} cannot be run as it is: ` +
        "what is wrong with it is said below it." : "There is no policy to run.");
      return;
    }
    this.find("status").textContent = "Running …";
    this.computer.ask(run, this.widthNow());
  }

  refuse(words) {
    this.computer.forget();
    this.find("refused").textContent = words;
    this.find("refused").hidden = false;
    this.find("status").textContent = "What is shown is of before.";
  }

  // -- showing what came of it

  show(message) {
    if (message.error !== undefined) {
      this.refuse(message.error);
      return;
    }
    const { done, of, ms } = message;
    this.find("refused").hidden = true;
    this.find("results").classList.remove("stale");
    this.find("status").textContent = done < of
      ? `${done} of ${of} repetitions …`
      : `${of} repetitions, in ${timeWords(Math.round(ms))}.`;
    this.find("results").dataset.done = done === of ? message.id : "";
    Object.assign(this, { sums: message.sums, csv: message.csv });
    this.showTotals(message.sums);
    this.figures.show(message.charts);
  }

  showTotals(sums) {
    const body = this.find("totals").tBodies[0];
    const cell = (words, error) => element("td", {}, words,
      ...(error === undefined ? []
        : [element("span", { class: "se" }, ` ± ${error}`)]));
    const counted = (each, key) =>
      cell(numberWords(each[key]), numberWords(each[`${key}Se`]));
    body.replaceChildren(...sums.map((each, i) => {
      const heading = element("th", { scope: "row" });
      heading.innerHTML = marker(this.engine, i);
      heading.append(" ", this.run.policies[i].name);
      return element("tr", {}, heading, counted(each, "calls"),
        counted(each, "wasted"),
        cell(...timeWordsWithin(each.completion, each.completionSe)),
        ...["p50", "p95", "most"].map((key) =>
          cell(each.successes > 0 ? timeWords(each[key]) : "–")),
        counted(each, "peak"), each.givenUp === 0 ? cell("0")
          : counted(each, "givenUp"));
    }));
  }

  // -- a link to the panel as it is

  delta() { return deltaOf(this.state, usual()); }

  // What a link says, with what it does not say as usual.
  take(said) {
    const state = usual();
    const number = (value, old) => Number.isFinite(value) ? value : old;
    for (const key of ["clients", "reps", "seed"])
      state[key] = number(said[key], state[key]);
    for (const part of ["network", "resource"])
      for (const key of Object.keys(state[part]))
        if (typeof said[part]?.[key] === typeof state[part][key])
          state[part][key] = said[part][key];
    if (!Object.hasOwn(RESOURCES, state.resource.kind))
      state.resource.kind = "optimistic";
    if (Array.isArray(said.policies))
      state.policies = said.policies.slice(0, POLICIES_MAX).map((each, i) => {
        const { name, text } = { ...usual().policies[i], ...each };
        return { name: String(name), text: String(text) };
      });
    this.put(state);
  }
}
