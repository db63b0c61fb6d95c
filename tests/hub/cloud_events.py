#!/usr/bin/env python3
"""CloudEvents: filters find attributes in both modes, and targets get events in
the mode that they ask for."""
import json

import filters
import case

STRUCTURED = "application/cloudevents+json"
EVENT = {"specversion": "1.0", "id": "7", "source": "/shop",
         "type": "order.paid", "subject": "a \"b\" \u20ac",
         "datacontenttype": "application/json", "data": {"n": [1, 2.5]}}
BINARY = {"ce-specversion": "1.0", "ce-id": "7", "ce-source": "/shop",
          "ce-type": "order.paid", "ce-subject": "a%20%22b%22%20%E2%82%AC"}
DATA = json.dumps(EVENT["data"]).encode()


class CloudEvents(filters.ByFile):
    def post_both(self, hub):
        """The ids of the same event in binary and in structured mode."""
        return (hub.post(DATA, Content_Type="application/json", **BINARY),
                hub.post(json.dumps(EVENT), Content_Type=STRUCTURED))

    def attributes(self, receipt):
        return {name: value for name, [value] in receipt.headers.items()
                if name.startswith("ce-")}

    def test_filters_find_attributes_in_both_modes(self):
        hub, leaf = self.start({
            "paid": {"ce-type": ["order.paid", "order.sent"]},
            "sent": {"ce_type": "order.sent"},
            "mine": {"ce-source": "/shop", "ce-specversion": "1.0"},
            "both": {"ce-type": "order.paid", "body": {"n": [2.5]}},
            "number": {"ce-sequence": "5"},
            "orders": {"ce-type": [{"prefix": "order."}]}})
        binary, structured = self.post_both(hub)
        other = hub.post(json.dumps({**EVENT, "type": "x", "source": "/",
                                     "sequence": 5}), Content_Type=STRUCTURED)
        none = hub.post(b"none", Content_Type=STRUCTURED)
        got = {(r.path.strip("/"), r.id) for r in leaf.wait(2 + 2 + 1 + 1 + 2)}
        self.assertEqual(got, {("paid", binary), ("paid", structured),
                               ("mine", binary), ("mine", structured),
                               ("both", binary), ("number", other),
                               ("orders", binary), ("orders", structured)})
        self.await_settled(6)
        hub.stop()
        self.assertNotIn(none, {id for _, id in got})
        self.assertEqual(self.routed(), {"paid": 2, "sent": 0, "mine": 2,
                                         "both": 1, "number": 1, "orders": 2})

    def test_targets_get_the_mode_that_they_ask_for(self):
        leaves = {mode: self.leaf() for mode in ("as-is", "binary",
                                                 "structured")}
        with open(self.path, "w") as file:
            json.dump({"listen": {"address": "127.0.0.1:0"},
                       "store": {"path": self.store},
                       "targets": [{"name": mode, "url": leaf.url(),
                                    "cloudevents": mode,
                                    "headers": {"ce-extra": "1"}
                                    if mode == "binary" else {}}
                                   for mode, leaf in leaves.items()]}, file)
        hub = self.hub(settings=self.path)
        ids = self.post_both(hub)
        plain = hub.post(b"x", Content_Type="text/plain", ce_id="1", X_A="b")
        for mode, leaf in leaves.items():
            got = {r.id: r for r in leaf.wait(3)}
            self.assertEqual(got[plain].body, b"x")
            self.assertEqual(got[plain].headers["content-type"], ["text/plain"])
            self.assertEqual(got[plain].headers["x-a"], ["b"])
            if mode == "as-is":
                self.assertEqual(got[ids[0]].body, DATA)
                self.assertEqual(json.loads(got[ids[1]].body), EVENT)
                continue
            for r in (got[id] for id in ids):
                if mode == "binary":
                    self.assertEqual(self.attributes(r),
                                     {**BINARY, "ce-extra": "1"})
                    self.assertEqual(r.headers["content-type"],
                                     ["application/json"])
                    self.assertEqual(r.body, DATA)
                else:
                    self.assertEqual(self.attributes(r), {})
                    self.assertEqual(r.headers["content-type"],
                                     [STRUCTURED + "; charset=utf-8"]
                                     if r.id == ids[0] else [STRUCTURED])
                    self.assertEqual(json.loads(r.body), EVENT)

    def test_a_retry_has_the_same_event(self):
        replies = iter([503, 503, 200])
        leaf = self.leaf(lambda request: next(replies))
        with open(self.path, "w") as file:
            json.dump({"listen": {"address": "127.0.0.1:0"},
                       "store": {"path": self.store},
                       "targets": [{"name": "a", "url": leaf.url(),
                                    "policy": "fixed base=1ms attempts=5 "
                                              "retry=5xx",
                                    "cloudevents": "structured"}]}, file)
        hub = self.hub(settings=self.path)
        hub.post(DATA, Content_Type="application/json", **BINARY)
        bodies = {r.body for r in leaf.wait(3)}
        self.assertEqual([json.loads(body) for body in bodies], [EVENT])

    def test_a_batch_is_one_of_cloudevents(self):
        leaf = self.leaf()
        with open(self.path, "w") as file:
            json.dump({"listen": {"address": "127.0.0.1:0"},
                       "store": {"path": self.store},
                       "targets": [{"name": "a", "url": leaf.url(),
                                    "batch": {"max": 2, "linger": "60s"},
                                    "cloudevents": "structured"}]}, file)
        hub = self.hub(settings=self.path)
        self.post_both(hub)
        [batch] = leaf.wait(1)
        self.assertEqual(batch.headers["content-type"],
                         ["application/cloudevents-batch+json; charset=utf-8"])
        self.assertEqual(json.loads(batch.body), [EVENT, EVENT])
        # One that is none makes it a batch of JSON.
        hub.post(b"5", Content_Type="application/json")
        self.post_both(hub)
        hub.post(b"6", Content_Type="application/json")
        batches = leaf.wait(3)[1:]
        for batch in batches:
            self.assertEqual(batch.headers["content-type"],
                             ["application/json"])
        self.assertCountEqual([json.loads(batch.body) for batch in batches],
                              [[5, EVENT], [EVENT, 6]])


if __name__ == "__main__":
    case.main()
