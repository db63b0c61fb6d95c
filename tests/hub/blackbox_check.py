"""What blackbox.py holds the hub to, from three accounts of a run: what the
producer was told, what the leaves received, and what the store says.

Each check yields a line for everything that is wrong; the numbers are those of
the invariants: I1 no loss, I3 attempts, I4 timing, I10 same key, I11 fidelity,
I13 dead letters, I16 duplicates, I17 the books."""
import bisect
import collections
import hashlib
import json
import sqlite3

EMPTY = hashlib.sha256(b"").hexdigest()

# What a hub may say of the faults of blackbox_proxy.py. What is slow takes too
# long, and a cut is seen before the answer or within it.
OF_NETWORK = {"latency": ["TIMEOUT"], "bandwidth": ["TIMEOUT"],
              "slice": ["TIMEOUT"], "slow-close": ["TIMEOUT"],
              "half-open": ["TIMEOUT"],
              "reset": ["CONNECTION_RESET", "PROTOCOL_ERROR"],
              "limit": ["CONNECTION_RESET", "PROTOCOL_ERROR"]}


def is_delivered(receipt):
    return receipt["answered"] in (200, 204)


class Run:
    def __init__(self, folder, store, attempts_max, wait, deaths, freezes=()):
        self.accepted = self.read(f"{folder}/accepted")
        # What was slow was noted after what came later.
        self.receipts = sorted(self.read(f"{folder}/receipts"),
                               key=lambda receipt: receipt["t"])
        self.late = {(row["id"], f"leaf{row['leaf']}", row["attempt"])
                     for row in self.read(f"{folder}/late")}
        self.met = collections.defaultdict(dict) # faults, by the attempt
        for row in self.read(f"{folder}/met"):
            self.met[row["id"], f"leaf{row['leaf']}"][row["attempt"]] = (
                row["fault"])
        self.attempts_max = attempts_max
        self.wait = wait
        self.deaths = sorted(deaths) # of the hub, on the monotonic clock
        self.freezes = freezes # spans of it: what came in time is seen too late
        self.db = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        self.db.row_factory = sqlite3.Row
        self.lanes = {row["number"]: row["name"] for row in
                      self.db.execute("SELECT number, name FROM lanes")}
        self.leaves = sorted(self.lanes.values())
        self.messages = {row["id"]: row for row in self.accepted}
        self.by_delivery = collections.defaultdict(list)
        for receipt in self.receipts:
            self.by_delivery[receipt["id"],
                             f"leaf{receipt['leaf']}"].append(receipt)
        self.dead = collections.defaultdict(list)
        for row in self.db.execute("SELECT * FROM failed_broadcast_logs"):
            self.dead[row["message_id"], row["target"]].append(row)

    def read(self, path):
        with open(path) as file:
            return [json.loads(line) for line in file]

    def deaths_between(self, since, until):
        return (bisect.bisect_right(self.deaths, until)
                - bisect.bisect_left(self.deaths, since))

    def was_cut(self, since, until):
        """Whether the hub may have lost what happened between: it died, or was
        frozen."""
        return self.deaths_between(since, until) or any(
            since <= end and until >= begin for begin, end in self.freezes)

    # -- I1, I13: every message and target has one end

    def lost(self):
        for id in self.messages:
            for leaf in self.leaves:
                dead = self.dead.get((id, leaf), [])
                arrived = any(map(is_delivered, self.by_delivery[id, leaf]))
                if len(dead) > 1:
                    yield f"I13: {id} to {leaf} is dead {len(dead)} times"
                if not dead and not arrived:
                    yield f"I1: {id} to {leaf} is lost"

    def unknown(self):
        ids = [row["id"] for row in self.accepted]
        for id, count in collections.Counter(ids).items():
            if count > 1:
                yield f"I10: {id} was given to {count} messages"
        for id, leaf in [*self.by_delivery, *self.dead]:
            if id not in self.messages:
                yield f"I10: {leaf} knows {id}, which nobody has published"

    # -- I11: bytes, type, key

    def changed(self):
        for r in self.receipts:
            m = self.messages.get(r["id"])
            if m is None:
                continue
            if r["hash"] != (EMPTY if r["answered"] == "early" else m["hash"]):
                yield f"I11: {r['id']} has another body at leaf {r['leaf']}"
            if r["key"] != m["key"]:
                yield f"I11: {r['id']} has the key {r['key']}, not {m['key']}"
            if m["type"] is not None and r["type"] != m["type"]:
                yield f"I11: {r['id']} is {r['type']}, not {m['type']}"

    # -- I3, I4, I16: attempts, their times, and copies

    def too_many(self):
        for (id, leaf), receipts in self.by_delivery.items():
            most = self.attempts_max + len(self.deaths) + len(self.freezes)
            if len(receipts) > most:
                yield f"I3: {id} came to {leaf} {len(receipts)} times"
            for r in receipts:
                if r["attempt"] > self.attempts_max:
                    yield f"I3: {id} to {leaf}: attempt {r['attempt']}"

    def too_early(self):
        for (id, leaf), receipts in self.by_delivery.items():
            for one, next in zip(receipts, receipts[1:]):
                # What the store did not have yet is tried again at once, and
                # what the network kept began earlier.
                if (self.was_cut(one["t"], next["t"])
                        or one["attempt"] in self.met[id, leaf]):
                    continue
                wait = max(self.wait, one["after"])
                if next["t"] - one["t"] < wait:
                    yield (f"I4: {id} to {leaf}: after {one['answered']} "
                           f"again in {next['t'] - one['t']:.3f} s, "
                           f"not {wait} s")

    def doubled(self):
        for (id, leaf), receipts in self.by_delivery.items():
            good = [r for r in receipts if is_delivered(r)]
            for one, next in zip(good, good[1:]):
                if ((id, leaf, one["attempt"]) in self.late
                        or one["attempt"] in self.met[id, leaf]):
                    continue # the hub had given up, or never got its answer
                if not self.was_cut(one["t"], next["t"]):
                    yield f"I16: {id} was delivered to {leaf} twice"

    # -- I13: what dead letters say

    def wrong_letters(self):
        for (id, leaf), rows in self.dead.items():
            m = self.messages.get(id)
            for row in rows:
                where = f"I13: the letter of {id} to {leaf}"
                if row["state"] != "dead" or row["last_position"] is not None:
                    yield f"{where} is {row['state']}"
                    continue
                if m and hashlib.sha256(
                        row["payload"] or b"").hexdigest() != m["hash"]:
                    yield f"{where} has another payload"
                if m and row["key"] != m["key"]:
                    yield f"{where} has the key {row['key']}"
                if not row["cause"] or not row["target_url"]:
                    yield f"{where} has no cause or no URL"
                if not 1 <= row["attempts"] <= self.attempts_max:
                    yield f"{where} says {row['attempts']} attempts"
                yield from self.wrong_cause(where, row,
                                            self.by_delivery[id, leaf])

    def wrong_cause(self, where, row, receipts):
        """The last receipt that the hub saw the end of is its cause."""
        causes = {"reset": "CONNECTION_RESET", "early": "CONNECTION_RESET",
                  "hang": "TIMEOUT"}
        seen = {causes.get(r["answered"], f"HTTP_{r['answered']}")
                for r in receipts if not is_delivered(r)}
        if any((r["id"], f"leaf{r['leaf']}", r["attempt"]) in self.late
               or any(begin - 1 <= r["t"] <= end for begin, end in self.freezes)
               for r in receipts):
            seen.add("TIMEOUT")
        for fault in self.met[row["message_id"], row["target"]].values():
            seen.update(OF_NETWORK[fault])
        # It came to nobody: its connection had just ended, after an answer.
        if ((row["detail"] or "").endswith("on a reused connection") and
                row["attempts"] not in [r["attempt"] for r in receipts]):
            seen.add("CONNECTION_RESET")
        if row["cause"] not in seen:
            yield f"{where} says {row['cause']}, the leaf {sorted(seen)}"

    # -- I17: the books

    def wrong_books(self):
        next_position = self.db.execute(
            "SELECT value FROM meta WHERE name = 'next_position'"
        ).fetchone()[0]
        dead = collections.Counter(leaf for _, leaf in self.dead)
        parked = self.db.execute("SELECT count(*) FROM parked").fetchone()[0]
        if parked:
            yield f"I17: {parked} rows are parked at the end"
        for (lanes,) in self.db.execute("SELECT lanes FROM cursors"):
            for number, c in json.loads(lanes).items():
                leaf = self.lanes[int(number)]
                count = {name: c.get(name, 0) for name in (
                    "base", "routed", "delivered", "dead", "cancelled")}
                whole = (count["delivered"] + count["dead"]
                         + count["cancelled"])
                if count["base"] != next_position or c.get("settled"):
                    yield (f"I1: {leaf} stands at {count['base']} of "
                           f"{next_position}")
                if count["routed"] != whole:
                    yield f"I17: {leaf}: {count}"
                if count["routed"] != len(self.messages):
                    yield (f"I17: {leaf}: routed {count['routed']} of "
                           f"{len(self.messages)}")
                if count["dead"] != dead[leaf]:
                    yield (f"I17: {leaf}: dead {count['dead']}, letters "
                           f"{dead[leaf]}")

    def problems(self):
        for check in (self.lost, self.unknown, self.changed, self.too_many,
                      self.too_early, self.doubled, self.wrong_letters,
                      self.wrong_books):
            yield from check()

    def summary(self):
        asked = sum(row["asked"] > 1 for row in self.accepted)
        copies = sum(max(0, sum(map(is_delivered, receipts)) - 1)
                     for receipts in self.by_delivery.values())
        return (f"{len(self.deaths)} kills, {len(self.accepted)} messages "
                f"({asked} asked for again), {len(self.leaves)} targets, "
                f"{len(self.receipts)} receipts, {len(self.dead)} dead, "
                f"{sum(map(len, self.met.values()))} met by the network, "
                f"{copies} copies")
