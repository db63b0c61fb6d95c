#!/usr/bin/env python3
"""Takes mends out of the hub again, and sees whether the kept scripts notice.

usage: mutants.py [NAME...]

A mutant is tests/operators/mutants/NAME.patch: a sentence, and a change of sources
of src that takes the mend of a fault out. Its files are compiled again with the
flags of build/asan, and linked in front of the library. The script of that name in
tests/operators/kept has to fail then; without a patch it has to hold, which is
what `scripts/check operators` runs. A patch that no longer applies is an error, too.
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from concurrent import futures

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build/asan"
KEPT, PATCHES = HERE / "kept", HERE / "mutants"


class Wrong(Exception):
    """A mutant that could not be made."""


def run(words, folder=BUILD, **more):
    return subprocess.run(words, cwd=folder, capture_output=True, text=True,
                          **more)


def changed(patch):
    """The sources that it changes."""
    return [line.split("b/", 1)[1].strip() for line in
            patch.read_text().splitlines() if line.startswith("+++ b/")]


def patched(patch, folder):
    """Copies the sources into the folder, and patches them."""
    for path in changed(patch):
        copy = folder / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / path).read_bytes())
    done = run(["patch", "-p1", "-s", "-d", folder, "-i", patch])
    if done.returncode != 0:
        raise Wrong(f"the patch does not apply: {done.stdout}{done.stderr}")


def compile_one(path, folder, commands):
    """The object of a patched source. Headers beside it are found where it was."""
    entry = next((c for c in commands if c["file"] == str(ROOT / path)), None)
    if entry is None:
        raise Wrong(f"{path} is not compiled")
    target = folder / (path + ".o")
    words = shlex.split(entry["command"])
    words[words.index("-o") + 1] = str(target)
    words[words.index(entry["file"])] = str(folder / path)
    done = run([*words, "-iquote", str((ROOT / path).parent)], entry["directory"])
    if done.returncode != 0:
        raise Wrong(done.stderr)
    return str(target)


def link(objects, folder):
    """The command with these objects; the library's own of them are not used."""
    lines = run(["ninja", "-t", "commands", "stagger"]).stdout.splitlines()
    text = next(line for line in reversed(lines) if " -o stagger " in line)
    words = shlex.split(text.split("&&")[1])
    words[words.index("-o") + 1] = str(folder / "stagger")
    done = run([*words[:words.index("-o")], *objects, *words[words.index("-o"):]])
    if done.returncode != 0:
        raise Wrong(done.stderr)
    return folder / "stagger"


def make(patch, folder, commands):
    patched(patch, folder)
    sources = [path for path in changed(patch) if path.endswith(".c")]
    return link([compile_one(path, folder, commands) for path in sources], folder)


def is_killed(name, commands):
    """Whether the script of the mutant fails; the words of what is wrong."""
    with tempfile.TemporaryDirectory(prefix="stagger-mutant-") as folder:
        try:
            command = make(PATCHES / f"{name}.patch", pathlib.Path(folder),
                           commands)
        except Wrong as wrong:
            return False, f"ERROR    {name}: {wrong}"
        done = run([sys.executable, HERE / "operators.py", "--acts",
                    KEPT / f"{name}.acts"], HERE, timeout=180,
                   env={**os.environ, "STAGGER": str(command)})
        if done.stdout.startswith("FAIL"):
            return True, f"killed   {name}"
        return False, f"SURVIVED {name}: {done.stdout[-500:]}{done.stderr[-500:]}"


def main(names):
    names = names or sorted(path.stem for path in PATCHES.glob("*.patch"))
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda name: is_killed(name, commands), names))
    for _, words in found:
        print(words)
    killed = sum(good for good, _ in found)
    print(f"{killed} of {len(names)} mutants of the hub killed")
    sys.exit(killed != len(names) or not names)


if __name__ == "__main__":
    main(sys.argv[1:])
