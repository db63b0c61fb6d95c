/* All targets, the worst first. */
import {get, query} from "./api.js";
import {bytes, count, make, makePairs, makeSpark, makeTable, rate, span, time} from "./dom.js";
import {backlog, booksBalance, kindOfState, sortTargets, trouble} from "./state.js";

const EVERY_MS = 2000;
const SHOWN = 200; /* rows; more when asked for */

async function getTargets(signal) {
  const all = [];
  let cursor = null;

  do {
    const page = await get(query("/v1/targets", {limit: 1000, cursor}), signal);
    all.push(...page.targets);
    cursor = page.next;
  } while (cursor !== null);
  return all;
}

function factsOf(status, targets) {
  const unbalanced = targets.filter((t) => !booksBalance(t)).length;
  const sum = (pick) => targets.reduce((all, t) => all + pick(t), 0);
  const store = status.store;

  return makePairs("facts", [
    ["Hub", status.missing === null ? status.state : make("span", {class: "trouble"}, status.missing)],
    ["Up for", span(Date.parse(status.now) - Date.parse(status.started_at))],
    ["Accepted", count(status.accepted)],
    ["Waiting", count(sum(backlog))],
    ["Delivered", count(sum((t) => t.delivered))],
    ["Dead", count(sum((t) => t.dead))],
    ["Books", unbalanced === 0 ? "balance" : make("span", {class: "trouble"}, `${unbalanced} targets do not balance`)],
    ["Store", store === null ? null : `${bytes(store.used_bytes)} of ${bytes(store.quota_bytes)}`],
    ["Network", status.uplink.is_down ? make("span", {class: "trouble"}, "down: no target can be reached") : null],
  ]);
}

function rowOf(t, rates, now) {
  const per_s = rates.of(t.name);
  const words = trouble(t, (at) => time(at, now).textContent);

  return [
    make("a", {href: `#/targets/${encodeURIComponent(t.name)}`}, t.name),
    make("span", {class: `state ${kindOfState(t.state)}`}, t.state),
    words,
    rate(per_s.at(-1)),
    per_s.length < 2 ? "" : makeSpark(per_s, `deliveries a second, ${rate(per_s.at(-1)) || "not yet known"} now`),
    count(backlog(t)),
    t.p99_ms === null ? "" : span(t.p99_ms),
    t.dead === 0 ? "" : make("a", {href: `#/dead-letters?state=dead&target=${encodeURIComponent(t.name)}`},
                             count(t.dead)),
  ];
}

const COLUMNS = [["Target"], ["State"], ["What is wrong", "wide"], ["Delivered", "number"], ["Trend"],
                 ["Waiting", "number"], ["p99", "number"], ["Dead", "number"]];

export function showOverview(context) {
  const {view, rates, signal, every} = context;
  const facts = make("div");
  const table = make("div");
  const filter = make("input", {id: "filter", type: "search", autocomplete: "off", input: () => draw()});
  let shown = SHOWN;
  let last = null;

  view.append(make("h1", {}, "Targets"), facts,
              make("div", {class: "row"}, make("label", {for: "filter"}, "Name, state or tag"), filter), table);

  function matches(t) {
    const words = filter.value.trim().toLowerCase();
    return words === "" || [t.name, t.state, ...Object.values(t.tags)].some(
      (each) => each.toLowerCase().includes(words));
  }

  function draw() {
    if (last === null)
      return;
    const found = sortTargets(last.targets.filter(matches));
    const focused = document.activeElement?.getAttribute?.("href");

    facts.replaceChildren(factsOf(last.status, last.targets));
    table.replaceChildren(
      makeTable("Targets", COLUMNS, found.slice(0, shown).map((t) => rowOf(t, rates, last.status.now))),
      found.length === 0 ? make("p", {class: "quiet"}, "No target matches.") : "",
      found.length > shown
        ? make("button", {click: () => { shown += SHOWN; draw(); }}, `Show more of ${count(found.length)}`)
        : "");
    /* The row that had the focus is a new one now. */
    if (focused)
      table.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({preventScroll: true});
  }

  return every(EVERY_MS, async () => {
    const [status, targets] = await Promise.all([get("/v1/status", signal), getTargets(signal)]);
    rates.take(targets, Date.parse(status.now));
    last = {status, targets};
    draw();
  });
}
