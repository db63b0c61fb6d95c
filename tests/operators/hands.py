"""The acts, each a function of the run and its arguments. What an act meets that
no operator may see is a Failure."""
import contextlib
import copy
import http.client
import json
import os
import shutil
import signal
import socket
import threading
import time

import acts
import settings as drawing
from house import Failure
from leaf import PATIENCE
from script import filled

BROKEN = (OSError, http.client.HTTPException)
DONE = (200, 201, 202, 204)
NONSENSE = {"yaml": "targets: [\n\t}", "unknown": "nonsense: true\n",
            "empty": "", "list": "[]"}


def ask(run, method, path, body=None, timeout=PATIENCE):
    """Returns status and body; None for an answer that a stop has cut off. A hub
    that runs and does not answer hangs."""
    if not run.house.is_up:
        return None, b""
    hub = run.house.hub
    try:
        status, text = run.house.client.ask(method, path, body, timeout=timeout)
    except TimeoutError:
        if run.house.hub is hub and hub.process.poll() is None:
            raise Failure("hang", f"{method} {path} had no answer in {timeout} s"
                          ) from None
        return None, b""
    except BROKEN:
        return None, b""
    if status >= 500 and status not in (503, 508):
        raise Failure("status", f"{status} to {method} {path}: {text[:300]!r}")
    return status, text


# -- settings

def act_edit(run, set=None, target=None, without=None, of=None, key=None,
             value=None, crowd=None):
    """Changes the file alone. crowd: so many targets besides."""
    targets = run.settings["targets"]
    if crowd is not None:
        targets[:] = [t for t in targets if not t["name"].startswith("m")]
        targets += [{"name": f"m{n}", "url": f"@leaf@/ok/m{n}"}
                    for n in range(crowd)]
    for path, new in (set or {}).items():
        drawing.take(run.settings, path)
        if new is not None:
            drawing.put(run.settings, path, copy.deepcopy(new))
    if target is not None:
        targets[:] = [t for t in targets if t["name"] != target["name"]]
        targets.append(copy.deepcopy(target))
    if without is not None:
        targets[:] = [t for t in targets if t["name"] != without]
    for each in targets:
        if each["name"] == of:
            each.pop(key, None)
            if value is not None:
                each[key] = copy.deepcopy(value)
    run.write()


def act_reload(run, how="call", expect=None):
    """expect: a status. One that is refused is undone by the operator."""
    if not run.house.is_up:
        return None
    run.silence.open_all()
    if how == "hup":
        run.house.hub.process.send_signal(signal.SIGHUP)
    status, text = ask(run, "POST", "/v1/reload")
    if status is None and expect is None:
        return None
    if expect is not None and status != expect:
        raise Failure("reload", f"{status}, not {expect}: {text[:500]!r}")
    if status == 200:
        run.take()
        check_targets(run)
    elif status in (409, 422, 429, 503):
        if status == 422:
            check_refusal(run, text)
        run.silence.update(run.in_force)
        run.mend()
    elif status not in (401, 403):
        raise Failure("reload", f"{status}: {text[:500]!r}")
    return status


def check_targets(run):
    """Holds that a reload that was accepted has taken effect, whole."""
    status, text = ask(run, "GET", "/v1/targets?limit=1000")
    if status != 200:
        return
    found = {t["name"]: t for t in json.loads(text)["targets"] if t["is_known"]}
    wanted = {t["name"] for t in run.in_force["targets"]}
    if not wanted <= set(found) <= wanted | set(acts.ADDED):
        raise Failure("reload", f"the settings have {sorted(wanted)}, and the hub"
                      f" {sorted(found)}")
    for target in run.in_force["targets"]:
        state = found[target["name"]]["state"]
        if target.get("paused") and state != "paused":
            raise Failure("reload", f"{target['name']} is paused in the settings,"
                          f" and {state} in the hub")


def check_refusal(run, text):
    """Holds I28: `check` refuses what a reload refuses, but for a restart."""
    code, said = run.house.run("check", "-c", "hub.yaml")
    if code == 0 and b"restart" not in text:
        raise Failure("check", f"`check` accepts a file that a reload refuses: "
                      f"{text[:700]!r}")


def spoil_late(run):
    """A reload that is refused by the last thing that it looks at: tokens,
    webhooks and the rest are new, a receiver cannot be opened."""
    run.house.put("nonsense.url", "no URL at all\n")
    run.house.put("tokens.new", run.shared.tokens[1][1])
    new = run.settings
    drawing.put(new, "listen.tokens", "tokens.new")
    new.setdefault("inbound", []).append(
        {"name": "late", "scheme": "github", "secrets": [{"file": "word.secret"}],
         **({"topic": "t"} if "kafka" in new else {})})
    drawing.put(new, "listen.headers", ["X-New"])
    new.setdefault("alerts", {}).setdefault("receivers", []).append(
        {"name": "late", "type": "slack", "url-file": "nonsense.url"})
    run.write()
    with contextlib.suppress(OSError):
        os.rename(run.house.at("tokens"), run.house.at("tokens.old"))
        run.moved["tokens"] = "tokens.old"


def spoil(run, how):
    new = run.settings
    if how in NONSENSE:
        run.house.put("hub.yaml", NONSENSE[how])
    elif how == "gone":
        os.remove(run.house.path)
    elif how == "late":
        spoil_late(run)
    elif how == "url-file":
        run.house.put("nonsense.url", "no URL at all\n")
        new.setdefault("alerts", {})["receivers"] = [
            {"name": "bad", "type": "slack", "url-file": "nonsense.url"}]
        run.write()
    elif how == "missing-file":
        drawing.put(new, "listen.tokens", "there-is-none")
        run.write()
    elif how == "egress":
        drawing.put(new, "egress.deny", ["not-a-network"])
        run.write()
    elif how == "same-file":
        # Without a store that is a file, the settings are the file that is in use.
        is_file = new.get("store", {}).get("path") == "hub.db"
        drawing.put(new, "dead-letters.copy",
                    "file:hub.db" if is_file else "file:hub.yaml")
        run.write()
    elif how == "duplicate":
        new["targets"] = [*new["targets"], *new["targets"],
                          {"name": "q", "url": "ftp://x/"}]
        run.write()


def act_spoil(run, how):
    """A file that no reload may take."""
    if not run.house.is_up:
        return
    spoil(run, how)
    status, text = ask(run, "POST", "/v1/reload")
    if status == 200:
        raise Failure("reload", f"a file spoilt by `{how}` is accepted: "
                      f"{text[:300]!r}")
    if status == 422 and how != "late":  # which is of the ingress
        check_refusal(run, b"" if how == "same-file" else text)
    if "tokens" in run.moved:
        with contextlib.suppress(OSError):
            os.rename(run.house.at(run.moved.pop("tokens")),
                      run.house.at("tokens"))
    run.mend()


# -- files

def act_rotate(run, file):
    """Other content, of the same kind."""
    if file == "hub.crt":
        for end in ("crt", "key"):
            shutil.copy(run.house.at(f"renewed.{end}"), run.house.at(f"hub.{end}"))
    elif file == "root.crt":
        os.utime(run.house.at(file)) if os.path.exists(run.house.at(file)) else None
    elif file == "tokens":
        run.house.put("tokens", run.shared.tokens[0][1] + run.shared.tokens[1][1])
    elif file == "secrets.key":
        run.house.put(file, "2e" * 32 + "\n" + "1f" * 32 + "\n")
    elif file.endswith(".url"):
        run.house.put(file, filled("@leaf@/alerts/hush-new\n" if file != "proxy.url"
                                   else "@proxy@\n", run.words))
    elif file in ("word.secret", "sign.secret"):
        run.house.put(file, {"word.secret": "f" * 32, "sign.secret":
                             "whsec_" + "QUJD" * 11}[file] + "\n")
    else:
        run.house.put(file, f"Bearer hush-{run.rng.getrandbits(40)}\n")


def act_move(run, file, how):
    path = run.house.at(file)
    with contextlib.suppress(OSError):
        if how == "remove":
            os.rename(path, path + ".gone")
        elif how == "rename":
            os.rename(path, path + ".1")
        elif how == "open":
            os.chmod(path, 0o644)
        else:
            run.furnish_again()


def act_copy(run, file, how):
    """Moves a file that the hub writes."""
    path = run.house.at(file)
    run.is_copy_lost |= file == "dead.jsonl" and how != "rename"
    with contextlib.suppress(OSError):
        if how == "remove":
            os.remove(path)
        elif how == "rename":
            os.rename(path, f"{path}.{len(os.listdir(run.folder))}")
        else:
            os.truncate(path, 0)


def act_remove_file(run, file):
    for end in ("", "-wal", "-shm") if file.endswith(".db") else ("",):
        with contextlib.suppress(OSError):
            os.remove(run.house.at(file + end))


# -- the API

def act_add(run, target):
    name = target["name"]
    run.silence.open(name)
    status, _ = ask(run, "PUT", f"/v1/targets/{name}", filled(target, run.words))
    if status in (200, 201):
        run.silence.added.add(name)
    run.silence.update(run.in_force)


def act_change(run, name, body):
    run.silence.open(name)
    ask(run, "PATCH", f"/v1/targets/{name}",
        json.loads(json.dumps(filled(body, run.words)).replace("@n@", name)))


def act_remove(run, name, waiting):
    status, _ = ask(run, "DELETE", f"/v1/targets/{name}"
                    + ("?waiting=cancel" if waiting else ""))
    if status in DONE:
        run.silence.added.discard(name)
        run.silence.paused.discard(name)
        run.silence.close(name)


def act_forget(run, name):
    run.silence.paused.discard(name)
    run.uncertain.add(name)
    ask(run, "POST", f"/v1/targets/{name}/forget")


def act_call(run, what, name, message=None):
    if what == "pause":
        if ask(run, "POST", f"/v1/targets/{name}/pause")[0] == 200:
            run.silence.paused.add(name)
            run.silence.close(name)
    elif what == "resume":
        run.silence.open(name)
        run.silence.paused.discard(name)
        ask(run, "POST", f"/v1/targets/{name}/resume")
        run.silence.update(run.in_force)
    elif what == "probe":
        ask(run, "POST", f"/v1/targets/{name}/probe")
    elif what == "rewind":
        ask(run, "POST", f"/v1/targets/{name}/rewind", {"to": "earliest"})
    elif what == "unwind":
        ask(run, "DELETE", f"/v1/targets/{name}/rewind")
    elif what == "resend":
        ask(run, "POST", f"/v1/messages/{last(run)}/resend", {"target": name})
    elif what in ("replay", "drop"):
        ask(run, "POST", f"/v1/dead-letters/{what}", {"target": name})
    elif what == "test":
        run.behind(lambda: ask(run, "POST", "/v1/alerts/test", timeout=90))


def last(run):
    accepted = run.producers.accepted
    return accepted[-1].id if accepted else "0000000000000000-1"


def act_look(run, path, name="a"):
    path = path.replace("@t@", name).replace("@last@", last(run))
    status, text = ask(run, "GET", path)
    run.said.append(text)
    if status != 200 or not path.startswith("/v1"):
        return
    try:
        found = json.loads(text)
    except ValueError:
        if path.endswith(".svg"):
            return
        raise Failure("look", f"{path} is not JSON: {text[:300]!r}") from None
    if isinstance(found, dict):
        for target in found.get("targets", []) if "limit" in path else [found]:
            check_books(target)


def check_books(target):
    """Holds I17 for what the API says of a target."""
    if "routed" in target and target["routed"] != sum(
            target[key] for key in ("delivered", "dead", "cancelled", "parked",
                                    "waiting", "in_flight")):
        raise Failure("books", f"I17: the API says of {target['name']}: {target}")


def act_stream(run, path, reads):
    """A reader of events; or one that stops reading."""
    if not run.house.is_up or len(run.held) > 60:
        return
    with contextlib.suppress(*BROKEN):
        connection = run.house.client.connect(5)
        headers = {"Authorization": f"Bearer {run.house.client.tokens[0]}"}
        connection.request("GET", path, None, headers)
        run.held.append(connection)
        if reads:
            threading.Thread(target=drain, args=(connection.sock,),
                             daemon=True).start()


def drain(sock):
    with contextlib.suppress(*BROKEN):
        sock.settimeout(None)
        while sock.recv(1 << 16):
            pass


def act_connections(run, count, expect=None):
    """So many at once, each in the middle of a message; then they end it."""
    let_go(run)
    accepted = 0
    for _ in range(count if run.house.is_up else 0):
        with contextlib.suppress(*BROKEN):
            connection = run.house.client.connect(5)
            run.held.append(connection)
            begin_message(run, connection)
    for connection in run.held:
        begun = time.monotonic()
        with contextlib.suppress(*BROKEN):
            connection.send(b"end.")
            answer = connection.getresponse()
            accepted += run.producers.note(answer.status, answer.read(),
                                           begun) == 202
    if expect is not None and accepted < expect:
        raise Failure("connections", f"{accepted} of {count} connections had "
                      f"their message accepted, not {expect}")


def begin_message(run, connection):
    connection.putrequest("POST", "/v1/messages")
    connection.putheader("Content-Length", "8")
    for token in run.house.client.tokens[:1]:
        connection.putheader("Authorization", f"Bearer {token}")
    connection.endheaders()
    connection.send(b"half")


def let_go(run):
    for each in run.held:
        with contextlib.suppress(OSError):
            if each.sock is not None:
                each.sock.shutdown(socket.SHUT_RDWR)
        each.close()
    run.held.clear()


# -- commands beside the hub

def act_command(run, words, name="a", codes=(0, 1, 2)):
    if "@hub@" in words:
        options = run.house.client.words()
        if options is None or not run.house.is_up:
            return
        words = [w for word in words for w in
                 (options if word == "@hub@" else [word])]
    store = filled(run.settings["store"]["path"], run.words)
    if "@store@" in words and store != "hub.db":
        return
    words = [word.replace("@store@", store).replace("@t@", name)
             for word in words]
    if words[:2] == ["store", "verify"]:
        codes = (0,)
    run.behind(command, run, words, codes)


def command(run, words, codes):
    hub = run.house.hub
    try:
        code, said = run.house.run(*words)
    except Exception as error:
        if isinstance(error, Failure):
            raise
        if hub is run.house.hub and run.house.is_up:
            raise Failure("hang", f"stagger {words}: {error}") from None
        return
    if code not in codes:
        raise Failure("command", f"stagger {words} exits with {code}, not one of "
                      f"{codes}: {said[-500:]}")


# -- lives

def act_produce(run, kinds, rate):
    run.producers.begin(kinds, rate,
                        lambda: run.in_force.get("inbound") or ())


def act_publish(run, kind="plain", count=1, expect=None):
    for _ in range(count):
        status = run.producers.publish(kind, run.in_force.get("inbound") or ())
        if expect is not None and status not in expect:
            raise Failure("publish", f"{status}, not one of {expect}")


def act_turn(run, name, to):
    """A leaf behaves otherwise from now on."""
    run.services.turned[name] = to


def act_hup(run):
    run.silence.open_all()
    if run.house.is_up:
        run.house.hub.process.send_signal(signal.SIGHUP)
    act_reload(run)


def act_storm(run):
    """Reloads, signals and changes of one target, all at once."""
    if not run.house.is_up:
        return
    run.silence.open_all()
    run.silence.forget("y")
    calls = [("POST", "/v1/reload", None)] * 3 + [
        ("PUT", "/v1/targets/y", {"url": filled("@leaf@/ok/y", run.words)}),
        ("PATCH", "/v1/targets/y", {"rate": "100/s"}),
        ("DELETE", "/v1/targets/y?waiting=cancel", None),
        ("GET", "/v1/targets?limit=1000", None)]
    before = len(run.jobs)
    for call in calls:
        run.behind(ask, run, *call)
    for _ in range(5):
        run.house.hub.process.send_signal(signal.SIGHUP)
        time.sleep(0.01)
    for thread in run.jobs[before:]:
        thread.join(60)
    act_reload(run)


def act_restart(run, twice=False):
    if run.house.is_up:
        hub = run.house.hub
        if twice:
            run.house.is_up = False
            hub.process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        code = run.house.stop()
        # A second signal may come when the hub has ended its own handling.
        if code not in (0, 3, *((143, -signal.SIGTERM) if twice else ())):
            raise Failure("exit", f"{code} after SIGTERM: {hub.lines[-3:]}")
    act_start(run)


def act_start(run):
    run.silence.open_all()
    run.start()


def act_restore(run):
    """A backup takes the store's place: what was accepted since is lost."""
    if not os.path.exists(run.house.at("copy.db")) or "kafka" in run.settings:
        return
    if run.house.is_up:
        run.house.stop()
    run.uncertain |= {t["name"] for t in run.script.settings["targets"]}
    code, said = run.house.run("store", "restore", "--force", "-s", "hub.db",
                               "copy.db")
    if code != 0:
        raise Failure("command", f"store restore exits with {code}: {said[-500:]}")
    act_start(run)


def act_kill(run):
    if run.house.is_up:
        run.kills += 1
        code = run.house.stop(signal.SIGKILL)
        if code != -signal.SIGKILL:
            raise Failure("exit", f"{code} after SIGKILL")
    act_start(run)


def act_freeze(run, seconds):
    if not run.house.is_up:
        return
    run.house.is_up = False
    run.house.hub.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    run.house.hub.process.send_signal(signal.SIGCONT)
    time.sleep(0.1)
    run.house.is_up = run.house.hub.process.poll() is None


def act_second(run):
    """Another hub on the same store and address."""
    code, said = run.house.run("hub", "-c", "hub.yaml")
    if run.house.is_up and code not in (4, 2):
        raise Failure("exit", f"a second hub exits with {code}, not 4: "
                      f"{said[-500:]}")
    if run.house.is_up and os.path.exists(run.house.at("copy.db")) and \
            run.settings["store"]["path"] == "hub.db":
        code, said = run.house.run("store", "restore", "--force", "-s", "hub.db",
                                   "copy.db")
        if run.house.is_up and code == 0:
            raise Failure("command", "store restore replaces the store of a hub "
                          f"that runs: {said[-500:]}")
