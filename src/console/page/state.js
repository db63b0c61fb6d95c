/* What the hub says, asked again and again, and what only differences of two
 * answers tell: rates. Pure but for what it is given. */
import {span} from "./dom.js";

/* States that need somebody's eyes come first. */
const ORDER = ["shedding", "circuit-open", "orphaned", "throttled", "removing", "paused", "live"];
const KIND = {"live": "good", "paused": "warn", "throttled": "warn", "removing": "warn",
              "orphaned": "bad", "circuit-open": "bad", "shedding": "bad"};

export function kindOfState(state) {
  return KIND[state] ?? "warn";
}

/* Deliveries and failures a second of a target, from counters as they are told:
 * a mean in which the last few seconds count most. */
export class Rate {
  delivered = 0;
  failed = 0;
  #before = null;

  take(t, ms) {
    const before = this.#before;
    if (before !== null && ms <= before.ms)
      return;
    if (before !== null) {
      const seconds = (ms - before.ms) / 1000;
      const weight = 1 - Math.exp(-seconds / 3);
      const mean = (old, count) => {
        const rate = old + (Math.max(0, count) / seconds - old) * weight;
        return rate < 0.05 ? 0 : rate;
      };
      this.delivered = mean(this.delivered, t.delivered - before.delivered);
      this.failed = mean(this.failed, t.failures - before.failed);
    }
    this.#before = {ms, delivered: t.delivered, failed: t.failures};
  }
}

/* All that waits for a target: what it has taken of the log and not settled, and
 * what it has not taken yet. */
export function backlog(t) {
  return t.waiting + t.parked + t.in_flight + t.lag_messages;
}

export function booksBalance(t) {
  return t.routed === t.delivered + t.dead + t.cancelled + t.parked + t.waiting + t.in_flight;
}

/* Since the last success it only failed, or it failed within a minute. */
function hasFailed(t, now) {
  return t.failing_since !== null ||
    (t.last_failure_at !== null && Date.parse(now) - Date.parse(t.last_failure_at) < 60000);
}

function sinceOf(at, now) {
  return at === null ? "since the hub started" : `for ${span(Math.max(0, Date.parse(now) - Date.parse(at)))}`;
}

function until(at, now) {
  return span(Math.max(0, Date.parse(at) - Date.parse(now)));
}

/* When a target whose circuit is open is probed next. */
function probeOf(t, now) {
  const wait = t.probe_at === null ? null : until(t.probe_at, now);

  if (t.state === "circuit-open" && backlog(t) === 0)
    return "; no message waits for it: the next message is the probe" +
      (wait === null ? "" : `, in ${wait} at the earliest`);
  return wait === null ? "" : `; next probe in ${wait}`;
}

/* What is wrong with a target, and since when, in words; null: nothing. */
export function trouble(t, now) {
  const cause = t.last_cause === null ? "" : `; the last failure was ${t.last_cause}`;
  const since = sinceOf(t.state_since, now);
  switch (t.state) {
  case "orphaned":
    return "The settings have it no more: forget it, or put it back.";
  case "removing":
    return "It is being forgotten.";
  case "paused":
    if (t.is_disabled)
      return `Disabled ${since}: it only failed for too long${cause}. Mend it, then resume it.`;
    return `Paused ${t.is_paused_by_call ? "by a call" : "in the settings"} ${since}.`;
  case "shedding":
    return `It has been shedding ${since}: its circuit stayed open for longer than shed-after, so its messages ` +
      `become bulk dead letters without an attempt until a probe succeeds${cause}${probeOf(t, now)}.`;
  case "circuit-open":
    return `Its circuit is open ${since}${cause}${probeOf(t, now)}.`;
  case "throttled":
    return `Held back ${since} by Retry-After, a rate, its parked rows, a full store or the want of a token` +
      (t.gate_until === null ? "." : `; goes on in ${until(t.gate_until, now)}.`);
  default:
    if (t.failing_since !== null)
      return `${t.last_cause} ${sinceOf(t.failing_since, now)}, without a success.`;
    if (hasFailed(t, now))
      return `${t.last_cause}, ${sinceOf(t.last_failure_at, now).slice(4)} ago; it works again.`;
    return t.is_catching_up ? "It is far behind, and catches up." : null;
  }
}

/* Whether what is sent to it now would wait, or fail. */
export function isIll(t) {
  return ["circuit-open", "shedding", "throttled"].includes(t.state) || (t.state === "live" && t.failing_since !== null);
}

/* The worst first; of two alike, the one that fails, or the one whose backlog is
 * ten times as large: smaller differences would move rows each second. */
export function sortTargets(targets, now) {
  const rank = (t) => [ORDER.indexOf(t.state), hasFailed(t, now) ? 0 : 1, -Math.floor(Math.log10(backlog(t) + 1))];
  const ranked = targets.map((t) => [t, rank(t)]);

  ranked.sort(([a, x], [b, y]) => x[0] - y[0] || x[1] - y[1] || x[2] - y[2] || (a.name < b.name ? -1 : 1));
  return ranked.map(([t]) => t);
}
