/* One target: what it is, its books, and what happens to it. */
import {follow, get, post, query, remove} from "./api.js";
import {makeChart} from "./chart.js";
import {count, counted, make, makePairs, makeTable, rate, redraw, span, time} from "./dom.js";
import {editTarget} from "./edit.js";
import {makePlan} from "./plan.js";
import {makeRewinds} from "./rewind.js";
import {backlog, booksBalance, makeState, Rate, trouble, wordOf} from "./state.js";

const EVERY_MS = 2000;
const HOUR_EVERY_MS = 10000;
const EVENTS = 50;
const CAUSES = 4; /* of failures that have a line each */

function booksOf(t) {
  const parts = [["delivered", t.delivered], ["dead", t.dead], ["cancelled", t.cancelled],
                 ["parked", t.parked], ["waiting", t.waiting], ["in flight", t.in_flight]];
  return [`${count(t.routed)} routed = ` + parts.map(([name, n]) => `${count(n)} ${name}`).join(" + "),
          booksBalance(t) ? "" : make("strong", {class: "trouble"}, " They do not balance.")];
}

function factsOf(t, now) {
  return makePairs("facts", [
    ["State", makeState(t)],
    ["Delivered", rate(now.delivered)],
    ["Errors", rate(now.failed)],
    ["Backlog", count(backlog(t))],
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
    ["Books", booksOf(t)],
    ["Attempts", `${count(t.attempts)}, of which ${count(t.failures)} failed; ${count(t.retries)} retries`],
    ["Last failure", t.last_cause === null ? null : [`${t.last_cause}, `, time(t.last_failure_at, now)]],
    ["Token", t.token === null ? null : t.token.cause ?? "good"],
    ["Circuit breaker", t.policy !== null && !t.policy.includes("breaker=") ? "none" : [
      t.breaker, t.openings > 0 ? `; opened ${counted(t.openings, "time")}` : "",
      t.probe_at === null ? "" : "; next probe ",
      t.probe_at === null ? "" : time(t.probe_at, now, "when a message is due")]],
    ["Retry budget", t.budget_left === null ? null
      : `${count(Math.floor(t.budget_left))} left; ${count(t.budget_refused)} retries refused`],
    ["Policy", t.policy === null ? null : make("code", {}, t.policy)],
    ["Tags", Object.entries(t.tags).map(([name, value]) => `${name}=${value}`).join(", ")],
  ]);
}

/* -- the last hour ----------------------------------------------------------- */

function chartsOf(hour) {
  const perS = (counts) => counts.map((n) => n / hour.bucket_s);
  const most = hour.causes.slice(0, CAUSES);
  const others = hour.failed.map((n, i) => most.reduce((rest, each) => Math.max(0, rest - each.failed[i]), n));
  const faults = most.map((each) => [each.cause, perS(each.failed)]);

  if (others.some((n) => n > 0))
    faults.push(["others", perS(others)]);
  return [
    makeChart("Delivered", "1 h", [["deliveries a second", perS(hour.delivered)]], rate),
    makeChart("Time of a delivery", "1 h", [["p50", hour.p50_ms], ["p99", hour.p99_ms]], span),
    makeChart("Failed attempts", "1 h", faults.length === 0 ? [["failures a second", perS(hour.failed)]] : faults, rate),
  ];
}

/* -- its last attempts ------------------------------------------------------- */

const ATTEMPT_COLUMNS = [["Ended (UTC)"], ["Status", "number"], ["Cause", "", true], ["Took", "number"], ["Attempt", "number"],
                         ["Message"], ["Answer begins, or why there is none", "wide"]];

function attemptsOf({attempts}) {
  if (attempts.length === 0)
    return make("p", {class: "quiet"}, "None since the hub started.");
  return makeTable("Last attempts", ATTEMPT_COLUMNS, attempts.map((a) => [
    a.ended_at.slice(11, 23),
    a.http_status === null ? "none" : String(a.http_status),
    a.cause === null ? "delivered" : make("span", {class: "trouble"}, a.cause),
    span(a.took_ms),
    count(a.attempt),
    make("a", {href: `#/messages/${a.message_id}`}, a.message_id),
    a.detail ?? (a.answer_base64 === undefined ? make("code", {}, a.answer) : `${a.answer_base64} (base64)`),
  ]));
}

/* -- the view ---------------------------------------------------------------- */

function makeButtons(t, context, again) {
  const path = `/v1/targets/${encodeURIComponent(t.name)}`;
  const act = (name, label, words) => make("button", {click: () => context.act(async () => {
    await post(`${path}/${name}`);
    context.say(`${t.name}: ${label}`);
    again();
  })}, words ?? name[0].toUpperCase() + name.slice(1));
  /* ask() is a dry run, and says what is lost. */
  const end = (label, ask, work) => make("button", {click: () => context.act(async () => {
    const loss = await ask();
    const waiting = loss.waiting + loss.parked + loss.in_flight;
    if (!await context.confirm(`${label} ${t.name}?`,
                               (waiting === 1 ? "1 message waits for it: it is cancelled." :
                                 `${count(waiting)} messages wait for it: they are cancelled.`) +
                               (loss.dead_letters === 0 ? "" :
                                 ` Its ${counted(loss.dead_letters, "dead letter")} cannot be sent again.`), label, "danger"))
      return;
    await work();
    location.hash = "#/";
  })}, label);
  const forget = end("Forget", () => post(`${path}/forget?dry-run=true`), () => post(`${path}/forget`));

  const edit = make("button", {click: () => context.act(() => editTarget(path, t.name, () => {
    context.say(`${t.name}: saved`);
    again();
  }))}, "Edit");

  if (!context.may("operate"))
    return null;
  if (t.state === "orphaned")
    return make("div", {class: "row"}, forget);
  return make("div", {class: "row"}, t.is_paused_by_call ? act("resume", "resumed")
                : t.state === "paused" ? null : act("pause", "paused"),
              ["circuit-open", "shedding"].includes(t.state) ? act("probe", "the next message that is due is the probe", "Probe now") : null,
              ...(t.added_by !== "call" ? [] : [edit, end("Remove", () => remove(`${path}?dry-run=true`),
                                                          () => remove(`${path}?waiting=cancel`))]));
}

export function showTarget(context, name) {
  const {view, signal, every} = context;
  const path = `/v1/targets/${encodeURIComponent(name)}`;
  const now = new Rate();
  const words = make("p", {class: "trouble"});
  const why = make("p", {class: "trouble"});
  const url = make("p", {class: "quiet"});
  const facts = make("div");
  const details = make("div");
  const plan = make("div");
  const buttons = make("div");
  const hour = make("div", {class: "charts"});
  const attempts = make("div");
  const events = make("div");
  const rewinds = makeRewinds(context, name);
  const told = [];
  let drawn = null;
  let state = null;
  let hourAt = 0;
  let planned = null;
  let attemptsShown = null;

  /* Headings stand over something: the first answer. */
  const parts = [url, words, why, facts, buttons, make("h2", {}, "Last hour"), hour,
                 make("h2", {}, "Last attempts"), attempts, make("h2", {}, "Counts and settings"), details,
                 make("h2", {}, "Retries of its policy"), plan, make("h2", {}, "Send messages of the log again"),
                 ...rewinds.parts, make("h2", {}, "Events since this page was opened"), events];

  view.append(make("h1", {}, name));

  function drawEvents() {
    const rows = told.map(({time: at, level, event, ...more}) => {
      delete more.target;
      return [at.slice(11, 23), level, event,
              Object.entries(more).map(([key, value]) => `${key}=${value}`).join("  ")];
    });
    redraw(events, rows.length === 0
      ? make("p", {class: "quiet"}, "None so far. Earlier ones are in the hub's own log.")
      : makeTable("Events", [["Time (UTC)"], ["Level", "", true], ["Event", "", true], ["", "wide", true]], rows));
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

  /* The charts have a new value each ten seconds only. */
  async function drawHour() {
    if (performance.now() < hourAt)
      return;
    hourAt = performance.now() + HOUR_EVERY_MS;
    hour.replaceChildren(...chartsOf(await get(`${path}/history`, signal)));
  }

  /* A table under a finger, or with the focus, is written anew only if it differs. */
  async function drawAttempts() {
    const last = await get(`${path}/attempts`, signal);
    const first = last.attempts[0];
    const failed = last.attempts.find((a) => a.cause !== null);

    why.textContent = words.textContent === "" ? "" : failed?.detail ?? "";
    const meaning = first === undefined ? "none" : `${first.message_id} ${first.attempt} ${first.ended_at.slice(0, 19)}`;

    const chosen = getSelection();
    if (!chosen.isCollapsed && attempts.contains(chosen.anchorNode))
      return;
    if (meaning !== attemptsShown)
      redraw(attempts, attemptsOf(last));
    attemptsShown = meaning;
  }

  /* The policy changes with the settings only. */
  async function drawPlan({policy}) {
    if (policy === planned)
      return;
    plan.replaceChildren(policy === null ? make("p", {class: "quiet"}, "The settings have no such target.")
      : makePlan(await get(`${path}/plan`, signal)));
    planned = policy;
  }

  const draw = async () => {
    const t = await get(path, signal);
    const iso = new Date().toISOString();
    now.take(t, Date.parse(iso));
    words.textContent = trouble(t, iso) ?? "";
    url.textContent = t.url;
    if (drawn === null)
      view.append(...parts);
    redraw(facts, factsOf(t, now));
    redraw(details, detailsOf(t));
    /* A button under a finger stays: it is made anew only when it means another. */
    const meaning = `${t.state} ${t.is_paused_by_call} ${t.added_by}`;
    if (meaning !== drawn)
      redraw(buttons, makeButtons(t, context, draw) ?? "");
    if (drawn !== null && wordOf(t) !== state)
      context.announce(`${name}: ${wordOf(t)}`);
    drawn = meaning;
    state = wordOf(t);
    await Promise.all([drawHour(), drawAttempts(), drawPlan(t), rewinds.draw(t.state !== "orphaned")]);
  };
  return every(EVERY_MS, draw);
}
