/* The settings of a target that a call adds or has added, as JSON: checked by a dry
 * run, and saved only over the version that was read. What is wrong is in the hub's
 * words, each with its place. */
import {getTagged, write} from "./api.js";
import {make} from "./dom.js";

const listOf = (all) => make("ul", {}, ...all.map(({pointer, detail}) =>
  make("li", {}, pointer === "" ? "" : make("code", {}, pointer), ` ${detail}`)));

/* What a dry run, or a save, has to tell. */
function wordsOf({change, changed, warnings}) {
  const words = {add: "It would be added.", none: "Nothing would change."}[change] ?? `Would change: ${changed.join(", ")}.`;
  return [make("p", {}, words), ...(warnings.length > 0 ? [listOf(warnings)] : [])];
}

/* The words of one mistake are those of the whole answer. */
function wrongOf({message, errors}) {
  return [...(errors.length === 1 ? [] : [make("p", {class: "trouble"}, message)]),
          ...(errors.length > 0 ? [make("div", {class: "trouble"}, listOf(errors))] : [])];
}

/* Opens the dialog; send(more, text) asks the hub, and saved(target) is called when
 * it is closed with a change. */
function openDialog(heading, label, settings, send, saved) {
  const text = make("textarea", {id: "settings", rows: "16", spellcheck: "false", autocomplete: "off"});
  const told = make("div", {role: "status"});
  let isAsking = false;
  /* One at a time: an answer belongs to the text that was sent. A button that is
   * disabled would lose the focus. */
  const ask = (more, done) => async () => {
    if (isAsking)
      return;
    isAsking = true;
    await send(more, text.value)
      .then(done, (error) => told.replaceChildren(...wrongOf(error)));
    isAsking = false;
  };
  const dialog = make("dialog", {class: "wide", "aria-labelledby": "editing", close: () => dialog.remove()},
    make("form", {method: "dialog"},
      make("h2", {id: "editing"}, heading), make("label", {for: "settings"}, label),
      text, told,
      make("div", {class: "row"},
           make("button", {type: "button", class: "main", click: ask("", (target) => {
             dialog.close();
             saved(target);
           })}, "Save"),
           make("button", {type: "button", click: ask("?dry-run=true", (found) =>
             told.replaceChildren(...wordsOf(found)))}, "Check"),
           make("button", {value: "no"}, "Cancel"))));

  text.value = JSON.stringify(settings, null, 2);
  document.body.append(dialog);
  dialog.showModal();
}

const LABEL = "As JSON, with the keys of the settings file.";

export async function editTarget(path, name, saved) {
  const {value, tag} = await getTagged(path);

  openDialog(`Settings of ${name}`, `${LABEL} A secret is shown as ***, and stays what it is where that is left.`,
             value.settings, (more, text) => write("PUT", `${path}${more}`, text, tag), saved);
}

export function addTarget(saved) {
  openDialog("A new target", `${LABEL} It gets what is published from then on.`, {name: "", url: "https://"},
             (more, text) => write("POST", `/v1/targets${more}`, text), saved);
}
