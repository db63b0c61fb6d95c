"""PostgreSQL for the end-to-end tests: scripts/postgres, in a folder of theirs."""
import os
import pathlib
import re
import subprocess

from leaf import PATIENCE

SCRIPT = pathlib.Path(os.environ["STAGGER_SOURCE"], "scripts", "postgres")


class Missing(Exception):
    """There is no server to be run, for a reason that is said."""


def script(*words, check=True):
    r = subprocess.run([SCRIPT, *map(str, words)], stdin=subprocess.DEVNULL,
                       capture_output=True, text=True, timeout=3 * PATIENCE)
    if r.returncode == 77:
        raise Missing(r.stderr.strip())
    assert not check or r.returncode == 0, f"postgres {words}: {r.stderr}"
    return r.stdout.strip()


class Server:
    """url is as the hub wants it: the password is in a file."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "postgres")
        url = script("up", self.folder).splitlines()[-1]
        user, password = re.match(r"\w+://(\w+):([^@]*)@", url).groups()
        path = os.path.join(folder, "passfile")
        pathlib.Path(path).write_text(f"*:*:*:*:{password}\n")
        os.chmod(path, 0o600)
        self.url = (url.replace(f":{password}@", "@", 1)
                    + f"&passfile={path}")

    def ask(self, query):
        """Rows as "a|b", one a line."""
        return subprocess.run(["psql", self.url, "-XAtc", query], check=True,
                              text=True, capture_output=True,
                              timeout=PATIENCE).stdout.strip()

    def close(self):
        script("down", self.folder, check=False)
