"use strict";
// A plan: what one policy will do, worked out before anybody waits.

const usualPlan = () => ({
  text: "exponential base=500ms cap=5s attempts=6", clients: 100,
});

class Plan {
  constructor(engine, linked) {
    this.engine = engine;
    this.find = (id) => document.getElementById(`plan-${id}`);
    this.card = new Card(engine, 0, {
      moved: (_, text) => {
        this.state.text = text;
        this.show();
      },
    });
    this.clients = sliderWithBox({
      label: "clients that fail at once", steps: stepsOf(COUNTS, 1, 10000),
      least: 1, most: 1000000, moved: (clients) => {
        this.state.clients = clients;
        this.show();
      },
    });
    this.find("policy").append(this.card.field);
    this.find("clients").append(this.clients.field);
    this.find("presets").append(...engine.presets().map(({ name, text, use }) =>
      element("button", {
        type: "button", class: "chip", title: use,
        onclick: () => this.take({ ...this.state, text }),
      }, name)));
    const say = (words) => { this.find("copied").textContent = words; };
    this.find("copy").addEventListener("click", async () =>
      say(await copyText(this.find("command").textContent, "The command")));
    this.find("link").addEventListener("click", async () =>
      say(await copyText(linked(), "The link")));
  }

  delta() { return deltaOf(this.state, usualPlan()); }

  take({ text, clients }) {
    const usual = usualPlan();
    this.state = {
      text: typeof text === "string" ? text : usual.text,
      clients: Number.isInteger(clients) && clients > 0 && clients <= 1e6
        ? clients : usual.clients,
    };
    this.card.show("the policy", this.state.text);
    this.clients.show(this.state.clients);
    this.show();
  }

  // A policy that is wrong is told of below it; the last plan stays.
  show() {
    const plan = this.engine.plan(this.state.text, this.state.clients);
    this.find("results").classList.toggle("old", plan === null);
    if (plan === null) return;
    this.find("title").textContent = titleOf(plan);
    this.find("command").textContent = "stagger plan --clients " +
      `${this.state.clients} ${quoted(this.state.text.trim())}`;
    this.find("warnings").replaceChildren(...plan.warnings.map(
      ([, text, fix]) => element("li", {}, sentence(text), " ",
        ...this.fixOf(fix))));
    this.showWaits(plan.waits);
    this.find("facts").replaceChildren(...factsOf(plan, this.state.clients)
      .flatMap(([name, words]) =>
        [element("dt", {}, name), element("dd", {}, words)]));
  }

  // A setting is put into the policy by a click; other words are only said.
  fixOf(fix) {
    const [, key, value, rest] = /^([\w-]+)=([^\s,]+)([^]*)$/.exec(fix) || [];
    return key === undefined ? [sentence(fix)] : [element("button", {
      type: "button", class: "fix", onclick: () => this.take({ ...this.state,
        text: withSetting(this.state.text, key, value) }),
    }, `${key}=${value}`), rest];
  }

  // The bars are of all waits so far, on one scale.
  showWaits(waits) {
    const end = Math.max(1, ...waits.map((wait) => wait.total.most));
    this.find("waits").tBodies[0].replaceChildren(...waits.map((wait) => {
      const [bar, mark] = ["bar", "mark"].map((name) =>
        element("span", { class: name }));
      bar.style.marginLeft = `${100 * wait.total.least / end}%`;
      bar.style.width = `${100 * (wait.total.most - wait.total.least) / end}%`;
      mark.style.left = `${100 * wait.total.mean / end}%`;
      return element("tr", wait.past ? { class: "past" } : {},
        element("th", { scope: "row" }, String(wait.retry)),
        ...[wait.window, wait.least, wait.mean, wait.most, wait.total.mean,
          wait.total.most].map((ns) =>
          element("td", {}, ns === 0 ? "0" : timeWords(ns / MS))),
        element("td", { class: "bars", "aria-hidden": "true" },
          element("div", {}, bar, mark)));
    }));
  }
}

const sentence = (text) => text === "" ? "" : text[0].toUpperCase() +
  text.slice(1) + (/[.?!]$/.test(text) ? "" : ".");

function titleOf(plan) {
  const last = plan.waits.filter((wait) => !wait.past).at(-1);
  if (!last) return "One attempt, and no retry";
  const attempts = plan.attempts === 0 ? "Attempts without a limit"
    : `${plan.attempts} attempts at most`;
  return plan.more ? attempts
    : `${attempts}, the last one after ${timeWords(last.total.mean / MS)} of ` +
      "waits in the mean";
}

function factsOf(plan, clients) {
  const number = (value) => value === 0 ? "no limit" : numberWords(value);
  const names = (text) => text.replaceAll(" ", ", ").replaceAll("_", " ");
  return [
    ["attempts of an operation", number(plan.attempts)],
    ["requests of an operation, hedges too", number(plan.requests)],
    ["time of an operation", plan.time === 0 ? "no limit"
      : `${timeWords(plan.time / MS)} at most` +
        (plan.time === plan.deadline ? ", the deadline" : "")],
    ...plan.waits.length ? [["at the first retry",
      `${numberWords(plan.arrivals / 1000)} of ${numberWords(clients)} clients ` +
      "that failed at once come back in the same 100 ms"]] : [],
    ...plan.attempts === 1 ? [["given up at once", "everything"]] : [
      ["retried", names(plan.retried) || "nothing"],
      ["given up at once", names(plan["given-up"]) || "nothing"]],
  ];
}
