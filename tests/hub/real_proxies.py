#!/usr/bin/env python3
"""Targets behind the proxies that people have: tinyproxy and Squid, of Debian."""
import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import unittest

import case
import proxies
from endpoint import Certificates
from leaf import PATIENCE

USER = "hub"


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A proxy that asks for a password, and lets connections to `ports` through."""
    PASSWORD = QUOTED = "hush.1"
    DENIED = 407

    def __init__(self, folder, ports):
        self.folder, self.port = folder, free_port()
        self.configure(ports)
        self.start()

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, 0o644)
        return path

    def url(self, password=None):
        return f"http://{USER}:{password or self.QUOTED}@127.0.0.1:{self.port}"

    def start(self):
        with open(self.path("proxy.log"), "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log,
                                            stderr=log, cwd=self.folder)
        case.wait_for(self.listens, "a proxy that listens")

    def listens(self):
        if self.process.poll() is not None:
            with open(self.path("proxy.log")) as log:
                raise AssertionError(f"the proxy has ended: {log.read()}")
        with contextlib.closing(socket.socket()) as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def close(self):
        self.process.kill()
        self.process.wait(PATIENCE)


class Tinyproxy(Server):
    DENIED = 401  # where the password is wrong

    def configure(self, ports):
        self.path("tinyproxy.conf", "\n".join([
            f"Port {self.port}", "Listen 127.0.0.1", "Timeout 60",
            "LogLevel Warning", f"BasicAuth {USER} {self.PASSWORD}",
            *(f"ConnectPort {port}" for port in ports), ""]))

    def command(self):
        return ["tinyproxy", "-d", "-c", self.path("tinyproxy.conf")]


class Squid(Server):
    PASSWORD, QUOTED = "hu/sh:@%", "hu%2Fsh%3A%40%25"

    def configure(self, ports):
        hashed = subprocess.run(["openssl", "passwd", "-apr1", self.PASSWORD],
                                capture_output=True, text=True, check=True)
        users = self.path("users", f"{USER}:{hashed.stdout}")
        os.chmod(self.folder, 0o755)
        self.path("squid.conf", f"""
http_port 127.0.0.1:{self.port}
auth_param basic program /usr/lib/squid/basic_ncsa_auth {users}
auth_param basic realm proxy
acl known proxy_auth REQUIRED
acl ours port {" ".join(map(str, ports))}
http_access deny !ours
http_access allow known
http_access deny all
cache deny all
access_log none
cache_log stdio:/dev/null
pid_filename none
coredump_dir none
shutdown_lifetime 1 seconds
connect_timeout 5 seconds
forward_max_tries 1
""")

    def command(self):
        squid = shutil.which("squid") or shutil.which("squid", path="/usr/sbin")
        return [squid, "-N", "-f", self.path("squid.conf")]


class Real:
    """What holds of each of them."""

    def open(self, *ports):
        folder = os.path.join(self.folder, "proxy")
        os.mkdir(folder)
        os.chmod(self.folder, 0o755)  # of another user
        return self.kept(self.Server(folder, ports))

    def targets_of(self):
        certificates = Certificates(self.folder)
        certificates.sign("local", "DNS:localhost")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificates.path("local.crt"),
                            certificates.path("local.key"))
        plain, secure = self.leaf(), self.leaf(tls=tls)
        return (plain, secure), [
            {"name": "plain", "url": plain.url(host="localhost")},
            {"name": "secure", "url": secure.url(scheme="https",
                                                 host="localhost"),
             "tls": {"ca": certificates.path("root.crt")}}]

    def test_passes_http_and_https_and_keeps_tunnels(self):
        leaves, targets = self.targets_of()
        proxy = self.open(*(leaf.port for leaf in leaves))
        hub = self.begin(targets, defaults={"proxy": proxy.url(),
                                            "in-flight": 1})
        for i in range(10):
            hub.post(b"%d" % i)
            for leaf in leaves:
                leaf.wait(i + 1)
        for leaf in leaves:
            self.assertEqual([r.body for r in leaf.receipts],
                             [b"%d" % i for i in range(10)])
            self.assertEqual(leaf.connections, 1)
            self.assertEqual({name for name in leaf.receipts[0].headers
                              if name.startswith(("via", "x-f", "proxy"))},
                             set())
        self.end_well(hub, proxy.QUOTED, proxy.PASSWORD)

    def test_that_does_not_know_the_hub_holds_its_targets(self):
        leaf = self.leaf()
        proxy = self.open(leaf.port)
        hub = self.begin([{"name": "a", "url": leaf.url()}],
                         defaults={"proxy": proxy.url("wrong")})
        hub.post(b"x")
        self.assertIn(f"asks for authorisation ({self.Server.DENIED})",
                      self.seen(hub, "proxy-down")["detail"])
        self.write([{"name": "a", "url": leaf.url()}],
                   defaults={"proxy": proxy.url()})
        self.reload(hub)
        self.assertEqual(leaf.wait(1)[0].attempt, 1)
        self.end_well(hub, proxy.QUOTED, proxy.PASSWORD)
        self.assertEqual(self.rows(), [])

    def test_says_what_it_cannot_reach_and_what_it_forbids(self):
        leaf, closed = self.leaf(), free_port()
        proxy = self.open(leaf.port, closed)
        hub = self.begin([{"name": "refused",
                           "url": f"http://127.0.0.1:{closed}/"},
                          {"name": "forbidden", "url": "http://127.0.0.1:1/"},
                          {"name": "good", "url": leaf.url()}],
                         defaults={"proxy": proxy.url()})
        hub.post(b"x")
        leaf.wait(1)
        self.await_settled(3)
        self.assertEqual({row["target"]: row["cause"] for row in self.rows()},
                         {"refused": "HOST_UNREACHABLE",
                          "forbidden": "EGRESS_FORBIDDEN"})
        self.end_well(hub)

    def test_that_is_away_holds_its_targets_until_it_is_back(self):
        leaf = self.leaf()
        proxy = self.open(leaf.port)
        hub = self.begin([{"name": "a", "url": leaf.url()}],
                         defaults={"proxy": proxy.url()})
        hub.post(b"0")
        self.seen(hub, "delivered")
        proxy.close()
        leaf.close()  # with its tunnel
        leaf.open()
        for i in range(10):
            hub.post(b"%d" % (i + 1))
        self.seen(hub, "proxy-down")
        proxy.start()
        got = leaf.wait(11)
        self.assertEqual({int(r.body) for r in got}, set(range(11)))
        self.assertEqual({r.attempt for r in got}, {1})
        self.end_well(hub)
        self.assertEqual(self.rows(), [])


@unittest.skipUnless(shutil.which("tinyproxy"), "no tinyproxy")
class OfTinyproxy(Real, proxies.Base):
    Server = Tinyproxy


@unittest.skipUnless(shutil.which("squid") or
                     shutil.which("squid", path="/usr/sbin"), "no squid")
class OfSquid(Real, proxies.Base):
    Server = Squid


if __name__ == "__main__":
    case.main()
