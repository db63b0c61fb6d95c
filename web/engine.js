"use strict";
// The simulator's C code (src/sim/wasm.h), as JavaScript calls it: in the page,
// in its worker, and under node for the benchmark.

const SUMS = [
  "repetitions", "calls", "callsSe", "wasted", "wastedSe", "completion",
  "completionSe", "peak", "peakSe", "successes", "successesSe", "givenUp",
  "givenUpSe", "p50", "p95", "most",
];

class Engine {
  // module: a WebAssembly.Module; it imports nothing.
  constructor(module) {
    this.c = new WebAssembly.Instance(module, {}).exports;
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
    const answers = [
      () => this.lines("begin", run.clients, run.reps, BigInt(run.seed),
        run.resource, run.network),
      ...run.policies.map((each) => () =>
        this.lines("add", each.name, each.text)),
    ];
    for (const ask of answers) {
      const { error } = ask();
      if (error !== undefined) return error;
    }
    return "";
  }

  repeat(i) { return this.call("repeat", i) !== 0; }

  // The pictures of what there is so far: [{title, note, svg}, ...].
  charts(width) {
    return this.text("charts", width).split("\f").slice(0, -1).map((chart) => {
      const [title, note] = chart.split("\n", 2);
      return { title, note, svg: chart.slice(title.length + note.length + 2) };
    });
  }

  csv() { return this.text("csv"); }
  style() { return this.text("style"); }
  marker(colour) { return this.text("marker", colour); }

  // What policy number i has come to: numbers by the names above.
  sums(i) {
    const at = this.call("sums", i);
    if (at === 0) throw new Error("no memory for the totals");
    const numbers = new Float64Array(this.c.memory.buffer, at, SUMS.length);
    return Object.fromEntries(SUMS.map((name, k) => [name, numbers[k]]));
  }
}

if (typeof module === "object") module.exports = { Engine };
