"use strict";
// Runs what the page asks for, a repetition at a time, and tells of it now and
// then. In a worker it keeps the page free; without one it does so by pauses.

const TELL_MS = 80; // between two pictures of a run
const FILE_WIDTH = 760; // of a chart that leaves the page

class Runner {
  // tell: gets messages, as those of a worker.
  constructor(module, tell) {
    this.engine = new Engine(module);
    this.tell = tell;
    this.latest = 0;
    this.channel = new MessageChannel();
  }

  // Lets whatever else waits have its turn, without the delay of a timer.
  pause() {
    return new Promise((go) => {
      this.channel.port1.onmessage = go;
      this.channel.port2.postMessage(0);
    });
  }

  hear(message) {
    if (message.alone) {
      this.tell({ files: this.engine.charts(FILE_WIDTH, true) });
      return;
    }
    this.width = message.width;
    if (message.run?.question) this.advise(message.id, message.run);
    else if (message.run?.storms) this.storm(message.id, message.run);
    else if (message.run) this.run(message.id, message.run);
    else if (this.progress) this.show();
  }

  // The first run of the first storm is told of at once: it is what moves.
  async storm(id, run) {
    this.latest = id;
    this.progress = null;
    const error = this.engine.beginStorms(run);
    if (error) {
      this.tell({ id, error });
      return;
    }
    const began = performance.now();
    for (let done = 0; done < run.reps; done++) {
      for (let i = 0; i < run.storms.length; i++) {
        if (!this.engine.stormRun(i)) {
          this.tell({ id, error: "there is no memory for so many requests" });
          return;
        }
        if (done === 0 && i === 0)
          this.tell({
            id, first: this.engine.stormSeries(0),
            sums: [this.engine.stormSums(0)],
          });
        await this.pause();
        if (this.latest !== id) return;
      }
    }
    this.progress = {
      id, count: run.storms.length, isStorm: true,
      ms: performance.now() - began,
    };
    this.show();
  }

  // One call, which nothing can interrupt but the end of the worker.
  advise(id, { question, reps }) {
    const began = performance.now();
    let next = began;
    this.latest = id;
    this.progress = null;
    this.engine.told = (share) => {
      if (performance.now() < next) return;
      next = performance.now() + TELL_MS;
      this.tell({ id, share });
    };
    this.tell({ id, begun: true });
    const answer = this.engine.advise(question, reps);
    this.tell({ id, answer, ms: performance.now() - began });
  }

  async run(id, run) {
    this.latest = id;
    const error = this.engine.begin(run);
    this.progress = null;
    if (error) {
      this.tell({ id, error });
      return;
    }
    this.tell({ id, begun: true });
    const count = run.policies.length;
    const began = performance.now();
    let next = began;
    for (let done = 1; done <= run.reps; done++) {
      for (let i = 0; i < count; i++) {
        if (!this.engine.repeat(i)) {
          this.tell({ id, error: "there is no memory for so many clients" });
          return;
        }
        if (performance.now() - next > TELL_MS) {
          await this.pause();
          if (this.latest !== id) return;
          next = performance.now();
          if (done > 1) { // each policy has a repetition at least
            this.progress = { id, count, done: done - 1, of: run.reps };
            next += 2 * this.show();
          }
        }
      }
    }
    this.progress = {
      id, count, done: run.reps, of: run.reps,
      ms: performance.now() - began,
    };
    this.show();
  }

  // Tells of what there is; returns how long that took.
  show() {
    const began = performance.now();
    const { count, isStorm } = this.progress;
    const sums = Array.from({ length: count }, (_, i) =>
      isStorm ? this.engine.stormSums(i) : this.engine.sums(i));
    this.tell({
      ...this.progress, sums, csv: this.engine.csv(),
      charts: this.engine.charts(this.width),
    });
    return performance.now() - began;
  }
}

// What a worker does; it is made of the text of this file and the engine's.
function work() {
  let runner;
  self.onmessage = ({ data }) => {
    if (data.module)
      runner = new Runner(data.module, (message) => self.postMessage(message));
    else
      runner.hear(data);
  };
}
