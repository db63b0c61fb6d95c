"""A page in headless Chromium, as a test reads, clicks and looks at it.

    with browser.Browser() as chromium:
        page = chromium.open("file:///tmp/page.html", width=1200)
        page.wait("document.querySelector('svg')")
        page.screenshot("page.png")
        assert page.complaints == [] and page.requests == [page.url]

The DevTools protocol, through two pipes of the process: no port, and no library
for it. Nothing here sleeps; what is waited for is an event, or a claim in the
page. A browser belongs to one thread.
"""
import base64
import collections
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 120  # seconds; a machine may be busy
SHIFT = 8  # of modifiers of a key


def find():
    """The browser, or None."""
    for name in "chromium", "chromium-browser", "google-chrome":
        if path := shutil.which(name):
            return path
    return None


def skip_without():
    """Ends a test with the code that says so, if there is no browser; where CI
    is set, that is a failure."""
    if find() is None:
        print("left out: no chromium")
        sys.exit(1 if os.environ.get("CI") == "true" else 77)


class Failed(AssertionError):
    """The page or the browser says no, or nothing in time."""


class Browser:
    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(
            prefix="stagger-browser-", ignore_cleanup_errors=True)
        self._number = 0
        self._answers = {}
        self._pages = {}
        self._bytes = b""
        ours, theirs = os.pipe(), os.pipe()
        self._read, self._write = theirs[0], ours[1]
        self._process = self._start(ours[0], theirs[1])
        os.close(ours[0])
        os.close(theirs[1])

    def _start(self, commands, answers):
        def place():
            # As far up as possible first, for either may be 3 or 4 itself.
            high = os.dup(commands), os.dup(answers)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._log = open(os.path.join(self._folder.name, "log"), "wb")
        return subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
             "--disable-background-networking", "--disable-sync",
             "--disable-component-update", "--disable-extensions",
             "--disable-background-timer-throttling",
             "--disable-renderer-backgrounding", "--hide-scrollbars",
             "--force-color-profile=srgb",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
             "--remote-debugging-pipe",
             "--user-data-dir=" + os.path.join(self._folder.name, "profile"),
             "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            close_fds=False, pass_fds=(), preexec_fn=place,
            start_new_session=True)

    # -- the protocol

    def _fail(self, what):
        with open(self._log.name, "rb") as log:
            said = log.read()[-2000:].decode(errors="replace")
        raise Failed(f"{what}; the browser said:\n{said}")

    def _take(self, until):
        """Waits for one message and sorts it."""
        while b"\0" not in self._bytes:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                self._fail(f"nothing heard in {PATIENCE} s")
            more = os.read(self._read, 1 << 20)
            if not more:
                self._fail("the browser has gone")
            self._bytes += more
        text, self._bytes = self._bytes.split(b"\0", 1)
        message = json.loads(text)
        if "id" in message:
            self._answers[message["id"]] = message
        elif message.get("sessionId") in self._pages:
            self._pages[message["sessionId"]].hear(message)

    def command(self, method, session=None, **params):
        """Says it and returns what is answered."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        rest = json.dumps(message).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._write, rest):]
        until = time.monotonic() + PATIENCE
        while number not in self._answers:
            self._take(until)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def drain(self, seconds=0):
        """Hears what has been said by now, or will be for so long."""
        until = time.monotonic() + seconds
        while b"\0" in self._bytes or select.select(
                [self._read], [], [], max(0, until - time.monotonic()))[0]:
            self._take(time.monotonic() + PATIENCE)

    # -- pages

    def open(self, url, width=1200, height=900, dark=False, script=None):
        """A page that has loaded. script runs in it before all others."""
        target = self.command("Target.createTarget",
                              url="about:blank")["targetId"]
        session = self.command("Target.attachToTarget", targetId=target,
                               flatten=True)["sessionId"]
        page = Page(self, session, target, url)
        self._pages[session] = page
        for domain in "Page", "Runtime", "Log", "Network", "Accessibility":
            page.command(f"{domain}.enable")
        page.command("Target.setAutoAttach", autoAttach=True,
                     waitForDebuggerOnStart=False, flatten=True)
        if script:
            page.command("Page.addScriptToEvaluateOnNewDocument",
                         source=script)
        page.resize(width, height)
        page.prefer(dark)
        page.go(url)
        return page

    def own(self, session, page):
        """Hears what a worker of the page says, too."""
        self._pages[session] = page

    def close(self):
        for stop in signal.SIGTERM, signal.SIGKILL:
            try:
                os.killpg(self._process.pid, stop)
                self._process.wait(20)
                break
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._log.close()
        self._folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Page:
    def __init__(self, browser, session, target, url):
        self._browser, self._session, self._target = browser, session, target
        self.url = url
        self.complaints = []  # errors on the console, and what was thrown
        self.requests = []  # of whatever went out, or would have
        self._events = collections.Counter()

    def command(self, method, **params):
        return self._browser.command(method, self._session, **params)

    def hear(self, message):
        method, params = message["method"], message["params"]
        self._events[method] += 1
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(
                details.get("exception", {}).get("description")
                or details["text"])
        elif method == "Runtime.consoleAPICalled":
            if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(" ".join(
                    str(each.get("value", each.get("description")))
                    for each in params["args"]))
        elif method == "Log.entryAdded":
            if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Target.attachedToTarget":
            self._hear_worker(params["sessionId"])

    def _hear_worker(self, session):
        self._browser.own(session, self)
        for domain in "Runtime", "Network":
            try:
                self._browser.command(f"{domain}.enable", session)
            except Failed:
                pass  # it has ended, or has no such thing

    def go(self, url):
        loaded = self._events["Page.loadEventFired"]
        answer = self.command("Page.navigate", url=url)
        if "errorText" in answer:
            raise Failed(f"{url}: {answer['errorText']}")
        self._until(lambda: self._events["Page.loadEventFired"] > loaded,
                    f"{url} to load")

    def _until(self, claim, what):
        until = time.monotonic() + PATIENCE
        while not claim():
            if time.monotonic() > until:
                raise Failed(f"waited {PATIENCE} s for {what}")
            self._browser.drain(0.02)

    def evaluate(self, script):
        """What the script comes to; of a promise, what it was for."""
        answer = self.command("Runtime.evaluate", expression=script,
                              awaitPromise=True, returnByValue=True,
                              userGesture=True)
        if details := answer.get("exceptionDetails"):
            raise Failed(f"{script}: " + details.get("exception", {}).get(
                "description", details["text"]))
        return answer["result"].get("value")

    def wait(self, script):
        """Until the script is true, which it returns."""
        found = []

        def claim():
            found[:] = [self.evaluate(f"(() => {{ const it = {script}; return "
                                      "it instanceof Node || it })()")]
            return found[0]

        self._until(claim, script)
        return found[0]

    def resize(self, width, height):
        self._size = width, height
        self.command("Emulation.setDeviceMetricsOverride", width=width,
                     height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, dark=False, still=True):
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion",
             "value": "reduce" if still else "no-preference"}])

    def key(self, key, times=1, code=None, text=None, modifiers=0):
        """Presses a key: "Tab", "ArrowRight"."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36,
                 "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                 "ArrowDown": 40, " ": 32}
        for _ in range(times):
            for kind in "keyDown", "keyUp":
                params = {"type": kind, "key": key, "code": code or key,
                          "windowsVirtualKeyCode": codes.get(key, 0),
                          "modifiers": modifiers}
                if kind == "keyDown" and (text or key in (" ", "Enter")):
                    params["text"] = text or {"Enter": "\r"}.get(key, key)
                self.command("Input.dispatchKeyEvent", **params)

    def mouse(self, kind, x, y, buttons=0):
        """kind: mousePressed, mouseMoved, mouseReleased."""
        button = "none" if kind == "mouseMoved" and not buttons else "left"
        self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                     button=button, buttons=buttons, clickCount=1)

    def screenshot(self, path, whole=True):
        """Of the page in its whole height, or of what is in view."""
        width, height = self._size
        if whole:
            # As high as the page, not "beyond the view": that would lay the
            # page out anew, in a width that is not its own.
            size = self.command("Page.getLayoutMetrics")["cssContentSize"]
            self.resize(width, max(height, int(size["height"])))
            self.evaluate("new Promise((go) => requestAnimationFrame(() => "
                          "requestAnimationFrame(() => go(true))))")
        shot = self.command("Page.captureScreenshot", format="png")["data"]
        if whole:
            self.resize(width, height)
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot))

    def drain(self, seconds=0):
        self._browser.drain(seconds)

    def close(self):
        self._browser.command("Target.closeTarget", targetId=self._target)
