"use strict";
// A storm in words: what happens, and what it comes to.

const plain = (number) => Math.round(number).toLocaleString("en");

// {kind, title, why} of a storm whose runs came to these sums; series: the first.
function verdictOf(storm, sums, series) {
  const { the } = TROUBLES[storm.trouble];
  const { until } = series.trouble;
  const share = sums.recovered / sums.runs;
  if (sums.healthy === 0 || (share === 0 && storm.load >= 100))
    return { kind: "bad", title: "It was not well even before.",
      why: `The server is asked for ${per(storm.load)} of what it can do: no ` +
        "policy helps a server that has too little room." };
  if (share === 1)
    return { kind: "good", title: sums.recovery < sums.bin
      ? `It recovers as soon as ${the} is over.`
      : `It recovers ${timeWords(sums.recovery)} after ${the}.`,
    why: goodWords(storm, sums) };
  const sent = series.mean("sent", until + 5, series.end);
  const rate = storm.load * CAPACITY / 100;
  const usual = series.median("succeeded", until, series.end);
  const burst = series.mean("succeeded", until, until + 1);
  return { kind: share > 0 ? "some" : "bad",
    title: share > 0
      ? `It recovers in ${sums.recovered} of ${sums.runs} runs: chance decides.`
      : `It does not recover: ${plain(usual)} of ${plain(rate)} operations ` +
        `succeed in the median second after ${the}.`,
    why: `${triedWords(storm)}: ${plain(sent)} ` +
      `requests a second for a server that can do ${plain(CAPACITY)}. Its ` +
      "queue stays full, so answers come too late, and their clients try again" +
      (burst > usual + rate / 5
      ? ` (only in the first second, while the queue is short, ${plain(burst)} ` +
        "succeed)" : "") +
      ". The retries keep the trouble alive: a metastable failure." };
}

// Where each calls the next, each attempt of one becomes all attempts of the next.
function triedWords({ attempts, layers }) {
  if (layers === 1) return `What fails is tried up to ${attempts} times`;
  return `What fails is tried up to ${attempts} times by the clients and by each ` +
    `service before the last one, which makes ` +
    `${Array(layers).fill(attempts).join(" × ")} = ` +
    `${plain(attempts ** layers)} requests of an operation`;
}

function goodWords(storm, sums) {
  const rate = storm.load * CAPACITY / 100;
  const most = rate * (1 + storm.budget / 100) ** storm.layers;
  if (storm.attempts === 1)
    return "Nothing is retried, so there is no storm. But each operation that " +
      `meets the trouble is lost: ${per(numberWords(100 - 100 * sums.success))}.`;
  if (storm.budget > 0) {
    const payers = storm.layers === 1 ? "The budget pays"
      : "The budgets of the clients and of each service pay";
    return `${payers} for ${storm.budget} retries in 100 operations; any other ` +
      `fails at once. So ${plain(rate)} operations a second come to ` +
      `${plain(most)} requests, when what was saved is spent` +
      (most < CAPACITY
        ? `: fewer than the ${plain(CAPACITY)} that the server can do. Its ` +
          "queue drains, and answers are in time again." : ".");
  }
  if (storm.breaker !== "none")
    return "After ten failures in a row a client stops calling for a while. So " +
      "the server comes back to a queue that is short, and keeps it short.";
  return `An operation becomes ${numberWords(sums.amplification)} requests: the ` +
    "server has room for so many, and its queue drains.";
}

// What happens at a time of it: of few kinds, so that it is told once.
function phaseOf(storm, series, t) {
  const { the } = TROUBLES[storm.trouble];
  const { from, until } = series.trouble;
  const before = series.mean("succeeded", 2, from);
  const isWell = series.mean("succeeded", t - 1, t + 0.5) > before * 0.85;
  if (t < from)
    return `All is well: ${storm.load * CAPACITY / 100} operations begin each ` +
      `second, and the server can do ${plain(CAPACITY)}.`;
  if (t < until)
    return `${TROUBLES[storm.trouble].of} ${storm.length} s. ` +
      (storm.attempts > 1 ? "What fails waits, and is tried again (orange)."
        : "What fails is given up.");
  if (isWell)
    return `${the[0].toUpperCase()}${the.slice(1)} is over, and answers are in ` +
      "time again (green).";
  if (series.mean("succeeded", t - 1, t + 0.5) > before * 0.2)
    return `${the[0].toUpperCase()}${the.slice(1)} is over, but more is tried again ` +
      "than the server can do: its queue grows.";
  return `${the[0].toUpperCase()}${the.slice(1)} is over, yet the server ` +
    "answers requests that nobody waits for any more (grey).";
}
