"""The hub of one run: its folder and files, its process, a client of its API,
and a watcher that asks /healthz and counts what it holds."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import case
from leaf import PATIENCE, STAGGER

HANG = 5.0  # seconds that /healthz may take
SANITIZED = re.compile(rb"AddressSanitizer|LeakSanitizer|ThreadSanitizer|"
                       rb"runtime error:|Assertion `")
MEMORY = 1 << 30  # bytes; a sanitizer keeps what was freed
SOCKETS, OTHERS = 400, 24  # descriptors: of clients; more than at the start
OF_TARGET = 130  # sockets: in flight, and idle


class Failure(Exception):
    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Client:
    """Requests to the hub, each on a connection of its own. tokens: the ones
    that it may try."""

    def __init__(self, folder):
        self.folder = folder
        self.address, self.is_secure = None, False
        self.tokens = []

    def aim(self, listen):
        self.address = listen.get("address")
        self.is_secure = "tls" in listen

    def context(self):
        context = ssl.create_default_context(
            cafile=os.path.join(self.folder, "root.crt"))
        context.check_hostname = False
        context.load_cert_chain(os.path.join(self.folder, "client.crt"),
                                os.path.join(self.folder, "client.key"))
        return context

    def connect(self, timeout=PATIENCE):
        if self.address.startswith("unix:"):
            connection = case.PathConnection(self.address[5:])
            connection.connect()
            connection.sock.settimeout(timeout)
            if self.is_secure:
                connection.sock = self.context().wrap_socket(connection.sock)
            return connection
        host, port = self.address.rsplit(":", 1)
        if self.is_secure:
            return http.client.HTTPSConnection(
                host, int(port), timeout=timeout, context=self.context())
        return http.client.HTTPConnection(host, int(port), timeout=timeout)

    def once(self, method, path, body, headers, timeout):
        with contextlib.closing(self.connect(timeout)) as connection:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def ask(self, method, path, body=None, headers=None, timeout=PATIENCE):
        """Status and body; a dictionary is sent as JSON. OSError and
        HTTPException: no answer."""
        headers = dict(headers or {})
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        for token in [*self.tokens] or [None]:
            if token is not None:
                headers["Authorization"] = f"Bearer {token}"
            status, text = self.once(method, path, body, headers, timeout)
            if status != 401:
                break
        if status != 401 and token in self.tokens:
            self.tokens.remove(token)
            self.tokens.insert(0, token)
        return status, text

    def words(self):
        """Options of a command that asks the hub."""
        scheme = "https" if self.is_secure else "http"
        if self.address.startswith("unix:"):
            return None
        found = ["--hub", f"{scheme}://{self.address}"]
        if self.is_secure:
            found += ["--ca", "root.crt", "--client-cert", "client.crt",
                      "--client-key", "client.key"]
        return [*found, "--token-file", "ops.token"]


class Process(case.Hub):
    """One life of the hub. Its log is JSON whatever the settings say."""

    def __init__(self, path):
        super().__init__(None, settings=path, listen=None)

    def report(self):
        """Returns what a sanitizer or an assertion has said."""
        self.reader.join(5)
        noise = b"".join(list(self.noise))
        return noise if SANITIZED.search(noise) else b""

    def descriptors(self):
        """Counts those of sockets, and all others."""
        sockets = others = 0
        folder = f"/proc/{self.process.pid}/fd"
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                is_socket = os.readlink(f"{folder}/{name}").startswith("socket:")
                sockets += is_socket
                others += not is_socket
        return sockets, others


class Watcher(threading.Thread):
    """Asks all the time how the hub is. `wrong`: the first failure."""

    def __init__(self, house):
        super().__init__(daemon=True)
        self.house = house
        self.wrong = None
        self.over = threading.Event()
        self.late = 0.0  # how long this machine itself stood still

    def run(self):
        while not self.over.is_set():
            at = time.monotonic()
            self.over.wait(0.2)
            self.late = max(0.0, time.monotonic() - at - 0.2)
            hub = self.house.hub
            if hub is None or not self.house.is_up:
                continue
            try:
                self.look(hub)
            except Failure as failure:
                # A hub that is being stopped need not answer.
                if hub is self.house.hub and self.house.is_up and self.wrong is None:
                    self.wrong = failure
            except (OSError, http.client.HTTPException):
                pass  # an end or a reset is found by the acts

    def look(self, hub):
        self.measure(hub)
        at = time.monotonic()
        try:
            self.house.client.once("GET", "/healthz", None, {}, HANG)
        except TimeoutError:
            if hub.process.poll() is None and time.monotonic() - at >= HANG:
                raise Failure("hang", f"/healthz did not answer in {HANG} s"
                              ) from None

    def measure(self, hub):
        try:
            sockets, others = hub.descriptors()
            resident = hub.resident()
        except (OSError, TypeError):
            return
        if self.house.others is None:
            self.house.others = others
        if others > self.house.others + OTHERS or \
                sockets > SOCKETS + OF_TARGET * self.house.targets:
            raise Failure("descriptors", f"{sockets} sockets and {others} other"
                          f" descriptors, {self.house.others} at the start")
        if resident > MEMORY:
            raise Failure("memory", f"{resident >> 20} MiB are resident")


class House:
    """Folder, settings file and process."""

    def __init__(self, folder, shared):
        self.folder = folder
        self.path = os.path.join(folder, "hub.yaml")
        self.hub, self.is_up, self.others = None, False, None
        self.client = Client(folder)
        self.log = []  # the lines of all lives
        self.targets = 0  # that the settings ever had at once
        for name in shared.names():
            shutil.copy(os.path.join(shared.folder, name), folder)
        shutil.copy(self.at("server.crt"), self.at("hub.crt"))
        shutil.copy(self.at("server.key"), self.at("hub.key"))
        self.watcher = Watcher(self)
        self.watcher.start()

    def at(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, text, mode=0o600):
        """Writes a file in one step, as an editor does."""
        path = self.at(name)
        with open(path + ".new", "w") as file:
            file.write(text)
        os.chmod(path + ".new", mode)
        os.replace(path + ".new", path)

    def write(self, settings):
        self.put("hub.yaml", json.dumps(settings, indent=1))

    def run(self, *words, timeout=60):
        """Runs a command in the folder: its exit code, and what it says."""
        done = subprocess.run([STAGGER, *words], cwd=self.folder, timeout=timeout,
                              capture_output=True, stdin=subprocess.DEVNULL)
        said = done.stdout + done.stderr
        if SANITIZED.search(said):
            raise Failure("sanitizer", said.decode("utf-8", "replace"))
        return done.returncode, said.decode("utf-8", "replace")

    def start(self, listen):
        """Waits until the hub is ready, and returns None; or its exit code."""
        self.client.aim(listen)
        self.others = None
        self.hub = Process(self.path)
        until = time.monotonic() + 60
        while not self.is_ready():
            if self.hub.process.poll() is not None:
                return self.end(self.hub.process.returncode)
            if time.monotonic() > until:
                raise Failure("start", "not ready in 60 s; the log ends with "
                              f"{self.hub.lines[-3:]}")
            time.sleep(0.02)
        self.is_up = True
        return None

    def is_ready(self):
        """Tells whether it answers. (Brokers that are away make /readyz say 503
        for ever.)"""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.client.once("GET", "/healthz", None, {}, 5)[0] == 200
        return False

    def end(self, code):
        """Judges a process that has ended; its exit code."""
        self.is_up = False
        hub, self.hub = self.hub, None
        self.log += hub.lines
        report = hub.report()
        hub.process.stderr.close()
        if report:
            raise Failure("sanitizer", report.decode("utf-8", "replace"))
        if hub.misshapen:
            raise Failure("log", f"lines unlike docs/logs.md: {hub.misshapen[:3]}")
        return code

    def stop(self, how=signal.SIGTERM, patience=60):
        """The exit code."""
        self.is_up = False
        hub = self.hub
        hub.process.send_signal(how)
        try:
            code = hub.process.wait(patience)
        except subprocess.TimeoutExpired:
            hub.process.send_signal(signal.SIGABRT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                hub.process.wait(5)
            raise Failure("hang", f"it did not stop in {patience} s; the log ends"
                          f" with {hub.lines[-3:]}") from None
        return self.end(code)

    def check(self):
        """Raises a failure that no act has seen."""
        if self.watcher.wrong is not None:
            raise self.watcher.wrong
        if self.hub is not None and self.is_up and self.hub.process.poll() is not None:
            last = self.hub.lines[-3:]
            code = self.end(self.hub.process.returncode)
            raise Failure("exit", f"it ended by itself with {code}: {last}")

    def why(self, failure):
        """Returns the cause of a failure: a sanitizer's report, where the process
        that is ending has written one."""
        if self.hub is None:
            return failure
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.hub.process.wait(3 if self.hub.noise else 0.5)
        report = self.hub.report() if self.hub.process.poll() is not None else b""
        return Failure("sanitizer", report.decode("utf-8", "replace")) \
            if report else failure

    def close(self):
        self.watcher.over.set()
        self.is_up = False
        if self.hub is not None:
            self.hub.end()
