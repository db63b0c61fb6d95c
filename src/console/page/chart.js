/* Lines over time, as SVG that is made of elements. What a chart says is in words
 * beside it, for those who do not see it. */
import {make} from "./dom.js";

const WIDTH = 720;
const HEIGHT = 120;

export function makeSvg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes))
    element.setAttribute(key, value);
  return element;
}

/* A line with a gap where a value is null. */
function pathOf(values, most, width, height) {
  const step = width / Math.max(values.length - 1, 1);
  let path = "";
  let isDown = false;

  values.forEach((v, i) => {
    const x = i * step;
    const y = () => (height - 1 - (height - 2) * v / most).toFixed(1);
    if (v !== null && !isDown && (values[i + 1] ?? null) === null) /* alone: a dot of some width */
      path += `M${Math.min(x, width - 4).toFixed(1)} ${y()}h4`;
    else if (v !== null)
      path += `${isDown ? "L" : "M"}${x.toFixed(1)} ${y()}`;
    isDown = v !== null;
  });
  return path;
}

/* Ten minutes of a table's row: what was delivered, and what failed. */
export function makeSpark(delivered, failed, label) {
  const most = Math.max(...delivered, ...failed, 1);
  const svg = makeSvg("svg", {class: "spark", viewBox: "0 0 96 20", role: "img", "aria-label": label,
                              preserveAspectRatio: "none"});
  svg.append(makeSvg("path", {d: pathOf(delivered, most, 96, 20)}));
  if (failed.some((n) => n > 0))
    svg.append(makeSvg("path", {class: "failed", d: pathOf(failed, most, 96, 20)}));
  return svg;
}

/* lines: [name, values], the oldest value first; say(value) is its text. */
export function makeChart(title, span, lines, say) {
  const known = lines.flatMap(([, values]) => values).filter((v) => v !== null);
  const most = Math.max(...known, 0);
  const svg = makeSvg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
                              "aria-label": `${title}: ` + lines.map(([name, values]) =>
                                `${name} at most ${say(Math.max(...values.filter((v) => v !== null), 0))}`).join(", ")});
  const legend = lines.map(([name], i) => {
    const swatch = makeSvg("svg", {viewBox: "0 0 24 10", class: "swatch", "aria-hidden": "true"});
    swatch.append(makeSvg("path", {class: `line${i}`, d: "M0 5H24"}));
    return make("span", {}, swatch, name);
  });

  lines.forEach(([, values], i) =>
    svg.append(makeSvg("path", {class: `line${i}`, d: pathOf(values, most || 1, WIDTH, HEIGHT)})));
  return make("figure", {class: "chart"},
              make("figcaption", {}, make("strong", {}, title), ...legend,
                   make("span", {class: "quiet"}, known.length === 0 ? "nothing" : `at most ${say(most)}`)),
              svg,
              make("div", {class: "axis quiet", "aria-hidden": "true"}, make("span", {}, `${span} ago`),
                   make("span", {}, "now")));
}
