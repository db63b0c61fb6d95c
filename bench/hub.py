#!/usr/bin/env python3
"""How fast the hub is, and what it costs: `make bench-hub`.

usage: hub.py [--pairs N] [--quick] [--shapes LIST] [--beside STAGGER] [--callgrind] STAGGER [PART...]

The hub has core 0 for itself, and everything else core 1: `stagger sink`, which
is all of the targets (a path each), and who publishes. Bodies have 1 KB, and
connections are kept alive. Needs taskset, wrk, and two cores that do nothing
else: a load average that says otherwise is told.

  rate       Deliveries a second with 1, 3, 50 and 1,000 targets, and with 50
             and 1,000 of which a tenth refuse connections. The sink is stopped
             (SIGSTOP) while all messages are published, so that nothing but
             delivery is measured from when it goes on until it has counted
             them all. CPU is the hub's over that span: of all its threads, of
             its loop, and of the store's. In turn with it, pair by pair, the same
             requests go to the same sink over as many connections from the hub's
             core: by wrk, and by build/release/bench/bare, which is a loop around
             epoll and nothing else: the floor. Medians, of ratios too.
             --shapes 1,50,1000x10 has only these; 1000x10 is 10 at once for each
             of 1,000 targets that answer after 100 ms. --beside measures the hub
             of another build in turn with this one. Connections are there
             before, and limits of what is in flight have risen; what wrk needs for
             its connections is taken off by a short run. --callgrind adds a run of
             each shape in valgrind: instructions, and lines that a first cache
             of 32 KB and a second of 1 MB did not have, of a delivery.
  signed     What a delivery costs the hub that is signed by HMAC, by Ed25519, by
             RSA or not at all: of the loop, and of all threads.
  tls        The same with 3 targets over TLS (1.3): --tls-cert of the sink. Needs
             openssl. Besides, what a connection costs that is idle.
  latency    From the call that publishes until the sink has read a message, by
             the wall clock on both sides, at a rate far below the limit.
  isolation  The same for 49 healthy targets beside one that is healthy, one
             whose packets nobody answers (a full backlog), one that never
             answers, and one that refuses connections; in turn, medians.
  flight     Memory with 0, 2,000, 5,000 and 10,000 requests in flight to 1,000
             targets that have answered before and do not now. What each request
             costs is the slope from 2,000 on: the first ones fill holes that the
             heap of an idle hub has. Medians of readings at rest, and of runs,
             with the least and the most of them. And the rate of 1000x10, as
             above.
  ingress    Messages a second that are durable, in batches and one by one,
             with idempotency keys and without, from wrk on core 1. The one
             target refuses connections, so that nothing is delivered.
  page       Deliveries a second to 1,000 targets while nobody looks, and while
             the console's page is open, which follows GET /v1/live; in turn.
  batch      Deliveries a second of messages of 100 bytes to one target, by
             themselves and in batches of 100; in turn. To a target that answers
             at once, and to one as on the Internet: over TLS, signed by HMAC,
             with an answer after 5 ms. Needs openssl.
  idle       Memory with 10,000 targets and no message.
"""
import argparse
import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BODY = 1024
IN_FLIGHT = 64
TICKS = os.sysconf("SC_CLK_TCK")


def on_core(core, *words):
    return ["taskset", "-c", str(core), *map(str, words)]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text()
    fields = fields.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def cpu_by_thread(pid):
    """Seconds of all threads, of the loop, and of those of the store."""
    tasks = pathlib.Path(f"/proc/{pid}/task")
    seconds = [0.0, 0.0, 0.0]
    for task in tasks.iterdir():
        try:
            used = int((task / "schedstat").read_text().split()[0]) / 1e9
            name = (task / "comm").read_text()
        except FileNotFoundError:  # it has just ended
            continue
        seconds[0] += used
        seconds[1] += used if task.name == str(pid) else 0
        seconds[2] += used if name.startswith("store") else 0
    return seconds


def resident_kb(pid, which="VmRSS"):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{which}:\s+(\d+)", text)[1])


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


SECRETS = {"not": None,
           "HMAC": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
           "Ed25519": "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2"
                      "HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="}
RATE_SHAPES = ["1", "3", "50", "1000", "45+5", "900+100"]


class Shape:
    """Targets, and how many deliveries are in flight: 50; 45+5, of which 5 refuse
    connections; 1000x10, which answer after 100 ms."""

    def __init__(self, text):
        self.text = text
        targets, _, share = text.partition("x")
        healthy, _, dead = targets.partition("+")
        self.healthy, self.dead = int(healthy), int(dead or 0)
        self.share = int(share or max(1, IN_FLIGHT // self.all))
        self.connections = self.share * self.healthy
        self.sink = ["--delay", "100ms"] if share else []

    @property
    def all(self):
        return self.healthy + self.dead

    def __str__(self):
        if self.dead:
            return f"{self.all}, {self.dead} dead"
        return self.text


class Bench:
    """What is started here ends here."""

    def __init__(self, stagger, pairs, is_quick, shapes=None, beside=None,
                 is_counting=False):
        self.stagger = stagger
        self.hub_program = [stagger]
        self.shapes = shapes
        self.beside = beside
        self.is_counting = is_counting
        self.pairs = pairs
        self.is_quick = is_quick
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    @contextlib.contextmanager
    def world(self):
        """A folder for a store, and an end for all that is started."""
        outer, self.stack = self.stack, contextlib.ExitStack()
        try:
            with self.stack:
                self.folder = self.stack.enter_context(
                    tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")))
                yield
        finally:
            self.stack = outer

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, core, *words, **more):
        process = subprocess.Popen(on_core(core, *words), **more)
        self.stack.callback(self.end, process)
        return process

    def sink(self, *options, port=0):
        sink = self.start(1, self.stagger, "sink", "--quiet", "--listen", port,
                          *options, stdout=subprocess.PIPE, text=True)
        self.stack.callback(sink.stdout.close)
        return sink, sink.stdout.readline().split()[-1]

    def refuser(self):
        """A port that refuses: bound, and nobody listens."""
        s = self.stack.enter_context(socket.socket())
        s.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{s.getsockname()[1]}"

    def black_hole(self):
        """A port whose packets nobody answers: its backlog is full."""
        s = self.stack.enter_context(socket.socket())
        s.bind(("127.0.0.1", 0))
        s.listen(0)
        for _ in range(4):
            c = self.stack.enter_context(socket.socket())
            c.setblocking(False)
            c.connect_ex(s.getsockname())
        time.sleep(0.1)
        return f"http://127.0.0.1:{s.getsockname()[1]}"

    def signs(self, secret):
        """Settings of targets that are signed for with this secret."""
        return {"in-flight": IN_FLIGHT,
                "sign": {"scheme": ("rfc9421" if secret.startswith("-----")
                                    else "standard-webhooks"),
                         "secrets": [secret]}}

    def settings(self, targets, defaults):
        """A file with targets that have these settings."""
        path = os.path.join(self.folder, "hub.yaml")
        with open(path, "w", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            json.dump({"defaults": defaults,
                       "targets": [{"name": f"t{i}", "url": url}
                                   for i, url in enumerate(targets)]}, file)
        return path

    def hub(self, targets, *options, secret=None, defaults=None):
        """A hub with an empty store that is ready: it and its ingress."""
        port = free_port()
        store = os.path.join(self.folder, f"store-{port}.db")
        words = [word for target in targets for word in ("--to", target)]
        if secret is not None:
            defaults = self.signs(secret)
        if defaults is not None:
            words, options = ["-c", self.settings(targets, defaults)], ()
        self.errors = open(os.path.join(self.folder, "hub.log"), "w+")
        self.stack.callback(self.errors.close)
        hub = self.start(0, *self.hub_program, "hub", "--quiet", "--store", store,
                         "--listen", f"127.0.0.1:{port}", *options, *words,
                         stderr=self.errors, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while not self.is_ready(port):
            if hub.poll() is not None or time.monotonic() > until:
                self.errors.seek(0)
                sys.exit(f"hub.py: the hub is not ready: {self.errors.read()}")
            time.sleep(0.02)
        return hub, f"http://127.0.0.1:{port}"

    def is_ready(self, port):
        try:
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            c.request("GET", "/readyz")
            answer = c.getresponse()
            answer.read()
            c.close()
            return answer.status == 200
        except OSError:
            return False

    def publish(self, url, count):
        text = ("x" * BODY + "\n") * count
        subprocess.run(on_core(1, self.stagger, "send", "--quiet", "--lines",
                               "--hub", url), input=text.encode(), check=True)

    def wrk(self, core, connections, seconds, url, *words):
        """Requests, seconds, errors, p50 and p99 in us, and its own CPU."""
        before = os.times()
        text = subprocess.run(
            on_core(core, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
                    "-s", HERE / "hub_post.lua", url, "--", *words),
            check=True, capture_output=True, text=True).stdout
        after = os.times()
        found = re.search(r"wrk (\d+) requests (\d+) us (\d+) errors "
                          r"(\d+) us p50 (\d+) us p99", text)
        requests, micros, errors, p50, p99 = map(int, found.groups())
        cpu = (after.children_user + after.children_system
               - before.children_user - before.children_system)
        return requests, micros / 1e6, errors, p50, p99, cpu

    # -- signed

    def signed(self):
        """What a signature costs a delivery: of the loop, and of all threads."""
        shape = Shape("1")
        messages = 5_000 if self.is_quick else 20_000
        print(f"\nsigned: {messages} messages of {BODY} bytes to one target\n"
              f"{'':16}{'a second':>10}{'loop us':>10}{'all us':>10}")
        rsa = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA"],
                             check=True, text=True, capture_output=True).stdout
        for name, secret in (*SECRETS.items(), ("RSA of 2048", rsa.strip())):
            runs = [self.drain(shape, messages, secret=secret)
                    for _ in range(self.pairs)]
            rate, every, loop = (statistics.median(run[i] for run in runs)
                                 for i in range(3))
            print(f"{name:16}{rate:10.0f}{loop:10.1f}{every:10.1f}", flush=True)

    # -- rate

    def drain(self, shape, messages, sink=None, options=(), is_watched=False,
              secret=None):
        """Deliveries a second; CPU us each of all threads, the loop and the
        store's; KB. Of a hub alone. sink: starts one with these options."""
        with self.world():
            total, warm = shape.healthy * messages, 2 * shape.share
            sink, url = (sink or self.sink)(
                "--count", total + shape.healthy * warm, *shape.sink)
            refuser = self.refuser()
            targets = [f"{url}/t/{i}" for i in range(shape.healthy)]
            targets += [f"{refuser}/t/{i}" for i in range(shape.dead)]
            hub, ingress = self.hub(targets, "--in-flight", shape.share,
                                    *options, secret=secret)
            sink.send_signal(signal.SIGSTOP)
            self.publish(ingress, warm)
            sink.send_signal(signal.SIGCONT)
            self.await_delivered(ingress, shape.healthy * warm)
            sink.send_signal(signal.SIGSTOP)
            self.publish(ingress, messages)
            if is_watched:
                self.start(1, "curl", "-sN", f"{ingress}/v1/live",
                           stdout=subprocess.DEVNULL)
            self.watch(hub, True)
            began, cpu = time.monotonic(), cpu_by_thread(hub.pid)
            sink.send_signal(signal.SIGCONT)
            sink.wait(300)
            took = time.monotonic() - began
            cpu = [(after - before) / total * 1e6 for after, before in
                   zip(cpu_by_thread(hub.pid), cpu)]
            self.watch(hub, False)
            return total / took, *cpu, resident_kb(hub.pid)

    def plain(self, connections, seconds, sink=None, *options):
        """Requests a second, and CPU us each, of wrk and the same sink, once it
        is connected: what a longer run has more than a short one."""
        short = 1 + connections // 5000
        with self.world():
            _, url = (sink or self.sink)(*options)
            runs = []
            for span in short, short + seconds:
                requests, took, errors, _, _, cpu = self.wrk(
                    0, connections, span, url + "/t/0", "leaf", BODY)
                if errors or requests == 0:
                    sys.exit(f"hub.py: wrk had {errors} errors, "
                             f"and {requests} answers")
                runs.append((requests, took, cpu))
            requests, took, cpu = (b - a for a, b in zip(*runs))
            return requests / took, cpu / requests * 1e6

    def bare(self, connections, seconds, *options):
        """The same of bench/bare.c."""
        program = os.path.join(os.path.dirname(self.stagger), "bench", "bare")
        with self.world():
            _, url = self.sink(*options)
            text = subprocess.run(
                on_core(0, program, url.rpartition(":")[2], connections,
                        seconds, BODY),
                check=True, capture_output=True, text=True).stdout
            requests, micros, cpu = map(int, re.findall(r"\d+", text))
            return requests / micros * 1e6, cpu / requests

    @contextlib.contextmanager
    def build(self, stagger):
        """For a time the hub is that of another build."""
        ours, self.hub_program = self.hub_program, [stagger]
        try:
            yield
        finally:
            self.hub_program = ours

    def rate(self):
        self.measure_rates(self.shapes or RATE_SHAPES)

    def measure_rates(self, shapes):
        print("rate        targets  deliveries/s  us CPU each   loop  store   "
              "wrk/s     us  floor/s     us  hub/wrk  hub/floor  RSS MB")
        for shape in map(Shape, shapes):
            # The hub's time has the wait for the last answers in it: the more
            # connections, the longer it runs, and wrk likewise.
            seconds = (1 if self.is_quick else 3) + shape.connections // 1000
            messages = max(100 if shape.share == 1 else 10 * shape.share,
                           (60000 if self.is_quick else 240000)
                           * (4 if shape.connections >= 1000 else 1)
                           // shape.all)
            ours, beside = (self.stagger, []), (self.beside, [])
            turns = [ours, beside] if self.beside else [ours]
            for _ in range(self.pairs):
                hubs = []
                for build, _ in turns:
                    with self.build(build):
                        hubs.append(self.drain(shape, messages))
                wrk = self.plain(shape.connections, seconds, None, *shape.sink)
                bare = self.bare(shape.connections, seconds, *shape.sink)
                for hub, (_, rows) in zip(hubs, turns):
                    rows.append((*hub[:4], *wrk, *bare, hub[0] / wrk[0],
                                 hub[0] / bare[0], hub[4] / 1024))
                # The first of a pair is some percent slower.
                turns.reverse()
            self.print_rate(shape, ours[1])
            if self.beside:
                self.print_rate("beside", beside[1])
                self.print_change(ours[1], beside[1])
            if self.is_counting:
                self.count_lines(shape)

    def print_rate(self, name, rows):
        print("      {:>13}  {:12,.0f}  {:11.1f}  {:5.1f}  {:5.1f}  {:6,.0f}  "
              "{:5.1f}  {:7,.0f}  {:5.1f}  {:7.2f}  {:9.2f}  {:6.1f}".format(
                  str(name), *(statistics.median(c) for c in zip(*rows))),
              flush=True)

    def print_change(self, rows, others):
        rate, cpu, loop = (statistics.median(
            row[i] / other[i] for row, other in zip(rows, others))
            for i in range(3))
        print(f"{'to beside':>19}  {rate:12.3f}  {cpu:11.3f}  {loop:5.3f}",
              flush=True)

    # -- the page

    def page(self):
        shape = Shape("1000")
        messages = 40 if self.is_quick else 400
        rows = {False: [], True: []}
        print("page        targets  page   deliveries/s  us CPU each   loop")
        for _ in range(self.pairs):
            for is_open, of in rows.items():
                of.append(self.drain(shape, messages, is_watched=is_open)[:3])
        for is_open, of in rows.items():
            print("      {:>13}  {:5}  {:12,.0f}  {:11.1f}  {:5.1f}".format(
                str(shape), "open" if is_open else "none",
                *(statistics.median(c) for c in zip(*of))), flush=True)
        print("      {:>20}  {:12.3f}  {:11.3f}  {:5.3f}".format(
            "open to none", *(statistics.median(b[i] / a[i] for a, b in
                                                zip(rows[False], rows[True]))
                              for i in range(3))), flush=True)

    # -- batches

    def batch_target(self, kind):
        """A sink of this kind, and what a target of it has."""
        if kind == "at once":
            sink, url = self.sink()
            return sink, {"url": url}
        sink, url = self.tls_sink("--delay", "5ms")
        return sink, {
            "url": url, "tls": {"ca": self.certificate()[0]},
            "sign": {"scheme": "standard-webhooks", "secrets": [
                "whsec_" + base64.b64encode(b"k" * 32).decode()]}}

    def drain_small(self, kind, messages, most):
        """Deliveries a second, and CPU us each of all threads and of the loop."""
        with self.world():
            sink, target = self.batch_target(kind)
            port, settings = free_port(), os.path.join(self.folder, "hub.yaml")
            with open(settings, "w",
                      opener=lambda p, f: os.open(p, f, 0o600)) as file:
                json.dump({
                    "store": {"path": os.path.join(self.folder, "hub.db")},
                    "listen": {"address": f"127.0.0.1:{port}"},
                    "targets": [{"name": "a", "in-flight": IN_FLIGHT,
                                 "batch": {"max": most}, **target}]}, file)
            hub = self.start(0, self.stagger, "hub", "--quiet", "-c", settings,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
            while not self.is_ready(port):
                time.sleep(0.02)
            sink.send_signal(signal.SIGSTOP)
            text = (json.dumps({"text": "x" * 89}) + "\n") * messages
            subprocess.run(on_core(1, self.stagger, "send", "--quiet", "--lines",
                                   "--hub", f"http://127.0.0.1:{port}"),
                           input=text.encode(), check=True)
            began, cpu = time.monotonic(), cpu_by_thread(hub.pid)
            sink.send_signal(signal.SIGCONT)
            self.await_delivered(f"http://127.0.0.1:{port}", messages)
            took = time.monotonic() - began
            return messages / took, *(
                (after - before) / messages * 1e6 for after, before in
                zip(cpu_by_thread(hub.pid)[:2], cpu))

    def await_delivered(self, ingress, count):
        """To all targets together, which are a thousand at most."""
        c = http.client.HTTPConnection(ingress.rpartition("/")[2], timeout=60)
        delivered = 0
        while delivered < count:
            time.sleep(0.02)
            c.request("GET", "/v1/targets?limit=1000")
            delivered = sum(t["delivered"] for t in
                            json.loads(c.getresponse().read())["targets"])
        c.close()

    def batch(self):
        print("batch       the target     messages a request  deliveries/s  "
              "us CPU each   loop")
        with tempfile.TemporaryDirectory() as self.tls_folder:
            for kind, messages in (("at once", 300000),
                                   ("far away", 300000)):
                self.batch_to(kind, messages // (6 if self.is_quick else 1))

    def batch_to(self, kind, messages):
        rows = {1: [], 100: []}
        for _ in range(self.pairs):
            for most, of in rows.items():
                of.append(self.drain_small(kind, messages, most))
        for most, of in rows.items():
            print("            {:13}  {:18}  {:12,.0f}  {:11.1f}  {:5.1f}".format(
                kind, most, *(statistics.median(c) for c in zip(*of))),
                flush=True)
        print("            {:13}  {:>18}  {:12.2f}  {:11.3f}  {:5.3f}".format(
            "", "100 to 1", *(statistics.median(b[i] / a[i] for a, b in
                                                zip(rows[1], rows[100]))
                              for i in range(3))), flush=True)

    # -- cache lines

    def watch(self, hub, is_on):
        """callgrind counts from now on, or not any more."""
        if len(self.hub_program) > 1:
            subprocess.run(["callgrind_control", "-i",
                            "on" if is_on else "off", str(hub.pid)],
                           check=True, capture_output=True)

    def count_lines(self, shape):
        """Of a delivery: instructions, and lines missed, in user space."""
        messages = max(20 if shape.share == 1 else 3 * shape.share,
                       6000 // shape.all)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out")
            ours, self.hub_program = self.hub_program, [
                "valgrind", "-q", "--tool=callgrind", "--cache-sim=yes",
                "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64",
                "--instr-atstart=no", f"--callgrind-out-file={path}",
                *self.hub_program]
            try:
                self.drain(shape, messages)
            finally:
                self.hub_program = ours
            text = pathlib.Path(path).read_text()
        names = re.search(r"^events: (.*)$", text, re.M)[1].split()
        sums = re.search(r"^totals: (.*)$", text, re.M)[1].split()
        each = {name: int(value) / (shape.healthy * messages)
                for name, value in zip(names, sums)}
        print(f"{'callgrind':>19}  {each['Ir']:,.0f} instructions; lines missed "
              f"by the first cache: {each['I1mr']:.1f} of code, "
              f"{each['D1mr']:.1f} read, {each['D1mw']:.1f} written; by the "
              f"second: {each['DLmr']:.1f} read, {each['DLmw']:.1f} written",
              flush=True)

    # -- TLS

    def certificate(self):
        """Of 127.0.0.1, by itself, and its key."""
        paths = [os.path.join(self.tls_folder, name)
                 for name in ("certificate", "key")]
        if not os.path.exists(paths[0]):
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=sink",
                 "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1",
                 "-keyout", paths[1], "-out", paths[0]], check=True,
                capture_output=True)
        return paths

    def tls_sink(self, *options):
        certificate, key = self.certificate()
        return self.sink("--tls-cert", certificate, "--tls-key", key, *options)

    def tls(self):
        print("tls         targets  deliveries/s  us CPU each     wrk/s  "
              "us CPU each  hub/wrk  RSS MB")
        messages = 10000 if self.is_quick else 60000
        with tempfile.TemporaryDirectory() as self.tls_folder:
            ca = ("--ca", self.certificate()[0])
            rows = []
            for _ in range(self.pairs):
                rate, cpu, _, _, kb = self.drain(Shape("3"), messages,
                                                 self.tls_sink, ca)
                wrk = self.plain(Shape("3").connections,
                                 1 if self.is_quick else 3, self.tls_sink)
                rows.append((rate, cpu, kb, *wrk, rate / wrk[0]))
            rate, cpu, kb, plain, plain_cpu, ratio = (
                statistics.median(column) for column in zip(*rows))
            print(f"                  3  {rate:12,.0f}  {cpu:11.1f}  "
                  f"{plain:8,.0f}  {plain_cpu:11.1f}  {ratio:7.2f}  "
                  f"{kb / 1024:6.1f}", flush=True)
            self.tls_idle(ca)

    def tls_idle(self, ca):
        """What a connection costs that has been used and waits, TLS and not."""
        each = [self.idle_connections(sink, *options) for sink, options in (
            (self.tls_sink, ca), (self.sink, ()))]
        print(f"            an idle connection: {each[0]:.1f} KB; without "
              f"TLS: {each[1]:.1f} KB", flush=True)

    def idle_connections(self, start, *options):
        count = 1000
        with self.world():
            sink, url = start()
            hub, ingress = self.hub([f"{url}/t/{i}" for i in range(count)],
                                    *options)
            before = resident_kb(hub.pid)
            self.publish(ingress, 2)
            self.await_connections(sink.pid, count)
            time.sleep(1)
            return (resident_kb(hub.pid) - before) / count

    # -- latency

    def measure(self, seconds, rate, targets, odd=None):
        """Seconds from publishing to each receipt by the sink; rate: messages
        a second. odd: one more target, whose receipts do not count."""
        with self.world():
            log = os.path.join(self.folder, "receipts")
            _, url = self.sink("--log", log)
            all_targets = [f"{url}/t/{i}" for i in range(targets)]
            if odd is not None:
                all_targets.append(odd(url))
            _, ingress = self.hub(all_targets)
            sent = self.publish_at(ingress, rate, seconds)
            self.await_lines(log, targets * len(sent), 30)
            waits = []
            with open(log) as lines:
                for line in map(json.loads, lines):
                    if line["path"] != "/odd":
                        waits.append(line["time"] - sent[line["id"]])
            missing = targets * len(sent) - len(waits)
            if missing:
                print(f"            {missing} deliveries are missing")
            return waits

    def publish_at(self, ingress, rate, seconds):
        """Publishes at an even rate: when each id was about to be sent."""
        c = http.client.HTTPConnection(ingress.removeprefix("http://"),
                                       timeout=30)
        self.stack.callback(c.close)
        sent, began = {}, time.monotonic()
        for i in range(int(rate * seconds)):
            pause = began + i / rate - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            at = time.time()
            c.request("POST", "/v1/messages", b"x" * BODY)
            sent[json.loads(c.getresponse().read())["id"]] = at
        return sent

    def await_lines(self, path, count, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with open(path, "rb") as file:
                if sum(1 for _ in file) >= count:
                    return
            time.sleep(0.2)

    def latency(self):
        print("latency     targets  messages/s      p50 ms      p99 ms")
        seconds = 3 if self.is_quick else 10
        for targets, rate in ((1, 200), (3, 200), (50, 50), (1000, 5)):
            waits = self.measure(seconds, rate, targets)
            print(f"            {targets:7}  {rate:10}  "
                  f"{quantile(waits, .5) * 1e3:10.2f}  "
                  f"{quantile(waits, .99) * 1e3:10.2f}", flush=True)

    def isolation(self):
        print("isolation   the 50th target       p50 ms      p99 ms  "
              "p99 to healthy")
        odds = {
            "is healthy": lambda url: f"{url}/odd",
            "is a black hole": lambda _: self.black_hole() + "/",
            "hangs": lambda _: self.sink("--hang")[1] + "/",
            "refuses": lambda _: self.refuser() + "/",
        }
        seconds = 4 if self.is_quick else 12
        found = {name: [] for name in odds}
        for _ in range(self.pairs):
            for name, odd in odds.items():
                waits = self.measure(seconds, 50, 49, odd)
                found[name].append((quantile(waits, .5) * 1e3,
                                    quantile(waits, .99) * 1e3))
        healthy = found["is healthy"]
        for name, rows in found.items():
            p50, p99 = (statistics.median(column) for column in zip(*rows))
            ratio = statistics.median(
                row[1] / base[1] for row, base in zip(rows, healthy))
            print(f"            {name:16}  {p50:10.2f}  {p99:10.2f}  "
                  f"{ratio:14.2f}", flush=True)

    # -- memory

    def flight(self):
        print("flight      in flight  RSS MB  of no file  bytes each more")
        slopes = []
        for _ in range(self.pairs):
            rows = []
            for flying, resident, own in self.fly(1000, (0, 2000, 5000, 10000)):
                more = ("" if not rows else
                        f"{(own - rows[-1][1]) / (flying - rows[-1][0]):15,.0f}")
                rows.append((flying, own))
                print(f"            {flying:9,}  {resident / 2**20:6.1f}  "
                      f"{own / 2**20:10.1f}  {more}", flush=True)
            slopes.append(statistics.linear_regression(*zip(*rows[1:])).slope)
        print(f"            the slope from 2,000 on: "
              f"{statistics.median(slopes):,.0f} bytes each, "
              f"{min(slopes):,.0f} to {max(slopes):,.0f}", flush=True)
        self.measure_rates(["1000x10"])

    def fly(self, targets, points):
        """Of a hub with so many requests in flight, one point after the other, that
        nobody answers: how many, bytes resident, and of them those of no file."""
        messages, port = 100, free_port()
        with self.world():
            sink, url = self.sink("--count", messages * targets, port=port)
            hub, ingress = self.hub(
                [f"{url}/t/{i}" for i in range(targets)],
                defaults={"in-flight": IN_FLIGHT,
                          "timeouts": {"attempt": "1h"},
                          "connections": {"idle": "200ms"}})
            # By its answers a target may have more in flight than one, and has
            # what every target has that was sent to: after ten seconds also a
            # history. The store and the heap come to rest meanwhile.
            self.publish(ingress, messages)
            sink.wait(60)
            sink, _ = self.sink("--hang", port=port)
            time.sleep(13)
            none, published = self.connections(sink.pid), 0
            for point in points:
                if point > published:
                    self.publish(ingress, (point - published) // targets)
                published = point
                self.await_connections(sink.pid, none + point)
                time.sleep(2)
                flying = self.connections(sink.pid) - none
                if flying < 0.99 * point:
                    sys.exit(f"hub.py: {flying} in flight, not {point}")
                yield flying, *self.quiet_bytes(hub.pid)

    def quiet_bytes(self, pid):
        """Resident, and of them anonymous: medians of some readings."""
        rows = []
        for _ in range(5):
            text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            rows.append([int(re.search(rf"^{which}:\s+(\d+)", text, re.M)[1]) * 1024
                         for which in ("Rss", "Anonymous")])
            time.sleep(0.2)
        return [statistics.median(column) for column in zip(*rows)]

    def connections(self, pid):
        return len(os.listdir(f"/proc/{pid}/fd")) - 6

    def await_connections(self, pid, least):
        until = time.monotonic() + 60
        while self.connections(pid) < least and time.monotonic() < until:
            time.sleep(0.1)

    def idle(self):
        print("idle        targets  RSS MB  bytes each")
        rows = []
        for targets in (1, 10000):
            with self.world():
                url = self.refuser()
                hub, _ = self.hub([f"{url}/t/{i}" for i in range(targets)])
                time.sleep(3)  # the store has given back what the start took
                rows.append((targets, resident_kb(hub.pid)))
        for targets, kb in rows:
            each = (kb - rows[0][1]) * 1024 / targets
            print(f"            {targets:7}  {kb / 1024:6.1f}  {each:10,.0f}",
                  flush=True)

    # -- ingress

    def ingress(self):
        print("ingress     in            keys  messages/s  us CPU each  errors")
        seconds = 2 if self.is_quick else 4
        shapes = [("batch", 16, 500), ("batch", 16, 50), ("message", 512, 1)]
        for what, connections, count in shapes:
            for keys in ([], ["keys"]):
                rows = []
                for _ in range(self.pairs):
                    rows.append(self.load(what, connections, count, keys,
                                          seconds))
                each, cpu, errors = (statistics.median(c) for c in zip(*rows))
                name = f"{what}" + (f" of {count}" if count > 1 else "")
                print(f"            {name:12}  {'yes' if keys else 'no':>4}  "
                      f"{each:10,.0f}  {cpu:11.1f}  {errors:6.0f}",
                      flush=True)

    def load(self, what, connections, count, keys, seconds):
        with self.world():
            hub, url = self.hub([self.refuser() + "/"])
            path = "/v1/messages" + ("/batch" if what == "batch" else "")
            cpu = cpu_seconds(hub.pid)
            requests, took, errors, _, _, _ = self.wrk(
                1, connections, seconds, url + path, what, BODY, count, *keys)
            cpu = cpu_seconds(hub.pid) - cpu
            done = max(1, (requests - errors) * count)
            return done / took, cpu / done * 1e6, errors


def warn_of_others():
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"hub.py: the load average is {load:.2f}: something else runs, "
              "and these numbers will be worse for it", file=sys.stderr)
    if (os.cpu_count() or 1) < 2:
        sys.exit("hub.py: two cores are the least")


PARTS = ("rate", "signed", "tls", "latency", "isolation", "flight", "ingress",
         "page", "batch", "idle")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2][7:])
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--shapes", type=lambda text: text.split(","))
    parser.add_argument("--beside", type=os.path.abspath)
    parser.add_argument("--callgrind", action="store_true")
    parser.add_argument("stagger")
    parser.add_argument("parts", nargs="*", metavar="PART")
    words = parser.parse_args()
    for part in words.parts:
        if part not in PARTS:
            parser.error(f"{part}: expected one of {', '.join(PARTS)}")
    warn_of_others()
    pairs = words.pairs or (1 if words.quick else 5)
    with Bench(os.path.abspath(words.stagger), pairs, words.quick,
               words.shapes, words.beside, words.callgrind) as bench:
        for part in words.parts or PARTS:
            getattr(bench, part)()


if __name__ == "__main__":
    main()
