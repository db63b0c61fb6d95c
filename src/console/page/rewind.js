/* Messages of the log that a target gets again: a rewind, with its progress; and
 * one message. */
import {get, getTargets, post, remove} from "./api.js";
import {count, instantOf, isMessageId, make, makeTable, redraw, time, TIMES} from "./dom.js";
import {isIll, trouble} from "./state.js";

const COLUMNS = [["Began"], ["State"], ["Passed", "number"], ["Sent again", "number"], ["Ended"]];

function progressOf(r) {
  return r.messages === null ? "" : `${count(r.passed)} of ${count(r.messages)}`;
}

function tableOf(rewinds) {
  return rewinds.length === 0
    ? make("p", {class: "quiet"}, "Nothing was sent again from the log.")
    : makeTable("Rewinds", COLUMNS, rewinds.map((r) =>
      [time(r.started_at), r.state, progressOf(r), count(r.sent), time(r.ended_at)]));
}

function makeForm(context, name, path, again) {
  const from = make("input", {id: "from", size: "26", autocomplete: "off", spellcheck: "false",
                              placeholder: TIMES});

  return make("form", {submit: (event) => {
    event.preventDefault();
    context.act(async () => {
      const text = from.value.trim();
      const to = text === "earliest" || isMessageId(text) ? text : instantOf(text);
      if (to === null) {
        context.say(`From where? Expected a time in UTC like ${TIMES}, “earliest”, or a message's id.`, true);
        return;
      }
      if (!await context.confirm(`Send again to ${name}?`,
                                 `What the log has ${to === "earliest" ? "" : `from ${to} on `}is sent to it once more, under the same ids.`,
                                 "Send again"))
        return;
      const {number} = await post(path, {to});
      context.say(`${name}: rewind ${number} begins`);
      again();
    });
  }}, make("label", {for: "from"}, "From a time in UTC, “earliest”, or a message's id"), from,
  make("button", {}, "Send again ..."));
}

function makeCancel(context, name, path, again) {
  return make("button", {click: () => context.act(async () => {
    await remove(path);
    context.say(`${name}: cancelled; what waits by now is still sent`);
    again();
  })}, "Cancel the rewind");
}

/* Draws into `list` and `buttons`, each anew only where it differs. */
export function makeRewinds(context, name) {
  const path = `/v1/targets/${encodeURIComponent(name)}/rewind`;
  const list = make("div");
  const buttons = make("div");
  let shown = null;
  let pressed = null;

  /* isKnown: the settings have the target, which says what it wants. */
  async function draw(isKnown = true) {
    const {rewinds} = await get(path, context.signal);
    const meaning = JSON.stringify(rewinds);
    const isRunning = isKnown ? rewinds[0]?.state === "running" : null;

    if (meaning !== shown)
      redraw(list, tableOf(rewinds));
    shown = meaning;
    if (context.may("operate") && isRunning !== pressed)
      redraw(buttons, isRunning === null ? "" : (isRunning ? makeCancel : makeForm)(context, name, path, draw));
    pressed = isRunning;
  }
  return {parts: [buttons, list], draw};
}

/* A paragraph for each of the targets that does not work, to be read before
 * something is sent to it. */
export function warningsOf(targets) {
  return targets.filter(isIll).map((t) => `${t.name} does not work now. ${trouble(t, new Date().toISOString())}`);
}

const RESULTS = {
  due: "it is sent again",
  waits: "it waits for this target already",
  asked: "another hub has its partition, and sends it",
};

/* For one message and one target; the message's view shows what comes of it. */
export function makeResend(context, id, target) {
  if (!context.may("operate"))
    return "";
  return make("button", {"aria-label": `Send again to ${target}`, click: () => context.act(async () => {
    if (!await context.confirm(`Send again to ${target}?`, [`${target} gets message ${id} once more, under the same id.`,
                                                            ...warningsOf(await getTargets([target], context.signal))], "Send again"))
      return;
    const {result} = await post(`/v1/messages/${encodeURIComponent(id)}/resend`, {target});
    context.say(`${target}: ${RESULTS[result]}`);
  })}, "Send again");
}
