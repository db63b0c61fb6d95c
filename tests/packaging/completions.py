#!/usr/bin/env python3
"""Completions: each shell, asked for real, offers what --help lists.

usage: completions.py BUILD_DIR
"""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

STAGGER = os.environ["STAGGER"]
PATIENCE = 60  # seconds; only a test that fails waits so long


def run(*words, **more):
    return subprocess.run(words, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=PATIENCE, **more)


def help_of(*command):
    return run(STAGGER, *command, "--help").stdout


def commands():
    return re.findall(r"^  ([a-z]+) {2,}\S", help_of(), re.M)


def options(command):
    return re.findall(r"^ {2}(?:-\w, | {4})(--[\w-]+)",
                      help_of(command).split("\nExit code")[0], re.M)


# -- three shells: complete(words) gives what is offered for the last one --------

class Bash:
    program = "bash"

    def __init__(self, folder):
        self.file = folder / "bash/stagger"

    def complete(self, *words):
        # As readline has them: = and : are words.
        words = [part for word in words
                 for part in re.split(r"([=:])", word) if part or not word]
        if words[-1] in "=:" and words[-1]:
            words.append("")
        script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  'PATH="$PATH"; _stagger; printf "%s\\n" "${COMPREPLY[@]}"')
        found = run("bash", "--norc", "-c", script, self.file, *words)
        return found.stdout.split()


class Fish:
    program = "fish"

    def __init__(self, folder):
        self.file = folder / "fish/stagger.fish"
        self.home = tempfile.TemporaryDirectory()

    def complete(self, *words):
        # It says of a path only what is not typed yet, and "word<TAB>what".
        found = run("fish", "--no-config", "-c",
                    f"source {self.file}; complete -C '{' '.join(words)}'",
                    env={**os.environ, "HOME": self.home.name})
        return [line.split("\t")[0] for line in found.stdout.splitlines()]


class Zsh:
    """On a terminal: zsh completes nowhere else. It is asked for a list, and
    types what there is only one of."""

    program = "zsh"

    def __init__(self, folder):
        self.folder = folder / "zsh"

    def start(self):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="dumb", COLUMNS="200", LINES="1000")
            os.environ["PATH"] = (f"{pathlib.Path(STAGGER).parent}:"
                                  + os.environ["PATH"])
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.say(f"stty -echo; PROMPT=; unsetopt zle_bracketed_paste; "
                 f"fpath=({self.folder} $fpath); autoload -Uz compinit; "
                 f"compinit -u -D; setopt list_rows_first; LISTMAX=0; "
                 f"bindkey '^T' list-choices; bindkey '^X' kill-buffer; "
                 f"zstyle ':completion:*' insert-tab false; "
                 f"show() {{ zle -I; print \"<$BUFFER>\" }}; zle -N show; "
                 f"bindkey '^Y' show; print rea''dy\n")
        self.hear("ready")

    def say(self, text):
        os.write(self.terminal, text.encode())

    def hear(self, mark):
        text, until = "", time.monotonic() + PATIENCE
        while mark not in text:
            assert time.monotonic() < until, text
            if select.select([self.terminal], [], [], 1)[0]:
                text += os.read(self.terminal, 65536).decode(errors="replace")
        return text

    def complete(self, *words):
        self.start()
        try:
            line = " ".join(words)
            # A list, or the only one there is, which is typed.
            self.say(f"{line}\x14\t\x19")
            text = self.hear(">")
        finally:
            os.close(self.terminal)
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
        typed = re.search(r"<([^>]*)>", text)[1].rsplit(" ", 1)[-1]
        found = re.findall(r"(?:^|\s)(-{0,2}[a-zA-Z][\w.-]*)", text)
        return [*found, typed.rstrip("= ")] if typed else found


class Completions(unittest.TestCase):
    shells = []

    def offers(self, words, expected, but=()):
        for shell in self.shells:
            found = shell.complete(*words)
            asked = f"{shell.program} {words}: {found}"
            self.assertEqual(set(expected) - set(found), set(), asked)
            self.assertEqual(set(but) & set(found), set(), asked)

    def test_the_files_are_read_by_their_shells(self):
        for name, file in (("bash", "bash/stagger"), ("zsh", "zsh/_stagger"),
                           ("fish", "fish/stagger.fish")):
            if shutil.which(name):
                found = run(name, "-n", FOLDER / file)
                self.assertEqual((found.returncode, found.stdout), (0, ""))

    def test_commands(self):
        self.assertGreaterEqual(len(commands()), 2)
        self.offers(("stagger", ""), commands(), but=["--to"])
        self.offers(("stagger", "help", ""), commands())

    def test_options_of_each_command(self):
        for command in commands():
            self.assertIn("--help", options(command), command)
            self.offers(("stagger", command, "--"), options(command))

    def test_an_option_that_is_begun(self):
        self.offers(("stagger", "plan", "--str"), ["--strict"], ["--json"])

    def test_what_an_option_may_be(self):
        self.offers(("stagger", "run", "--policy", ""),
                    ["broadcast", "aws", "unjittered"])
        self.offers(("stagger", "plan", "unj"), ["unjittered"], ["aws"])

    def test_choices(self):
        if "hub" in commands():
            self.offers(("stagger", "hub", "--order", ""),
                        ["none", "key", "strict"])
            self.offers(("stagger", "dead", ""), ["list", "show", "export"])

    def test_after_an_equals_sign(self):
        bash = next((s for s in self.shells if s.program == "bash"), None)
        if bash and "hub" in commands():
            self.assertEqual(bash.complete("stagger", "hub", "--order=s"),
                             ["strict"])
            self.assertEqual(bash.complete("stagger", "hub", "--order="),
                             ["none", "key", "strict"])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "some-policies.conf")
            path.touch()
            for shell in self.shells:
                found = shell.complete("stagger", "plan", "--file",
                                       f"{folder}/some-")
                self.assertIn("some-policies.conf",
                              [word.rsplit("/", 1)[-1] for word in found],
                              shell.program)

    def test_commands(self):
        for shell in self.shells:
            found = shell.complete("stagger", "run", "--", "printen")
            self.assertIn("printenv", found, shell.program)


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv[1], "completions").resolve()
    for each in (Bash, Fish, Zsh):
        if shutil.which(each.program):
            Completions.shells.append(each(FOLDER))
        else:
            print(f"left out: {each.program}, which is not here")
    unittest.main(argv=sys.argv[:1])
