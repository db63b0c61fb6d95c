/* All targets, the worst first. */
import {query} from "./api.js";
import {makeSpark} from "./chart.js";
import {bytes, count, counted, keepFocus, make, makeCell, makePairs, rate, redraw, span} from "./dom.js";
import {Live} from "./live.js";
import {addTarget} from "./edit.js";
import {backlog, booksBalance, makeState, sortTargets, trouble, wordOf} from "./state.js";

const PAGE = 50; /* rows */

/* What shows the targets of an alert; those of the others are the first of the table. */
const ALERTS = {"dead-letters": "#/dead-letters?state=dead", "lag": "#/?sort=Backlog"};

/* "breaker 2, lag 1": of how many targets. */
function wordsOf({firing}) {
  return Object.entries(firing).map(([name, n]) => `${name} ${count(n)}`).join(", ") || "none";
}

/* The same with links. Without receivers nothing is known. */
function alertsOf({receivers, firing}) {
  const all = Object.entries(firing).map(([name, n], i) => [i > 0 ? ", " : "",
    ALERTS[name] === undefined ? name : make("a", {href: ALERTS[name]}, name), ` ${count(n)}`]);

  if (receivers === 0)
    return null;
  return all.length === 0 ? "none" : make("span", {class: "trouble"}, ...all.flat());
}

function factsOf(status, targets, isSettled) {
  const unbalanced = targets.filter((t) => !booksBalance(t)).length;
  const sum = (pick) => targets.reduce((all, t) => all + pick(t), 0);
  const store = status.store;

  return makePairs("facts", [
    ["Hub", status.missing === null ? status.state : make("span", {class: "trouble"}, status.missing)],
    ["Up for", span(Date.parse(status.now) - Date.parse(status.started_at))],
    ["Accepted since the start", count(status.accepted)],
    ["Backlog", count(sum(backlog))],
    ["Delivered in all", count(sum((t) => t.delivered))],
    ["Dead in all", count(sum((t) => t.dead))],
    ["Books", unbalanced === 0 ? "balance" : !isSettled ? null : make("span", {class: "trouble"}, `${unbalanced} targets do not balance`)],
    ["Alerts", alertsOf(status.alerts)],
    ["Store", store === null ? null : `${bytes(store.used_bytes)} of ${bytes(store.quota_bytes)}`],
    ["Network", status.uplink.is_down ? make("span", {class: "trouble"}, "down: no target can be reached") : null],
    ["Proxies", status.proxies_down.length > 0
      ? make("span", {class: "trouble"}, status.proxies_down.map((p) => `${p.proxy} is away: ${p.detail}`).join("; ")) : null],
  ]);
}

const COLUMNS = [["Target", "", true], ["State", "", true], ["What is wrong", "wide", true], ["Delivered", "number"], ["Ten minutes"],
                 ["Errors", "number"], ["Backlog", "number"], ["p99", "number"], ["Dead", "number"]];

/* A row of the table, which stays while its target does: only what differs from
 * what it shows is written. */
class Row {
  #cells = COLUMNS.map((column) => makeCell(column));
  #shown = COLUMNS.map(() => undefined);
  element = make("tr", {}, ...this.#cells);

  #set(i, text, node = text) {
    if (this.#shown[i] === text)
      return;
    this.#shown[i] = text;
    this.#cells[i].replaceChildren(typeof node === "function" ? node() : node);
  }

  draw(t, live) {
    const now = live.rateOf(t.name);
    const series = live.series.get(t.name);
    const name = encodeURIComponent(t.name);

    this.#set(0, t.name, () => make("a", {href: `#/targets/${name}`}, t.name));
    this.#set(1, `${wordOf(t)} ${t.is_disabled}`, () => makeState(t));
    this.#set(2, trouble(t, live.status.now) ?? "");
    this.#set(3, rate(now.delivered));
    this.#set(4, series === undefined ? "" : `${series.delivered} ${series.failed}`, () => series === undefined ? ""
      : makeSpark(series.delivered, series.failed, `deliveries, at most ${rate(Math.max(...series.delivered) / 10)}; ` +
                  `failed attempts, at most ${rate(Math.max(...series.failed) / 10)}`));
    this.#set(5, now.failed > 0 ? rate(now.failed) : "");
    this.#set(6, count(backlog(t)));
    this.#set(7, t.p99_ms === null ? "" : span(t.p99_ms));
    this.#set(8, t.dead === 0 ? "" : count(t.dead), () => t.dead === 0 ? ""
      : make("a", {href: `#/dead-letters?state=dead&target=${name}`,
                   "aria-label": `${counted(t.dead, "dead letter")} of ${t.name}`}, count(t.dead)));
  }
}

/* By what a column shows, the most first; the others keep the worst first. */
const SORTS = {
  Target: (a, b) => (a.name < b.name ? -1 : 1),
  Delivered: (a, b, live) => live.rateOf(b.name).delivered - live.rateOf(a.name).delivered,
  Errors: (a, b, live) => live.rateOf(b.name).failed - live.rateOf(a.name).failed,
  Backlog: (a, b) => backlog(b) - backlog(a),
  p99: (a, b) => (b.p99_ms ?? 0) - (a.p99_ms ?? 0),
  Dead: (a, b) => b.dead - a.dead,
};

/* The heading of a column is a button where the table can be sorted by it; pressed
 * again, the worst are first again. */
function makeHeadings(sort, press) {
  return COLUMNS.map(([name, kind]) => SORTS[name] === undefined ? make("th", {scope: "col", class: kind}, name)
    : make("th", {scope: "col", class: kind, "aria-sort": sort !== name ? null : name === "Target" ? "ascending" : "descending"},
           make("button", {class: "sort", click: () => press(sort === name ? "" : name)}, name)));
}

export function showOverview(context, fields) {
  const {view, signal} = context;
  const live = new Live(signal);
  const rows = new Map(); /* those that are shown, by name */
  const facts = make("div");
  const body = make("tbody");
  const none = make("p", {class: "quiet", hidden: true}, "No target matches.");
  const where = make("span", {class: "quiet"});
  const turn = (by) => () => { first += by * PAGE; draw(); sayFound(); };
  const back = make("button", {click: turn(-1)}, "Previous");
  const next = make("button", {click: turn(1)}, "Next");
  const pages = make("nav", {class: "row", "aria-label": "Pages of targets", hidden: true}, back, next, where);
  const filter = make("input", {id: "filter", type: "search", autocomplete: "off", value: fields.filter ?? "",
                                input: () => { first = 0; keep(); draw(); sayFound(); }});
  const headings = make("tr");
  let sort = SORTS[fields.sort] === undefined ? "" : fields.sort;
  let first = 0;
  let alerts = null;

  /* In the address, for a reload and the way back. */
  function keep() {
    history.replaceState(null, "", query("#/", {filter: filter.value.trim(), sort}));
  }

  function sortBy(name) {
    sort = name;
    first = 0;
    redraw(headings, ...makeHeadings(sort, sortBy));
    keep();
    draw();
  }

  headings.append(...makeHeadings(sort, sortBy));

  view.append(make("h1", {}, "Targets"), facts,
              make("div", {class: "row"}, make("label", {for: "filter"}, "Name, state or tag"), filter),
              make("div", {class: "scroll cards", tabindex: "0", role: "region", "aria-label": "Targets"},
                   make("table", {}, make("thead", {}, headings), body)), none, pages,
              context.may("operate") ? make("div", {class: "row"}, make("button", {click: () => addTarget(({name}) => {
                context.say(`${name}: added`);
                location.hash = `#/targets/${encodeURIComponent(name)}`;
              })}, "Add a target ...")) : "");

  function matches(t) {
    const words = filter.value.trim().toLowerCase();
    return words === "" || [t.name, wordOf(t), ...Object.values(t.tags)].some(
      (each) => each.toLowerCase().includes(words));
  }

  /* Rows keep their place in the document where they can: one that has the focus
   * does not lose it. */
  function drawRows(targets) {
    const names = new Set(targets.map((t) => t.name));
    for (const [name, row] of rows)
      if (!names.has(name)) {
        row.element.remove();
        rows.delete(name);
      }
    targets.forEach((t, i) => {
      const row = rows.get(t.name) ?? new Row();
      rows.set(t.name, row);
      row.draw(t, live);
      if (body.children[i] !== row.element)
        body.insertBefore(row.element, body.children[i] ?? null);
    });
  }

  function draw() {
    if (live.status === null)
      return;
    const all = [...live.targets.values()];
    const found = sortTargets(all.filter(matches), live.status.now);
    if (sort !== "")
      found.sort((a, b) => SORTS[sort](a, b, live));

    first = Math.max(0, Math.min(first, Math.floor((found.length - 1) / PAGE) * PAGE));
    redraw(facts, factsOf(live.status, all, live.isSettled()));
    keepFocus(body, () => drawRows(found.slice(first, first + PAGE)));
    none.hidden = found.length > 0;
    keepFocus(pages, () => drawPages(found.length));
    sayAlerts();
  }

  function drawPages(length) {
    pages.hidden = length <= PAGE;
    back.disabled = first === 0;
    next.disabled = first + PAGE >= length;
    where.textContent = `${count(first + 1)} to ${count(Math.min(first + PAGE, length))} of ${count(length)}`;
  }

  /* What somebody has asked for, and what begins or ends meanwhile, is said to a
   * screen reader; the numbers of each second are not. */
  function sayFound() {
    context.announce(!none.hidden ? none.textContent : pages.hidden ? counted(rows.size, "target") : where.textContent);
  }

  function sayAlerts() {
    const words = wordsOf(live.status.alerts);
    if (alerts !== null && words !== alerts)
      context.announce(`Alerts: ${words}`);
    alerts = words;
  }

  return live.run(() => {
    if (document.hidden)
      return;
    context.well();
    draw();
  }, context.fail);
}
