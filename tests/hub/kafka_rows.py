"""What a hub that reads Kafka has stored: rows that are sent again from the
topic, and rows that hubs share, by librdkafka's mock cluster. With a file, and
with PostgreSQL where there is a server (in CI there must be)."""
import collections
import json
import os
import unittest
import urllib.error
import urllib.request

import case
import kafka_case
import postgres
from case import wait_for
from leaf import PATIENCE


def lines(count, word="m"):
    return [f"{word}{i}".encode() for i in range(count)]


class File:
    """The store is a file."""

    def make_store(self):
        self.url = self.store

    def ask(self, query):
        rows = self.rows(query)
        return "\n".join("|".join("" if v is None else str(v)
                                  for v in row.values()) for row in rows)


class Shared:
    """It is a database."""

    def make_store(self):
        if os.environ.get("STAGGER_LIBPQ") == "0":
            raise unittest.SkipTest("this stagger was built without libpq")
        try:
            self.server = self.kept(postgres.Server(self.folder))
        except postgres.Missing as missing:
            if os.environ.get("CI") == "true":
                raise
            raise unittest.SkipTest(str(missing))
        self.url = self.server.url

    def ask(self, query):
        return self.server.ask(query)


class Case(kafka_case.Case):
    def call(self, hub, path, choice=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/{path}",
            data=json.dumps(choice).encode() if choice else None,
            method="GET" if choice is None else "POST",
            headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def replay(self, hub, target):
        begun = self.call(hub, "dead-letters/replay", {"target": target})

        def look():
            found = self.call(hub, f"replays/{begun['id']}")
            return found if found["state"] != "running" else None
        return wait_for(look, f"the end of replay {begun['id']}")

    def number(self, query):
        return int(self.ask(query) or 0)


class Recreated:
    """I31: a topic that was deleted and made again has the same name. (The mock
    deletes none: another cluster has the topic of that name.)"""

    def deliver(self, broker, count):
        """By a hub of its own, which ends; how it was received."""
        before = len(self.leaf_of.receipts)
        hub = self.hub(broker, "t", f"a={self.leaf_of.url()}", store=self.url)
        self.leaf_of.wait(before + count)
        self.assertEqual(hub.stop(), 0)
        return hub, self.leaf_of.receipts[before:]

    def test_one_with_more_records_than_the_cursor_is_read_from_its_start(self):
        self.make_store()
        self.leaf_of = self.leaf()
        first = self.mock(t=2)
        first.produce("t", {0: lines(50, "old")})
        self.deliver(first, 50)
        second = self.mock(t=2)
        second.produce("t", {0: lines(80, "new"), 1: lines(3, "other")})
        hub, receipts = self.deliver(second, 83)
        self.assertEqual(sorted(r.body for r in receipts),
                         sorted(lines(80, "new") + lines(3, "other")))
        renewed, = hub.events("partition-recreated")
        self.assertEqual((renewed["topic"], renewed["partition"]), ("t", 0))
        self.assertIn("made again", renewed["detail"])
        epochs = {r.id.split(".")[3:][0] for r in receipts
                  if r.id.startswith("t.0.")}
        self.assertEqual(len(epochs), 1) # and another id each than before
        # What is there once more is known again.
        second.produce("t", {0: lines(5, "last")})
        hub, receipts = self.deliver(second, 5)
        self.assertEqual({r.body for r in receipts}, set(lines(5, "last")))
        self.assertEqual(hub.events("partition-recreated"), [])


class Replays:
    """Bulk rows have no bodies: they are in the topic."""
    COUNT = 60

    def shed(self):
        """A target that gives up all of COUNT messages, most of them untried."""
        self.make_store()
        self.broker = self.mock(t=2)
        self.is_well, self.good = False, collections.Counter()

        def answer(request):
            if not self.is_well:
                return 503
            self.good[request.id, request.body] += 1
            return 200
        self.bad = self.leaf(answer)
        hub = self.hub(self.broker, "t", f"bad={self.bad.url()}",
                       store=self.url, defaults="shed-after: 50ms, policy: "
                       '"fixed base=10ms attempts=1 breaker=1:200ms"')
        half = self.COUNT // 2
        self.broker.produce("t", {0: lines(1, "first")})
        hub.event("shedding")
        self.broker.produce("t", {0: lines(half - 1, "a"),
                                  1: lines(half, "b")})
        wait_for(lambda: self.number(
            "SELECT sum(count) FROM failed_broadcast_logs"
            " WHERE state = 'dead'") == self.COUNT,
            "all of them are dead")
        ranges = self.number("SELECT sum(count) FROM failed_broadcast_logs"
                             " WHERE last_position IS NOT NULL")
        self.assertGreater(ranges, self.COUNT // 4)
        return hub

    def expected(self):
        half = self.COUNT // 2
        bodies = lines(1, "first") + lines(half - 1, "a")
        return {(f"t.0.{i}", body) for i, body in enumerate(bodies)} | {
            (f"t.1.{i}", body) for i, body in enumerate(lines(half, "b"))}

    def test_a_replay_brings_what_was_shed_once_when_there_is_a_broker(self):
        hub = self.shed()
        for node in 1, 2, 3:
            self.broker.tell("down", node)
        hub.event("kafka-away")
        found = self.replay(hub, "bad")
        self.assertEqual((found["state"], found["held"]), ("away", "bad"))
        ranges = ("SELECT sum(count) FROM failed_broadcast_logs"
                  " WHERE last_position IS NOT NULL AND state = 'dead'")
        self.assertEqual(self.number(ranges) + found["messages"], self.COUNT)
        for node in 1, 2, 3:
            self.broker.tell("up", node)
        hub.event("kafka-back")
        moves = self.moves(hub)
        self.is_well = True
        # What was tried while it was not well may die a little later.
        wait_for(lambda: self.replay(hub, "bad")["state"] == "done"
                 and self.number("SELECT count(*) FROM failed_broadcast_logs"
                                 " WHERE state = 'dead'") == 0,
                 "replays that read the topic")
        self.assertEqual(self.ask(
            "SELECT state, position, last_position, count, cause"
            " FROM failed_broadcast_logs WHERE state <> 'replayed'"), "")
        wait_for(lambda: len(self.good) == self.COUNT,
                 lambda: f"{self.COUNT} messages, not {len(self.good)}")
        wait_for(lambda: self.call(hub, "targets/bad")["parked"] == 0,
                 "nothing is parked")
        # Nothing is left, and a second one finds nothing.
        self.assertEqual(self.replay(hub, "bad")["messages"], 0)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(set(self.good), self.expected())
        # I16: an attempt that a loss has cut is made again.
        if self.moves(hub) == moves:
            self.assertEqual(set(self.good.values()), {1})
        books = self.books()
        self.assertEqual(books["delivered"], self.COUNT)
        self.assertEqual(sum(books.values()), 2 * self.COUNT, books)

    def moves(self, hub):
        return (len(hub.events("partition-lost"))
                + len(hub.events("partition-revoked")))

    def books(self):
        """Of the one lane, over all partitions."""
        books, decoder = collections.Counter(), json.JSONDecoder()
        text = self.ask("SELECT lanes FROM cursors").strip()
        while text:
            row, end = decoder.raw_decode(text)
            text = text[end:].strip()
            for book in row.values():
                for what in ("routed", "delivered", "dead", "cancelled",
                             "parked"):
                    books[what] += book.get(what, 0)
        return books


class Doubts(File, Case):
    """Whether a topic is the one that was read before."""
    FETCH, OUT_OF_RANGE = 1, 1  # of Kafka's protocol

    def test_a_position_that_was_not_there_for_a_moment_is_looked_at(self):
        self.make_store()
        broker, a = self.mock(t=1), self.leaf()
        hub = self.hub(broker, "t", f"a={a.url()}", store=self.url)
        broker.produce("t", {0: lines(3)})
        a.wait(3)
        broker.tell("error", self.FETCH, self.OUT_OF_RANGE, 1)
        line = hub.event("topic-check", topic="t", partition=0, position=3)
        self.assertIn("a position was not there, and is now", line["detail"])
        broker.produce("t", {0: lines(2, "n")})
        a.wait(5)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(kafka_case.ids(a.receipts),
                         {f"t.0.{i}": 1 for i in range(5)})
        for name in "topic-uncertain", "partition-recreated":
            self.assertEqual(hub.events(name), [])

    def test_what_may_be_another_topic_is_told_and_alerted(self):
        self.make_store()
        broker, a, hook = self.mock(t=1), self.leaf(), self.leaf()
        broker.produce("t", {0: lines(3)})
        hub = self.hub(broker, "t", f"a={a.url()}", store=self.url)
        a.wait(3)
        self.assertEqual(hub.stop(), 0)
        # Neither record of the fingerprint is found again.
        broker.tell("error", self.FETCH, self.OUT_OF_RANGE, 2)
        hub = self.hub(broker, "t", f"a={a.url()}", store=self.url, more=(
            'alerts: {group-wait: 0, receivers: [{name: hook, type: webhook, '
            f'alerts: [store], url: "{hook.url()}"}}]}}'))
        line = hub.event("topic-uncertain", topic="t", partition=0)
        self.assertIn("no record that was read of it is there any more",
                      line["detail"])
        alert, = json.loads(hook.wait(1)[0].body)["alerts"]
        self.assertEqual((alert["alert"], alert["phase"]), ("store", "began"))
        self.assertIn("t/0 may be another topic than the one that was read",
                      alert["summary"])
        # It is read on from where it was.
        broker.produce("t", {0: lines(2, "n")})
        a.wait(5)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(kafka_case.ids(a.receipts),
                         {f"t.0.{i}": 1 for i in range(5)})


class RecreatedOfAFile(Recreated, File, Case):
    pass


class RecreatedOfADatabase(Recreated, Shared, Case):
    pass


class ReplaysOfAFile(Replays, File, Case):
    pass


class ReplaysOfADatabase(Replays, Shared, Case):
    pass


class Epochs(Shared, Case):
    """Rows of a topic that was made again since: they go with the partition."""
    ROWS = 5 # of each partition

    def start(self, broker, leaf):
        return self.hub(broker, "t", f"bad={leaf.url()}", store=self.url,
                        options=["--drain", "2s"],
                        defaults="policy: fixed base=500ms jitter=none "
                        "attempts=10000 deadline=none breaker=none budget=none")

    def fenced(self, hub):
        with urllib.request.urlopen(f"http://127.0.0.1:{hub.port}/metrics",
                                    timeout=PATIENCE) as page:
            for line in page.read().decode().splitlines():
                if line.startswith("stagger_kafka_fenced_total "):
                    return int(line.split()[1])

    def make_epochs(self):
        """As the store is when topics were made again."""
        self.ask("INSERT INTO partitions (number, log, topic, partition, epoch)"
                 " SELECT number + 2, log, topic, partition, '00000000000000e1'"
                 " FROM partitions")

    def test_rows_of_an_epoch_that_is_over_move_with_their_partition(self):
        self.make_store()
        broker = self.mock(t=2)
        answers = [503]
        first, second = self.leaf(lambda r: answers[0]), self.leaf(
            lambda r: answers[0])
        broker.produce("t", {p: lines(self.ROWS) for p in range(2)})
        one = self.start(broker, first)
        wait_for(lambda: self.number("SELECT count(*) FROM parked")
                 == 2 * self.ROWS, "rows")
        self.assertEqual(one.stop(), 0)
        self.make_epochs()
        old = {f"t.{p}.{i}" for p in range(2) for i in range(self.ROWS)}

        def tried(leaf, ids, times):
            with leaf.changed:
                seen = collections.Counter(r.id for r in leaf.receipts[since:])
            return all(seen[i] >= times for i in ids)

        since = len(first.receipts)
        one = self.start(broker, first)
        self.await_partitions(one, count=2)
        wait_for(lambda: tried(first, old, 1), "old rows go on")
        since = 0
        two = self.start(broker, second)
        wait_for(lambda: two.events("partition-taken"), "the second has one")
        self.await_partitions(one, two, count=2)
        moved = {i for i in old for e in two.events("partition-taken")
                 if i.startswith(f"t.{e['partition']}.")}
        wait_for(lambda: tried(second, moved, 3), "they go on there")
        # Who has let go of them does not write them any more.
        if not one.events("partition-lost") + two.events("partition-lost"):
            self.assertEqual((self.fenced(one), self.fenced(two)), (0, 0))
        self.assertEqual(two.stop(), 0)
        self.await_partitions(one, count=2)
        since = len(first.receipts)
        wait_for(lambda: tried(first, old, 1), "and back again")
        answers[0] = 200
        wait_for(lambda: self.number("SELECT count(*) FROM parked") == 0,
                 "all are delivered")
        self.assertEqual(one.stop(), 0)


class Calls(Shared, Case):
    """What one hub is called to do with a target, all of them do."""

    def start(self, broker, **leaves):
        """With a settings file that can be changed."""
        path = os.path.join(self.folder, f"{len(os.listdir(self.folder))}.yaml")
        self.write(path, broker, **leaves)
        hub = case.Hub(None, "--drain", "2s", settings=path)
        self.addCleanup(hub.end)
        return hub, path

    def write(self, path, broker, **leaves):
        targets = "\n".join(f'  - {{name: {name}, url: "{leaf.url()}"}}'
                            for name, leaf in leaves.items())
        with open(path, "w") as file:
            file.write(f"""
source: "{broker.url("t")}"
kafka: {{options: {{session.timeout.ms: 3000, heartbeat.interval.ms: 500}}}}
store: {{path: "{self.url}"}}
listen: {{address: 127.0.0.1:0}}
defaults: {{policy: fixed base=100ms attempts=10000 deadline=none breaker=none
  budget=none}}
targets:
{targets}
""")

    def ask_for(self, hub, target, deed):
        return self.call(hub, f"targets/{target}/{deed}", {})

    def state(self, hub, target):
        return self.call(hub, f"targets/{target}")["state"]

    def test_pause_resume_and_forget_reach_the_others(self):
        self.make_store()
        broker = self.mock(t=2)
        is_bad = [False]
        a, b = self.leaf(lambda r: 503 if is_bad[0] else 200), self.leaf()
        one, first = self.start(broker, a=a, b=b)
        self.await_partitions(one, count=2)
        two, second = self.start(broker, a=a, b=b)
        wait_for(lambda: two.events("partition-taken"), "the second has one")
        self.await_partitions(one, two, count=2)

        self.ask_for(one, "a", "pause")
        two.event("target-changed", target="a", what="paused")
        self.assertEqual(self.state(two, "a"), "paused")
        broker.produce("t", {p: lines(10) for p in range(2)})
        b.wait(20)
        self.assertEqual(a.receipts, [])
        self.ask_for(two, "a", "resume")
        one.event("target-changed", target="a", what="resumed")
        a.wait(20)

        is_bad[0] = True
        broker.produce("t", {p: lines(10) for p in range(2)})
        wait_for(lambda: self.number("SELECT count(*) FROM parked") == 20,
                 "rows of both")
        for hub, path in (one, first), (two, second):
            self.write(path, broker, b=b)
            self.call(hub, "reload", {})
        self.ask_for(one, "a", "forget")
        two.event("target-changed", target="a", what="forgotten")
        wait_for(lambda: self.number("SELECT count(*) FROM parked") == 0,
                 "none is left")
        letters = self.ask("SELECT partition, position, last_position, count,"
                           " state, cause FROM failed_broadcast_logs"
                           " ORDER BY partition, position")
        # An attempt that was under way at the reload may end it first.
        self.assertEqual(self.number(
            "SELECT sum(count) FROM failed_broadcast_logs"
            " WHERE state IN ('cancelled', 'dead')"), 20, letters)
        self.assertIn("cancelled", letters)
        for hub in one, two:
            wait_for(lambda: [t["name"] for t in
                              self.call(hub, "targets")["targets"]] == ["b"],
                     "the name is gone")
            self.assertEqual(hub.stop(), 0)

    def change(self, hub, method, path, settings=None):
        """A call for a target. Its answer's status and object."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{hub.port}/v1/targets{path}",
            data=json.dumps(settings).encode() if settings else None,
            method=method, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def test_targets_of_calls_reach_the_others(self):
        self.make_store()
        broker = self.mock(t=2)
        a, new = self.leaf(), self.leaf()
        one, _ = self.start(broker, a=a)
        self.await_partitions(one, count=2)
        two, second = self.start(broker, a=a)
        wait_for(lambda: two.events("partition-taken"), "the second has one")
        self.await_partitions(one, two, count=2)

        status, made = self.change(one, "POST", "",
                                   {"name": "new", "url": new.url()})
        self.assertEqual(status, 201, made)
        two.event("target-changed", target="new", what="added")
        broker.produce("t", {p: lines(10) for p in range(2)})
        self.assertEqual(len({r.id for r in new.wait(20)}), 20)
        self.assertEqual(self.change(two, "PATCH", "/new",
                                     {"paused": True})[0], 200)
        one.event("target-changed", target="new", what="changed")
        self.assertEqual(self.state(one, "new"), "paused")

        broker.produce("t", {p: lines(10) for p in range(2)})
        a.wait(40)
        status, gone = self.change(one, "DELETE", "/new?waiting=cancel")
        self.assertEqual(status, 200, gone)
        two.event("target-changed", target="new", what="removed")
        for hub in one, two:
            wait_for(lambda: [t["name"] for t in
                              self.call(hub, "targets")["targets"]] == ["a"],
                     "the name is gone")

        # The second hub's file has a policy that the first one's has not.
        with open(second) as file:
            text = file.read()
        with open(second, "w") as file:
            file.write(text + "policies: {own: broadcast}\n")
        self.call(two, "reload", {})
        status, made = self.change(two, "POST", "", {
            "name": "own", "url": new.url(), "policy": "own"})
        self.assertEqual(status, 201, made)
        refused = one.event("target-refused", target="own")
        self.assertIn("`policy`", refused["detail"])
        for hub in two, one:
            self.assertEqual(hub.stop(), 0)


if __name__ == "__main__":
    case.main(4)
