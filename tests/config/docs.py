"""The table of settings, the pages made of it, and the examples agree."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import textwrap
import unittest

import jsonschema
import yaml

STAGGER = os.environ["STAGGER"]
SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = SOURCE / "examples/stagger.yaml"
KAFKA = SOURCE / "examples/kafka/stagger.yaml"


class Loader(yaml.SafeLoader):
    """`off` and `yes` are words, as in YAML 1.2 and in the hub."""


Loader.yaml_implicit_resolvers = {
    letter: [(tag, rule) for tag, rule in rules
             if tag not in ("tag:yaml.org,2002:bool",
                            "tag:yaml.org,2002:timestamp",
                            "tag:yaml.org,2002:int")]
    for letter, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool",
                             re.compile("^(?:true|false)$"),
                             list("tf"))
Loader.add_implicit_resolver("tag:yaml.org,2002:int",
                             re.compile("^[0-9]+$"),
                             list("0123456789"))


def run(*words, **options):
    return subprocess.run([STAGGER, "check", *words], text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options)


def blocks(text):
    """The examples of a page that are settings: in fences, or indented."""
    fence = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.M)
    fenced = [code for mark, code in fence.findall(text) if mark == ""]
    indented = re.findall(r"\n\n((?:    .*\n)+)", fence.sub("", text))
    return [textwrap.dedent(part) for part in fenced + indented
            if re.search(r"^ *targets:$", part, flags=re.M)]


class Docs(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.schema = json.loads(run("--schema").stdout)
        jsonschema.Draft202012Validator.check_schema(cls.schema)
        cls.judge = jsonschema.Draft202012Validator(cls.schema)

    def test_pages_are_made_of_the_table(self):
        for option, name in (("--docs", "docs/configuration.md"),
                             ("--manual", "docs/man/stagger.yaml.5"),
                             ("--schema", "packaging/stagger.schema.json")):
            self.assertEqual(run(option).stdout, (SOURCE / name).read_text(),
                             f"stagger check {option} > {name}")
            # A word that the table has in two lines is one.
            self.assertEqual(re.findall(r"\w+- +\w+", run(option).stdout), [])

    def test_the_example_is_in_order(self):
        for example in EXAMPLE, KAFKA:
            r = run("-c", example, "--strict")
            self.assertEqual(r.returncode, 0, r.stdout)
            self.assertNotIn("warning", r.stdout)

    def test_the_example_has_every_setting(self):
        """Or a line of comment that names it."""
        text = EXAMPLE.read_text() + KAFKA.read_text()
        for path in self.paths(self.schema, ""):
            key = path.rsplit(".", 1)[-1]
            self.assertRegex(text, rf"\b{key}\b", path)

    def paths(self, schema, prefix):
        for key, value in schema.get("properties", {}).items():
            if prefix == "" and key in ("alerts",):
                continue
            yield prefix + key
            yield from self.paths(value, f"{prefix}{key}.")

    def test_the_schema_takes_what_the_hub_takes(self):
        texts = [EXAMPLE.read_text(), KAFKA.read_text(),
                 (SOURCE / "packaging/stagger.yaml").read_text(),
                 *blocks((SOURCE / "docs/configuration.md").read_text()),
                 *blocks((SOURCE / "README.md").read_text())]
        self.assertGreaterEqual(len(texts), 4)
        for text in texts:
            self.judge.validate(yaml.load(text, Loader))

    def test_the_schema_refuses_most_of_what_the_hub_refuses(self):
        """It knows no files and no policies, but kinds, words and names."""
        cases = (SOURCE / "tests/config/bad.txt").read_text()
        refused = tried = 0
        for case in cases.split("=== ")[1:]:
            body = case.partition("\n")[2].replace(
                "$targets", "targets: [{url: 'http://127.0.0.1:1/'}]")
            try:
                tree = yaml.load(body, Loader)
                tried += 1
                refused += not self.judge.is_valid(tree)
            except (yaml.YAMLError, ValueError, TypeError):
                pass
        self.assertGreater(refused, tried // 2, f"of {tried}")

    def test_the_examples_of_the_documentation_are_in_order(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "shop.token").write_text("x")
            (folder / "shop.token").chmod(0o600)
            pages = [(SOURCE / name).read_text()
                     for name in ("docs/configuration.md", "README.md")]
            texts = [text for page in pages for text in blocks(page)]
            self.assertGreaterEqual(len(texts), 2)
            for text in texts:
                text = text.replace("/var/lib/stagger/", "")
                (folder / "hub.yaml").write_text(text)
                r = run("-c", "hub.yaml", cwd=folder)
                self.assertEqual(r.returncode, 0, r.stdout)
                self.assertNotIn("warning: ", re.sub(".*disk has.*", "",
                                                     r.stdout))

    def test_each_row_has_an_example_that_can_be_used(self):
        """Of lists and maps: one after another, in a file of its own."""
        page = run("--docs").stdout
        section, tried = "", 0
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name in ("shop.token", "pager.token"):
                (folder / name).write_text("x")
                (folder / name).chmod(0o600)
            for line in page.splitlines():
                if line.startswith("## "):
                    section = line
                if not line.startswith("| `") or "target" not in section:
                    continue
                cells = line.replace("\\|", "\0").split("|")
                path, example = cells[1].strip(" `"), cells[4].strip(" `")
                if not example.startswith(("{", "[")) or "." in path:
                    continue
                keep = "listen: {headers: [X-*]}\n"
                if path == "topics":
                    keep = "source: kafka://k1/orders\n"
                (folder / "hub.yaml").write_text(
                    f"{keep}targets: [{{url: 'http://127.0.0.1:1/', "
                    f"{path}: {example}}}]\n")
                r = run("-c", "hub.yaml", cwd=folder)
                self.assertEqual(r.returncode, 0, f"{path}: {r.stdout}")
                tried += 1
        self.assertGreaterEqual(tried, 3)


class Summary(unittest.TestCase):
    """What a hub would do, behind the mistakes that there are not."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "hub.yaml"
        self.path.write_text(
            "targets:\n"
            "  - {name: a, url: 'http://127.0.0.1:1/', policy: attempts=3}\n"
            "  - {name: b, url: 'http://127.0.0.1:1/', "
            "policy: attempts=3 breaker=5, shed-after: 7m}\n")

    def test_says_when_a_target_sheds_where_it_can(self):
        lines = run("-c", self.path).stdout.splitlines()
        at = lines[next(i for i, line in enumerate(lines)
                        if "shed after" in line)].index("shed after")
        self.assertEqual({line[0]: line[at:].split()[0] for line in lines
                          if line.startswith(("a  ", "b  "))},
                         {"a": "-", "b": "7m"})

    def test_takes_the_file_without_its_option(self):
        self.assertEqual(run(self.path).stdout, run("-c", self.path).stdout)
        for words in ((self.path, "-c", self.path), (self.path, self.path),
                      (self.path, "--docs")):
            r = run(*words)
            self.assertEqual(r.returncode, 2)
            self.assertIn("unexpected argument", r.stdout)
        self.assertIn("expected a settings file", run().stdout)


if __name__ == "__main__":
    unittest.main()
