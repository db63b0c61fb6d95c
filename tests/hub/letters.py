#!/usr/bin/env python3
"""Dead letters that are sent again, on the real hub: under the same ids, once
each, also when it is killed in the middle of it."""
import collections
import http.client
import json
import random
import time

import case
import leaf

ONCE = ("--policy", "none breaker=none")
# After 20 failures the rest waits, and a second later is one bulk row.
SHEDS = ("--policy", "none breaker=20:30s", "--shed-after", "1s")


class Replay(case.Case):
    def setUp(self):
        super().setUp()
        self.status = 503
        self.server = self.leaf(lambda request: self.status)

    def run_hub(self, *arguments):
        return self.hub("--to", f"a={self.server.url()}", *arguments)

    def ask(self, hub, path, **body):
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=leaf.PATIENCE)
        try:
            if body:
                connection.request("POST", path, json.dumps(body),
                                   {"Content-Type": "application/json"})
            else:
                connection.request("GET", path)
            answer = connection.getresponse()
            found = json.loads(answer.read())
            self.assertIn(answer.status, (200, 202), found)
            return found
        finally:
            connection.close()

    def replay(self, hub, **choice):
        return self.ask(hub, "/v1/dead-letters/replay",
                        **(choice or {"all": True}))

    def await_replay(self, hub, begun):
        path = f"/v1/replays/{begun['id']}"
        return case.wait_for(
            lambda: (lambda r: r if r["state"] != "running" else None)(
                self.ask(hub, path)), "the end of a replay")

    def publish(self, hub, count):
        producer = self.kept(hub.producer())
        return producer.post_lines([{"body": f"message {i}"}
                                    for i in range(count)])

    def states(self):
        return {row["state"]: (row["rows"], row["messages"]) for row in
                self.rows("SELECT state, count(*) AS rows, sum(count) AS"
                          " messages FROM failed_broadcast_logs"
                          " GROUP BY state")}

    def await_dead(self, count):
        case.wait_for(lambda: self.states().get("dead", (0, 0))[1] == count,
                      lambda: f"{count} dead, there is {self.states()}")

    def good(self):
        """Ids that came while the leaf was well, and how often."""
        return collections.Counter(
            r.id for r in self.server.receipts if r.wall >= self.well_at)

    def mend(self):
        self.status = 200
        self.well_at = time.time()

    # -- what is sent

    def test_letters_come_again_under_their_ids_with_their_count(self):
        hub = self.run_hub(*ONCE)
        ids = self.publish(hub, 50)
        self.await_dead(50)
        self.mend()
        self.assertEqual(self.replay(hub, all=True, dry_run=True)["messages"],
                         50)
        end = self.await_replay(hub, self.replay(hub))
        self.assertEqual((end["state"], end["letters"], end["messages"]),
                         ("done", 50, 50))
        self.await_settled(1)
        self.assertEqual(self.good(), collections.Counter(ids))
        self.assertEqual({r.attempt for r in self.server.receipts
                          if r.wall >= self.well_at}, {2})
        self.assertEqual(self.states(), {"replayed": (50, 50)})
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.books()["a"]["delivered"], 50)

    def test_what_dies_again_is_another_letter(self):
        hub = self.run_hub(*ONCE)
        id, = self.publish(hub, 1)
        self.await_dead(1)
        for replay in (1, 2):
            self.await_replay(hub, self.replay(hub))
            case.wait_for(lambda: len(self.rows()) == replay + 1, "a letter")
        hub.stop()
        self.assertEqual([(row["message_id"], row["replay"], row["attempts"],
                           row["state"]) for row in self.rows()],
                         [(id, 0, 1, "replayed"), (id, 1, 2, "replayed"),
                          (id, 2, 3, "dead")])
        self.assertEqual([r.attempt for r in self.server.receipts], [1, 2, 3])
        self.assertEqual(self.books()["a"]["dead"], 1)

    def test_a_range_row_comes_again_message_by_message(self):
        hub = self.run_hub(*SHEDS)
        ids = self.publish(hub, 300)
        self.await_dead(300)
        self.mend()
        hub.stop()
        hub = self.run_hub(*SHEDS)  # its breaker is closed
        end = self.await_replay(hub, self.replay(hub))
        self.assertEqual((end["state"], end["messages"], end["expired"]),
                         ("done", 300, 0))
        self.await_settled(1)
        self.assertEqual(self.good(), collections.Counter(ids))
        self.assertEqual(set(self.states()), {"replayed"})
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.books()["a"]["delivered"], 300)

    # -- twice, and at the same time

    def test_a_double_click_sends_once(self):
        hub = self.run_hub(*ONCE)
        ids = self.publish(hub, 200)
        self.await_dead(200)
        self.mend()
        begun = [self.replay(hub) for _ in range(3)]
        ends = [self.await_replay(hub, one) for one in begun]
        self.assertEqual(sum(end["letters"] for end in ends), 200)
        self.await_settled(1)
        self.assertEqual(self.good(), collections.Counter(ids))
        self.assertEqual(hub.stop(), 0)
        self.books()

    def test_what_is_dropped_meanwhile_is_not_sent(self):
        hub = self.run_hub(*ONCE)
        self.publish(hub, 400)
        self.await_dead(400)
        self.mend()
        letters = [row["id"] for row in self.rows()][200:]
        begun = self.replay(hub)
        dropped = self.ask(hub, "/v1/dead-letters/drop", ids=letters)
        end = self.await_replay(hub, begun)
        self.assertEqual(end["letters"] + dropped["letters"], 400)
        self.await_settled(1)
        self.assertEqual(len(self.good()), end["letters"])
        self.assertEqual(set(self.good().values()), {1})
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(self.books()["a"]["dead"], dropped["letters"])

    # -- killed

    def test_a_kill_in_the_middle_loses_none(self):
        """I16: a second copy only for what a kill left without an answer."""
        chance = random.Random(17)
        count, kills = 1500, 8
        hub = self.run_hub(*SHEDS)
        ids = self.publish(hub, count)
        self.await_dead(count)
        self.mend()
        for _ in range(kills):
            hub.kill()
            hub = self.run_hub(*SHEDS)
            self.replay(hub)
            time.sleep(chance.uniform(0, 0.4))
        hub.kill()
        hub = self.run_hub(*SHEDS)
        self.await_replay(hub, self.replay(hub))
        self.await_settled(1)
        self.assertEqual(hub.stop(), 0)
        self.assertEqual(set(self.good()), set(ids))
        # What was in flight, or delivered since the last checkpoint.
        twice = sum(self.good().values()) - count
        self.assertLessEqual(max(self.good().values()), kills + 2)
        case.note(self, f"{twice} of {count} came twice after {kills} kills")
        self.assertLess(twice, count / 2)
        self.assertEqual(set(self.states()), {"replayed"})
        self.assertEqual(self.books()["a"]["delivered"], count)


if __name__ == "__main__":
    case.main()
