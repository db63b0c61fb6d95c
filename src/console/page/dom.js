/* Elements, and words for numbers and times. Whatever a page shows becomes a text
 * node: nothing here, or anywhere else in the console, writes markup. */

/* make("a", {href: "#/", class: "brand"}, "text", node, null) */
export function make(name, attributes, ...children) {
  const element = document.createElement(name);
  fill(element, attributes);
  element.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return element;
}

function fill(element, attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function")
      element.addEventListener(name, value);
    else if (value === true)
      element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value);
  }
}

/* What an element that takes the focus is known by when it is made anew. */
function keyOf(element) {
  return element.getAttribute("href") ?? (element.id || element.getAttribute("aria-label") || element.textContent);
}

/* Keeps the focus while draw() makes elements of a place anew or moves them: the
 * same element has it again, or the one that is in its stead, or what is nearest. */
export function keepFocus(place, draw) {
  const focused = document.activeElement;
  const key = place.contains(focused) ? keyOf(focused) : null;
  const isThere = (each) => place.contains(each) && !each.disabled && each.checkVisibility();

  draw();
  if (key === null || (document.activeElement === focused && isThere(focused)))
    return;
  const all = [...place.querySelectorAll("a, button, input, [tabindex]")].filter(isThere);
  const heir = isThere(focused) ? focused : all.find((each) => keyOf(each) === key) ??
    (place.hasAttribute("tabindex") ? place : all[0] ?? place.closest("[tabindex]"));
  heir.focus({preventScroll: true});
}

export function redraw(place, ...nodes) {
  keepFocus(place, () => place.replaceChildren(...nodes));
}

/* A list of pairs, as <dl>; what is null is left out. */
export function makePairs(kind, pairs) {
  const list = make("dl", {class: kind});
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "")
      continue;
    const both = [make("dt", {}, name), make("dd", {}, value)];
    list.append(...(kind === "facts" ? [make("div", {}, ...both)] : both));
  }
  return list;
}

/* A cell; on a narrow screen the heading of its column is beside it, unless what it
 * shows is plain. */
export function makeCell([heading, kind, isPlain], ...content) {
  return make("td", {class: kind, "data-heading": isPlain ? null : heading}, ...content);
}

/* columns: [heading, class, isPlain]; rows: arrays of text or nodes. */
export function makeTable(caption, columns, rows) {
  return make("div", {class: "scroll cards", tabindex: "0", role: "region", "aria-label": caption},
              make("table", {},
                   make("thead", {}, make("tr", {}, ...columns.map(([name, kind]) =>
                     make("th", {scope: "col", class: kind}, name)))),
                   make("tbody", {}, ...rows.map((cells) =>
                     make("tr", {}, ...cells.map((cell, i) => makeCell(columns[i], cell ?? "")))))));
}

const whole = new Intl.NumberFormat("en");

export function count(n) {
  return n === null || n === undefined ? "" : whole.format(n);
}

/* "1 message", "2 messages" */
export function counted(n, one) {
  return `${count(n)} ${one}${n === 1 ? "" : "s"}`;
}

export function rate(n) {
  return n === undefined ? "" : `${n > 0 && n < 0.1 ? n.toFixed(2) : n < 10 ? n.toFixed(1) : whole.format(Math.round(n))}/s`;
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;

  for (; n >= 1024 && unit < units.length - 1; unit++)
    n /= 1024;
  return `${unit > 0 && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

/* Two units at most: 350ms, 4.2s, 3m 20s, 2h 5m, 3d 4h. */
export function span(ms) {
  if (ms === null || ms === undefined)
    return "";
  if (ms < 0.05)
    return "<0.1ms";
  if (ms < 1000)
    return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)}ms`;
  if (ms < 60000)
    return `${(ms / 1000).toFixed(ms < 10000 ? 1 : 0)}s`;
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  let seconds = Math.round(ms / 1000);
  const said = [];
  for (const [name, size] of units) {
    const n = Math.floor(seconds / size);
    seconds -= n * size;
    if (n > 0 || said.length > 0)
      said.push(n > 0 ? `${n}${name}` : "");
    if (said.length === 2)
      break;
  }
  return said.filter((each) => each !== "").join(" ");
}

const says = new WeakMap(); /* of a <time>: its words now */

/* An instant, with how far it is from the hub's now, which goes on; past: what is
 * said when it is over. */
export function time(text, now, past) {
  if (text === null || text === undefined)
    return null;
  const at = Date.parse(text) + (now === undefined ? 0 : Date.now() - Date.parse(now));
  const words = () => {
    const ms = Date.now() - at;
    return ms < 0 ? `in ${span(-ms)}` : past ?? `${span(ms)} ago`;
  };
  const element = make("time", {datetime: text, title: text}, words());

  says.set(element, words);
  return element;
}

setInterval(() => {
  for (const each of document.querySelectorAll("time"))
    if (says.has(each) && each.textContent !== says.get(each)())
      each.textContent = says.get(each)();
}, 1000);

/* A time of UTC as people write it, for the API: "5m" ago, "19:50" (the last one),
 * a day, or a day and a time. Null: it is none. */
export function instantOf(text) {
  const ago = /^(\d+) ?([smhd])$/.exec(text);
  const clock = /^\d\d:\d\d(:\d\d)?$/.test(text);
  const day = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?Z?$/.exec(text);
  let ms = NaN;

  if (ago !== null)
    ms = Date.now() - ago[1] * {s: 1e3, m: 6e4, h: 36e5, d: 864e5}[ago[2]];
  else if (clock)
    ms = Date.parse(`${new Date().toISOString().slice(0, 10)}T${text}Z`);
  else if (day !== null)
    ms = Date.parse(`${day[1]}T${day[2] ?? "00:00"}Z`);
  if (clock && ms > Date.now())
    ms -= 864e5;
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : null;
}

export const TIMES = "5m, 19:50 or 2026-03-01 12:00";

/* Whether a text looks like the id of a message: of the queue, or of a topic. */
export function isMessageId(text) {
  return /^[0-9a-f]{16}-\d+$|^.+\.[0-9a-f]+$/.test(text);
}
