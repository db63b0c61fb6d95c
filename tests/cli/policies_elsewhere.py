"""docs/policies-elsewhere.md: each line, against what its system documents."""
import json
import pathlib
import re
import sys
import unittest
from decimal import Decimal

sys.dont_write_bytecode = True  # the sources are to stay as they are
from plan_command import plan

PAGE = (pathlib.Path(__file__).resolve().parents[2]
        / "docs" / "policies-elsewhere.md")
UNITS = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000}
FIGURE = r"(~?)(\d+(?:\.\d+)?)(ms|s|m|h)"


def rows(title):
    """The rows below a heading of the second level."""
    section = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", PAGE.read_text(),
                        re.M | re.S)[1]
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith("| system "):
            yield [cell.strip() for cell in line.strip("| ").split(" | ")]


def spans(cell):
    return re.findall(r"`([^`]+)`", cell)


def is_met(figure, ms):
    about, number, unit = re.fullmatch(FIGURE, figure).groups()
    expected = Decimal(number) * UNITS[unit]
    allowed = expected / 1000 if about else 0
    return abs(Decimal(ms) - expected) <= allowed


def field(policy, path):
    for name in path.split("."):
        policy = policy[name]
    return policy


def missed(policy, figures):
    """The figures that the policy does not meet."""
    waits = iter(policy["waits"])
    for figure in figures:
        if "=" in figure:
            path, expected = figure.split("=")
            if Decimal(field(policy, path)) != Decimal(expected):
                yield figure
            continue
        wait = next(waits, None)
        ends = figure.split("..")
        keys = ["wait_min_ms", "wait_max_ms"]
        if len(ends) == 1:
            exact = wait and wait["wait_min_ms"] == wait["wait_max_ms"]
            keys = ["wait_max_ms" if exact else "window_ms"]
        if not wait or not all(is_met(end, wait[key])
                               for end, key in zip(ends, keys)):
            yield f"{figure}, found {wait}"


def read(line):
    run = plan("--json", line)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return json.loads(run.stdout, parse_float=str)["policies"][0]


class Elsewhere(unittest.TestCase):
    def test_is_met_by_each_line(self):
        for system, line, figures, source in rows("Lines"):
            with self.subTest(system):
                figures = spans(figures)
                self.assertGreater(len(figures), 0)
                self.assertGreater(len(source), 10)
                self.assertEqual(
                    list(missed(read(spans(line)[0]), figures)), [])

    def test_has_many_systems(self):
        names = [row[0] for row in rows("Lines")]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 30)

    def test_says_why_where_there_is_no_line(self):
        for system, what, why in rows("What no line says"):
            with self.subTest(system):
                self.assertGreater(len(what), 5)
                self.assertGreater(len(why), 20)
                for line in spans(why):
                    if re.match(r"[a-z-]+=[^ ]*\d|fixed|linear", line):
                        read(line)

    def test_would_find_a_wrong_figure(self):
        policy = read("exponential base=1s jitter=none attempts=3")
        for wrong in (["1s", "3s"], ["1001ms"], ["~1002ms"], ["1s..2s"],
                      ["1s", "2s", "4s"], ["attempts_max=4"]):
            with self.subTest(wrong):
                self.assertEqual(len(list(missed(policy, wrong))), 1)
        self.assertEqual(list(missed(
            policy, ["~1001ms", "2s..2s", "attempts_max=3"])), [])


if __name__ == "__main__":
    unittest.main()
