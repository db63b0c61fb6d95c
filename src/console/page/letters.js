/* Dead letters: found, read, sent again, put aside. */
import {get, getPages, getTargets, post, query} from "./api.js";
import {bytes, count, counted, instantOf, make, makePairs, makeTable, redraw, time, TIMES} from "./dom.js";
import {warningsOf} from "./rewind.js";

const PAGE = 100;
const STATES = ["dead", "replayed", "dropped", "expired", "cancelled"];

function wait(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/* The dead letters that are not sent again, or not yet. */
function exceptionsOf(sum) {
  const all = [[sum.paused, "message", "until the target is resumed: it is paused", "waits", "wait"],
               [sum.expired, "message", "be sent: the bodies are gone", "cannot", "cannot"],
               [sum.forgotten, "dead letter", "be sent: the target was forgotten", "cannot", "cannot"],
               [sum.orphaned, "dead letter", "be sent: the settings do not have the target", "cannot", "cannot"]];
  return all.filter(([n]) => n > 0).map(([n, name, words, one, many]) =>
    `${counted(n, name)} ${n === 1 ? one : many} ${words}`);
}

/* How many, in words. */
function sumOf(sum) {
  return [`${counted(sum.letters, "dead letter")}, ${counted(sum.messages, "message")}`, ...exceptionsOf(sum)].join("; ");
}

/* The targets with messages that replays send again, and that wait still. names
 * null: of any. */
async function findWaiting(names, signal) {
  const all = await (names === null ? getPages("/v1/targets", "targets", signal) : getTargets(names, signal));
  return all.filter((t) => t.replays > 0);
}

/* Of a replay that has put all into the queue: what comes of them, until it is known. */
async function followQueued({say, signal}, replay, names) {
  const what = `Replay ${replay.id}: ${sumOf(replay)}; `;

  for (;;) {
    const targets = await findWaiting(names, signal);
    const waiting = targets.reduce((sum, t) => sum + t.replays, 0);
    if (waiting <= replay.paused)
      break;
    say(`${what}queued; ${count(waiting)} ${waiting === 1 ? "waits" : "wait"} still. ${warningsOf(targets).join(" ")}`, false, `${what}queued.`);
    await wait(1000);
  }
  const {dead_letters: dead} = await get(query("/v1/dead-letters", {
    state: "dead", since: replay.started_at, limit: 1000, target: names?.length === 1 ? names[0] : ""}), signal);
  const failed = dead.filter((l) => l.replay > 0).length;
  say(what + (failed > 0 ? `${count(failed)} of them failed again, and are dead letters again.` : replay.paused > 0 ? "queued."
    : "all that could be sent are delivered."), failed > 0);
}

async function followReplay(context, replay, names, again) {
  while (replay.state === "running") {
    const words = `Replay ${replay.id} is running`;
    context.say(`${words}: ${count(replay.letters)} of ${counted(replay.found, "dead letter")}.`, false, `${words}.`);
    await wait(500);
    replay = await get(`/v1/replays/${replay.id}`, context.signal);
  }
  if (replay.state === "done") {
    await again();
    await followQueued(context, replay, names);
  } else {
    const held = replay.held === null ? "" : ` (${replay.held})`;
    context.say(`Replay ${replay.id} is ${replay.state}${held}: ${sumOf(replay)}`, true);
  }
  await again();
}

/* Asks first what it would do, then a person, and does it. chosen: what is sent to
 * the API, and its words. */
async function change(context, action, {choice, words}, again) {
  const label = action === "replay" ? "Replay" : "Drop";
  const sum = await post(`/v1/dead-letters/${action}`, {...choice, dry_run: true});

  if (sum.letters === 0) {
    const why = exceptionsOf(sum);
    context.say(why.length > 0 ? `There is nothing to do: ${why.join("; ")}.`
      : "None of these is in state dead: there is nothing to do.");
    return;
  }
  const sampled = choice.target !== undefined ? [choice.target] : [...new Set(sum.sample.map((l) => l.target))];
  const more = action === "replay" ? warningsOf(await getTargets(sampled, context.signal))
    : ["They are not sent again, and this cannot be undone."];
  const oldest = sum.sample.map((l) => `no. ${l.id} (${l.target}, ${l.cause ?? l.why})`).join(", ");
  if (!await context.confirm(`${label} ${counted(sum.letters, "dead letter")}?`,
                             [`Chosen: ${words}.`, `${sumOf(sum)}. The oldest: ${oldest}.`, ...more], label,
                             action === "replay" ? "main" : "danger"))
    return;
  const done = await post(`/v1/dead-letters/${action}`, choice);
  if (action === "replay") {
    const names = choice.target !== undefined || sum.sample.length >= sum.letters ? sampled : null;
    await followReplay(context, done, names, again);
  } else {
    context.say(`Dropped: ${sumOf(done)}`);
    await again();
  }
}

function makeChanges(context, choose, again) {
  return ["replay", "drop"].map((action) => make("button", {
    class: action === "replay" ? "main" : null,
    click: () => context.act(() => change(context, action, choose(), again)),
  }, action === "replay" ? "Replay ..." : "Drop ..."));
}

/* -- the list ---------------------------------------------------------------- */

/* What is typed, for the address and the API: times as people write them. */
function readFilter(form) {
  const fields = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]));

  for (const name of ["since", "until"]) {
    const at = fields[name] === "" ? "" : instantOf(fields[name]);
    if (at === null)
      throw new Error(`${name}: expected a time in UTC like ${TIMES}, not “${fields[name]}”`);
    fields[name] = at;
  }
  return fields;
}

/* changed(): what is typed differs from what the list was filtered by, or no more. */
function makeFilter(context, fields, changed) {
  const text = (id, label, more) => make("span", {class: "field"}, make("label", {for: id}, label),
    make("input", {id, name: id, value: fields[id] ?? "", size: "14", autocomplete: "off", spellcheck: "false", ...more}));
  const state = make("select", {id: "state", name: "state"},
                     make("option", {value: ""}, "any"),
                     ...STATES.map((each) => make("option", {value: each, selected: fields.state === each}, each)));
  const names = make("datalist", {id: "names"});
  const times = {size: "26", placeholder: TIMES};

  get("/v1/targets?limit=1000", context.signal).then(({targets}) => names.append(
    ...targets.map((t) => make("option", {value: t.name})))).catch(() => {});
  return make("form", {submit: (event) => {
    event.preventDefault();
    context.act(() => { location.hash = query("#/dead-letters", readFilter(event.target)); });
  }, input: (event) => changed([...new FormData(event.currentTarget)].some(
    ([name, value]) => value.trim() !== (fields[name] ?? ""))),
  }, text("target", "Target", {list: "names"}), names, text("cause", "Cause"), text("since", "Since (UTC)", times),
              text("until", "Until (UTC)", times),
              make("span", {class: "field"}, make("label", {for: "state"}, "State"), state), make("button", {}, "Filter"));
}

const COLUMNS = [["Id"], ["Target", "", true], ["Cause", "", true], ["Ended"], ["Attempts", "number"], ["Messages", "number"],
                 ["Message id"], ["State", "", true]];

function makeTick(l, chosen) {
  return make("input", {type: "checkbox", "aria-label": `choose dead letter ${l.id}`, disabled: l.state !== "dead",
                        change: (event) => chosen[event.target.checked ? "add" : "delete"](l.id)});
}

function rowOf(l) {
  return [make("a", {href: `#/dead-letters/${l.id}`, "aria-label": `dead letter ${l.id}`}, String(l.id)),
          make("a", {href: `#/targets/${encodeURIComponent(l.target)}`}, l.target),
          l.cause ?? l.why, time(l.last_attempt_at ?? l.created_at), count(l.attempts), count(l.count),
          l.message_id === null ? "" : make("a", {href: `#/messages/${l.message_id}`}, l.message_id), l.state];
}

/* Replay and drop, with words for what they would be of: only what is dead, and
 * what the list shows. */
function makeListChanges(context, fields, chosen, again) {
  const {state, ...conditions} = fields; /* the API changes what is dead, and chooses by the others */
  const said = Object.entries(conditions).map(([name, value]) => `${name} ${value}`).join(", ");
  const words = make("span", {class: "quiet"});
  const buttons = makeChanges(context, () => chosen.size > 0 ? {choice: {ids: [...chosen]}, words: "those that are ticked"}
    : said !== "" ? {choice: conditions, words: `all in state dead with ${said}`}
    : {choice: {all: true}, words: "all in state dead, of every target"}, again);
  const draw = (isChanged) => {
    const isOther = ![undefined, "", "dead"].includes(state);
    buttons.forEach((each) => { each.disabled = isOther || isChanged; });
    words.textContent = isChanged ? "the filter was changed: press Filter first"
      : isOther ? `what is ${state} can neither be replayed nor dropped: only what is dead`
      : "those that are ticked, or else all that the filter finds in state dead";
  };

  draw(false);
  return {row: make("div", {class: "row"}, buttons, words), draw};
}

/* Ticks what its table shows. */
function makeTickAll() {
  return make("input", {type: "checkbox", "aria-label": "choose all of this table", change: ({target}) => {
    for (const box of target.closest("table").querySelectorAll("tbody input:not(:disabled)")) {
      box.checked = target.checked;
      box.dispatchEvent(new Event("change"));
    }
  }});
}

export async function showLetters(context, fields) {
  const {view, signal} = context;
  const chosen = new Set();
  const list = make("div");
  const sum = make("p", {class: "quiet"});
  let shown = 0;
  const again = async () => {
    chosen.clear();
    await add(null);
  };
  const changes = context.may("operate") ? makeListChanges(context, fields, chosen, again) : null;

  view.append(make("h1", {}, "Dead letters"), makeFilter(context, fields, changes?.draw ?? (() => {})), changes?.row ?? "", sum, list);
  await add(null);

  async function add(cursor) {
    const page = await get(query("/v1/dead-letters", {...fields, limit: PAGE, cursor}), signal);
    const letters = page.dead_letters;
    const found = letters.length === 0
      ? make("p", {class: "quiet"}, page.next === null && cursor === null ? "There are none." : "No more here.")
      : changes === null ? makeTable("Dead letters", COLUMNS, letters.map(rowOf))
      : makeTable("Dead letters", [[makeTickAll(), "", true], ...COLUMNS], letters.map((l) => [makeTick(l, chosen), ...rowOf(l)]));

    shown = (cursor === null ? 0 : shown) + letters.length;
    sum.textContent = shown === 0 ? "" : `${counted(shown, "dead letter")}${page.next === null ? "" : ", and more"}`;
    if (cursor === null) {
      redraw(list, found);
    } else {
      list.append(found);
      found.focus({preventScroll: true});
      list.querySelector(":scope > button").remove();
      context.announce(sum.textContent);
    }
    if (page.next !== null)
      list.append(makeMore(page.next));
  }

  function makeMore(cursor) {
    let isAsked = false;
    return make("button", {click: () => context.act(async () => {
      if (isAsked)
        return;
      isAsked = true;
      await add(cursor).finally(() => { isAsked = false; });
    })}, "More");
  }
}

/* -- one of them ------------------------------------------------------------- */

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

function hexOf(all) {
  const lines = [];
  for (let at = 0; at < all.length; at += 16) {
    const part = all.subarray(at, at + 16);
    const hex = [...part].map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(47);
    const text = [...part].map((b) => b >= 32 && b < 127 ? String.fromCharCode(b) : ".").join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${hex}  ${text}`);
  }
  return lines.join("\n");
}

const DEPTH = 40; /* indents at most */

/* JSON laid out, each token as it was sent: JSON.parse() rounds long numbers, and of
 * two members of one name it keeps one. */
function layOut(text) {
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g);
  const begins = (token) => token === "[" || token === "{";
  let depth = 0;

  return tokens.map((token, i) => {
    const isEnd = token === "]" || token === "}";
    depth -= isEnd;
    const line = `\n${"  ".repeat(Math.min(depth, DEPTH))}`;
    const isFirst = begins(tokens[i - 1]);
    depth += begins(token);
    return (isFirst !== isEnd ? line : "") + token + (token === ":" ? " " : token === "," ? line : "");
  }).join("");
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/* The looks that a body has: as JSON laid out, as text, as bytes. Each is made when
 * it is asked for: bodies may be large. */
function makeBody(text, base64, name) {
  const all = base64 === undefined ? new TextEncoder().encode(text) : bytesOf(base64);
  const shown = make("pre", {tabindex: "0", "aria-label": name});
  const looks = [...(base64 === undefined && isJson(text) ? [["JSON", () => layOut(text)]] : []),
                 ...(base64 === undefined ? [["Text", () => text]] : []), ["Hex", () => hexOf(all)]];
  const buttons = looks.map(([label, look]) => make("button", {"aria-pressed": "false", click: (event) => {
    shown.textContent = look();
    for (const each of buttons)
      each.setAttribute("aria-pressed", String(each === event.target));
  }}, label));
  buttons[0].click();
  return [make("div", {class: "row"}, ...buttons, make("span", {class: "quiet"}, bytes(all.length))), shown];
}

function bodyPart(heading, text, base64) {
  if ((text ?? null) === null && base64 === undefined)
    return [];
  return [make("h2", {}, heading), ...makeBody(text, base64, heading)];
}

/* The detail of an answer may say no more than its cause: HTTP_422, "HTTP 422". */
function whyOf({why, cause, detail}) {
  const isNew = detail !== null && detail.replaceAll(" ", "_") !== cause;
  return `${why}: ${[cause, isNew ? detail : null].filter((each) => each !== null).join(", ")}`;
}

export async function showLetter(context, id) {
  const l = await get(`/v1/dead-letters/${encodeURIComponent(id)}`, context.signal);

  redraw(
    context.view,
    make("h1", {}, `Dead letter ${l.id}`),
    make("p", {class: "trouble"}, whyOf(l)),
    l.state === "dead" && context.may("operate") ? make("div", {class: "row"},
      makeChanges(context, () => ({choice: {ids: [l.id]}, words: "this dead letter"}),
                  () => showLetter(context, id))) : "",
    makePairs("pairs", [
      ["State", l.state],
      ["Target", make("a", {href: `#/targets/${encodeURIComponent(l.target)}`}, l.target)],
      ["URL", l.target_url],
      ["Message", l.message_id === null ? null : make("a", {href: `#/messages/${l.message_id}`}, l.message_id)],
      ["Messages", l.count === 1 ? null : `${count(l.count)}, positions ${l.position} to ${l.last_position}`],
      ["Attempts", count(l.attempts)],
      ["First attempt", l.attempts === 0 ? null : time(l.first_attempt_at)],
      ["Last attempt", l.attempts === 0 ? null : time(l.last_attempt_at)],
      ["Given up", time(l.created_at)],
      ["HTTP status", l.http_status === null ? null : String(l.http_status)],
      ["Topic", l.topic === null ? null : `${l.topic}, partition ${l.partition}, offset ${l.position}`],
      ["Key", l.key],
      ["Content type", l.content_type],
      ["Replayed before", l.replay === 0 ? null : counted(l.replay, "time")],
    ]),
    ...bodyPart("What the target answered", l.answer, l.answer_base64),
    ...(l.headers === null ? [] : [make("h2", {}, "Headers"), make("pre", {tabindex: "0"}, l.headers)]),
    ...bodyPart("Body", l.payload, l.payload_base64));
}
