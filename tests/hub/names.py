#!/usr/bin/env python3
"""A name server that is slow or silent delays no name but its own (I25): the
hub against one of the tests' own, which /etc/resolv.conf names in a mount
namespace."""
import os
import socket
import struct
import subprocess
import threading
import time

import case
import log_shapes

NAMES = 1000
LATE = 0.7


class NameServer:
    """Knows every name as 127.0.0.1, and no address of IPv6. Silent about
    `silent*`; late about `late*`."""

    def __init__(self, address):
        self.asked, self.address = {}, address
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind((address, 53))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            question, address = self.socket.recvfrom(512)
            if len(question) < 13:
                return
            labels, at = [], 12
            while question[at]:
                labels.append(question[at + 1:at + 1 + question[at]].decode())
                at += question[at] + 1
            is_v4 = question[at + 1:at + 3] == b"\0\1"
            self.asked[labels[0]] = self.asked.get(labels[0], 0) + is_v4
            reply = (question[:2] + b"\x81\x80" + question[4:6]
                     + struct.pack(">HHH", is_v4, 0, 0) + question[12:at + 5])
            if is_v4:
                reply += (b"\xc0\x0c\0\1\0\1" + struct.pack(">IH", 60, 4)
                          + socket.inet_aton("127.0.0.1"))
            if labels[0].startswith("late"):
                threading.Timer(LATE, self.socket.sendto,
                                (reply, address)).start()
            elif not labels[0].startswith("silent"):
                self.socket.sendto(reply, address)

    def close(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"end", (self.address, 53))
        self.thread.join()
        self.socket.close()


class Names(case.Case):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or subprocess.run(
                ["unshare", "-m", "true"], capture_output=True).returncode:
            self.skipTest("no mount namespace for a resolv.conf (root)")

    def behind(self, server, targets, more=""):
        """A hub that asks this name server."""
        conf = os.path.join(self.folder, "resolv.conf")
        with open(conf, "w", encoding="ascii") as file:
            file.write(f"nameserver {server.address}\n")
        settings = os.path.join(self.folder, "hub.yaml")
        with open(settings, "w", encoding="ascii") as file:
            file.write(f"listen: {{address: 127.0.0.1:0}}\n"
                       f"store: {{path: {self.store}}}\n{more}"
                       f"defaults: {{timeouts: {{resolve: 2s}}}}\n"
                       "targets:\n" + "".join(
                           f"  - {{name: {name}, url: '{url}'}}\n"
                           for name, url in targets.items()))
        return self.hub(settings=settings, before=(
            "unshare", "-m", "sh", "-c",
            'mount --bind "$0" /etc/resolv.conf && exec "$@"', conf))

    def test_half_of_a_thousand_names_are_never_answered(self):
        server = self.kept(NameServer("127.53.53.53"))
        sink = self.sinks()
        kinds = {"good": NAMES * 9 // 20, "late": NAMES // 20,
                 "silent": NAMES // 2}
        names = [f"{kind}{i}" for kind, count in kinds.items()
                 for i in range(count)]
        hub = self.behind(server, {name: sink.url(f"/{name}").replace(
            "127.0.0.1", f"{name}.test") for name in names})
        reached = {f"/{name}" for name in names if name[0] != "s"}
        sent_at = time.time()
        hub.post(b"x")
        case.wait_for(lambda: {r["path"] for r in sink.receipts()} == reached,
                      "every name that has an answer")
        slowest = max(r["time"] for r in sink.receipts()) - sent_at
        self.assertLess(slowest, 5)
        # The others fail by themselves, or wait as if no network were there:
        # nothing else connects meanwhile.
        case.wait_for(lambda: hub.events("attempt-failed"), "a failure")
        self.assertEqual(hub.stop(), 0)
        self.assertEqual({(log_shapes.names_in(line)[0], line["cause"])
                          for line in hub.events("attempt-failed")},
                         {("s", "DNS_TEMPORARY_FAILURE")})
        self.assertEqual({row["target"][0] for row in self.rows()} - {"s"},
                         set())
        self.assertEqual({r["attempt"] for r in sink.receipts()}, {1})
        self.assertEqual(len(sink.receipts()), len(reached)) # I16
        self.assertEqual({count for name, count in server.asked.items()
                          if name.startswith("good")}, {1})

    def test_the_system_is_asked_where_the_settings_say_so(self):
        server = self.kept(NameServer("127.53.53.54"))
        sink = self.sinks()
        hub = self.behind(server, {"good": sink.url("/good").replace(
            "127.0.0.1", "good.test")}, "resolver: system\n")
        hub.post(b"x")
        case.wait_for(sink.receipts, "a delivery")
        self.assertEqual(hub.stop(), 0)


case.main()
