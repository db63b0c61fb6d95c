"use strict";
// The storm as a picture that moves: clients, their requests on the way, the
// server with its queue, and the answers. It is drawn from the series alone, so
// any time of it can be drawn, in any order.

const DOT = 20; // requests that a dot stands for
const FLIGHT = 1; // seconds that a dot is on the way
const SEEN = 0.3; // of the reader's seconds, at least
const CLIENTS = 400; // dots

class Scene {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    // The order in which clients light up, the same each time.
    this.order = Array.from({ length: CLIENTS }, (_, i) => i);
    for (let i = CLIENTS - 1; i > 0; i--) {
      const k = Math.floor(Scene.chance(i) * (i + 1));
      [this.order[i], this.order[k]] = [this.order[k], this.order[i]];
    }
    this.dye();
  }

  // A number from 0 to 1 that is always the same for k.
  static chance(k) {
    const x = Math.sin(k * 127.1 + 11.7) * 43758.5453;
    return x - Math.floor(x);
  }

  // The colours of the page's theme.
  dye() {
    const style = getComputedStyle(this.canvas);
    this.colours = Object.fromEntries(["ink", "quiet", "line", "panel", "first",
      "retry", "good", "bad"].map((name) =>
      [name, style.getPropertyValue(`--${name}`).trim()]));
    this.font = style.fontFamily;
  }

  resize(width) {
    const height = Math.round(width < 560 ? 290 : Math.min(380, width * 0.36));
    const sharp = window.devicePixelRatio || 1;
    Object.assign(this, { width, height });
    this.canvas.width = width * sharp;
    this.canvas.height = height * sharp;
    this.canvas.style.height = `${height}px`;
    this.pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    this.isNarrow = width < 560;
    this.radius = this.isNarrow ? 2 : 3;
    const at = (share) => Math.round(width * share);
    this.crowd = { left: 2, right: at(this.isNarrow ? 0.23 : 0.2) };
    this.lane = { left: this.crowd.right + 8, right: at(0.6) };
    this.server = { left: at(0.62), right: width - 2 };
    this.top = 52;
    this.bottom = height - 12;
    this.middle = this.top + (this.bottom - this.top) * 0.56;
  }

  // speed: seconds of the storm in one of the reader's.
  draw(series, t, speed) {
    const { pen } = this;
    pen.clearRect(0, 0, this.width, this.height);
    this.drawClients(series.waiting(t));
    this.drawServer(series, t);
    const flight = Math.max(FLIGHT, SEEN * speed);
    const each = DOT * flight; // so that as many dots fly as DOTs a second
    this.drawRequests(series, t, flight, each);
    this.drawAnswers(series, t, flight, each);
    this.drawWords(series, t, flight);
  }

  dots(colour, places, radius = this.radius) {
    this.pen.fillStyle = colour;
    this.pen.beginPath();
    for (const [x, y] of places) {
      this.pen.moveTo(x + radius, y);
      this.pen.arc(x, y, radius, 0, 7);
    }
    this.pen.fill();
  }

  rings(colour, places) {
    this.pen.strokeStyle = colour;
    this.pen.lineWidth = 1.2;
    this.pen.beginPath();
    for (const [x, y] of places) {
      this.pen.moveTo(x + this.radius, y);
      this.pen.arc(x, y, this.radius, 0, 7);
    }
    this.pen.stroke();
  }

  // Places in rows that fill a box, from its right edge on.
  lattice(box, top, bottom, count, most = this.radius) {
    const [w, h] = [box.right - box.left, bottom - top];
    const step = Math.sqrt(w * h / count);
    const rows = Math.max(1, Math.floor(h / step));
    const columns = Math.ceil(count / rows);
    return {
      radius: Math.min(most, w / columns * 0.4, h / rows * 0.4),
      place: (i) => [
        box.right - (Math.floor(i / rows) + 0.5) * w / columns,
        top + (i % rows + 0.5) * h / rows],
    };
  }

  drawClients(waiting) {
    const { place, radius } = this.lattice(this.crowd, this.top, this.bottom,
      CLIENTS);
    const lit = Math.min(CLIENTS, Math.round(waiting / DOT));
    this.dots(this.colours.line, this.order.slice(lit).map(place), radius);
    this.dots(this.colours.ink, this.order.slice(0, lit).map(place), radius);
  }

  drawServer(series, t) {
    const { pen, server, colours } = this;
    const isBad = series.isTrouble(t) && series.trouble.kind !== "spike";
    pen.lineWidth = isBad ? 2 : 1;
    pen.strokeStyle = isBad ? colours.bad : colours.quiet;
    pen.fillStyle = colours.panel;
    pen.setLineDash(isBad ? [6, 5] : []);
    pen.beginPath();
    pen.roundRect(server.left, this.top, server.right - server.left,
      this.bottom - this.top, 8);
    pen.fill();
    pen.stroke();
    pen.setLineDash([]);
    const w = server.right - server.left;
    const queue = { left: server.left + w * 0.06, right: server.left + w * 0.68 };
    const top = this.top + 10;
    const { place, radius } = this.lattice(queue, top, this.bottom - 10,
      QUEUE / DOT, 2 * this.radius);
    const lit = Math.round(series.level("queue", t) / DOT);
    const all = Array.from({ length: QUEUE / DOT }, (_, i) => place(i));
    this.dots(colours.line, all.slice(lit), radius);
    this.dots(colours.ink, all.slice(0, lit), radius);
    this.drawWorkers(series.level("busy", t), server.left + w * 0.77,
      server.right - w * 0.08, top);
  }

  // So many at work, the last one in part.
  drawWorkers(busy, left, right, top) {
    const { pen, colours } = this;
    const step = (this.bottom - 10 - top) / WORKERS;
    for (let i = 0; i < WORKERS; i++) {
      const share = Math.max(0, Math.min(1, busy - i));
      const y = top + i * step + step * 0.15;
      pen.fillStyle = colours.line;
      pen.fillRect(left, y, right - left, step * 0.7);
      pen.fillStyle = colours.ink;
      pen.fillRect(left, y, (right - left) * share, step * 0.7);
    }
  }

  // A dot leaves when its request was sent. Those on their way are the requests
  // of the last second, which the rates in words are of, too.
  drawRequests(series, t, flight, each) {
    const { lane } = this;
    const from = this.top + 10, to = this.middle - 18;
    const place = (share, k) => [
      lane.left + (lane.right - lane.left) * share,
      from + (to - from) * Scene.chance(k)];
    const under = (name, salt) => {
      const places = [];
      series.every(name, each, t - flight, t, (at, k) =>
        places.push(place((t - at) / flight, k + salt)));
      return places;
    };
    this.dots(this.colours.first, under("first", 0));
    this.dots(this.colours.retry, under("retried", 5000));
    const back = [];
    const fall = flight * 0.5;
    const door = t - flight;
    series.every("bounced", each, door - fall, door, (at, k) => {
      const share = (door - at) / fall;
      const [x, y] = place(1 - share * 0.3, k + 9000);
      back.push([x, y + share * share * 26]);
    });
    this.rings(this.colours.bad, back);
  }

  // Those that nobody waits for any more get lost on the way.
  drawAnswers(series, t, flight, each) {
    const { lane } = this;
    const from = this.middle + 22, to = this.bottom - 8;
    const left = (name, reach, salt) => {
      const places = [];
      series.every(name, each, t - flight * reach, t, (at, k) =>
        places.push([
          lane.right - (lane.right - lane.left) * (t - at) / flight,
          from + (to - from) * Scene.chance(k + salt)]));
      return places;
    };
    this.rings(this.colours.quiet, left("forNobody", 0.6, 2000));
    this.dots(this.colours.good, left("succeeded", 1, 3000));
  }

  drawWords(series, t, flight) {
    const { lane, server, colours, crowd } = this;
    const rate = (name) => plain(series.mean(name, t - flight, t));
    const say = (x, y, words, colour, isBold) => {
      this.pen.font = `${isBold ? "600 " : ""}${this.isNarrow ? 11 : 13}px ` +
        this.font;
      this.pen.fillStyle = colour;
      this.pen.fillText(words, x, y);
    };
    const isSpike = series.trouble.kind === "spike";
    const trouble = series.isTrouble(t) ? TROUBLES[series.trouble.kind].now : "";
    const side = (is, x, usual, words) => say(x, 18, is ? words : usual,
      is ? colours.bad : colours.quiet, is);
    const queue = Math.round(series.level("queue", t));
    side(isSpike && trouble !== "", crowd.left, "clients waiting", trouble);
    side(!isSpike && trouble !== "", server.left, "server",
      `server: ${trouble}`);
    say(crowd.left, 38, Math.round(series.waiting(t)).toLocaleString("en"),
      colours.ink, true);
    say(lane.left, 18, `${rate("sent")}/s arrive`, colours.ink, true);
    say(lane.left, 38, `${rate("retried")} of them retries`, colours.quiet);
    say(server.left, 38, `queue ${queue.toLocaleString("en")}` +
      (queue > QUEUE * 0.98 ? ": full" : ""), colours.ink, true);
    say(lane.left, this.middle + 2, `${rate("succeeded")}/s in time`,
      colours.ink, true);
    say(lane.left, this.middle + 18, `${rate("forNobody")}/s too late`,
      colours.quiet);
  }
}
