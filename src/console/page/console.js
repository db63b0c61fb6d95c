/* The console of a hub: which view the address names, and what views share.
 *
 *     #/?filter=..&sort=..     all targets
 *     #/targets/NAME            one
 *     #/dead-letters?target=..  dead letters
 *     #/dead-letters/ID         one
 *     #/messages/ID             a message
 *
 * A view gets a context, and a signal that ends with it: nothing of a view that
 * was left goes on. */
import {get, hasToken, setToken} from "./api.js";
import {isMessageId, make, span} from "./dom.js";
import {showLetter, showLetters} from "./letters.js";
import {showMessage} from "./message.js";
import {showOverview} from "./overview.js";
import {showTarget} from "./target.js";

const view = document.getElementById("view");
const said = document.getElementById("said");
const spoken = document.getElementById("spoken");
const whoami = document.getElementById("whoami");
let who = null;
let leave = new AbortController();
let wellAt = 0; /* when what is shown was asked for last */
let passes = false; /* what is said: it holds until the hub answers again */

/* For a screen reader: said once, however often it is so. */
function announce(words) {
  if (spoken.textContent !== words)
    spoken.textContent = words;
}

/* aloud: what of the words does not change from second to second. */
function say(words, isBad = false, aloud = words) {
  passes = false;
  said.textContent = words;
  said.classList.toggle("bad", isBad);
  announce(aloud);
}

/* What a person asked for is said until the next thing is; what is asked again and
 * again, until it works. */
function fail(error, isAskedAgain = false) {
  if (error.name === "AbortError")
    return;
  if (error.status === 401 || (error.status === 403 && who === null)) {
    who = null;
    askForToken(hasToken() ? error.message : "");
  } else {
    view.classList.toggle("stale", isAskedAgain && error.status === 0);
    say(error.status === 0 && view.querySelector("dl, table") ? `${error.message}; what is shown is ${span(Date.now() - wellAt)} old`
      : error.message, true, error.message);
    passes = isAskedAgain;
  }
}

/* A yes or no of a person. */
function confirm(heading, words, label, kind = "main") {
  return new Promise((resolve) => {
    const dialog = make("dialog", {"aria-labelledby": "question", close: () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    }}, make("form", {method: "dialog"},
             make("h2", {id: "question"}, heading), ...[words].flat().map((each) => make("p", {}, each)),
             make("div", {class: "row"}, make("button", {value: "yes", class: kind}, label),
                  make("button", {value: "no", autofocus: true}, "Cancel"))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

/* -- who may what ------------------------------------------------------------ */

function askForToken(words) {
  const token = make("input", {id: "token", type: "password", autocomplete: "off", size: "48", required: true});

  leave.abort();
  whoami.replaceChildren();
  announce(words);
  view.replaceChildren(
    make("h1", {}, "Sign in"),
    make("p", {}, "This hub asks for a token with the role view or operate, made by ",
         make("code", {}, "stagger token new"), ". It is kept until this tab is closed."),
    make("form", {submit: (event) => {
      event.preventDefault();
      setToken(token.value.trim());
      view.focus();
      show();
    }}, make("label", {for: "token"}, "Token"), token, make("button", {class: "main"}, "Sign in")),
    make("p", {class: "trouble"}, words));
  token.focus();
}

async function signIn() {
  who = await get("/v1/token", leave.signal);
  const out = make("button", {click: () => {
    setToken("");
    who = null;
    show();
  }}, "Sign out");

  whoami.replaceChildren(who.name === null ? "" : `${who.name} (${who.roles.join(", ")}) `, hasToken() ? out : "");
}

/* -- views ------------------------------------------------------------------- */

function makeContext() {
  const {signal} = leave;
  /* What has failed works again. */
  const well = () => {
    wellAt = Date.now();
    view.classList.remove("stale");
    if (passes)
      say("");
  };
  const act = (work) => {
    announce(""); /* what comes of it is said even if it is what was said before */
    return Promise.resolve().then(work).catch((error) => fail(error));
  };
  const failAgain = (error) => fail(error, true);

  return {
    view, signal, say, announce, confirm, act, fail: failAgain, well,
    may: (role) => who.roles.includes(role),
    again: show,
    /* Now, and then so often, while somebody can see it; what fails is tried again. */
    async every(ms, work) {
      while (!signal.aborted) {
        if (!document.hidden)
          await work().then(well, failAgain);
        await new Promise((resolve) => setTimeout(resolve, ms));
      }
    },
  };
}

function open(context) {
  const [path, options] = location.hash.slice(1).split("?");
  const [, kind = "", name] = path.split("/").map(decodeURIComponent);
  const fields = Object.fromEntries([...new URLSearchParams(options ?? "")].filter(([, value]) => value !== ""));
  const known = {"": "overview", "targets": "overview", "dead-letters": "dead-letters"};

  for (const link of document.querySelectorAll("[data-view]"))
    if (link.dataset.view === known[kind])
      link.setAttribute("aria-current", "page");
    else
      link.removeAttribute("aria-current");
  const one = {"dead-letters": "dead letter ", "messages": "message "}[kind] ?? "";
  document.title = `${name ? one + name : known[kind] === "dead-letters" ? "dead letters" : "targets"} - stagger hub`;
  if (kind === "targets" && name)
    return showTarget(context, name);
  if (kind === "dead-letters")
    return name ? showLetter(context, name) : showLetters(context, fields);
  if (kind === "messages" && name)
    return showMessage(context, name);
  return showOverview(context, fields);
}

async function show() {
  leave.abort();
  leave = new AbortController();
  const {signal} = leave;
  try {
    if (who === null)
      await signIn();
    if (signal.aborted)
      return;
    view.replaceChildren();
    view.classList.remove("stale");
    wellAt = Date.now();
    await open(makeContext());
  } catch (error) {
    if (!signal.aborted)
      fail(error);
  }
}

document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const id = document.getElementById("find-id").value.trim();
  if (!isMessageId(id)) {
    say(`“${id}” is not the id of a message: one looks like 123910490a179788-3 or TOPIC.PARTITION.OFFSET`, true);
    return;
  }
  event.target.reset();
  location.hash = `#/messages/${encodeURIComponent(id)}`;
});
/* The address is the view's: a fragment of another kind would leave it. */
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  view.focus();
});
addEventListener("hashchange", () => {
  say("");
  show();
  view.focus({preventScroll: true});
});
show();
