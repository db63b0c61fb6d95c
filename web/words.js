"use strict";
// Numbers, times and policies as texts.

const MS = 1e6; // nanoseconds

// Nanoseconds as a setting has them: "250ms", "1.5s", "2m", "0".
function timeText(ns) {
  const units = [["h", 3600e9], ["m", 60e9], ["s", 1e9], ["ms", 1e6],
    ["us", 1e3]];
  if (ns === 0) return "0";
  for (const [name, size] of units) {
    const thousandths = ns / size * 1000;
    if (ns >= size && Number.isInteger(thousandths) &&
        (name === "s" || name === "ms" || thousandths % 1000 === 0))
      return `${thousandths / 1000}${name}`;
  }
  return `${ns}ns`;
}

// Three digits or so, as people read them: "1,803", "12.5".
function numberWords(number) {
  const digits = Math.abs(number) >= 100 || Number.isInteger(number) ? 0
    : Math.abs(number) >= 10 ? 1 : 2;
  return number.toLocaleString("en", { maximumFractionDigits: digits });
}

// Milliseconds as people say them: "4.87 s", "12 ms", "2.9 min".
function timeWords(ms) {
  for (const [name, size] of [["h", 3600e3], ["min", 60e3], ["s", 1e3]])
    if (ms >= size) return `${numberWords(ms / size)} ${name}`;
  return `${numberWords(ms)} ms`;
}

// A mean and its error, in one unit: "4.87 ± 0.04 s".
function timeWordsWithin(ms, se) {
  const [name, size] = [["h", 3600e3], ["min", 60e3], ["s", 1e3], ["ms", 1]]
    .find(([, size]) => ms >= size) || ["ms", 1];
  return [`${numberWords(ms / size)}`, `${numberWords(se / size)} ${name}`];
}

// -- the words of a policy, which stay as they were typed but for one

// The text with key=value in place of the key's word, or behind the others;
// value null: without it.
function withSetting(text, key, value) {
  const words = text.trim().split(/\s+/).filter((word) => word !== "");
  const at = words.findIndex((word) => word.startsWith(`${key}=`));
  const word = value === null ? [] : [`${key}=${value}`];
  if (at >= 0) words.splice(at, 1, ...word);
  else words.push(...word);
  return words.join(" ");
}

// A name that the command takes before a text.
function plainName(name) {
  return name.replace(/[=\s,:]+/g, "-").slice(0, 40);
}

// For a shell of a terminal.
function quoted(word) {
  return /^[\w.:/=%+,-]+$/.test(word) ? word
    : `'${word.replaceAll("'", "'\\''")}'`;
}

// -- what a slider may be put to

const TIMES = [0, ...[1e5, 1e6, 1e7, 1e8].flatMap((decade) =>
  [1, 1.5, 2, 3, 5, 7].map((step) => Math.round(step * decade))),
...[1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1200,
  1800, 3600].map((s) => s * 1e9)];

const COUNTS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 60,
  70, 80, 90, 100, 120, 150, 170, 190, 220, 250, 300, 400, 500, 600, 700, 800,
  900, 1000, 1200, 1500, 2000, 3000, 4000, 5000, 7000, 10000];

// Those from least to most.
function stepsOf(all, least, most) {
  return all.filter((step) => step >= least && step <= most);
}

// The one that is nearest, as a place in the list.
function nearest(steps, value) {
  let best = 0;
  steps.forEach((step, i) => {
    if (Math.abs(step - value) < Math.abs(steps[best] - value)) best = i;
  });
  return best;
}
