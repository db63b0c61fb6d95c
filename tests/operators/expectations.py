"""Expectations of kept scripts: acts that wait for something, and fail where it does
not come."""
import contextlib
import json
import time

from hands import ask
from house import Failure


def holds(found, is_=None, least=None, most=None):
    return ((is_ is None or found == is_)
            and (least is None or found is not None and found >= least)
            and (most is None or found is not None and found <= most))


def look_up(run, path, field):
    status, text = ask(run, "GET", path)
    found = json.loads(text) if status == 200 else None
    for part in field.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def act_expect(run, path, field, within=10, stays=0, least=None, most=None,
               **more):
    """A field of an answer, by then; and `stays` seconds later, too."""
    bounds = {"is_": more.get("is"), "least": least, "most": most}
    until = time.monotonic() + within
    while not holds(found := look_up(run, path, field), **bounds):
        if time.monotonic() > until:
            raise Failure("expect", f"{field} of {path} is {found!r} after {within}"
                          f" s, not {bounds}")
        time.sleep(0.05)
    time.sleep(stays)
    if not holds(found := look_up(run, path, field), **bounds):
        raise Failure("expect", f"{field} of {path} is {found!r} {stays} s later,"
                      f" not {bounds}")


def act_alert(run, target, phase, within=10):
    """A receiver of type webhook was told so of the target."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        for _, body in list(run.services.record.alerts):
            for each in body.get("alerts", []):
                if (each.get("target"), each.get("phase")) == (target, phase):
                    return
        time.sleep(0.05)
    raise Failure("expect", f"no alert of {target} has {phase} in {within} s: "
                  f"{[b for _, b in run.services.record.alerts][-3:]}")


def act_lines(run, file, least, within=10):
    """A file of the folder has so many lines."""
    until, found = time.monotonic() + within, None
    while time.monotonic() < until:
        with contextlib.suppress(OSError), open(run.house.at(file), "rb") as f:
            found = f.read().count(b"\n")
            if found >= least:
                return
        time.sleep(0.05)
    raise Failure("expect", f"{file} has {found} lines, not {least}")


def act_ends(run):
    """Allows the hub to end by itself from now on."""
    run.house.is_up = False


def act_exit(run, code, within=10):
    """Waits until the hub has ended by itself."""
    if run.house.hub is None:
        raise Failure("exit", "it does not run")
    run.is_judged = run.house.is_up = False
    hub = run.house.hub
    with contextlib.suppress(Exception):
        hub.process.wait(within)
    found = hub.process.poll()
    if found is None:
        raise Failure("exit", f"it still runs after {within} s, and should have "
                      f"ended with {code}")
    run.house.end(found)
    if found != code:
        raise Failure("exit", f"{found}, not {code}: {hub.lines[-3:]}")
