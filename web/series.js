"use strict";
// The first run of a storm, bin by bin, as the engine has it: totals, rates and
// levels at any time of it. Times are seconds.

const BIN = ["begun", "sent", "retried", "succeeded", "givenUp", "refused",
  "timeouts", "forNobody", "queue", "busy"];

class Series {
  // numbers: the rows of all bins; trouble: {kind, from, until}.
  constructor(numbers, width, trouble) {
    Object.assign(this, { width, trouble, count: numbers.length / BIN.length });
    this.end = this.count * width;
    const column = (k) => Float64Array.from({ length: this.count },
      (_, i) => numbers[i * BIN.length + k]);
    const bins = Object.fromEntries(BIN.map((name, k) => [name, column(k)]));
    this.levels = { queue: bins.queue, busy: bins.busy };
    bins.first = bins.sent.map((sent, i) => sent - bins.retried[i]);
    // Who is turned away at the door: whoever comes while the service is down,
    // or finds no place in its queue.
    bins.bounced = bins.refused.map((refused, i) =>
      this.isDown((i + 0.5) * width) ? bins.sent[i] : refused);
    this.totals = Object.fromEntries(Object.entries(bins).map(
      ([name, each]) => {
        const sums = new Float64Array(this.count + 1);
        each.forEach((number, i) => { sums[i + 1] = sums[i] + number; });
        return [name, sums];
      }));
  }

  isTrouble(t) { return t >= this.trouble.from && t < this.trouble.until; }
  isDown(t) { return this.trouble.kind === "outage" && this.isTrouble(t); }

  // How many there were up to then.
  total(name, t) {
    const sums = this.totals[name];
    const at = Math.max(0, Math.min(this.count, t / this.width));
    const i = Math.min(this.count - 1, Math.floor(at));
    return sums[i] + (sums[i + 1] - sums[i]) * (at - i);
  }

  mean(name, from, until) {
    const [a, b] = [Math.max(0, from), Math.min(this.end, until)];
    return b > a ? (this.total(name, b) - this.total(name, a)) / (b - a) : 0;
  }

  // A second, in the second that ends then.
  rate(name, t) { return this.mean(name, t - 1, t); }

  // That of the second in the middle, of all from one time to another.
  median(name, from, until) {
    const each = [];
    for (let t = from + 1; t <= Math.min(until, this.end); t++)
      each.push(this.rate(name, t));
    return each.sort((a, b) => a - b)[each.length >> 1] ?? 0;
  }

  level(name, t) {
    return this.levels[name][Math.max(0,
      Math.min(this.count - 1, Math.floor(t / this.width)))];
  }

  // Operations that have begun and not ended.
  waiting(t) {
    return Math.max(0, this.total("begun", t) - this.total("succeeded", t) -
      this.total("givenUp", t));
  }

  // Calls back with the time, and the number, of each that makes the total a
  // multiple of `each`, from one time to another.
  every(name, each, from, until, back) {
    const sums = this.totals[name];
    const last = Math.floor(this.total(name, until) / each);
    let i = Math.max(0, Math.floor(from / this.width));
    for (let k = Math.floor(this.total(name, from) / each) + 1; k <= last; k++) {
      while (i < this.count && sums[i + 1] < k * each) i++;
      if (i >= this.count) return;
      back((i + (k * each - sums[i]) / (sums[i + 1] - sums[i])) * this.width,
        k);
    }
  }
}

if (typeof module === "object") module.exports = { Series };
