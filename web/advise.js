"use strict";
// Advice: which policy, for a service that may fail. The rounds take half a
// minute, so they begin when that is asked for.

const REPS = 4; // runs of each of the last candidates, as the command has them

const usualQuestion = () => ({
  clients: 5000, processes: 5000, capacity: 800, load: 70, outage: 30e9,
  patience: 10e9, service: 20e6,
});

class Advise {
  // plan(text): shows the plan of a policy.
  constructor(module, linked, plan) {
    this.find = (id) => document.getElementById(`advise-${id}`);
    this.computer = new Computer(module, (message) => this.show(message));
    const moved = (key) => (value) => {
      this.state[key] = value;
      this.changed();
    };
    const count = (key, label, most) => sliderWithBox({
      label, steps: stepsOf(COUNTS, 1, most), least: 1, most,
      moved: moved(key),
    });
    const time = (key, label, least, most) => slider({
      label, steps: stepsOf(TIMES, least, most), words: timeText,
      moved: moved(key),
    });
    this.fields = {
      clients: count("clients", "clients that call the service", 1e7),
      processes: count("processes", "processes that they live in", 1e7),
      capacity: count("capacity", "requests a second that it can do", 4e6),
      load: slider({
        label: "wanted of that when all is well", words: (load) => `${load} %`,
        steps: [10, 20, 30, 40, 50, 60, 70, 80, 90, 95], moved: moved("load"),
      }),
      outage: time("outage", "an outage to be survived", 1e8, 3600e9),
      patience: time("patience", "how long a client may wait", 1e7, 3600e9),
      service: time("service", "a request takes, if nobody waits", 1e5, 60e9),
    };
    this.find("fields").append(...Object.values(this.fields).map((each) =>
      each.field));
    const say = (words) => { this.find("copied").textContent = words; };
    const on = (id, run) => this.find(id).addEventListener("click", run);
    on("ask", () => this.computer.isBusy ? this.stop() : this.ask());
    on("plan", () => plan(this.answer.policy));
    on("policy-copy", async () =>
      say(await copyText(this.answer.policy, "The policy")));
    on("copy", async () =>
      say(await copyText(this.find("command").textContent, "The command")));
    on("link", async () => say(await copyText(linked(), "The link")));
  }

  delta() { return deltaOf(this.state, usualQuestion()); }

  take(said) {
    this.state = usualQuestion();
    for (const key of Object.keys(this.state)) {
      if (Number.isInteger(said[key]) && said[key] > 0)
        this.state[key] = said[key];
      this.fields[key].show(this.state[key]);
    }
    this.changed();
  }

  // What is shown is of before.
  changed() {
    const { clients, processes, capacity, load, outage, patience, service } =
      this.state;
    if (this.computer.isBusy) this.stop();
    this.find("results").classList.add("stale");
    this.find("command").textContent = ["stagger sim advise",
      `--clients ${clients}`, `--processes ${processes}`,
      `--capacity ${capacity}`, `--load ${load}%`,
      `--outage ${timeText(outage)}`, `--patience ${timeText(patience)}`,
      `--service ${timeText(service)}`, `--reps ${REPS}`].join(" \\\n    ");
  }

  // -- asking

  ask() {
    this.computer.ask({ question: { ...this.state }, reps: REPS });
    this.find("refused").hidden = true;
    this.turn("Stop", "Some two hundred policies are tried …");
  }

  stop() {
    this.computer.stop();
    this.turn("Find a policy", "Stopped.");
  }

  turn(button, status) {
    this.find("ask").textContent = button;
    this.find("status").textContent = status;
    this.find("share").hidden = !this.computer.isBusy;
    this.find("share").value = 0;
  }

  // -- the answer

  show({ share, answer, error, ms }) {
    if (share !== undefined) {
      this.find("share").value = share;
      return;
    }
    const wrong = error ?? answer.error;
    this.turn("Find a policy", wrong === undefined
      ? `Found in ${timeWords(Math.round(ms))}.` : "");
    this.find("refused").hidden = wrong === undefined;
    if (wrong !== undefined) {
      this.find("refused").textContent = wrong;
      return;
    }
    this.answer = answer;
    this.find("results").hidden = false;
    this.find("results").classList.remove("stale");
    this.find("policy").textContent = answer.policy;
    this.find("said").replaceChildren(...answer.said.map((line) =>
      element("p", {}, line)));
    const after = (of) => of < 0 ? "not always" : of < 1 ? "at once"
      : timeWords(of);
    this.find("table").tBodies[0].replaceChildren(...answer.rows.map((row) =>
      element("tr", {}, element("th", { scope: "row" }, row.name),
        ...[after(row.outage), after(row.stall), `${numberWords(row.lost)} %`,
          numberWords(row.load), numberWords(row.peak),
          row.p99 < 0 ? "–" : timeWords(row.p99),
          `${row.failed} of ${row.runs}`].map((words) =>
          element("td", {}, words)))));
  }
}
