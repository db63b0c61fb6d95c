#!/usr/bin/env python3
"""The gates for names, sentences and commits refuse what they are there to refuse.

usage: check_gates.py

Each gate runs on a small tree of its own, clean first, and then with one planted line;
the prose that a rule must let pass is tried beside it.
"""

import contextlib
import io
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
sys.dont_write_bytecode = True

import check_commits  # noqa: E402
import check_names  # noqa: E402
import check_sentences  # noqa: E402
from house import lists, prose, sources  # noqa: E402

REFUSED_STARTS = [
    "of them, those that are assigned", "of what it may bring, what it has not yet",
    "of them, those that had no row before", "Those of what is no receipt.",
    "What was called for it came to an end.",
    "What is sent again though no letter stands for it.",
    "For what is rare, so that its locals are no burden to what is not.",
    "What all calls of one remote share, its retry budget, is a peer",
    "it is one of them", "Its rows.", "They were read before.", "Whoever asks waits.",
    "It's the last one.", "One of the rows.", "one that waits", "One which ends it.",
    "One who reads.", "One is enough.", "One was lost.", "One has ended.",
    "One with a key.", "One to wait for.", "One more than asked.",
    "in connection.dials", "as it was sent", "for those that wait", "by lane",
    "In strict order nothing else can be the probe.", "(of the last)", "- those of it",
]
ACCEPTED_STARTS = [
    "number of assigned partitions", "In an ordered lane, the row is kept.",
    "in ms", "in bytes; 0: none", "In thousandths of the rate.", "As SQLite does: one at a time.",
    "For a copy, the row counts.", "What does a reader see?", "One reader serves all.",
    "One attempt is one request.", "One-shot timers only.", "IN loop of the j-th term",
    "`of` is a word of the policy", "Italic text", "Offers a lane", "office", "Inline",
    "Asks the server.", "By then, the row is stored.", "AS MATERIALIZED",
]
DENIALS = ["the body is no JSON object", "`50` is no rate", "they are no messages",
           "A 404 is no\nfault", "there is no memory for it", "There was no memory."]
NOT_DENIALS = ["there is no row", "There are no rows", "it is no longer there",
               "is no more than 10", "is no less", "is no such thing", "is no shorter",
               "out of memory", "is not a number", "is there no row?", "There still is no row"]


def run(gate, source, *arguments):
    """Runs a gate on a tree in this process. Returns its exit code and its output."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), \
            mock.patch.multiple(lists, ROOT=source, FOLDER=source / "tests/house"), \
            mock.patch.object(sys, "argv", [f"tests/{gate.__name__}.py", *arguments]):
        try:
            gate.main()
        except SystemExit as end:
            return end.code, said.getvalue()
    return None, said.getvalue()


class Tree(unittest.TestCase):
    """A tree with the gates, empty lists, one source and one page."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(TESTS / "house", self.root / "tests/house")
        shutil.copy(TESTS / "check_commits.py", self.root / "tests")
        for name in ("names", "sentences", "exceptions"):
            self.write(f"tests/house/{name}.txt", "# A list.\n")
        self.write("src/flow/lane.c", "/* Lanes. */\nstatic int lane_move(void)\n{\n}\n")
        self.write("docs/lanes.md", "| lane | time |\n|-|-|\n| `a` | in ms |\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def append(self, name, text):
        self.write(name, (self.root / name).read_text() + text)

    def refuses(self, gate, words, *arguments):
        code, said = run(gate, self.root, *arguments)
        self.assertEqual(code, 1, said)
        self.assertIn(words, said)

    def passes(self, gate, *arguments):
        code, said = run(gate, self.root, *arguments)
        self.assertEqual(code, 0, said)


class Names(Tree):
    def test_a_clean_tree_passes(self):
        self.passes(check_names)

    def test_a_name_without_its_noun_is_refused(self):
        self.append("src/flow/lane.c", "static void *refuse(int a)\n{\n}\n")
        self.refuses(check_names, "src/flow/lane.c:5: refuse: begins with")

    def test_a_noun_alone_is_refused(self):
        self.append("src/flow/lane.c", "static void lane(void)\n{\n}\n")
        self.refuses(check_names, ": lane: begins with")

    def test_a_name_of_two_files_is_refused_in_both(self):
        self.write("src/store/lane.c", "static int lane_move(int a)\n{\n}\n")
        self.refuses(check_names, "lane_move: is in src/flow/lane.c, src/store/lane.c")

    def test_any_word_of_the_file_is_a_noun_in_singular_or_plural(self):
        for file, name in (("lane_cursor", "cursor_move"), ("lane_cursor", "lane_turn"),
                           ("keys", "key_find"), ("policies", "policy_find"),
                           ("answer", "answers_read"), ("match", "matches_read")):
            self.write(f"src/base/{file}.c", f"static inline bool\n{name}(int a)\n{{\n}}\n")
            self.passes(check_names)
            (self.root / f"src/base/{file}.c").unlink()

    def test_a_listed_name_passes_until_it_is_mended(self):
        self.append("src/flow/lane.c", "static void refuse(void)\n{\n}\n")
        self.append("tests/house/names.txt", "src/flow/lane.c\n  refuse\n")
        self.passes(check_names)
        self.write("src/flow/lane.c", "static void lane_refuse(void)\n{\n}\n")
        self.refuses(check_names, "is mended; take it out")
        self.passes(check_names, "--shrink")
        self.passes(check_names)

    def test_variables_and_prototypes_are_no_second_function(self):
        self.append("src/flow/lane.c",
                    "static const struct { int a; } table[] = {{1}};\n"
                    "static int lane_move(void);\nstatic int (*hook)(int);\n")
        self.passes(check_names)


class Sentences(Tree):
    def test_a_clean_tree_passes(self):
        self.passes(check_sentences)

    def test_each_kind_of_comment_is_read(self):
        for name, text in (("src/flow/lane.c", "\n/* of them all */\n"),
                           ("src/flow/lane.c", "\nint a; // of them all\n"),
                           ("src/flow/lane.c", "\n// Lanes\n//\nint a;\n// of them all\n// one\n"),
                           ("include/stagger/lane.h", "/*\n * Of them all,\n * one\n */\n"),
                           ("tests/flow/test_lane.py", '"""Of them all."""\n'),
                           ("tests/flow/test_lane.py", "a = 1  # of them all\n"),
                           ("scripts/lanes", "#!/bin/sh\n# Of them all.\n"),
                           ("cmake/lanes.cmake", "# Of them all.\n"),
                           ("web/lanes.js", "// of them all\n"),
                           ("docs/other.md", "| a |\n|-|\n| of them all |\n")):
            path = self.root / name
            before = path.read_text() if path.exists() else None
            self.write(name, (before or "") + text)
            self.refuses(check_sentences, "begins with `")
            path.write_text(before) if before else path.unlink()

    def test_titles_and_fences_are_left_out(self):
        self.append("src/flow/lane.c", "/* -- of them ------- */\n")
        self.append("docs/lanes.md", "\n```\n| of them |\nx is no y\n```\n")
        self.passes(check_sentences)

    def test_a_message_is_judged_by_its_denials(self):
        self.append("src/flow/lane.c", 'const char *a = "of them all";\n')
        self.passes(check_sentences)
        self.append("src/flow/lane.c", 'const char *b = "%s is "\n    "no rate";\n')
        self.refuses(check_sentences, "say `is not a`")

    def test_an_exception_has_a_reason_and_a_place(self):
        self.append("src/flow/lane.c", "/* of them all */\n")
        self.append("tests/house/exceptions.txt",
                    "src/flow/lane.c: of them all -- a line of a poem\n")
        self.passes(check_sentences)
        self.write("src/flow/lane.c", "/* Lanes. */\n")
        self.refuses(check_sentences, "is not there any more")

    def test_a_hundred_exceptions_are_the_most(self):
        places = [f"of them {i}" for i in range(101)]
        self.append("src/flow/lane.c", "".join(f"/* {place} */\nint a;\n" for place in places))
        self.append("tests/house/exceptions.txt",
                    "".join(f"src/flow/lane.c: {place} -- why\n" for place in places))
        self.refuses(check_sentences, "101 exceptions, 100 at most")

    def test_first_words_that_name_nothing_are_refused(self):
        for words in REFUSED_STARTS:
            self.assertIsNotNone(prose.unclear_start(words), words)
        for words in ACCEPTED_STARTS:
            self.assertIsNone(prose.unclear_start(words), words)

    def test_is_no_and_no_memory_are_refused(self):
        for words in DENIALS:
            self.assertEqual(len(list(prose.denials(" ".join(words.split())))), 1, words)
        for words in NOT_DENIALS:
            self.assertEqual(list(prose.denials(words)), [], words)

    def test_the_tree_has_comments_of_each_kind(self):
        self.assertEqual(list(sources.comments("a /* b\n * c */ // d\n// e\n", ".c")),
                         [(1, "b c"), (2, "d e")])


class Commits(Tree):
    def setUp(self):
        super().setUp()
        self.git("init", "-q")
        self.commit("tests: add the gates\n\nCommits are judged from here on.")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c",
                        "user.email=a@b.c", *arguments], check=True,
                       stdout=subprocess.DEVNULL)

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def test_good_commits_pass(self):
        self.commit("flow, docs: move attempt counters into lane.c\n\n"
                    "Their readers look for them there.")
        self.commit("src/flow: wake on the first retry\n\nA lane slept a second longer "
                    "than its policy says.\n\nSigned-off-by: a <a@b.c>")
        self.passes(check_commits)

    def test_what_came_before_is_not_judged(self):
        self.git("checkout", "-q", "--orphan", "other")
        (self.root / "tests/check_commits.py").rename(self.root / "aside")
        self.commit("what was before")
        (self.root / "aside").rename(self.root / "tests/check_commits.py")
        self.commit("tests: add the gates\n\nCommits are judged from here on.")
        self.passes(check_commits)

    def test_each_fault_is_refused(self):
        why = "\n\nThe reason stands in the body, so here it is."
        for subject, words in (
                ("no room at all" + why, "expected `room: verb ...`"),
                ("nowhere: add a row" + why, "`nowhere` is not a folder"),
                ("flow: what begins with an attempt is in one file" + why, "`what` is not a verb"),
                ("flow: a lane that was added begins once" + why, "`a` is not a verb"),
                ("flow: adds a row" + why, "`adds` is not a verb"),
                ("flow: added a row" + why, "`added` is not a verb"),
                ("flow: add" + why, "no object"),
                ("flow: add a row." + why, "full stop"),
                ("flow: add " + "a" * 63 + why, "73 letters"),
                ("flow: add a row", "a body says why"),
                ("flow: add a row\n\nSigned-off-by: a b c d e <a@b.c>", "a body says why")):
            self.commit(subject)
            self.refuses(check_commits, words)
            self.git("reset", "-q", "--hard", "HEAD~1")

    def test_a_list_that_grows_is_refused(self):
        self.append("src/flow/lane.c", "static void refuse(void)\n{\n}\n")
        self.append("tests/house/names.txt", "src/flow/lane.c\n  refuse\n")
        self.commit("flow: add a name that cannot be found\n\nThe list must not take it in.")
        self.refuses(check_names, "a list may only shrink")


if __name__ == "__main__":
    unittest.main()
