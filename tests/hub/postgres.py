"""PostgreSQL for the end-to-end tests: scripts/postgres, in a folder of theirs."""
import asyncio
import os
import pathlib
import re
import subprocess
import threading
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


class Way:
    """To a server, which takes so many seconds: url leads there."""

    def __init__(self, server, seconds):
        folder = re.search("host=([^&]+)&", server.url)[1]
        self.socket = os.path.join(folder, ".s.PGSQL.5432")
        self.seconds = seconds
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever,
                                       daemon=True)
        self.thread.start()
        self.listener = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self.lead, "127.0.0.1", 0), self.loop).result()
        port = self.listener.sockets[0].getsockname()[1]
        self.url = server.url.replace("@/", f"@127.0.0.1:{port}/").replace(
            f"host={folder}&", "")

    async def lead(self, reader, writer):
        far, there = await asyncio.open_unix_connection(self.socket)
        await asyncio.gather(self.hand_on(reader, there, self.seconds),
                             self.hand_on(far, writer, 0))

    async def hand_on(self, reader, writer, seconds):
        """In order, for all of it takes as long."""
        try:
            while data := await reader.read(1 << 16):
                self.loop.call_later(seconds, writer.write, data)
        except OSError:
            pass
        self.loop.call_later(seconds, writer.close)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
