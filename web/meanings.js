"use strict";
// What the words of the page mean. Each is a button in the text that has it; a
// pointer, a touch or the focus shows the meaning.

const MEANINGS = {
  "goodput": "How many operations succeed in a second. What fails or comes " +
    "too late is not in it.",
  "offered load": "How many requests reach the server in a second: first " +
    "attempts and retries.",
  "queue": "Requests that have arrived and wait for a free worker. When all " +
    "of its places are taken, the next request is turned away.",
  "workers": "Each works on one request at a time. They are the bars in the " +
    "server: black while they work.",
  "metastable failure": "An overload that goes on after its cause has gone, " +
    "because the retries keep it up. It ends only when load is taken away.",
  "retry budget": "A limit for the retries of all clients together, such as " +
    "10 in 100 operations. What it does not pay for fails at once.",
  "circuit breaker": "A client that saw many failures in a row sends nothing " +
    "for a while, and then tries with one request.",
  "jitter": "Chance in the waits, so that clients which failed together do " +
    "not come back together.",
  "amplification": "How many requests an operation becomes: 1 where nothing " +
    "is retried, and as many as there are attempts where all fail.",
  "operations": "What clients want done. One operation is one request or " +
    "several: the first attempt, and its retries.",
  "requests an operation": "The first attempt and the retries, shared out " +
    "over all operations: the retry amplification.",
  "most requests": "The most that came to the server in a second.",
  "after it": "The mean of all seconds after the trouble. A short spike at " +
    "its end is in it, so a storm may have more than 0 here.",
  "recovers": "Whether goodput comes back to what it was before, and stays; " +
    "and how long after the trouble.",
  "turned away": "Requests that the server refuses at once: it is down, or " +
    "its queue is full.",
  "too late": "The server did the work, but the client had stopped waiting " +
    "(after 500 ms): nobody has any use of the answer.",
  "median": "The one in the middle: half of all are less, half are more.",
  "p99": "99 in 100 are less than that.",
  "standard errors": "How far chance may have moved a mean. It is smaller " +
    "with more runs.",
  "wasted": "Calls that were refused, or whose answer came to nothing.",
  "completion": "When the last client has what it wants.",
};

const MEANT = new RegExp(`\\b(${Object.keys(MEANINGS).sort((a, b) =>
  b.length - a.length).join("|")})\\b`, "i");

const meantButton = (words) => element("button",
  { type: "button", class: "word" }, words);

// Makes buttons of the words of a text, each once.
function explain(place) {
  const seen = new Set();
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const [word] = MEANT.exec(node.data) || [];
      if (word === undefined) return;
      const rest = node.splitText(node.data.indexOf(word));
      const after = rest.splitText(word.length);
      if (!seen.has(word.toLowerCase())) rest.replaceWith(meantButton(word));
      seen.add(word.toLowerCase());
      walk(after);
    } else if (!node.matches?.("button, svg, code, label, select"))
      for (const each of [...node.childNodes]) walk(each);
  };
  walk(place);
}

// A text in place of what a place says, with its words explained.
function sayExplained(place, text) {
  if (place.textContent === text) return;
  place.textContent = text;
  explain(place);
}

// The box that shows one meaning, below its word.
class Meaning {
  constructor() {
    this.box = element("div", { id: "meaning", role: "tooltip", hidden: true });
    document.body.append(this.box);
    const on = (event, run) => document.addEventListener(event, ({ target, key,
      pointerType }) => run(target.closest?.(".word"), key, pointerType));
    on("focusin", (word) => this.turn(word));
    on("focusout", () => this.turn(null));
    on("click", (word) => this.turn(word)); // Safari gives buttons no focus
    on("pointerover", (word, _, type) => {
      if (type === "mouse" && (word || this.word !== document.activeElement))
        this.turn(word);
    });
    on("keydown", (_, key) => { if (key === "Escape") this.turn(null); });
  }

  turn(word) {
    if (word === this.word) return;
    this.word?.removeAttribute("aria-describedby");
    this.word = word;
    this.box.hidden = !word;
    if (!word) return;
    this.box.textContent = MEANINGS[word.textContent.toLowerCase()];
    word.setAttribute("aria-describedby", "meaning");
    const at = word.getBoundingClientRect();
    const most = document.documentElement.clientWidth - this.box.offsetWidth;
    this.box.style.left = `${Math.max(8, Math.min(at.left, most - 8))}px`;
    this.box.style.top = `${at.bottom + window.scrollY + 4}px`;
  }
}

if (typeof module === "object") module.exports = { MEANINGS };
