"use strict";
// The same as bench/web.c, in WebAssembly: for bench/web.py.
//
// usage: node web.js ENGINE_JS WASM CLIENTS REPETITIONS

const fs = require("fs");

const [engineFile, wasm, clients, reps] = process.argv.slice(2);
const { Engine } = require(engineFile);
const engine = new Engine(new WebAssembly.Module(fs.readFileSync(wasm)));

// Simulates all repetitions, and returns the CPU seconds. In the first run the
// engine is compiled, too; a page has done that before its user drags a slider.
function run(reps) {
  engine.begin({
    clients: Number(clients), reps, seed: 1, resource: "optimistic",
    network: "normal:10ms:2ms",
    policies: [{
      name: "full",
      text: "exponential base=10ms cap=2s jitter=full attempts=unlimited " +
        "deadline=none",
    }],
  });
  const began = process.cpuUsage();
  while (engine.repeat(0));
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1e6;
}

const calls = () => engine.sums(0).calls * engine.sums(0).repetitions;
const first = run(Number(reps));
const cold = calls() / first;
const seconds = run(Number(reps));
console.log(`${calls().toFixed(0)} ${seconds.toFixed(6)} ${cold.toFixed(0)}`);
