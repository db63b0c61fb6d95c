/* What the hub says, asked again and again, and what only differences of two
 * answers tell: rates. Pure but for what it is given. */

const KEPT = 300; /* rates a target: ten minutes of two seconds */

/* States that need somebody's eyes come first. */
const ORDER = ["shedding", "circuit-open", "orphaned", "throttled", "removing", "paused", "live"];
const KIND = {"live": "good", "paused": "warn", "throttled": "warn", "removing": "warn",
              "orphaned": "bad", "circuit-open": "bad", "shedding": "bad"};

export function kindOfState(state) {
  return KIND[state] ?? "warn";
}

/* Deliveries a second of each target, from the counters of two answers. */
export class Rates {
  #last = new Map();

  /* The rate of each target since the answer before, a second. */
  take(targets, ms) {
    const now = new Map();
    for (const t of targets) {
      const before = this.#last.get(t.name);
      const rates = before?.rates ?? [];
      if (before !== undefined && ms > before.ms) {
        rates.push(Math.max(0, t.delivered - before.delivered) * 1000 / (ms - before.ms));
        if (rates.length > KEPT)
          rates.shift();
      }
      now.set(t.name, {ms, delivered: t.delivered, rates});
    }
    this.#last = now;
  }

  of(name) {
    return this.#last.get(name)?.rates ?? [];
  }
}

export function backlog(t) {
  return t.waiting + t.parked + t.in_flight;
}

export function booksBalance(t) {
  return t.routed === t.delivered + t.dead + t.cancelled + backlog(t);
}

function hasJustFailed(t) {
  return t.last_failure_ms_ago !== null && t.last_failure_ms_ago < 60000;
}

/* What is wrong with a target, in words; null: nothing. */
export function trouble(t, when) {
  const cause = t.last_cause === null ? "" : `, last failure ${t.last_cause}`;
  switch (t.state) {
  case "orphaned":
    return "The settings have it no more: forget it, or put it back.";
  case "removing":
    return "It is being forgotten.";
  case "paused":
    return t.is_paused_by_call ? "Paused by a call." : "Paused in the settings.";
  case "shedding":
    return `Its circuit is open for too long: messages become bulk dead letters${cause}.`;
  case "circuit-open":
    return `Its circuit is open${cause}` +
      (t.probe_at === null ? "." : `; next probe ${when(t.probe_at)}.`);
  case "throttled":
    return "Held back by Retry-After, a rate, its parked rows or a full store" +
      (t.gate_until === null ? "." : `; goes on ${when(t.gate_until)}.`);
  default:
    if (hasJustFailed(t))
      return `${t.last_cause}, ${when(t.last_failure_at)}.`;
    return t.is_catching_up ? "It is far behind, and catches up." : null;
  }
}

/* The worst first; of two alike, the one that has just failed, or the larger
 * backlog. */
export function sortTargets(targets) {
  return [...targets].sort((a, b) =>
    ORDER.indexOf(a.state) - ORDER.indexOf(b.state) ||
    hasJustFailed(b) - hasJustFailed(a) || backlog(b) - backlog(a) || (a.name < b.name ? -1 : 1));
}
