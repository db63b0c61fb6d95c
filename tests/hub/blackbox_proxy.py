"""What the network does in blackbox.py: a proxy before each leaf, and one before
the hub, whose connections have faults, drawn of a seed.

usage: blackbox_proxy.py FOLDER SEED PORT

is the one before the hub, which listens at PORT: it prints its own, and serves
until its input ends.

    latency    each piece of bytes is late
    bandwidth  so many bytes a second
    slice      bytes come in small pieces
    reset      after so many bytes
    limit      after so many bytes it is closed in order
    half-open  after so many bytes, or at once, no more come, and nobody says so
    slow-close its end is seen late

The last four are on the way up, of requests, or on that down, of answers. Where
one met a request to a leaf, a JSON line in FOLDER/met says so: leaf, id, attempt, fault.

Once there is FOLDER/calm new connections have no faults.
"""
import asyncio
import contextlib
import json
import os
import random
import re
import socket
import struct
import sys

# How often of 1000 connections.
TABLE = {None: 700, "latency": 60, "bandwidth": 40, "slice": 50, "reset": 60,
         "limit": 40, "half-open": 20, "slow-close": 30}
CUTS = ("reset", "limit", "half-open")

HEAD = re.compile(rb"\r\nstagger-message: (\S+)\r\n"
                  rb"(?:\S+: .*\r\n)*?stagger-attempt: (\d+)\r\n", re.I)


def abort(writer):
    """It ends with a reset."""
    writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Link:
    """A connection, and the one behind it."""

    def __init__(self, proxy, chance, hub, leaf):
        self.proxy = proxy
        self.chance = chance
        self.readers = {"up": hub[0], "down": leaf[0]}
        self.writers = {"up": leaf[1], "down": hub[1]}
        fault = None if os.path.exists(proxy.calm) else chance.choices(
            list(TABLE), list(TABLE.values()))[0]
        self.fault = fault
        self.way = chance.choice(["up", "down"])
        # Within a head, an answer or a body, or some requests later.
        self.cut_at = chance.choice([
            0, chance.randint(0, 100), chance.randint(0, 1000),
            int(chance.expovariate(1 / 20000))])
        self.delay = chance.uniform(0.001, 0.1)
        self.rate = 10 ** chance.uniform(4.5, 6)
        self.tail = b""
        self.request = self.noted = None

    def look(self, chunk):
        """Which request is on its way: of those whose head came, the last."""
        self.tail += chunk
        for head in HEAD.finditer(self.tail):
            self.request = head[1].decode(), int(head[2])
        self.tail = self.tail[-4096:]

    def note(self):
        """The fault has met the request that is on its way, if one is."""
        if self.request != self.noted:
            self.noted = self.request
            self.proxy.met(*self.request, self.fault)

    async def carry(self, way):
        """Until its end."""
        reader, writer = self.readers[way], self.writers[way]
        passed = 0
        while chunk := await reader.read(65536):
            if way == "up":
                self.look(chunk)
            if self.fault in CUTS and way == self.way and (
                    passed + len(chunk) >= self.cut_at):
                writer.write(chunk[:self.cut_at - passed])
                return await self.cut(way)
            passed += len(chunk)
            await self.forward(writer, chunk)

    async def forward(self, writer, chunk):
        size = len(chunk)
        if self.fault == "bandwidth":
            size = 4096
        elif self.fault == "slice":
            size = self.chance.randint(len(chunk) // 200 + 1,
                                       len(chunk) // 5 + 1)
        for at in range(0, len(chunk), size):
            piece = chunk[at:at + size]
            if self.fault in ("latency", "bandwidth", "slice"):
                self.note()
                await asyncio.sleep({
                    "latency": self.delay, "slice": 0.001,
                    "bandwidth": len(piece) / self.rate}[self.fault])
            writer.write(piece)
            await writer.drain()

    async def cut(self, way):
        # The rest of the head is read, so that the account has a name for it.
        while way == "up" and self.proxy.is_leaf and not self.request:
            chunk = await self.readers["up"].read(65536)
            if not chunk:
                break
            self.look(chunk)
        self.note()
        if self.fault == "half-open":
            while chunk := await self.readers[way].read(65536):
                if way == "up":
                    self.look(chunk)
                self.note()
        elif self.fault == "reset":
            raise ConnectionResetError

    async def run(self):
        tasks = [asyncio.ensure_future(self.carry(way))
                 for way in ("up", "down")]
        try:
            done, _ = await asyncio.wait(
                tasks, return_when=asyncio.FIRST_COMPLETED)
            if self.fault == "slow-close":
                self.note()
                await asyncio.sleep(10 * self.delay)
            for task in done:
                task.result()
            for writer in self.writers.values():
                writer.close()
        except OSError: # a reset is passed on as one
            for writer in self.writers.values():
                abort(writer)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class Proxy:
    """number: of a leaf, or -1."""

    def __init__(self, number, folder, seed, port):
        self.number = number
        self.is_leaf = number >= 0
        self.seed = seed
        self.port = port # behind it
        self.calm = os.path.join(folder, "calm")
        self.log = open(os.path.join(folder, "met"), "a", buffering=1)
        self.count = 0
        self.open = 0

    def met(self, id, attempt, fault):
        self.log.write(json.dumps({"leaf": self.number, "id": id,
                                   "attempt": attempt, "fault": fault}) + "\n")

    async def serve(self, *hub):
        self.count += 1
        self.open += 1
        chance = random.Random(f"{self.seed}/{self.number}/{self.count}")
        try:
            with contextlib.suppress(OSError):
                leaf = await asyncio.open_connection("127.0.0.1", self.port)
                await Link(self, chance, hub, leaf).run()
        finally:
            self.open -= 1
            hub[1].close()


async def listen(server):
    """The port."""
    server = await asyncio.start_server(server.serve, "127.0.0.1", 0,
                                        limit=1 << 20)
    return server.sockets[0].getsockname()[1]


async def main(folder, seed, port):
    print(await listen(Proxy(-1, folder, seed, int(port))), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
