"""The targets of blackbox.py: HTTP servers that answer out of a seeded table.

usage: blackbox_leaves.py FOLDER SEED LEAVES

Prints the ports, one for each leaf, of the proxy before it (blackbox_proxy.py),
and serves until its input ends. For each line of it a line is printed as soon as
no connection is open: all that a hub sent before it was killed is received then,
and was received before the kill was noted. Each receipt is a JSON line in FOLDER/receipts, durable before it is
answered:

    t         when its header had been read, on the system's monotonic clock
    leaf, id, attempt, type, key, hash    what came
    answered  a status, or reset, early (a reset with the body unread), hang
    after     the seconds of Retry-After, or 0

What was read or answered late, because the disk or the machine was busy, is a line
with leaf, id and attempt in FOLDER/late, too: the hub may have given up by then.

Once there is FOLDER/calm all that comes is answered with 200.
"""
import asyncio
import collections
import hashlib
import json
import os
import random
import sys
import time

from blackbox_proxy import Proxy, abort, listen

LATE = 0.5 # seconds: half of what the hub waits
STALL = 0.2 # this program did not run: what came meanwhile has waited

# What a receipt gets, and how often of 1000; the second leaf has it worse.
TABLE = {"200": 740, "204": 40, "500": 60, "503": 60, "429": 4, "400": 16,
         "reset": 40, "early": 30, "hang": 2, "split": 8}
WORSE = {"200": 350, "500": 150, "503": 250, "429": 4, "400": 50, "reset": 100,
         "early": 90, "hang": 4, "split": 2}


class Log:
    """Lines, made durable in groups."""

    def __init__(self, path):
        self.file = open(path, "ab", buffering=0)
        self.waiting = []
        self.is_busy = False

    async def add(self, line):
        done = asyncio.get_running_loop().create_future()
        self.waiting.append((json.dumps(line).encode() + b"\n", done))
        if not self.is_busy:
            asyncio.ensure_future(self.commit())
        await done

    async def commit(self):
        self.is_busy = True
        while self.waiting:
            group, self.waiting = self.waiting, []
            self.file.write(b"".join(line for line, _ in group))
            await asyncio.get_running_loop().run_in_executor(
                None, os.fsync, self.file.fileno())
            for _, done in group:
                if not done.done():
                    done.set_result(None)
        self.is_busy = False


class Stalls:
    """When this program had not run for a while, and ran again."""

    def __init__(self):
        self.ended_at = -STALL

    async def watch(self):
        while True:
            began_at = time.monotonic()
            await asyncio.sleep(STALL / 4)
            now = time.monotonic()
            if now - began_at > STALL / 4 + STALL:
                self.ended_at = now


class Leaf:
    stalls = Stalls()

    def __init__(self, number, folder, seed, log):
        self.number = number
        self.seed = seed
        self.log = log
        self.calm = os.path.join(folder, "calm")
        self.late = open(os.path.join(folder, "late"), "a", buffering=1)
        self.counts = collections.Counter()
        self.open = 0

    def draw(self, id):
        if os.path.exists(self.calm):
            return "200"
        self.counts[id] += 1
        chance = random.Random(
            f"{self.seed}/{self.number}/{id}/{self.counts[id]}")
        table = WORSE if self.number == 1 else TABLE
        return chance.choices(list(table), list(table.values()))[0]

    async def serve(self, reader, writer):
        self.open += 1
        try:
            while await self.take(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass # the hub was killed, or has cut it
        finally:
            self.open -= 1
            writer.close()

    async def take(self, reader, writer):
        """One request; false: the connection is over."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        at = time.monotonic()
        lines = head.split("\r\n")[1:-2]
        headers = dict(line.lower().split(": ", 1)[:1]
                       + line.split(": ", 1)[1:] for line in lines)
        id = headers["stagger-message"]
        deed = self.draw(id)
        body = b""
        if deed != "early":
            body = await reader.readexactly(int(headers["content-length"]))
        await self.log.add({
            "t": at, "leaf": self.number, "id": id,
            "attempt": int(headers["stagger-attempt"]),
            "type": headers.get("content-type"),
            "key": headers.get("stagger-key"),
            "hash": hashlib.sha256(body).hexdigest(),
            "answered": 200 if deed == "split"
                        else int(deed) if deed.isdigit() else deed,
            "after": 1 if deed == "429" else 0})
        if (time.monotonic() - at > LATE
                or abs(at - self.stalls.ended_at) < STALL):
            self.late.write(json.dumps(
                {"leaf": self.number, "id": id,
                 "attempt": int(headers["stagger-attempt"])}) + "\n")
        return await self.answer(deed, reader, writer)

    async def answer(self, deed, reader, writer):
        if deed in ("reset", "early"):
            abort(writer)
            return False
        if deed == "hang":
            await reader.read(1) # until the hub goes
            return False
        if deed == "split": # in two pieces, as slow networks have it
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
            await asyncio.sleep(0.02)
            writer.write(b"ngth: 2\r\n\r\nok")
        elif deed == "204":
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        else:
            after = "Retry-After: 1\r\n" if deed == "429" else ""
            text = f"HTTP/1.1 {deed} Told\r\n{after}Content-Length: 0\r\n\r\n"
            writer.write(text.encode())
        await writer.drain()
        return True


async def drain(servers):
    """Until nobody is connected, and nobody who was waits to be accepted."""
    quiet = 0
    while quiet < 3:
        await asyncio.sleep(0.005)
        quiet = 0 if any(s.open for s in servers) else quiet + 1


async def main(folder, seed, count):
    log = Log(os.path.join(folder, "receipts"))
    leaves = [Leaf(i, folder, seed, log) for i in range(int(count))]
    proxies = [Proxy(i, folder, seed, await listen(leaf))
               for i, leaf in enumerate(leaves)]
    print(*[await listen(proxy) for proxy in proxies], flush=True)
    watching = asyncio.ensure_future(Leaf.stalls.watch())
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        await drain(leaves + proxies)
        print("drained", flush=True)
    watching.cancel()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
