"""The judgement at the end of a run: when the faults have ended and the
settings in force are loaded once more, everything pending ends; the hub stops in
order; its store is intact; and its books say what publishers and leaves know."""
import collections
import contextlib
import http.client
import json
import pathlib
import threading
import time

import case
from hands import let_go
from house import Failure
from producers import SECRET, WORD
from script import filled

GRACE = 2.0  # seconds that an attempt may be old when a leaf notes it
ATTEMPTS = 5
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

    def forget(self, name):
        """Ends what is known of a target."""
        self.open(name)
        self.known.discard(name)
        self.added.discard(name)
        self.paused.discard(name)

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
        begun = {}
        for each in accepted:  # a repeated message has the id of the first
            begun.setdefault(each.id, each.begun)
        with self.lock:
            spans = [*self.spans, *((name, since, time.monotonic())
                                    for name, since in self.open_since.items())]
        for name, since, until in spans:
            for r in record.receipts:
                if r.target == name and since < r.at < until and (
                        r.at > since + GRACE or any(
                            begun.get(id, 0) > since for id in r.ids)):
                    yield f"{r} though it was silent from {since} to {until}"


def judge(run, tell):
    run.producers.end()
    tell("the faults end")
    calm(run)
    tell("commands end")
    for thread in run.jobs:
        thread.join(60)
    run.complain()
    broken = list(run.silence.broken(run.services.record,
                                     run.producers.accepted))
    tell("all that waits ends")
    wait_for_quiet(run)
    run.complain()
    check_rest(run)
    tell("the hub ends")
    code = run.house.stop()
    if code not in (0, 3):
        raise Failure("exit", f"{code} after SIGTERM")
    tell("the judgement")
    if broken:
        raise Failure("silence", "; ".join(broken[:3]))
    check_secrets(run)
    check_attempts(run)
    check_order(run)
    if filled(run.settings["store"]["path"], run.words) == "hub.db":
        check_store(run)


def check_store(run):
    code, said = run.house.run("store", "verify", "-s", "hub.db")
    if code != 0:
        raise Failure("verify", said[-1500:])
    check_books(run)
    check_copy(run)


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
                or target["lag_messages"] != 0)


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
        if time.monotonic() > until or time.monotonic() > since + 15 * QUIET:
            raise Failure("quiet", f"I20: not settled in {QUIET} s: " + "; ".join(
                f"{n}: " + str({k: t[k] for k in (
                    "state", "in_flight", "parked", "waiting", "lag_messages",
                    "base_position", "next_position", "breaker", "last_cause")})
                for n, t in live.items()))
        time.sleep(0.1)


def check_rest(run):
    """Holds that a hub with nothing to do sleeps: it uses little of a core in one
    of a few half seconds."""
    for _ in range(6):
        before = run.house.hub.cpu()
        time.sleep(0.5)
        run.house.check()
        used = run.house.hub.cpu() - before
        if used < 0.25:
            return
    raise Failure("spin", f"{used:.2f} s of a core in half a second, at rest")


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


def place_of(partitions, id):
    """Partition and position of a message."""
    if "." in id:
        topic, partition, offset = id.rsplit(".", 2)
        return partitions[topic, int(partition)], int(offset)
    return 0, int(id.split("-")[1])


def find_lost(run, name, delivered, cursors):
    letters = rows(run, "SELECT * FROM failed_broadcast_logs WHERE target = "
                   f"'{name}'")
    dead = {row["message_id"] for row in letters}
    ranges = [row for row in letters if row["last_position"] is not None]
    # Letters that were evicted, or deleted after a drop, have left their number alone.
    deleted = sum(row["dead"] + row["cancelled"] for row in rows(
        run, "SELECT dead, cancelled FROM deleted_letters, lanes WHERE lane = number "
        f"AND name = '{name}'"))
    parked = {(row["partition"], row["position"]) for row in rows(
        run, "SELECT partition, position FROM parked, lanes WHERE lane = number "
        f"AND name = '{name}'")}
    partitions = {(row["topic"], row["partition"]): row["number"] for row in
                  rows(run, "SELECT * FROM partitions")}
    # The store counts the partitions of Kafka from 1.
    bases = {cursor["partition"]: cursor["base"] for cursor in cursors}

    def is_there(id):
        try:
            partition, position = place_of(partitions, id)
        except KeyError:
            return True  # nothing was read of the partition
        return (position >= bases.get(partition, 0)
                or (partition, position) in parked
                or any(row["partition"] == partition and row["position"]
                       <= position <= row["last_position"] for row in ranges))

    accepted = {each.id for each in run.producers.accepted}
    lost = sorted(id for id in accepted - delivered - dead if not is_there(id))
    return lost if len(lost) > deleted else []


# -- promises besides

def check_secrets(run):
    """Holds I23 for the log, the answers, and the files that the hub writes."""
    secrets = [b"hush", SECRET[6:].encode(), WORD.encode(),
               *(word.encode() for word, _ in run.shared.tokens)]
    texts = [json.dumps(run.house.log).encode(), *run.said]
    texts += [path.read_bytes() for path in pathlib.Path(run.folder).iterdir()
              if path.name.startswith(("audit.log", "dead.jsonl",
                                       "receipts.jsonl"))]
    for text in texts:
        for secret in secrets:
            if secret in text:
                at = text.index(secret)
                raise Failure("secret", f"I23: {text[max(0, at - 200):at + 100]!r}")


def check_attempts(run):
    """Holds I3 for the most attempts that any policy of the run has."""
    for r in run.services.record.receipts:
        if not has_repeats(run, r.target) and r.attempt > ATTEMPTS + run.kills:
            raise Failure("attempts", f"I3: {r}")


def has_repeats(run, name):
    """Whether an act sends messages of the target again."""
    for act in run.script.acts:
        if act.name in ("kill", "freeze", "restart", "command"):
            return True
        if act.name == "call" and act.args["name"] == name and act.args["what"] in (
                "rewind", "resend", "replay"):
            return True
    return False


def check_order(run):
    """Holds I18 for targets that are strict from the start to the end."""
    for target in run.script.settings["targets"]:
        name = target["name"]
        if target.get("order") != "strict" or name in run.uncertain or \
                target.get("replay") == "on-recovery" or has_repeats(run, name):
            continue
        if run.changed.get(name):
            continue
        newest = {}
        for r in run.services.record.receipts:
            if r.target != name or not r.ids[0]:
                continue
            log, _, position = r.ids[0].replace("-", ".").rpartition(".")
            if int(position) < newest.get(log, 0):
                raise Failure("order", f"I18: {r} after {newest}")
            newest[log] = int(position)


def check_copy(run):
    """Holds I36 for dead letters that count as copied."""
    if run.script.settings.get("dead-letters", {}).get("copy") != \
            "file:dead.jsonl" or run.is_copy_lost:
        return
    there = set()
    for path in pathlib.Path(run.folder).glob("dead.jsonl*"):
        for line in path.read_bytes().splitlines():
            with contextlib.suppress(ValueError):
                there.add(json.loads(line).get("id"))
    copied = {row["id"] for row in rows(
        run, "SELECT id FROM failed_broadcast_logs WHERE copied = 1 AND "
        "last_position IS NULL AND why <> 'evicted'")}
    if copied - there:
        raise Failure("copy", f"I36: {len(copied - there)} of {len(copied)} dead "
                      f"letters that count as copied are in no file: "
                      f"{sorted(copied - there)[:5]}")
