#!/usr/bin/env python3
"""The faults of `broadcast`, each by a real socket: how often it was tried, how
long it waited between, what its dead letter says, and what the log.

Every fault is a target of one hub, and one message goes to all of them."""
import collections
import os
import shutil
import socket
import ssl
import subprocess
import time

import case
import leaf
from leaf import then_close, then_hang, told

BASE, TIMEOUT = 0.2, 0.5
POLICY = "broadcast base=200ms attempt-timeout=500ms"
BODY = b"\0the payload\xff\n"

# What is expected of a target: attempts, requests that came (None: it cannot
# be seen), cause, category, status, reason, words of the detail.
Fault = collections.namedtuple(
    "Fault", "name url attempts requests cause category status why words")

EXCERPT = b"<p>this is why</p>" * 100


def command(*words, **more):
    subprocess.run(words, check=True, capture_output=True, **more)


class Certificates:
    """A root of our own, and what servers show: good, wrong-name, expired and
    self-signed."""

    def __init__(self, folder):
        self.folder = folder
        self.ca = self.path("ca.crt")
        self.sign_self("ca", "/CN=the root", "CA:TRUE", days=2)
        self.sign("good", "127.0.0.1", days=2)
        self.sign("wrong-name", "127.9.9.9", days=2)
        self.sign("expired", "127.0.0.1", days=0)
        self.sign_self("self-signed", "/CN=self", "CA:FALSE", days=2)

    def path(self, name):
        return os.path.join(self.folder, name)

    def sign_self(self, name, subject, constraint, days):
        command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-subj", subject,
                "-days", str(days), "-addext", "subjectAltName=IP:127.0.0.1",
                "-addext", f"basicConstraints=critical,{constraint}",
                "-keyout", self.path(f"{name}.key"),
                "-out", self.path(f"{name}.crt"))

    def sign(self, name, address, days):
        command("openssl", "req", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", self.path(f"{name}.key"),
                "-out", self.path(f"{name}.csr"))
        with open(self.path(f"{name}.ext"), "w") as extensions:
            extensions.write(f"subjectAltName=IP:{address}\n")
        command("openssl", "x509", "-req", "-in", self.path(f"{name}.csr"),
                "-CA", self.ca, "-CAkey", self.path("ca.key"), "-days",
                str(days), "-extfile", self.path(f"{name}.ext"),
                "-out", self.path(f"{name}.crt"))

    def context(self, name):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(f"{name}.crt"),
                                self.path(f"{name}.key"))
        return context


# -- deeds of leaves -----------------------------------------------------------

def then_reset(*parts):
    def deed(connection, request):
        connection.send(*parts)
        time.sleep(0.05) # a reset overtakes what is not read yet
        connection.reset()
    return deed


def trickle(connection, request):
    """An answer that would last for an hour."""
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        connection.send("x")
        time.sleep(0.02)


CUT = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"

# name: deed, cause, words of the detail
BROKEN = {
    "hang": (leaf.hang, "TIMEOUT", "nothing came"),
    "hang-in-head": (then_hang("HTTP/1.1 200 OK\r\nX: "), "TIMEOUT",
                     "not whole"),
    "hang-in-body": (then_hang(CUT), "TIMEOUT", "not whole"),
    "trickle": (trickle, "TIMEOUT", "not whole"),
    "reset": (leaf.reset, "CONNECTION_RESET", "before an answer"),
    "close": (leaf.close, "CONNECTION_RESET", "before an answer"),
    "reset-in-body": (then_reset(CUT), "CONNECTION_RESET", "after 43 bytes"),
    "no-http": (then_close("SSH-2.0-OpenSSH_9.2\r\n"), "PROTOCOL_ERROR",
                ""),
    "cut-in-head": (then_close("HTTP/1.1 200 OK\r\nContent-"),
                    "PROTOCOL_ERROR", "cut short"),
    "cut-in-body": (then_close(CUT), "PROTOCOL_ERROR", "cut short"),
    "cut-in-chunk": (then_close("HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                                    "chunked\r\n\r\n5\r\nab"),
                     "PROTOCOL_ERROR", "cut short"),
    "switching": (then_close("HTTP/1.1 101 Go\r\nUpgrade: x\r\n"
                                 "Connection: upgrade\r\n\r\n"),
                  "PROTOCOL_ERROR", ""),
}


class Faults(case.Case):
    def statuses(self):
        """Targets that answer, by their paths, from one leaf."""
        canary = self.leaf()
        self.canary = canary

        def answer(request):
            status = int(request.path[1:])
            headers = {"Content-Type": "text/html"}
            if 300 <= status < 400:
                headers["Location"] = canary.url()
            return status, headers, b"" if status in (204, 304) else EXCERPT

        server = self.leaf(answer)
        groups = (
            (3, "B", "attempts", (500, 502, 503, 504)),
            (1, "B", "permanent", (501, 505, 511, 599)),
            (1, "C", "permanent", (300, 301, 302, 303, 304, 307, 308)),
            (1, "C", "permanent", (400, 401, 403, 404, 405, 409, 410, 413,
                                   415, 418, 422, 426, 451, 499)),
            (3, "D", "attempts", (408, 425, 429)),
        )
        for attempts, category, why, codes in groups:
            for code in codes:
                self.leaves[f"s{code}"] = server
                yield Fault(f"s{code}", server.url(f"/{code}"), attempts,
                            attempts, f"HTTP_{code}", category, code, why,
                            None)

    def broken(self):
        for name, (deed, cause, words) in BROKEN.items():
            server = self.leaves[name] = self.leaf(lambda r, deed=deed: deed)
            status = 200 if name in ("hang-in-body", "trickle",
                                     "reset-in-body", "cut-in-body",
                                     "cut-in-chunk") else None
            yield Fault(name, server.url(f"/{name}"), 3, 3, cause, "B", None,
                        "attempts", words)
        server = self.leaves["early-reset"] = self.leaf(
            early=lambda connection: connection.reset())
        yield Fault("early-reset", server.url("/early"), 3, 0,
                    "CONNECTION_RESET", "B", None, "attempts", "reset")

    def connects(self):
        yield Fault("refused", self.refused(), 1, None, "CONNECTION_REFUSED",
                    "A", None, "permanent", "connection refused")
        hole = self.kept(leaf.BlackHole())
        yield Fault("connect-timeout", hole.url(), 2, None, "CONNECT_TIMEOUT",
                    "A", None, "fault-limit", "no connection")
        # By names that are numbers: with an address no hub starts.
        for name, host, network in (
                ("egress-number", "2852039166", "169.254.169.254/32"),
                ("egress-here", "0", "0.0.0.0/8")):
            yield Fault(name, f"http://{host}:{self.canary.port}/", 1, None,
                        "EGRESS_FORBIDDEN", "A", None, "permanent", network)
        yield Fault("dns", self.unknown(), 1, None, "DNS_FAILURE", "A", None,
                    "permanent", "resolve")

    def unknown(self):
        """The name that cannot be; without a resolver it is one that no
        resolver is asked for."""
        try:
            socket.getaddrinfo("nonexistent.invalid", 80)
        except socket.gaierror as error:
            if error.errno == socket.EAI_NONAME:
                return "http://nonexistent.invalid/"
        case.note(self, "dns by a name that is too long: there is no resolver")
        return f"http://{'x' * 63}.{'y' * 63}.{'z' * 63}.{'z' * 63}.invalid/"

    def tls(self):
        certificates = Certificates(self.folder)
        self.ca = certificates.ca
        for name, words in (("self-signed", "self"),
                            ("wrong-name", "IP address mismatch"),
                            ("expired", "expired")):
            server = self.leaves[name] = self.leaf(
                tls=certificates.context(name))
            yield Fault(name, server.url(scheme="https"), 1, 0, "TLS_FAILURE",
                        "A", None, "permanent", words)
        plain = self.leaves["no-tls"] = self.leaf(
            early=lambda connection: connection.send("HTTP/1.0 400 No\r\n\r\n"))
        yield Fault("no-tls", plain.url(scheme="https"), 1, 0, "TLS_FAILURE",
                    "A", None, "permanent", "tls")
        self.trusted = self.leaf(tls=certificates.context("good"))

    def test_each_fault_is_told_apart_and_tried_as_the_policy_says(self):
        self.leaves = {}
        faults = [*self.statuses(), *self.broken(), *self.connects(),
                  *self.tls()]
        well = {f"well-{code}": self.leaf(lambda r, code=code: code)
                for code in (200, 201, 202, 204, 206, 299)}
        well["well-tls"] = self.trusted
        targets = [f"{fault.name}={fault.url}" for fault in faults]
        targets += [f"{name}={server.url()}" for name, server in well.items()
                    if name != "well-tls"]
        targets += [f"well-tls={self.trusted.url(scheme='https')}"]
        hub = self.hub(*[word for target in targets
                         for word in ("--to", target)],
                       "--policy", POLICY, "--ca", self.ca,
                       "--verbose") # no line of a target is folded
        sent_at = time.time()
        self.message = hub.post(BODY, Content_Type="application/x-thing",
                                Stagger_Key="a key", X_Source="here")
        self.await_settled(len(targets))
        self.assertEqual(hub.stop(), 0)
        self.ended_at = time.time()

        for name, server in well.items():
            self.assertEqual([r.attempt for r in server.receipts], [1], name)
        self.assertEqual(self.canary.connections, 0,
                         "a redirect was followed, or an address is reached "
                         "that is refused")
        rows = {row["target"]: row for row in self.rows()}
        self.assertEqual(sorted(rows), sorted(f.name for f in faults))
        wrong = []
        for fault in faults:
            try:
                self.check_requests(fault)
                self.check_row(fault, rows[fault.name], sent_at)
                self.check_log(fault, hub)
            except AssertionError as error:
                wrong.append(f"{fault.name}: {error}")
        case.note(self, f"{len(faults)} faults, {len(well)} successes")
        if wrong:
            self.fail(f"{len(wrong)} faults:\n" + "\n".join(wrong))

    def receipts(self, fault):
        path = fault.url.split("/", 3)[3]
        return self.leaves[fault.name].of("/" + path)

    def check_requests(self, fault):
        if fault.requests is None:
            return
        receipts = self.receipts(fault)
        self.assertEqual([r.attempt for r in receipts],
                         list(range(1, fault.requests + 1)),
                         "the attempts that came")
        if fault.requests == 0:
            self.assertEqual(self.leaves[fault.name].connections,
                             fault.attempts, "connections")
        for request in receipts:
            self.assertEqual((request.id, request.body),
                             (self.message, BODY), "the message")
        for one, next in zip(receipts, receipts[1:]):
            self.assertGreaterEqual(next.at - one.answered_at, BASE,
                                    "the wait before attempt "
                                    f"{next.attempt}")

    def check_row(self, fault, row, sent_at):
        seen = {name: row[name] for name in (
            "message_id", "target_url", "payload", "content_type", "key",
            "attempts", "cause", "category", "http_status", "state", "why",
            "count", "last_position")}
        self.assertEqual(seen, {
            "message_id": self.message, "target_url": fault.url,
            "payload": BODY, "content_type": "application/x-thing",
            "key": "a key", "attempts": fault.attempts,
            "cause": fault.cause,
            "category": fault.category, "http_status": fault.status,
            "state": "dead", "why": fault.why, "count": 1,
            "last_position": None}, "the dead letter")
        self.assertIn("X-Source: here", row["headers"])
        answer = row["answer"]
        if fault.status not in (None, 304):
            self.assertEqual(answer, EXCERPT[:1024], "the answer's beginning")
        elif fault.name not in ("hang-in-body", "trickle", "reset-in-body",
                                "cut-in-body", "cut-in-chunk"):
            self.assertEqual(answer, None, "the answer")
        if fault.words is not None:
            self.assertIn(fault.words, row["detail"] or "", "the detail")
        first, last, made = (case.seconds(row[name]) for name in (
            "first_attempt_at", "last_attempt_at", "created_at"))
        least = (fault.attempts - 1) * (
            BASE + (TIMEOUT if "TIMEOUT" in fault.cause else 0))
        self.assertGreaterEqual(last - first, least - 0.0015,
                                "from the first attempt to the last")
        self.assertTrue(sent_at - 0.002 <= first <= last <= made
                        <= self.ended_at,
                        f"the times: sent at {sent_at}, {first}, {last}, "
                        f"{made}")

    def check_log(self, fault, hub):
        lines = hub.events("attempt-failed", target=fault.name)
        dead = [line for line in lines if line["decision"] == "dead"]
        parked = [line for line in lines if line["decision"] == "parked"]
        self.assertEqual(
            [{name: line.get(name) for name in (
                "cause", "message", "attempt", "attempts_max", "why")}
             for line in dead],
            [{"cause": fault.cause,
              "message": self.message,
              "attempt": fault.attempts, "attempts_max": 3,
              "why": fault.why}], "the lines of the end")
        told = sum(1 if "repeated" not in line else line["repeated"]
                   for line in parked)
        self.assertEqual(told, fault.attempts - 1, f"attempts told: {parked}")
        for line in parked:
            self.assertEqual((line["cause"], line["message"], line["why"],
                              line["wait_ms"] // 1),
                             (fault.cause, self.message,
                              "backoff", BASE * 1e3),
                             "a line")
            self.assertTrue(line["detail"] is not None)
        if parked and fault.requests:
            decided_at = case.seconds(parked[0]["time"])
            self.assertGreaterEqual(
                self.receipts(fault)[1].wall - decided_at, BASE - 0.001,
                "from the first decision to the second attempt")

    # -- without a network

    def without_network(self, targets, *before):
        """A hub that is reached by a socket of the file system, and has
        taken a message."""
        words = [word for name, url in targets.items()
                 for word in ("--to", f"{name}={url}")]
        hub = self.hub(*words, "--policy", POLICY,
                       listen=f"unix:{self.folder}/hub.sock",
                       before=("unshare", "-rn", *before))
        hub.post(b"a message")
        return hub

    def need_unshare(self):
        if shutil.which("unshare") is None or subprocess.run(
                ["unshare", "-rn", "true"], capture_output=True).returncode:
            self.skipTest("no network can be taken away here (unshare -rn)")

    def test_unreachable_is_given_up_at_once_while_others_are_reached(self):
        self.need_unshare()
        hub = self.without_network(
            {"far": "http://198.41.0.4:9/", "near": "http://127.0.0.1:9/"},
            "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
        self.await_settled(2)
        self.assertEqual(hub.stop(), 0, hub.noise)
        row, = [row for row in self.rows() if row["target"] == "far"]
        self.assertEqual((row["cause"], row["category"], row["attempts"],
                          row["why"], row["payload"]),
                         ("HOST_UNREACHABLE", "A", 1, "permanent", b"a message"))
        self.assertIn("network is unreachable", row["detail"])
        line, = hub.events("attempt-failed", decision="dead", target="far")
        self.assertEqual((line["cause"], line["attempt"]),
                         ("HOST_UNREACHABLE", 1))
        self.assertEqual(hub.events("uplink-down"), [])

    def test_a_network_that_is_away_costs_no_dead_letter(self):
        self.need_unshare()
        hub = self.without_network(
            {name: "http://127.0.0.1:9/" + name for name in "abcd"})
        line = hub.event("uplink-down")
        self.assertEqual(line["cause"], "HOST_UNREACHABLE")
        self.assertGreaterEqual(line["targets"], 3)
        time.sleep(1.5)  # a probe at least
        self.assertEqual(self.rows(), [])
        command("nsenter", "-t", str(hub.process.pid), "-U", "-n",
                "--preserve-credentials", "ip", "link", "set", "lo", "up")
        self.await_settled(4)
        self.assertEqual(hub.stop(), 0, hub.noise)
        self.assertEqual(len(hub.events("uplink-up")), 1)
        self.assertEqual(len(hub.events("uplink-down")), 1)
        self.assertEqual(sorted((row["target"], row["cause"], row["attempts"])
                                for row in self.rows()),
                         [(name, "CONNECTION_REFUSED", 1) for name in "abcd"])

    def test_a_resolver_that_is_away_costs_no_dead_letter(self):
        self.need_unshare()
        hub = self.without_network({"away": "http://a.invalid/"})
        line = hub.event("uplink-down")
        self.assertEqual(line["cause"], "DNS_TEMPORARY_FAILURE")
        self.assertEqual(self.rows(), [])
        failed = hub.events("attempt-failed")[0]
        self.assertEqual((failed["decision"], failed["why"]),
                         ("put-back", "gate"))
        self.assertIn("resolve a.invalid", failed["detail"])
        hub.stop()
        self.assertEqual(self.rows(), [])


if __name__ == "__main__":
    case.main()
