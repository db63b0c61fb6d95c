/* What a policy will do: where each wait may fall, as `stagger plan --plot` draws
 * it, and what it comes to. */
import {makeSvg} from "./chart.js";
import {count, make, makePairs, makeTable, span} from "./dom.js";

const WIDTH = 720;
const ROW = 16;
const LINEAR = 50; /* times the shortest wait: a longer axis is logarithmic */

/* From 0 to 1: where a time stands. */
function axisOf(waits) {
  const times = waits.flatMap((w) => [w.wait_min_ms, w.wait_mean_ms, w.wait_max_ms]).filter((ms) => ms > 0);
  const most = Math.max(...times, 1e-6);
  const least = Math.min(...times, most);
  const isLog = most / LINEAR > least;
  const place = (ms) => (ms <= 0 ? 0 : isLog ? 0.03 + 0.97 * Math.log(ms / least) / Math.log(most / least) : ms / most);

  return {place, most, isLog};
}

function makeBar({wait_min_ms, wait_mean_ms, wait_max_ms}, place) {
  const from = place(wait_min_ms) * (WIDTH - ROW) + ROW / 2;
  const to = place(wait_max_ms) * (WIDTH - ROW) + ROW / 2;
  const svg = makeSvg("svg", {viewBox: `0 0 ${WIDTH} ${ROW}`, preserveAspectRatio: "none", "aria-hidden": "true",
                              class: "wait"});

  svg.append(makeSvg("path", {d: `M${from.toFixed(1)} ${ROW / 2}H${Math.max(to, from + 1).toFixed(1)}`}),
             makeSvg("path", {class: "mean",
                              d: `M${(place(wait_mean_ms) * (WIDTH - ROW) + ROW / 2).toFixed(1)} 3V${ROW - 3}`}));
  return svg;
}

const lengthOf = (ms) => (ms === 0 ? "0" : span(ms));
const rangeOf = (least, most) => (least === most ? lengthOf(least) : `${lengthOf(least)} to ${lengthOf(most)}`);

function waitsOf({waits, waits_truncated}) {
  if (waits.length === 0)
    return make("p", {}, "It makes one attempt and does not retry.");
  const {place, most, isLog} = axisOf(waits);
  const columns = [["Retry", "number"], ["Wait"], [`0 to ${span(most)}${isLog ? ", logarithmic" : ""}`, "wide"],
                   ["All waits"]];

  return make("div", {}, makeTable("Waits", columns, waits.map((w) => [
    String(w.retry), rangeOf(w.wait_min_ms, w.wait_max_ms), makeBar(w, place),
    w.past_deadline ? "not made: past the deadline" : rangeOf(w.total_min_ms, w.total_max_ms)])),
    waits_truncated ? make("p", {class: "quiet"}, "The table is cut: more retries follow.") : null);
}

const atMost = (value, say) => (value === null ? "no limit" : `at most ${say(value)}`);

export function makePlan(plan) {
  return make("div", {}, waitsOf(plan), makePairs("pairs", [
    ["Attempts", atMost(plan.attempts_max, count)],
    ["Time, waits included", atMost(plan.time_total_max_ms, span)],
    ["Requests for a message", atMost(plan.amplification_max, count)],
    ["Requests for a message on average, while all fail", atMost(plan.amplification_sustained, count)],
    ["Faults that it retries", plan.faults.filter((f) => f.retries_max !== 0).map((f) =>
      (f.retries_max === null ? f.fault : `${f.fault} (${f.retries_max}×)`)).join(", ")],
    ["Warnings", plan.warnings.length === 0 ? null : make("ul", {}, ...plan.warnings.map((w) =>
      make("li", {}, `${w.text}${w.fix === null || w.fix === "" ? "" : `; try ${w.fix}`}`)))],
  ]));
}
