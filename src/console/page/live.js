/* All targets as they are now: read once, and kept right by the hub's stream of
 * changes (GET /v1/live); where that is refused, asked for again and again. */
import {follow, get, getPages} from "./api.js";
import {Rate} from "./state.js";

const POLL_MS = 2000;
const AGAIN_MS = 30000; /* until the stream is asked for again */

function wait(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, {once: true});
  });
}

export class Live {
  status = null;
  targets = new Map(); /* by name */
  series = new Map();  /* likewise: {delivered, failed} of ten minutes */
  #rates = new Map();
  #changes = null;
  #seriesAt = -Infinity;
  #settledAt = 0;
  #signal;

  constructor(signal) {
    this.#signal = signal;
  }

  /* Deliveries and failures a second. */
  rateOf(name) {
    return this.#rates.get(name);
  }

  /* Whether all numbers of a target are of one moment. At first they may not be:
   * the stream has told each target whole after this time. */
  isSettled() {
    return performance.now() >= this.#settledAt;
  }

  async #read() {
    const [status, targets] = await Promise.all([get("/v1/status", this.#signal),
                                                 getPages("/v1/targets", "targets", this.#signal)]);
    const before = this.#rates;
    this.targets = new Map(targets.map((t) => [t.name, t]));
    this.#rates = new Map(targets.map((t) => [t.name, before.get(t.name) ?? new Rate()]));
    return status;
  }

  /* Of many targets the series are large, and asked for less often. */
  async #readSeries() {
    const now = performance.now();
    if (now - this.#seriesAt < Math.max(10, this.targets.size / 100) * 1000)
      return;
    this.#seriesAt = now;
    const all = await getPages("/v1/history", "targets", this.#signal);
    this.series = new Map(all.map((each) => [each.name, each]));
  }

  #take(status) {
    const ms = Date.parse(status.now);
    this.status = status;
    for (const [name, t] of this.targets)
      this.#rates.get(name).take(t, ms);
  }

  /* A target that is not known yet comes with the next reading. */
  #apply(changed) {
    for (const each of changed) {
      const t = this.targets.get(each.name);
      if (t !== undefined)
        Object.assign(t, each);
    }
  }

  async #followOnce(told) {
    const waiting = [];
    let isRead = false;
    let reading = null;

    const show = (status) => {
      this.#take(status);
      this.#readSeries().catch(() => {});
      told();
    };
    const read = () => {
      isRead = false;
      reading = this.#read().then((status) => {
        isRead = true;
        this.#settledAt = performance.now() + 5000 + 2 * this.targets.size;
        waiting.splice(0).forEach((event) => this.#apply(event.targets));
        show(status);
      });
      reading.catch(() => {});
    };
    await follow("/v1/live", this.#signal, (event) => {
      if (event.targets !== undefined) {
        if (isRead)
          this.#apply(event.targets);
        else
          waiting.push(event);
        return;
      }
      if (reading === null || (isRead && event.target_changes !== this.#changes))
        read();
      this.#changes = event.target_changes;
      if (isRead)
        show(event.status);
    });
  }

  /* Calls told() once a second with what has changed, or failed(error), until the
   * signal. */
  async run(told, failed) {
    while (!this.#signal.aborted) {
      try {
        await this.#followOnce(told);
        await wait(1000 + 3000 * Math.random(), this.#signal);
      } catch (error) {
        if (this.#signal.aborted)
          return;
        if (error.status === 401)
          throw error;
        await this.#poll(told, failed);
      }
    }
  }

  async #poll(told, failed) {
    const until = performance.now() + AGAIN_MS;
    while (!this.#signal.aborted && performance.now() < until) {
      if (!document.hidden)
        try {
          this.#take(await this.#read());
          this.#settledAt = 0;
          await this.#readSeries();
          told();
        } catch (error) {
          failed(error);
        }
      await wait(POLL_MS, this.#signal);
    }
  }
}
