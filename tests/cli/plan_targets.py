"""stagger plan --target: a policy as a hub applies it."""
import json
import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # the sources are to stay as they are
from plan_command import read, shown


class Targets(unittest.TestCase):
    """A hub waits for what its machine lacks, and counts no attempt."""
    WAITED = ("no-files", "no-ports", "no-buffers", "interrupted",
              "proxy")
    POLICIES = {"usual": "broadcast", "single": "attempts=1 breaker=5:1s",
                "bare": "backend breaker=none"}

    def setUp(self):
        handle, self.path = tempfile.mkstemp(".yaml")
        self.addCleanup(os.unlink, self.path)
        with open(handle, "w") as file:
            json.dump({"targets": [
                {"name": name, "url": f"http://127.0.0.1:1/{name}",
                 "policy": text} for name, text in self.POLICIES.items()]},
                file)

    def of(self, *names):
        return ["-c", self.path, *(f"--target={name}" for name in names)]

    def waited_for(self, name, env=None):
        """The names behind "waited for", and what is given up."""
        text = shown(*self.of(name), env=env)
        rows = re.findall(r"^  (waited for|given up) +(.*(?:\n {4,}.*)*)", text,
                          re.M)
        return {label: " ".join(names.split()) for label, names in rows}

    def test_wait_in_the_table(self):
        usual = self.waited_for("usual")
        self.assertEqual(usual["waited for"].split(),
                         ["circuit-open", *self.WAITED])
        self.assertNotIn("no-ports", usual["given up"])
        # One attempt is one that was made.
        self.assertEqual(self.waited_for("single"), {
            "waited for": " ".join(["circuit-open", *self.WAITED]),
            "given up": "everything else, at once"})
        # A breaker that is none never opens.
        self.assertEqual(self.waited_for("bare")["waited for"].split(),
                         [*self.WAITED])
        for text in "broadcast", "attempts=1":
            self.assertNotIn("waited for", shown(text))

    def test_wait_in_the_columns(self):
        text = shown(*self.of(*self.POLICIES))
        self.assertIn(" retried: yes, once or so often at most, no; or waited "
                      "for\n", text)
        rows = {tuple(row.split()[:3]): row.split()[3:]
                for row in text.splitlines() if row.startswith(" waits ")}
        self.assertEqual(rows, {("waits",) * 3: [*self.WAITED],
                                ("waits", "waits", "no"): ["circuit-open"]})
        self.assertIn(" at most, or no\n", shown("broadcast", "none"))

    def test_wait_in_the_numbers(self):
        for policy in read(*self.of(*self.POLICIES)):
            faults = {row["fault"]: row for row in policy["faults"]}
            waited = {name: row for name, row in faults.items()
                      if "uncounted" in row}
            opens = policy["name"] != "bare"
            self.assertEqual(sorted(waited), sorted(
                [*self.WAITED, *["circuit-open"] * opens]))
            for row in waited.values():
                self.assertIs(row["uncounted"], True)
                self.assertIsNone(row["retries_max"])
            # They are no requests.
            self.assertEqual(policy["amplification_max"],
                             {"usual": 3, "single": 1, "bare": 5}
                             [policy["name"]])
        for row in read("broadcast")[0]["faults"]:
            self.assertNotIn("uncounted", row)


if __name__ == "__main__":
    unittest.main()
