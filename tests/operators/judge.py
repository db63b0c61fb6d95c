"""The judgement at the end of a run: when the faults have ended and the
settings in force are loaded once more, everything pending ends; the hub stops in
order; its store is intact; and its books say what publishers and leaves know."""
import collections
import http.client
import json
import threading
import time

import case
from hands import let_go
from house import Failure
from script import filled

GRACE = 2.0  # seconds that an attempt may be old when a leaf notes it
QUIET, PROBES = 20.0, 4.0  # for lanes that are live, and for the others


class Silence:
    """Spans in which nothing may be sent to a target (I7): it is removed or
    paused, from when that call returned until another may have undone it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.open_since = {}  # name to when it became silent
        self.spans = []
        self.added, self.paused = set(), set()
        self.known = set()

    def close(self, name):
        with self.lock:
            self.open_since.setdefault(name, time.monotonic())

    def open(self, name):
        with self.lock:
            since = self.open_since.pop(name, None)
            if since is not None:
                self.spans.append((name, since, time.monotonic()))

    def open_all(self):
        """Ends all spans but those of targets that are paused by call."""
        for name in set(self.open_since) - self.paused:
            self.open(name)

    def update(self, settings):
        """Begins and ends spans after settings have taken effect."""
        live = {t["name"] for t in settings["targets"] if not t.get("paused")}
        live |= self.added
        self.known |= live | {t["name"] for t in settings["targets"]}
        for name in self.known:
            if name in live and name not in self.paused:
                self.open(name)
            elif name in {t["name"] for t in settings["targets"]} or \
                    name not in self.added:
                self.close(name)

    def broken(self, record, accepted):
        """Yields receipts that may not be."""
        begun = {each.id: each.begun for each in accepted}
        with self.lock:
            spans = [*self.spans, *((name, since, time.monotonic())
                                    for name, since in self.open_since.items())]
        for name, since, until in spans:
            for r in record.receipts:
                if r.target == name and since < r.at < until and (
                        r.at > since + GRACE or any(
                            begun.get(id, 0) > since for id in r.ids)):
                    yield f"{r} though it was silent from {since} to {until}"


def judge(run):
    run.producers.end()
    calm(run)
    for thread in run.jobs:
        thread.join(60)
    run.complain()
    broken = list(run.silence.broken(run.services.record,
                                     run.producers.accepted))
    wait_for_quiet(run)
    run.complain()
    code = run.house.stop()
    if code not in (0, 3):
        raise Failure("exit", f"{code} after SIGTERM")
    if broken:
        raise Failure("silence", "; ".join(broken[:3]))
    if filled(run.settings["store"]["path"], run.words) == "hub.db":
        code, said = run.house.run("store", "verify", "-s", "hub.db")
        if code != 0:
            raise Failure("verify", said[-1500:])
        check_books(run)


# -- the end of the faults

def calm(run):
    run.services.is_calm = True
    let_go(run)
    run.furnish_again()
    run.silence.open_all()
    run.mend()
    if not run.house.is_up:
        run.start()
    status, text = ask(run, "POST", "/v1/reload")
    if status != 200:
        raise Failure("reload", f"{status} for the settings that are in force: "
                      f"{text[-600:]!r}")
    for name in targets_of(run):
        run.silence.open(name)
        ask(run, "POST", f"/v1/targets/{name}/resume")


def ask(run, method, path):
    try:
        return run.house.client.ask(method, path)
    except (OSError, http.client.HTTPException) as error:
        run.house.check()
        raise Failure("hang", f"{method} {path}: {error!r}") from None


def targets_of(run):
    status, text = ask(run, "GET", "/v1/targets?limit=1000")
    if status != 200:
        raise Failure("look", f"{status} for the list of targets: {text[:300]!r}")
    return {each["name"]: each for each in json.loads(text)["targets"]}


def is_settled(target):
    return not (target["in_flight"] or target["parked"] or target["waiting"]
                or target["lag_messages"])


def wait_for_quiet(run):
    """Holds I20 for lanes whose leaf is there."""
    if run.words.get("kafka") is None and "kafka" in run.settings:
        return  # the brokers are away
    ends = {t["name"] for t in run.settings["targets"] if t.get("paused")
            or "oauth2" in t or "proxy" in t or "source-address" in t}
    urls = run.words["hole"], run.words["refused"]
    since = time.monotonic()
    until, last = since + QUIET, None
    while True:
        run.house.check()
        busy = {name: t for name, t in targets_of(run).items()
                if t["is_known"] and name not in ends and not is_settled(t)
                and not t["url"].startswith(urls)}
        live = {n: t for n, t in busy.items() if t["state"] == "live"}
        if not busy or (not live and time.monotonic() > since + PROBES):
            return
        left = sum(t["parked"] + t["waiting"] for t in live.values())
        if left != last:  # a budget or a rate lets them go one by one
            until, last = time.monotonic() + QUIET, left
        if time.monotonic() > until or time.monotonic() > since + 5 * QUIET:
            raise Failure("quiet", f"I20: not settled in {QUIET} s: " + "; ".join(
                f"{n}: " + str({k: t[k] for k in (
                    "state", "in_flight", "parked", "waiting", "lag_messages",
                    "base_position", "next_position", "breaker", "last_cause")})
                for n, t in live.items()))
        time.sleep(0.1)


# -- the books

def rows(run, query):
    with case.opened(run.house.at("hub.db")) as db:
        return [dict(row) for row in db.execute(query)]


def lanes_of(run):
    """Name to its cursors, each with what it has parked."""
    found = collections.defaultdict(list)
    for row in rows(run, "SELECT name, partition, value AS cursor, (SELECT count(*)"
                    " FROM parked WHERE lane = number AND parked.partition = "
                    "cursors.partition) AS parked FROM cursors, json_each(lanes), "
                    "lanes WHERE number = json_each.key AND is_forgotten = 0"):
        cursor = json.loads(row["cursor"])
        cursor["parked"] = row["parked"]
        cursor["partition"] = row["partition"]
        found[row["name"]].append(cursor)
    return found


def check_balance(name, cursors):
    sums = collections.Counter()
    for cursor in cursors:
        sums.update({key: value for key, value in cursor.items()
                     if isinstance(value, int) and key != "partition"})
    right = (sums["delivered"] + sums["dead"] + sums["cancelled"]
             + sums["parked"])
    if sums["routed"] != right:
        raise Failure("books", f"I17: {name}: {dict(sums)}")
    return sums


def check_books(run):
    delivered = run.services.record.delivered()
    lanes = lanes_of(run)
    for name, cursors in lanes.items():
        check_balance(name, cursors)
    for each in run.script.settings["targets"]:
        name = each["name"]
        if name in run.uncertain or "match" in each or "topics" in each:
            continue
        lost = find_lost(run, name, delivered[name], lanes[name])
        if lost:
            raise Failure("lost", f"I1: {name}: {len(lost)} of "
                          f"{len(run.producers.accepted)} accepted messages are "
                          f"neither delivered nor dead nor waiting: {lost[:5]}")


def find_lost(run, name, delivered, cursors):
    accepted = {each.id for each in run.producers.accepted}
    letters = rows(run, "SELECT message_id, position, last_position, count, why "
                   f"FROM failed_broadcast_logs WHERE target = '{name}'")
    # Evicted letters have left their number alone.
    evicted = sum(row["count"] for row in letters if row["why"] == "evicted")
    dead = {row["message_id"] for row in letters}
    bulk = [(row["position"], row["last_position"]) for row in letters
            if row["last_position"] is not None]
    parked = {row["position"] for row in rows(
        run, "SELECT position FROM parked, lanes WHERE lane = number AND name = "
        f"'{name}'")}
    if "kafka" in run.settings:
        # Positions are of partitions; some waiting makes all uncertain.
        lost = [] if bulk or parked or not cursors else sorted(
            accepted - delivered - dead)
        return lost if len(lost) > evicted else []
    base = min(cursor["base"] for cursor in cursors) if cursors else 0
    lost = sorted(id for id in accepted - delivered - dead
                  if not is_there(int(id.split("-")[1]), base, bulk, parked))
    return lost if len(lost) > evicted else []


def is_there(position, base, bulk, parked):
    return (position >= base or position in parked
            or any(first <= position <= last for first, last in bulk))
