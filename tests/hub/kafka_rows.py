"""What a hub that reads Kafka has stored: rows that are sent again from the
topic, and rows that hubs share, by librdkafka's mock cluster. With a file, and
with PostgreSQL where there is a server (in CI there must be)."""
import collections
import json
import os
import unittest
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
            data=None if choice is None else json.dumps(choice).encode(),
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


class Replays:
    """Range rows have no bodies: they are in the topic."""
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
                       store=self.url, defaults="hold: 50ms, policy: "
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

    def wanted(self):
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
        wait_for(lambda: self.replay(hub, "bad")["state"] == "done",
                 "a replay that reads the topic")
        self.assertEqual(self.ask(
            "SELECT DISTINCT state FROM failed_broadcast_logs"), "replayed")
        wait_for(lambda: len(self.good) == self.COUNT,
                 lambda: f"{self.COUNT} messages, not {len(self.good)}")
        wait_for(lambda: self.call(hub, "targets/bad")["parked"] == 0,
                 "nothing is parked")
        # Nothing is left, and a second one finds nothing.
        self.assertEqual(self.replay(hub, "bad")["messages"], 0)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(set(self.good), self.wanted())
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


class ReplaysOfAFile(Replays, File, Case):
    pass


class ReplaysOfADatabase(Replays, Shared, Case):
    pass


if __name__ == "__main__":
    case.main(4)
