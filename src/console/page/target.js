/* One target: what it is, its books, and what happens to it. */
import {follow, get, post, query} from "./api.js";
import {count, make, makePairs, makeSpark, makeTable, rate, span, time} from "./dom.js";
import {backlog, booksBalance, kindOfState, trouble} from "./state.js";

const EVERY_MS = 2000;
const EVENTS = 50;

function booksOf(t) {
  const parts = [["delivered", t.delivered], ["dead", t.dead], ["cancelled", t.cancelled],
                 ["parked", t.parked], ["waiting", t.waiting], ["in flight", t.in_flight]];
  return [`${count(t.routed)} routed = ` + parts.map(([name, n]) => `${count(n)} ${name}`).join(" + "),
          booksBalance(t) ? "" : make("strong", {class: "trouble"}, " They do not balance.")];
}

function factsOf(t, rates, now) {
  const per_s = rates.of(t.name);

  return makePairs("facts", [
    ["State", make("span", {class: `state ${kindOfState(t.state)}`}, t.state)],
    ["Delivered", [rate(per_s.at(-1)), " ", per_s.length < 2 ? "" : makeSpark(per_s, "deliveries a second")]],
    ["Waiting", count(backlog(t))],
    ["Oldest", t.lag_ms === null ? null : span(t.lag_ms)],
    ["p50", t.p50_ms === null ? null : span(t.p50_ms)],
    ["p99", t.p99_ms === null ? null : span(t.p99_ms)],
    ["In flight", `${count(t.in_flight)} of ${count(t.in_flight_limit)}`],
    ["Dead", t.dead === 0 ? "0" : make("a", {
      href: `#/dead-letters?state=dead&target=${encodeURIComponent(t.name)}`}, count(t.dead))],
  ]);
}

function detailsOf(t, now) {
  return makePairs("pairs", [
    ["URL", t.url],
    ["Books", booksOf(t)],
    ["Attempts", `${count(t.attempts)}, of which ${count(t.failures)} failed; ${count(t.retries)} retries`],
    ["Last failure", t.last_cause === null ? null : [`${t.last_cause}, `, time(t.last_failure_at, now)]],
    ["Circuit breaker", [t.breaker, t.openings > 0 ? `; opened ${count(t.openings)} times` : "",
                         t.probe_at === null ? "" : "; next probe ",
                         t.probe_at === null ? "" : time(t.probe_at, now)]],
    ["Retry budget", t.budget_left === null ? null
      : `${count(Math.floor(t.budget_left))} left; ${count(t.budget_refused)} retries refused`],
    ["Policy", t.policy === null ? null : make("code", {}, t.policy)],
    ["Tags", Object.entries(t.tags).map(([name, value]) => `${name}=${value}`).join(", ")],
  ]);
}

function makeButtons(t, context, again) {
  const path = `/v1/targets/${encodeURIComponent(t.name)}`;
  const act = (name, label) => make("button", {click: () => context.act(async () => {
    await post(`${path}/${name}`);
    context.say(`${t.name}: ${label}`);
    again();
  })}, name[0].toUpperCase() + name.slice(1));
  const forget = make("button", {click: () => context.act(async () => {
    if (!await context.confirm(`Forget ${t.name}?`, `${count(backlog(t))} messages wait for it: they are cancelled.`,
                               "Forget"))
      return;
    await post(`${path}/forget`);
    location.hash = "#/";
  })}, "Forget");

  if (!context.may("operate"))
    return null;
  return make("div", {class: "row"}, t.is_paused_by_call ? act("resume", "resumed") : act("pause", "paused"),
              t.state === "orphaned" ? forget : null);
}

export function showTarget(context, name) {
  const {view, rates, signal, every} = context;
  const words = make("p", {class: "trouble"});
  const facts = make("div");
  const details = make("div");
  const buttons = make("div");
  const events = make("div");
  const told = [];
  let drawn = null;

  view.append(make("h1", {}, name), words, facts, buttons, details,
              make("h2", {}, "What happens to it, as the log has it"), events);

  function drawEvents() {
    const rows = told.map(({time: at, level, event, ...more}) => {
      delete more.target;
      return [at.slice(11, 23), level, event,
              Object.entries(more).map(([key, value]) => `${key}=${value}`).join("  ")];
    });
    events.replaceChildren(rows.length === 0
      ? make("p", {class: "quiet"}, "Nothing yet.")
      : makeTable("Events", [["Time (UTC)"], ["Level"], ["Event"], ["", "wide"]], rows));
  }

  drawEvents();
  follow(query("/v1/events", {target: name}), signal, (event) => {
    told.unshift(event);
    told.length = Math.min(told.length, EVENTS);
    drawEvents();
  }).catch((error) => {
    if (error.name !== "AbortError")
      events.replaceChildren(make("p", {class: "quiet"}, `No events: ${error.message}`));
  });

  const draw = async () => {
    const t = await get(`/v1/targets/${encodeURIComponent(name)}`, signal);
    const now = new Date();
    rates.take([t], now.getTime());
    words.textContent = trouble(t, (at) => time(at).textContent) ?? "";
    facts.replaceChildren(factsOf(t, rates));
    details.replaceChildren(detailsOf(t));
    /* A button under a finger stays: it is made anew only when it means another. */
    const meaning = `${t.state} ${t.is_paused_by_call}`;
    if (meaning !== drawn)
      buttons.replaceChildren(makeButtons(t, context, draw) ?? "");
    drawn = meaning;
  };
  return every(EVERY_MS, draw);
}
