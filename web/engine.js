"use strict";
// The simulator's C code (src/sim/wasm.h), as JavaScript calls it: in the page,
// in its worker, and under node for the benchmark.

const SUMS = [
  "repetitions", "calls", "callsSe", "wasted", "wastedSe", "completion",
  "completionSe", "peak", "peakSe", "successes", "successesSe", "givenUp",
  "givenUpSe", "p50", "p95", "most",
];

const STORM_SUMS = [
  "runs", "recovered", "healthy", "isCut", "bin", "recovery", "before",
  "during", "after", "amplification", "success", "peak",
];

const BIN_FIELDS = 10; // stg_wasm_bin_field

class Engine {
  // module: a WebAssembly.Module.
  constructor(module) {
    this.told = () => {}; // gets the share that is done of what takes long
    this.c = new WebAssembly.Instance(module, {
      page: { told: (share) => this.told(share) },
    }).exports;
    this.handle = this.c.stg_wasm_new(this.c.stg_wasm_memory.value);
    if (this.handle === 0) throw new Error("no memory for the simulator");
  }

  // Calls with texts among the arguments, and gives back the room they took.
  call(name, ...args) {
    const rooms = [];
    try {
      return this.c[`stg_wasm_${name}`](this.handle, ...args.map((each) => {
        if (typeof each !== "string") return each;
        const bytes = new TextEncoder().encode(each);
        const room = this.c.stg_wasm_take(this.handle, bytes.length + 1);
        if (room === 0) throw new Error("no memory for a text");
        rooms.push(room);
        const memory = new Uint8Array(this.c.memory.buffer);
        memory.set(bytes, room);
        memory[room + bytes.length] = 0;
        return room;
      }));
    } finally {
      for (const room of rooms) this.c.stg_wasm_drop(this.handle, room);
    }
  }

  text(name, ...args) {
    const at = this.call(name, ...args);
    const memory = new Uint8Array(this.c.memory.buffer);
    return new TextDecoder().decode(memory.subarray(at, memory.indexOf(0, at)));
  }

  // Lines of a key and a value; {error, column} for a refusal.
  lines(name, ...args) {
    const answer = this.text(name, ...args);
    const refused = /^error (?:(\d+) )?([^]*)$/.exec(answer);
    if (refused)
      return { error: refused[2], column: Number(refused[1] || 0) };
    const found = {};
    for (const line of answer.split("\n")) {
      const blank = line.indexOf(" ");
      if (blank > 0) found[line.slice(0, blank)] = line.slice(blank + 1);
    }
    return found;
  }

  // What a text means.
  policy(text) { return this.lines("policy", text); }
  resource(text) { return this.lines("resource", text); }
  distribution(text) { return this.lines("distribution", text); }

  // What a policy will do; null where it is wrong, as policy() says.
  plan(text, clients) {
    const plan = { waits: [], warnings: [] };
    for (const line of this.text("plan", text, clients).split("\n")) {
      const [key, ...words] = line.split(" ");
      const rest = words.join(" ");
      const [retry, window, least, mean, most, ...total] = words.map(Number);
      if (key === "error") return null;
      if (key === "wait") plan.waits.push({
        retry, window, least, mean, most,
        total: { least: total[0], mean: total[1], most: total[2] },
        past: total[3] === 1,
      });
      else if (key === "warning") plan.warnings.push(rest.split("\t"));
      else if (key !== "")
        plan[key] = /^\d+$/.test(rest) ? Number(rest) : rest;
    }
    return plan;
  }

  // Which policy, for {clients, processes, capacity, load, outage, patience,
  // service}, times in ns, load in percent: {policy, said: [...], rows: [{name,
  // outage, stall, lost, load, peak, p99, runs, failed}]}, or {error}. It takes
  // half a minute.
  advise(question, reps) {
    const { clients, processes, capacity, load, outage, patience, service } =
      question;
    const [head, said] = this.text("advise", clients, processes,
      BigInt(capacity * 1000), load * 10, BigInt(outage), BigInt(patience),
      BigInt(service), reps).split("\nsaid\n");
    if (said === undefined) return { error: head.replace(/^error /, "") };
    const [policy, ...rows] = head.split("\n");
    return {
      policy: policy.slice("policy ".length),
      said: said.split("\n").filter((line) => line !== ""),
      rows: rows.map((row) => {
        const [name, ...numbers] = row.slice("row ".length).split("\t");
        const [outage, stall, lost, load, peak, p99, runs, failed] =
          numbers.map(Number);
        return { name, outage, stall, lost, load, peak, p99, runs, failed };
      }),
    };
  }

  presets() {
    const all = [];
    for (;;) {
      const preset = this.lines("preset", all.length);
      if (preset.name === undefined) return all;
      all.push(preset);
    }
  }

  // A run of {clients, reps, seed, resource, network, policies: [{name,
  // text}]}. Returns "" or what is wrong with it.
  begin(run) {
    return this.ask(
      ["begin", run.clients, run.reps, BigInt(run.seed), run.resource,
        run.network],
      ...run.policies.map((each) => ["add", each.name, each.text]));
  }

  // The first error of several calls, or "".
  ask(...calls) {
    for (const call of calls) {
      const { error } = this.lines(...call);
      if (error !== undefined) return error;
    }
    return "";
  }

  repeat(i) { return this.call("repeat", i) !== 0; }

  // Overloads beside one another: {reps, seed, storms: [{name, policy,
  // settings}]}. Returns "" or what is wrong with it.
  beginStorms(run) {
    return this.ask(["storm_begin", run.reps, BigInt(run.seed)],
      ...run.storms.map((each) =>
        ["storm_add", each.name, each.policy, each.settings]));
  }

  stormRun(i) { return this.call("storm_run", i) !== 0; }

  // The first run of storm number i: rows of BIN_FIELDS numbers.
  stormSeries(i) {
    return new Float64Array(this.c.memory.buffer, this.call("storm_series", i),
      this.call("storm_bins", i) * BIN_FIELDS).slice();
  }

  stormSums(i) { return this.numbers("storm_sums", i, STORM_SUMS); }

  // The pictures of what there is so far: [{title, note, svg}, ...]; alone:
  // each svg is a file of its own.
  charts(width, alone = false) {
    return this.text("charts", width, Number(alone)).split("\f").slice(0, -1).map((chart) => {
      const [title, note] = chart.split("\n", 2);
      return { title, note, svg: chart.slice(title.length + note.length + 2) };
    });
  }

  csv() { return this.text("csv"); }
  style() { return this.text("style"); }
  marker(colour) { return this.text("marker", colour); }

  // What policy number i has come to: numbers by the names above.
  sums(i) { return this.numbers("sums", i, SUMS); }

  numbers(name, i, names) {
    const at = this.call(name, i);
    if (at === 0) throw new Error("no memory for the totals");
    const numbers = new Float64Array(this.c.memory.buffer, at, names.length);
    return Object.fromEntries(names.map((name, k) => [name, numbers[k]]));
  }
}

if (typeof module === "object") module.exports = { Engine };
