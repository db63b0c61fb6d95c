/* A message by its id: where it is, target by target. */
import {get, query} from "./api.js";
import {bytes, count, make, makePairs, makeTable, redraw, span, time} from "./dom.js";
import {makeResend} from "./rewind.js";

const EVERY_MS = 2000;
const KIND = {delivered: "good", waiting: "warn", parked: "warn", dead: "bad"};
const COLUMNS = [["Target", "", true], ["State", "", true], ["Attempts", "number"], ["Cause", "wide", true], ["Next attempt"], ["Dead letter"], ["", "", true]];

/* A dead letter stays dead when its message is sent again from the log: what came
 * of that, only the receipts say. */
function stateOf({state, receipts}) {
  const last = receipts.reduce((a, b) => (a !== null && a.ended_at > b.ended_at ? a : b), null);
  return state === "dead" && last !== null && last.cause === null ? "delivered (resent)" : state;
}

/* What the log still has, and does not wait, can be sent again. Whether a topic has
 * a message (its id has dots) only the broker knows. */
function rowOf(context, m, each) {
  const isToSend = (m.is_kept || m.id.includes(".")) && ["delivered", "dead"].includes(each.state);

  const state = stateOf(each);

  return [make("a", {href: `#/targets/${encodeURIComponent(each.target)}`}, each.target),
          make("span", {class: `state ${KIND[each.state === state ? state : "delivered"] ?? ""}`}, state),
          count(Math.max(each.attempts ?? 0, each.receipts.length) || null),
          state.startsWith("delivered") ? "" : each.cause, time(each.due_at, undefined, "due"),
          each.dead_letter === null ? ""
            : make("a", {href: `#/dead-letters/${each.dead_letter}`},
                   `${each.dead_letter}${each.is_range ? " (of many messages)" : ""}`),
          isToSend ? makeResend(context, m.id, each.target) : ""];
}

/* Where the body is that the log has no more: a dead letter of this message alone
 * has it, until it is replayed or dropped. */
function bodyOf(targets) {
  const all = targets.filter((t) => t.state === "dead" && !t.is_range);

  if (all.length === 0)
    return "no longer in the log";
  return ["no longer in the log; with ", make("a", {href: `#/dead-letters/${all[0].dead_letter}`},
                                               `dead letter ${all[0].dead_letter}`)];
}

/* -- its attempts: receipts, where the hub keeps them ------------------------- */

const ATTEMPTS = [["Target", "", true], ["Attempt", "number"], ["Ended (UTC)"], ["Status", "number"], ["Cause", "wide", true], ["Took", "number"]];
const NO_RECEIPTS = {
  "off": "No receipts are kept: with “receipts.keep” in the settings each attempt is shown here.",
  "not-sampled": "This message has no receipts: it is not among “receipts.share”.",
  "kept": "No receipt of this message is there: its attempts have not ended, or their receipts went with the oldest.",
};

function attemptsOf({state, since}, targets) {
  const rows = targets.flatMap((t) => t.receipts.map((r) => [
    t.target, count(r.attempt), r.ended_at, r.http_status === null ? "none" : String(r.http_status),
    r.cause === null ? "delivered" : make("span", {class: "trouble"}, r.cause), span(r.took_ms)]));

  return [rows.length > 0 ? makeTable("Attempts", ATTEMPTS, rows) : make("p", {class: "quiet"}, NO_RECEIPTS[state]),
          ...(state !== "kept" || since === null ? [] :
            [make("p", {class: "quiet"}, `The oldest receipt that is kept is of ${since}.`)])];
}

async function read(path, signal) {
  const m = await get(query(path, {limit: 1000}), signal);

  for (let next = m.next; next !== null;) {
    const page = await get(query(path, {limit: 1000, cursor: next}), signal);
    m.targets.push(...page.targets);
    next = page.next;
  }
  return m;
}

/* Drawn anew only where it differs: a button under a finger stays. */
export function showMessage(context, id) {
  let shown = null;

  return context.every(EVERY_MS, async () => {
    const m = await read(`/v1/messages/${encodeURIComponent(id)}`, context.signal);
    const meaning = JSON.stringify(m);

    if (meaning !== shown)
      redraw(
        context.view,
        make("h1", {}, `Message ${m.id}`),
        makePairs("pairs", [
          ["Accepted", time(m.accepted_at)],
          ["Position", count(m.position)],
          ["Size", m.size === null ? null : bytes(m.size)],
          ["Key", m.key],
          ["Body", m.is_kept ? "still in the log" : bodyOf(m.targets)],
        ]),
        makeTable("Targets", COLUMNS, m.targets.map((each) => rowOf(context, m, each))),
        make("h2", {}, "Attempts"), ...attemptsOf(m.receipts, m.targets));
    shown = meaning;
  });
}
