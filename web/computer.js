"use strict";
// Who computes: a worker that is ended when it does not listen in time.

class Computer {
  constructor(module, heard) {
    Object.assign(this, { module, heard, id: 0 });
    this.start();
  }

  start() {
    const source = [...document.querySelectorAll("script.work")]
      .map((script) => script.textContent).join("\n");
    try {
      const url = URL.createObjectURL(
        new Blob([source, "\nwork();"], { type: "text/javascript" }));
      this.worker = new Worker(url);
      this.worker.postMessage({ module: this.module });
      this.worker.onmessage = ({ data }) => this.hear(data);
      this.worker.onerror = () => this.doWithout();
    } catch {
      this.doWithout();
    }
  }

  // Where a page from a file may have no worker: in the page, by pauses.
  doWithout() {
    this.worker = null;
    this.runner = new Runner(this.module, (message) => this.hear(message));
    if (this.last) this.tell(this.last);
  }

  tell(message) {
    if (this.worker) this.worker.postMessage(message);
    else this.runner.hear(message);
  }

  // Whatever it is about now, this is what is wanted.
  ask(run, width) {
    this.last = { id: ++this.id, run, width };
    this.tell(this.last);
    clearTimeout(this.timer);
    if (this.worker && this.isBusy) {
      this.timer = setTimeout(() => {
        this.worker.terminate();
        this.start();
        this.tell(this.last);
      }, 250);
    }
    this.isBusy = true;
  }

  // Nothing is wanted, and nothing shall go on.
  stop() {
    this.forget();
    this.isBusy = false;
    if (!this.worker) return;
    this.worker.terminate();
    this.start();
  }

  // Nothing is wanted: what still comes is of before.
  forget() {
    this.id++;
  }

  draw(width) {
    this.tell({ width });
  }

  // The charts as they stand, each as a file of its own.
  files() {
    return new Promise((go) => {
      this.wanted = go;
      this.tell({ alone: true });
    });
  }

  hear(message) {
    if (message.files) {
      this.wanted(message.files);
      return;
    }
    if (message.id !== this.id) return;
    clearTimeout(this.timer);
    if (message.begun) return;
    this.isBusy = message.error === undefined && message.ms === undefined;
    this.heard(message);
  }
}
