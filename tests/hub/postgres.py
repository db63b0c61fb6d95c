"""PostgreSQL for the end-to-end tests: scripts/postgres, in a folder of theirs."""
import os
import pathlib
import subprocess
import time

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
    """url is as the hub wants it: the password is in passfile."""

    def __init__(self, folder, *options):
        self.folder = os.path.join(folder, "postgres")
        self.passfile = os.path.join(self.folder, "passfile")
        self.url = script("up", *options, self.folder).splitlines()[-1]

    def restart(self, pause):
        """As after a crash."""
        script("kill", self.folder)
        time.sleep(pause)
        script("start", self.folder)

    def ask(self, query, url=None):
        """Rows as "a|b", one a line."""
        return subprocess.run(["psql", url or self.url, "-XAtc", query], check=True,
                              text=True, capture_output=True,
                              timeout=PATIENCE).stdout.strip()

    def close(self):
        script("down", self.folder, check=False)
