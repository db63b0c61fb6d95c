/* The settings of a target that a call has added, as JSON, to be changed: checked
 * by a dry run, and saved only over the version that was read. What is wrong is in
 * the hub's words, each with its place. */
import {getTagged, put} from "./api.js";
import {make} from "./dom.js";

const listOf = (all) => make("ul", {}, ...all.map(({pointer, detail}) =>
  make("li", {}, pointer === "" ? "" : make("code", {}, pointer), ` ${detail}`)));

/* What a dry run, or a save, has to tell. */
function wordsOf({change, changed, warnings}) {
  const words = change === "none" ? "Nothing would change." : `Would change: ${changed.join(", ")}.`;
  return [make("p", {}, words), ...(warnings.length > 0 ? [listOf(warnings)] : [])];
}

/* The words of one mistake are those of the whole answer. */
function wrongOf({message, errors}) {
  return [...(errors.length === 1 ? [] : [make("p", {class: "trouble"}, message)]),
          ...(errors.length > 0 ? [make("div", {class: "trouble"}, listOf(errors))] : [])];
}

/* Opens the dialog; saved(target) is called when it is closed with a change. */
export async function editTarget(path, name, saved) {
  const {value, tag} = await getTagged(path);
  const text = make("textarea", {id: "settings", rows: "16", spellcheck: "false", autocomplete: "off"});
  const told = make("div", {role: "status"});
  let isAsking = false;
  /* One at a time: an answer belongs to the text that was sent. A button that is
   * disabled would lose the focus. */
  const ask = (more, done) => async () => {
    if (isAsking)
      return;
    isAsking = true;
    await put(`${path}${more}`, text.value, tag)
      .then(done, (error) => told.replaceChildren(...wrongOf(error)));
    isAsking = false;
  };
  const dialog = make("dialog", {class: "wide", "aria-labelledby": "editing", close: () => dialog.remove()},
    make("form", {method: "dialog"},
      make("h2", {id: "editing"}, `Settings of ${name}`),
      make("label", {for: "settings"}, "As JSON, with the keys of the settings file. A secret is shown as ***, and " +
                                       "stays what it is where that is left."),
      text, told,
      make("div", {class: "row"},
           make("button", {type: "button", class: "main", click: ask("", (target) => {
             dialog.close();
             saved(target);
           })}, "Save"),
           make("button", {type: "button", click: ask("?dry-run=true", (found) =>
             told.replaceChildren(...wordsOf(found)))}, "Check"),
           make("button", {value: "no"}, "Cancel"))));

  text.value = JSON.stringify(value.settings, null, 2);
  document.body.append(dialog);
  dialog.showModal();
}
