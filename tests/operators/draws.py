#!/usr/bin/env python3
"""The scripts that the operators' swarm draws: over all of the schema, valid, the
same of one seed, and the same again when they are read."""
import contextlib
import pathlib
import random
import tempfile

import operators  # noqa: I001  (which finds the modules of tests/hub)
import acts
import case
import run
import script
import settings
from services import Shared

SEEDS = 40
ALL = {"kafka", "postgres"}


class Servers:
    """Names of servers that are not there: `check` asks none."""

    def words(self, _):
        return {"kafka": "127.0.0.1:1", "postgres": "postgres://hub@host/db"}


class Draws(case.Case):
    def test_know_each_setting_of_the_schema(self):
        self.assertEqual(settings.unknown(), [])

    def test_are_valid(self):
        with tempfile.TemporaryDirectory(prefix="stagger-operators-") as folder:
            shared = Shared(folder)
            shared.tokens = operators.make_tokens(folder)
            for seed in range(SEEDS):
                with contextlib.closing(run.Run(acts.draw(seed, ALL), shared, seed,
                                                Servers())) as one:
                    one.furnish()
                    one.write()
                    code, said = one.house.run("check", "-c", "hub.yaml")
                    self.assertEqual(code, 0, f"seed {seed}: {said}")

    def test_are_the_same_of_one_seed_and_when_they_are_read(self):
        for seed in random.Random(1).sample(range(10 ** 6), 50):
            drawn = acts.draw(seed, ALL)
            self.assertEqual(str(drawn), str(acts.draw(seed, ALL)))
            self.assertEqual(script.read(str(drawn)), drawn)

    def test_leave_out_what_they_are_told(self):
        drawn = acts.draw(7, ALL, {"kafka", "kill", "receipts.copy"})
        self.assertNotIn("kafka", drawn.settings)
        self.assertNotIn("copy", drawn.settings.get("receipts", {}))
        self.assertFalse([act for act in drawn.acts if act.name == "kill"])

    def test_that_were_kept_can_be_read(self):
        for path in pathlib.Path(operators.HERE, "kept").glob("*.acts"):
            kept = script.read(path.read_text())
            self.assertTrue(kept.acts, path)
            self.assertTrue(path.read_text().startswith("# "), path)


case.main()
