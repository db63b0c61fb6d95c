#!/usr/bin/env python3
"""What the hub takes from the environment, and that it shows none of it."""
import http.client
import json
import os

import case


class Environment(case.Case):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "stagger.yaml")

    def start(self, text, **environment):
        with open(self.path, "w") as file:
            file.write("listen: {address: '127.0.0.1:0'}\n"
                       "policies: {once: broadcast attempts=1}\n"
                       f"store: {{path: {self.store}}}\n{text}")
        return self.hub(settings=self.path, before=[
            "env", *(f"{name}={value}" for name, value in environment.items())])

    def ask(self, hub, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", hub.port,
                                                timeout=case.PATIENCE)
        self.kept(connection)
        connection.request(method, path, body,
                           {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def test_a_target_gets_values_that_nothing_shows(self):
        leaf = self.leaf(lambda request: 400)
        address = leaf.url().split("/")[2]
        hub = self.start(
            "targets:\n"
            "  - name: ${NAME}\n"
            "    url: http://${ADDRESS}/hush/${KEY}?key=${KEY}\n"
            "    policy: once\n"
            "    headers: {Authorization: \"Bearer ${KEY}\"}\n",
            NAME="shop", ADDRESS=address, KEY="hush-hush")
        for _ in range(2):
            hub.post(b"x")
            request = leaf.wait(1)[0]
            leaf.receipts.clear()
            self.assertIn("/hush/hush-hush?key=hush-hush", request.line)
            self.assertEqual(request.headers["authorization"],
                             ["Bearer hush-hush"])
            hub.process.send_signal(case.signal.SIGHUP)
            hub.event("reloaded")
        case.wait_for(lambda: len(self.rows()) == 2, "both of them dead")
        status, text = self.ask(hub, "GET", "/v1/targets")
        target, = json.loads(text)["targets"]
        self.assertEqual(target["name"], "shop")
        self.assertEqual(target["url"].partition("?")[0],
                         "http://${ADDRESS}/hush/${KEY}")
        self.assertNotIn("hush-hush", text)
        for path in "/v1/dead-letters", "/v1/status", "/metrics":
            status, text = self.ask(hub, "GET", path)
            self.assertEqual(status, 200, text)
            self.assertNotIn("hush-hush", text)
            self.assertNotIn(address, text)
        self.assertEqual(hub.stop(), 0)
        said = json.dumps(hub.lines) + str(hub.noise)
        self.assertNotIn("hush-hush", said)
        self.assertNotIn(address, said)
        self.assertNotIn("hush-hush", str(self.rows("SELECT * FROM lanes")))

    def test_a_reload_that_lacks_a_variable_changes_nothing(self):
        leaf = self.leaf()
        text = ("targets: [{name: a, url: '%s', headers: {X-A: '${A}'}}]\n"
                % leaf.url())
        hub = self.start(text, A="first")
        with open(self.path, "a") as file:
            file.write("defaults: {owner: '${OWNER}'}\n")
        hub.process.send_signal(case.signal.SIGHUP)
        line = hub.event("reload-refused")
        self.assertIn("${OWNER}", line["detail"])
        hub.post(b"x")
        self.assertEqual(leaf.wait(1)[0].headers["x-a"], ["first"])

    def test_a_call_reads_no_environment(self):
        leaf = self.leaf()
        hub = self.start("targets: []\n", A="hush-hush")
        body = {"name": "a", "url": leaf.url(), "policy": "once",
                "owner": "https://example.org/$${A}",
                "tags": {"team": "${A}"}, "match": {"X-A": "${A}"}}
        status, text = self.ask(hub, "POST", "/v1/targets", json.dumps(body))
        self.assertEqual(status, 201, text)
        settings = json.loads(text)["settings"]
        self.assertEqual((settings["tags"], settings["owner"]),
                         ({"team": "${A}"}, "https://example.org/$${A}"))
        status, text = self.ask(hub, "POST", "/v1/targets", json.dumps(
            {"name": "b", "url": "http://${A}:1/"}))
        self.assertEqual(status, 422, text)
        status, text = self.ask(hub, "POST", "/v1/targets", json.dumps(
            {"name": "${A}", "url": leaf.url()}))
        self.assertEqual(status, 422, text)
        hub.post(b"other", X_A="hush-hush")
        hub.post(b"same", X_A="${A}")
        [request] = leaf.wait(1)
        self.assertEqual(request.body, b"same")


case.main()
