#!/usr/bin/env python3
"""CloudEvents of the packages of PyPI and npm: what they publish in binary and in
structured mode, a hub's targets get in the mode that they ask for, and the
packages read the same event of it."""
import base64
import json
import pathlib
import subprocess

import case
import filters
import verify_packages

HERE = pathlib.Path(__file__).parent


class Packages(filters.ByFile):
    def judge(self, command, what, given=None):
        told = subprocess.run([*command, what], text=True, check=True,
                              capture_output=True, input=json.dumps(given))
        return json.loads(told.stdout)

    def check(self, *command):
        modes = ("as-is", "binary", "structured")
        leaves = {mode: self.leaf() for mode in modes}
        with open(self.path, "w") as file:
            json.dump({"listen": {"address": "127.0.0.1:0"},
                       "store": {"path": self.store},
                       "targets": [{"name": mode, "url": leaf.url(),
                                    "cloudevents": mode,
                                    "match": {"ce-type": "com.example.judge"}}
                                   for mode, leaf in leaves.items()]}, file)
        hub = self.hub(settings=self.path)
        sent = {}
        for request in self.judge(command, "make"):
            headers = {name: str(value)
                       for name, value in request["headers"].items()}
            sent[hub.post(base64.b64decode(request["body"]),
                          **headers)] = request
        expected = self.judge(command, "read", list(sent.values()))
        for mode, leaf in leaves.items():
            got = {r.id: r for r in leaf.wait(len(sent))}
            requests = [{
                "headers": {name: values[0] for name, values in r.headers.items()
                            if name == "content-type"
                            or name.startswith("ce-")},
                "body": base64.b64encode(r.body).decode()}
                for r in (got[id] for id in sent)]
            for request in requests:
                is_structured = request["headers"].get(
                    "content-type", "").startswith("application/cloudevents")
                if mode != "as-is":
                    self.assertEqual(is_structured, mode == "structured",
                                     request)
                self.assertEqual(is_structured,
                                 "ce-id" not in request["headers"])
            self.assertEqual(self.judge(command, "read", requests), expected,
                             mode)

    def test_that_of_pypi(self):
        self.check(PYTHON, HERE / "cloud_events_judge.py")

    def test_that_of_npm(self):
        self.check("node", HERE / "cloud_events_judge.mjs",
                   verify_packages.TOOLS)


if __name__ == "__main__":
    PYTHON = verify_packages.fetched()
    case.main()
