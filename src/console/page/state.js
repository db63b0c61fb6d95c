/* What the hub says, asked again and again, and what only differences of two
 * answers tell: rates. Pure but for what it is given. */
import {counted, make, span} from "./dom.js";

const KIND = {"live": "good", "paused": "warn", "throttled": "warn", "removing": "warn",
              "orphaned": "bad", "circuit-open": "bad", "shedding": "bad"};

/* The state in words and in a colour: a target that is live may only fail. */
export function wordOf(t) {
  return t.state === "live" && t.failing_since !== null ? "live, failing" : t.state;
}

export function makeState(t) {
  const isBad = t.is_disabled || wordOf(t) !== t.state;
  return make("span", {class: `state ${isBad ? "bad" : KIND[t.state] ?? "warn"}`}, wordOf(t));
}

/* Deliveries and failures a second of a target, from counters as they are told:
 * a mean over some ten seconds, as the charts have it. */
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
      const weight = 1 - Math.exp(-seconds / 10);
      const mean = (old, count) => {
        const rate = old + (Math.max(0, count) / seconds - old) * weight;
        return rate < 0.005 ? 0 : rate;
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

/* Of the time before the hub started, only the counts are known. */
function hasOldTroubles(t) {
  return t.attempts === 0 && t.dead > 0;
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

  if (backlog(t) === 0)
    return "; no message waits for it: the next message is the probe" +
      (wait === null ? "" : `, in ${wait} at the earliest`);
  return wait === null ? "" : `; next probe in ${wait}`;
}

/* Says what is wrong with a target, and since when; null: nothing is. */
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
    return t.is_paused_by_call ? `Paused by a call ${t.state_since === null ? "before the hub started" : since}.`
      : `Paused in the settings ${since}: change them to resume it.`;
  case "shedding":
    return `${t.last_cause ?? "Its circuit is open"}, and it is shedding ${since}: it was down for longer than ` +
      `shed-after. Its messages become dead letters without an attempt, until a probe succeeds${probeOf(t, now)}.`;
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
    if (hasOldTroubles(t))
      return `No attempt since the hub started; before that ${counted(t.dead, "message")} of it died.`;
    return t.is_catching_up ? "It is far behind, and catches up." : null;
  }
}

/* Whether what is sent to it now would wait, or fail. */
export function isIll(t) {
  return ["circuit-open", "shedding", "throttled"].includes(t.state) || (t.state === "live" && t.failing_since !== null);
}

/* From the worst to those that work; what somebody has paused is just before these. */
function rankOf(t, now) {
  if (t.state === "live")
    return t.failing_since !== null ? 3 : hasFailed(t, now) ? 6 : hasOldTroubles(t) ? 7 : 9;
  if (t.state === "paused")
    return t.is_disabled ? 2 : 8;
  return {"shedding": 0, "circuit-open": 1, "orphaned": 2, "throttled": 4}[t.state] ?? 5;
}

/* The worst first; of two alike, the one whose backlog is
 * ten times as large: smaller differences would move rows each second. */
export function sortTargets(targets, now) {
  const rank = (t) => [rankOf(t, now), -Math.floor(Math.log10(backlog(t) + 1))];
  const ranked = targets.map((t) => [t, rank(t)]);

  ranked.sort(([a, x], [b, y]) => x[0] - y[0] || x[1] - y[1] || (a.name < b.name ? -1 : 1));
  return ranked.map(([t]) => t);
}
