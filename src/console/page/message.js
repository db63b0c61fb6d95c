/* A message by its id: where it is, target by target. */
import {get, query} from "./api.js";
import {bytes, count, make, makePairs, makeTable, time} from "./dom.js";

const COLUMNS = [["Target"], ["State"], ["Attempts", "number"], ["Cause", "wide"], ["Next attempt"], ["Dead letter"]];

function rowOf(each) {
  return [each.target, each.state, count(each.attempts), each.cause, time(each.due_at),
          each.dead_letter === null ? ""
            : make("a", {href: `#/dead-letters/${each.dead_letter}`},
                   `${each.dead_letter}${each.is_range ? " (of many messages)" : ""}`)];
}

export async function showMessage(context, id) {
  const {view, signal} = context;
  const path = `/v1/messages/${encodeURIComponent(id)}`;
  let page = await get(query(path, {limit: 1000}), signal);
  const m = page;
  const rows = [];

  for (;;) {
    rows.push(...page.targets.map(rowOf));
    if (page.next === null)
      break;
    page = await get(query(path, {limit: 1000, cursor: page.next}), signal);
  }
  view.append(make("h1", {}, `Message ${m.id}`),
              makePairs("pairs", [
                ["Accepted", time(m.accepted_at)],
                ["Position", count(m.position)],
                ["Size", m.size === null ? null : bytes(m.size)],
                ["Key", m.key],
                ["Body", m.is_kept ? "still in the log" : "no longer in the log"],
              ]),
              makeTable("Targets", COLUMNS, rows));
}
