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

/* columns: [heading, class]; rows: arrays of text or nodes. */
export function makeTable(caption, columns, rows) {
  return make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
              make("table", {},
                   make("thead", {}, make("tr", {}, ...columns.map(([name, kind]) =>
                     make("th", {scope: "col", class: kind}, name)))),
                   make("tbody", {}, ...rows.map((cells) =>
                     make("tr", {}, ...cells.map((cell, i) =>
                       make("td", {class: columns[i][1]}, cell ?? "")))))));
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
  return n === undefined ? "" : `${n < 10 ? n.toFixed(1) : whole.format(Math.round(n))}/s`;
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

/* An instant, with how far it is from the hub's now. */
export function time(text, now) {
  if (text === null || text === undefined)
    return null;
  const ms = Date.parse(now ?? new Date().toISOString()) - Date.parse(text);
  return make("time", {datetime: text, title: text},
              ms >= 0 ? `${span(ms)} ago` : `in ${span(-ms)}`);
}
