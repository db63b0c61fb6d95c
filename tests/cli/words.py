"""Whoever misspells a word is told which one was meant; and no word from
outside is repeated raw, or whole when it is longer than a line.

The words are those of --help, of the settings' schema and of the tables of
core: a new one is tried without a change here.
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]
CORE = pathlib.Path(os.environ["STAGGER_SOURCE"], "src", "core")
PATIENCE = 60
COMMANDS = ["alert", "check", "dead", "demo", "hub", "send", "pause", "plan",
            "reload", "resend", "resume", "run", "secret", "sim advise",
            "sim contention",
            "sim overload", "sink", "status", "store", "targets", "token"]
# Options whose file is written: in a folder that is not there, none can be made.
FILES = {"csv", "events", "html", "json", "log", "series", "svg"}
LONG = 10000
# C0, C1 as UTF-8 and as bytes, bidirectional, invisible, no UTF-8.
EVIL = ("a\x1b]0;owned\x07\x9b31m\x85\u202egnp\u2066\u200f\u061c\u2028\x7f"
        "\ufeffz").encode() + b"\xff\x9b\xc2"
BAD = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f"
                 "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")


def stagger(*words):
    """Exit code, and all that it wrote as bytes."""
    done = subprocess.run(
        [STAGGER, *words], stdin=subprocess.DEVNULL, timeout=PATIENCE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={name: value for name, value in os.environ.items()
             if name not in ("STAGGER_HUB", "STAGGER_STORE")})
    return done.returncode, done.stdout


def slips(word):
    """The word without a letter of its middle, and with two of them swapped;
    a slip in a word of two letters could mean anything."""
    at = len(word) // 2
    if len(word) > 2:
        yield word[:at] + word[at + 1:]
    if len(word) > 2 and word[at] != word[at - 1]:
        yield word[:at - 1] + word[at] + word[at - 1] + word[at + 1:]


def table(file, pattern):
    return re.findall(pattern, (CORE / file).read_text(), re.M)


def options_of(command):
    """Long options, as the help has them."""
    code, text = stagger(*command.split(), "--help")
    assert code == 0, text
    return sorted(set(re.findall(r"^ +(?:-\w, )?--([a-z][a-z-]+)",
                                 text.decode(), re.M)))


class Suggest(unittest.TestCase):
    def check(self, expected, *words, known=()):
        code, text = stagger(*words)
        found = re.findall(r"did you mean (?:stagger )?`?(.+?)`?\?",
                           text.decode(), re.I)
        self.assertNotEqual(code, 0, words)
        if found and found[0].rstrip("=:") in known:
            return  # as near, and first
        self.assertIn(expected, found, (words, text))

    def test_each_option(self):
        for command in COMMANDS:
            options = options_of(command)
            self.assertIn("help", options, command)
            for number, option in enumerate(options):
                wrong = [each for each in slips(option) if not
                         any(other.startswith(each) for other in options)]
                if not wrong:
                    continue
                with self.subTest(command=command, option=option):
                    self.check("--" + option, *command.split(),
                               "--" + wrong[number % len(wrong)] + "=1")

    def test_each_command(self):
        words = [each.split() for each in COMMANDS if each != "sim advise"]
        words += [["dead", each] for each in
                  ("list", "show", "export", "replay", "drop")]
        words += [["store", each] for each in ("backup", "restore", "verify")]
        words += [["targets", "list"], ["targets", "forget"],
                  ["secret", "new"], ["token", "new"], ["alert", "test"], ["sim", "advise"]]
        for *before, last in words:
            for wrong in slips(last):
                with self.subTest(words=(*before, wrong)):
                    self.check(last, *before, wrong,
                               known=() if before else ("sim",))

    def test_each_word_of_a_policy(self):
        keys = table("text_settings.c", r'^    \{"([a-z-]+=)"')
        keys += ["retry=", "once=", "never=", "at-most="]
        self.assertGreater(len(keys), 18)
        presets = table("policies.c", r'^    \{"([a-z-]+)",')
        self.assertIn("backend", presets)
        kinds = ["fixed", "linear", "exponential", "polynomial"]
        for word in kinds:
            for wrong in slips(word):
                self.check(word, "plan", wrong)
        others = keys + kinds
        for word in others + presets:
            for wrong in slips(word.rstrip("=")):
                if wrong in presets:
                    continue
                tail = "=" if word.endswith("=") else ""
                with self.subTest(word=word, wrong=wrong):
                    self.check(word, "plan", f"{wrong}{tail} attempts=2")
                    if word not in presets:
                        self.check(word, "plan", f"base=1s {wrong}{tail}")

    def test_each_value_of_a_policy(self):
        values = {
            "attempts": ["unlimited"], "cap": ["none"], "deadline": ["none"],
            "jitter": ["none", "full", "equal", "decorrelated", "polly"],
            "budget": ["none", "aws", "tokens:", "ratio:", "grpc:", "share:"],
            "budget-empty": ["give-up", "wait"], "breaker": ["none"],
            "breaker-connect": ["none"], "breaker-slow": ["none"],
            "breaker-scope": ["attempts", "retries"], "unsafe": ["yes"],
            "nested": ["once", "full"]}
        for key, words in values.items():
            for word in words:
                for wrong in slips(word.rstrip(":")):
                    wrong += word[len(word.rstrip(":")):]
                    with self.subTest(key=key, wrong=wrong):
                        self.check(word, "plan", f"{key}={wrong}")

    def test_each_fault(self):
        names = table("fault.c", r'ROW\(\s*"([a-z-]+)"')
        self.assertGreater(len(names), 30)
        # Those have no name of their own in a policy, or no retry.
        names = [name for name in names if stagger(
            "plan", f"never={name}")[0] == 0 and len(name) > 2]
        self.assertGreater(len(names), 25)
        names += ["connect", "server", "request", "overload", "database",
                  "rpc", "local", "any", "grpc", "default"]
        for number, name in enumerate(names):
            wrong = list(slips(name))
            wrong = wrong[number % len(wrong)]
            with self.subTest(name=name, wrong=wrong):
                if stagger("plan", f"retry={wrong}")[0] != 0:
                    self.check(name, "plan", f"retry=503,{wrong}",
                               known=names)
                if name != "default" and stagger("plan",
                                                 f"never={wrong}")[0] != 0:
                    self.check(name, "sim", "contention", "-p",
                               f"never={wrong}", known=names)

    def test_each_key_of_the_settings(self):
        schema = json.loads(stagger("check", "--schema")[1])
        keys = list(schema["properties"])
        wrong = {next(slips(key)): key for key in keys}
        self.complaints(wrong, "".join(f"{each}: 1\n" for each in wrong))
        own = list(schema["$defs"]["target"]["properties"])
        wrong = {next(slips(key)): key for key in own if len(key) > 2}
        self.complaints(wrong, "targets:\n  - url: http://localhost\n" +
                        "".join(f"    {each}: 1\n" for each in wrong))
        for section in keys:
            inside = schema["properties"][section].get("properties")
            wrong = {next(slips(key)): key for key in inside or ()
                     if len(key) > 2}
            if wrong:
                self.complaints(wrong, f"{section}:\n" + "".join(
                    f"  {each}: 1\n" for each in wrong))

    def complaints(self, wrong, text):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            _, said = stagger("check", "-c", file.name)
        for word, key in wrong.items():
            line = re.search(rf"`[a-z.-]*\b{re.escape(word)}`: .*",
                             said.decode())
            with self.subTest(word=word):
                self.assertIsNotNone(line, said)
                self.assertRegex(line[0], "did you mean `")

    def test_values_of_options(self):
        rows = [
            ("dead list --state=", ["dead", "replayed", "dropped", "expired",
                                    "cancelled"]),
            ("dead export --format=", ["jsonl", "csv"]),
            ("token new x --role=", ["publish", "view", "operate"]),
            ("sink --reply=", ["reset", "hang"]),
            ("sim overload --arrivals=", ["poisson", "regular"]),
            ("sim overload --order=", ["fifo", "lifo"]),
            ("sim overload --trigger=", ["outage", "stall", "spike:", "errors:"]),
            ("sim overload --service=", ["exponential:", "normal:", "erlang:"]),
            ("sim contention --resource=", ["optimistic", "lock", "rate=",
                                            "workers=", "round="]),
        ]
        for line, words in rows:
            *before, last = line.split()
            for word in words:
                bare = word.rstrip(":=")
                for wrong in slips(bare):
                    with self.subTest(option=last, wrong=wrong):
                        self.check(word, *before,
                                   last + wrong + word[len(bare):],
                                   known=words)

    def test_keys_of_a_resource(self):
        for kind, keys in {"workers=4": ["fault=", "service=", "queue="],
                           "lock": ["fault=", "hold="],
                           "rate=1/1s": ["fault=", "retry-after="]}.items():
            for key in keys:
                for wrong in slips(key[:-1]):
                    self.check(key, "sim", "contention", "-r",
                               f"{kind} {wrong}=1")
        for key in "workers=4 service=", "lock hold=":
            for law in "exponential:", "uniform:", "normal:", "erlang:":
                for wrong in slips(law[:-1]):
                    self.check(law, "sim", "contention", "-r",
                               f"{key}{wrong}:1ms")
        # Without what would stand behind it, too.
        self.check("workers=", "sim", "contention", "-r", "worker")
        self.check("spike:", "sim", "overload", "--trigger=spke")

    def test_names_of_policies_in_a_file(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("orders: attempts=2\nbilling: attempts=3\n")
            file.flush()
            self.check("billing", "run", "-f", file.name, "-p", "biling",
                       "true")
            self.check("orders", "plan", "-f", file.name, "odrers")

    def test_names_in_settings(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write("targets:\n  - name: billing\n"
                       "    url: http://localhost:1\n")
            file.flush()
            self.check("billing", "plan", "-c", file.name, "--target=biling")


class Words(unittest.TestCase):
    """Each place that takes a word, with a long one and an evil one."""

    def places(self):
        for command in COMMANDS:
            words = command.split()
            if command == "send": # `send` would wait for a missing hub
                words.append("--policy=attempts=1")
            if command == "hub": # it would serve without targets
                words.append("--to=http://")
            yield from ([*words, "%s"], [*words, "--%s"], [*words, "-%s"])
            for option in options_of(command):
                if option in FILES:
                    yield [*words, f"--{option}=missing/%s"]
                elif option != "help":
                    yield [*words, f"--{option}=%s"]
        yield from (["%s"], ["--%s"], ["help", "%s"])
        for policy in ("%s", "%s=1", "base=1s %s", "budget=%s", "retry=%s",
                       "at-most=%s", "jitter=%s"):
            yield ["plan", policy]
            yield ["run", "-p", policy, "true"]
            yield ["sim", "contention", "-p", policy]
        for text in ("%s", "workers=%s", "lock %s", "lock hold=%s"):
            yield ["sim", "contention", "-r", text]
        yield ["sim", "overload", "--sweep", "%s=1,2"]
        yield ["sim", "overload", "--sweep", "workers=%s,2"]
        for words in (["show", "%s"], ["list", "--cause=%s"],
                      ["list", "--since=%s"]):
            yield ["dead", *words]

    def run_with(self, place, word):
        words = [each.encode() for each in place]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [STAGGER, *(each.replace(b"%s", word) for each in words)],
                stdin=subprocess.DEVNULL, timeout=PATIENCE, cwd=folder,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**os.environ, "STAGGER_HUB": "http://127.0.0.1:1"})
        return done.returncode, done.stdout

    def refusals(self, word):
        for place in self.places():
            code, said = self.run_with(place, word)
            if code != 0:
                yield place, said

    def test_no_word_longer_than_a_line_is_repeated_whole(self):
        seen = 0
        for place, said in self.refusals(b"x" * LONG):
            seen += 1
            with self.subTest(place=place):
                self.assertNotIn(b"x" * 500, said)
                self.assertLess(len(said), 4000)
        self.assertGreater(seen, 100)

    def test_nothing_is_repeated_raw(self):
        seen = 0
        for place, said in self.refusals(EVIL):
            seen += 1
            with self.subTest(place=place):
                self.assertIsNone(BAD.search(said.decode()), said)
        self.assertGreater(seen, 100)

    def test_files_of_settings_and_policies(self):
        for word in (b"x" * LONG, EVIL):
            for text in (b"%s: 1\n", b"targets:\n  - url: %s\n",
                         b"targets:\n  - %s: 1\n", b"log: {level: %s}\n",
                         b"policies: {a: %s}\n", b"store: {path: %s}\n",
                         b"alerts: {receivers: [{type: %s}]}\n"):
                with tempfile.NamedTemporaryFile(suffix=".yaml") as file:
                    file.write(text.replace(b"%s", b'"' + word.replace(
                        b"\x1b", b"\\e").replace(b"\xff", b"") + b'"')
                        if word == EVIL else text.replace(b"%s", word))
                    file.flush()
                    self.judge("check", "-c", file.name)
            for text in (b"a: %s\n", b"%s: attempts=2\n", b"%s\n"):
                with tempfile.NamedTemporaryFile() as file:
                    file.write(text.replace(b"%s", word))
                    file.flush()
                    self.judge("run", "-f", file.name, "-p", "b", "true")
                    self.judge("plan", "-f", file.name)

    def judge(self, *words):
        code, said = stagger(*words)
        with self.subTest(words=words):
            self.assertNotEqual(code, 0, said)
            self.assertNotIn(b"x" * 500, said)
            self.assertIsNone(BAD.search(said.decode()), said)


if __name__ == "__main__":
    unittest.main()
