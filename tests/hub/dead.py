"""stagger dead, as its users see it: a store that the hub made, with rows that
it wrote and rows put into it here.
"""
import contextlib
import csv
import io
import json
import os
import pty
import signal
import sqlite3
import subprocess
import unittest

import case

STAGGER = os.environ["STAGGER"]
COLUMNS = ("message_id, target, target_url, state, why, category, cause,"
           " http_status, attempts, lane, partition, position, replay, count,"
           " last_position, payload, answer, created_at, last_attempt_at")


def dead(*arguments, text=True, **variables):
    env = {name: value for name, value in os.environ.items()
           if name not in ("COLUMNS", "STAGGER_STORE")}
    return subprocess.run([STAGGER, "dead", *arguments], capture_output=True,
                          text=text, env={**env, **variables}, timeout=60)


class Dead(case.Case):
    def deliver(self, bodies):
        """A hub sends them where nobody listens, once each."""
        case.deliver(self.store, bodies, "--to", "a=http://127.0.0.1:1/",
                     "-p", "none")

    def insert(self, position, target="b", cause="HTTP_503", category="B",
               status=503, state="dead", attempts=3, count=1, last=None,
               payload=b"x", answer=None, at="2026-03-01T12:00:00.000Z",
               newest=None):
        if last is not None and newest is None:
            newest = at  # a bulk row always has it
        with sqlite3.connect(self.store) as db:
            db.execute(
                f"INSERT INTO failed_broadcast_logs ({COLUMNS}) VALUES"
                " (?, ?, 'http://b/', ?, 'attempts', ?, ?, ?, ?, 9, 0, ?, 0,"
                " ?, ?, ?, ?, ?, ?)",
                (f"00000000000000aa-{position}", target, state, category,
                 cause, status, attempts, position, count, last, payload,
                 answer, at, newest))
        db.close()

    def make(self):
        self.deliver([])

    def list(self, *arguments, code=0, **variables):
        found = dead("list", "--store", self.store, *arguments, **variables)
        self.assertEqual((found.returncode, found.stderr == ""),
                         (code, code == 0), found)
        return found.stdout if code == 0 else found.stderr

    # -- what the hub wrote

    def test_shows_what_the_hub_could_not_deliver(self):
        self.deliver([b"hello", b"world"])
        text = self.list()
        self.assertEqual(len(text.splitlines()), 4)
        self.assertIn("CONNECTION_REFUSED", text)
        self.assertTrue(text.endswith("2 dead letters: CONNECTION_REFUSED 2\n"))
        shown = dead("show", "-s", self.store, "1").stdout
        for part in ("target        a", "attempts: all attempts are made",
                     "CONNECTION_REFUSED (A: nothing was sent)",
                     "Payload, 5 bytes\nhello\n"):
            self.assertIn(part, shown)

    def test_works_while_a_hub_has_the_store(self):
        hub = subprocess.Popen(
            [STAGGER, "hub", "--to", "a=http://127.0.0.1:1/", "-s", self.store,
             "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE)
        try:
            for line in hub.stderr:
                if b"event=ready" in line:
                    break
            self.insert(1)
            self.assertIn("1 dead letter: HTTP_503 1", self.list())
        finally:
            hub.send_signal(signal.SIGTERM)
            hub.communicate(timeout=60)
        self.assertEqual(hub.returncode, 0)

    def test_says_why_what_was_never_tried_was_given_up(self):
        self.make()
        self.insert(1, last=9, count=9)
        for why, words in (("shed", "its circuit breaker was open for longer "
                                    "than shed-after"),
                           ("retention", "older than store.retention")):
            with sqlite3.connect(self.store) as db:
                db.execute("UPDATE failed_broadcast_logs SET why = ?", (why,))
            db.close()
            shown = " ".join(dead("show", "-s", self.store, "1").stdout.split())
            self.assertIn(f"given up {why}: ", shown)
            self.assertIn(words, shown)

    # -- list

    def test_says_that_there_is_none(self):
        self.make()
        self.assertEqual(self.list(), "No dead letters.\n")
        self.insert(1)
        for form in [], ["--json"], ["--csv"], ["--summary"]:
            self.assertIn("c: no target and no dead letter has this name\n",
                          self.list("--target", "c", *form, code=1))
        self.assertEqual(self.list("--target", "a"),
                         "No dead letters that match.\n")
        self.assertEqual(self.list("--target", "b", "--state", "dropped"),
                         "No dead letters that match.\n")

    def test_lists_a_line_each(self):
        self.make()
        self.insert(7)
        self.insert(8, target="a", cause="HTTP_404", category="C")
        self.assertEqual(
            self.list(),
            "id  time (UTC)           target  cause     attempts  message\n"
            " 1  2026-03-01 12:00:00  b       HTTP_503         3  "
            "00000000000000aa-7\n"
            " 2  2026-03-01 12:00:00  a       HTTP_404         3  "
            "00000000000000aa-8\n"
            "2 dead letters: HTTP_404 1, HTTP_503 1\n")

    def test_tells_states_and_counts_where_there_are_some(self):
        self.make()
        self.insert(7, state="replayed")
        self.insert(8, cause="SHED", category=None, status=None, count=500,
                    last=900, payload=None, attempts=0)
        text = self.list()
        self.assertIn("cause     state     attempts  count  message", text)
        self.assertIn("SHED      dead             0    500  ", text)
        self.assertIn("2 dead letters for 501 messages: ", text)

    def test_calls_nothing_dead_that_was_sent_again(self):
        self.make()
        for position in range(3):
            self.insert(position, state="replayed", payload=None)
        last = lambda *more: self.list(*more).splitlines()[-1]
        self.assertEqual(last(), "3 dead letters: 0 dead, 3 replayed; "
                         "HTTP_503 3")
        self.insert(7, cause="HTTP_404", category="C")
        self.assertEqual(last(), "4 dead letters: 1 dead, 3 replayed; "
                         "HTTP_503 3, HTTP_404 1")
        self.assertEqual(last("--state=replayed"),
                         "3 dead letters: 3 replayed; HTTP_503 3")
        self.assertEqual(last("--state=dead"), "1 dead letter: HTTP_404 1")

    def test_lists_the_newest_so_many(self):
        self.make()
        for position in range(250):
            self.insert(position)
        lines = self.list("-n", "3").splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:4]],
                         ["250", "249", "248"])
        self.assertEqual(lines[4:], ["and 247 older",
                                     "250 dead letters: HTTP_503 250"])
        for limit, count in ((1, 1), (100, 100), (101, 101), (250, 250),
                             (999, 250)):
            found = json.loads(self.list("--json", f"--limit={limit}"))
            self.assertEqual([row["id"] for row in found["dead_letters"]],
                             list(range(250, 250 - count, -1)))
        self.assertNotIn("older", self.list("--limit", "250"))
        rows = list(csv.reader(io.StringIO(self.list("--csv", "-n2"))))
        self.assertEqual([row[0] for row in rows], ["id", "250", "249"])

    def summarise(self):
        self.make()
        for hour in (9, 12, 10):
            self.insert(hour, at=f"2026-03-01T{hour:02}:00:00.000Z")
        self.insert(20, state="replayed", payload=None)
        self.insert(30, target="a-target-with-quite-a-long-name", cause="SHED",
                    category=None, status=None, count=500, last=900,
                    payload=None, attempts=0,
                    newest="2026-03-01T14:30:00.000Z")

    def test_sums_up_by_target_cause_and_state(self):
        self.summarise()
        lines = self.list("--summary").splitlines()
        self.assertEqual([line.split() for line in lines[1:4]], [
            ["a-target-with-quite-a-long-name", "SHED", "dead", "1", "500",
             "2026-03-01", "12:00:00", "2026-03-01", "14:30:00"],
            ["b", "HTTP_503", "dead", "3", "3", "2026-03-01", "09:00:00",
             "2026-03-01", "12:00:00"],
            ["b", "HTTP_503", "replayed", "1", "1", "2026-03-01", "12:00:00",
             "2026-03-01", "12:00:00"]])
        self.assertEqual(lines[4:], [
            "5 dead letters for 504 messages: 4 dead, 1 replayed; HTTP_503 4,"
            " SHED 1"])
        for width in (80, 100, 200):
            lines = self.list("--summary", COLUMNS=str(width)).splitlines()
            self.assertLessEqual(max(map(len, lines[:-1])), width)
            self.assertIn("03-01 14:30", lines[1])

    def test_sums_up_as_json_and_csv(self):
        self.summarise()
        found = json.loads(self.list("--summary", "--json", "-t", "b"))
        self.assertEqual(found["summary"][0], {
            "target": "b", "cause": "HTTP_503", "state": "dead", "letters": 3,
            "messages": 3, "first_at": "2026-03-01T09:00:00.000Z",
            "last_at": "2026-03-01T12:00:00.000Z"})
        rows = list(csv.DictReader(io.StringIO(self.list("--summary",
                                                         "--csv"))))
        self.assertEqual([row["letters"] for row in rows], ["1", "3", "1"])
        self.assertEqual(json.loads(self.list(
            "--summary", "--json", "-t", "b", "-c", "A")), {"summary": []})

    def test_finds_range_rows_by_their_newest_message(self):
        self.summarise()

        def finds(*arguments):
            found = json.loads(self.list("--json", *arguments))
            return [row["cause"] for row in found["dead_letters"]]

        self.assertEqual(finds("--since", "2026-03-01T14:00"), ["SHED"])
        self.assertEqual(finds("--since", "2026-03-01T15:00"), [])
        self.assertEqual(finds("--until", "2026-03-01T12:01", "--since",
                               "2026-03-01T12:01"), ["SHED"])
        self.assertEqual(finds("--until", "2026-03-01T12:00").count("SHED"), 0)
        self.assertIn("2026-03-01T14:30",
                      dead("show", "-s", self.store, "5").stdout)
        self.assertEqual(dead("export", "-s", self.store, "--since",
                              "2026-03-01T14:00").stdout.count("\n"), 1)

    def test_knows_the_causes_there_are(self):
        self.make()
        for cause in ("A", "D", "HTTP_302", "HTTP_599", "SHED", "CANCELLED",
                      "CONNECTION_REFUSED", "GRPC_UNAVAILABLE", "EXIT_3",
                      "SQLSTATE_40001", "MYSQL_1213"):
            self.list("--cause", cause)
        for cause, meant in (
                ("HTPP_503", "did you mean HTTP_503?"),
                ("CONECTION_REFUSED", "did you mean CONNECTION_REFUSED?"),
                ("refusd", "did you mean CONNECTION_REFUSED?"),
                ("ECONREFUSED", "did you mean CONNECTION_REFUSED?"),
                ("timeuot", "did you mean TIMEOUT?"),
                ("pausd", "did you mean PAUSED?"),
                ("conect", "did you mean CONNECT?"),
                ("GRPC_77", "there is no such cause"),
                ("any", "there is no such cause; stagger dead list"),
                ("database", "there is no such cause"),
                ("SQLSTATE_400", "there is no such cause; "),
                ("E", "there is no such cause; stagger dead list --summary"),
                ("", "there is no such cause"),
                ("HTTP_999", "there is no such cause"),
                ("X" * 300, "there is no such cause")):
            for command in ("list", "export", "replay", "drop"):
                found = dead(command, "--cause", cause)
                self.assertEqual((found.returncode, found.stdout), (2, ""))
                self.assertIn(f"--cause={cause[:40]}", found.stderr)
                self.assertIn(meant, found.stderr)

    def test_takes_one_fault_in_every_spelling(self):
        """The words are those of policies: tests/core/test_spelling.c."""
        self.make()
        causes = {"HTTP_503": "B", "HTTP_500": "B", "HTTP_404": "C",
                  "CONNECTION_REFUSED": "A", "TIMEOUT": "B",
                  "SERIALIZATION_FAILURE": None, "DEADLOCK": None,
                  "GRPC_UNAVAILABLE": None, "REDIS_LOADING": None,
                  "AMQP_CONNECTION_FORCED": None,
                  "KAFKA_REQUEST_TIMED_OUT": None, "PAUSED": None,
                  "DNS_TEMPORARY_FAILURE": "A", "HTTP_429": "D",
                  "HTTPX503": None}
        for position, (cause, category) in enumerate(causes.items()):
            self.insert(position, cause=cause, category=category)
        for found, words in {
                ("HTTP_503",): "503 HTTP_503 http_503 http-503 http:503",
                ("CONNECTION_REFUSED",): "refused CONNECTION_REFUSED "
                    "connection-refused ECONNREFUSED econnrefused curl:7",
                ("TIMEOUT",): "timeout TIMEOUT ETIMEDOUT CURL_28",
                ("DNS_TEMPORARY_FAILURE",): "dns-temporary EAI_AGAIN",
                ("SERIALIZATION_FAILURE",): "serialization 40001 "
                    "sqlstate:40001 SQLSTATE_40001 SERIALIZATION_FAILURE",
                ("DEADLOCK",): "deadlock 40P01 40p01 1213 mysql:1213",
                ("GRPC_UNAVAILABLE",): "UNAVAILABLE unavailable grpc:14 "
                    "GRPC_14 GRPC_UNAVAILABLE grpc:unavailable grpc",
                ("REDIS_LOADING",): "LOADING redis:LOADING redis_loading",
                ("AMQP_CONNECTION_FORCED",):
                    "amqp:connection:forced AMQP_CONNECTION_FORCED",
                ("KAFKA_REQUEST_TIMED_OUT",):
                    "kafka:7 REQUEST_TIMED_OUT KAFKA_REQUEST_TIMED_OUT",
                ("PAUSED",): "PAUSED paused",
                ("HTTP_503", "HTTP_500"): "5xx 5XX HTTP_5XX",
                ("HTTP_404", "HTTP_429"): "4xx HTTP_4XX",
                ("HTTP_503", "HTTP_500", "TIMEOUT"): "B b server SERVER",
                ("CONNECTION_REFUSED", "DNS_TEMPORARY_FAILURE"): "A connect",
                ("HTTP_429",): "D overload 429",
                (): "501 reset kafka:6 slow"}.items():
            for word in words.split():
                with self.subTest(word=word):
                    rows = json.loads(self.list("--json", "--cause", word))
                    self.assertEqual(
                        tuple(row["cause"] for row in rows["dead_letters"]),
                        found)

    def test_fits_the_terminal(self):
        self.make()
        self.insert(7, target="a-target-with-quite-a-long-name",
                    cause="SQLSTATE_40001_AND_MORE")
        for width in (60, 80, 100, 200):
            lines = self.list(COLUMNS=str(width)).splitlines()
            self.assertLessEqual(max(map(len, lines[:-1])), width)
        self.assertIn("a-target-with-quite-a-long-name", lines[1])
        # A pipe has no width.
        self.assertIn("a-target-with-quite-a-long-name", self.list())

    def test_gives_a_terminal_no_commands(self):
        self.make()
        self.insert(7, target="a\x1b[2Jb", payload=b"\x1b[2J")
        self.assertNotIn("\x1b", self.list())
        self.assertNotIn("\x1b", dead("show", "-s", self.store, "1").stdout)

    def test_filters(self):
        self.make()
        self.insert(1, target="a", at="2026-03-01T12:00:00.000Z")
        self.insert(2, cause="HTTP_404", category="C",
                    at="2026-03-01T13:00:00.000Z")
        self.insert(3, state="expired", at="2026-03-02T12:00:00.000Z")

        def ids(*arguments):
            found = json.loads(self.list("--json", *arguments))
            return [row["id"] for row in found["dead_letters"]]

        self.assertEqual(ids(), [1, 2, 3])
        self.assertEqual(ids("--target", "a"), [1])
        self.assertEqual(ids("--cause", "HTTP_404"), [2])
        self.assertEqual(ids("--cause", "B"), [1, 3])
        self.assertEqual(ids("--state", "expired"), [3])
        self.assertEqual(ids("--since", "2026-03-01T13:00"), [2, 3])
        self.assertEqual(ids("--since", "2026-03-01 13:00:00Z"), [2, 3])
        self.assertEqual(ids("--until", "2026-03-01T13:00:00.000Z"), [1])
        self.assertEqual(ids("--since", "2026-03-02"), [3])
        self.assertEqual(ids("--until", "0"), ids())
        self.assertEqual(ids("--since", "0"), [])

        # A day that there is not is a slip; and nothing is older than 1970.
        self.assertEqual(ids("--until", "1970-01-01"), [])
        self.assertEqual(ids("--since", "1970-01-01"), ids())
        for slip in ("2026-02-30", "2026-13-01", "2026-03-01T24:00",
                     "1969-12-31"):
            found = dead("list", "-s", self.store, "--since", slip)
            self.assertEqual((found.returncode, found.stdout), (2, ""))
            self.assertIn("expected a time such as 2026-03-01T12:00", found.stderr)

    def test_finds_causes_and_categories_as_they_are(self):
        """A category is no cause, and HTTP_503 not http_503: as for a hub."""
        self.make()
        self.insert(1, cause="HTTP_503", category="B")
        self.insert(2, cause="http_503", category="C")
        self.insert(3, cause="B", category="A")

        def ids(cause):
            found = json.loads(self.list("--json", "--cause", cause))
            return [row["id"] for row in found["dead_letters"]]

        self.assertEqual(ids("HTTP_503"), [1])
        self.assertEqual(ids("5xx"), [1])
        self.assertEqual(ids("B"), [1])

    def test_says_the_same_of_a_letter_everywhere(self):
        """One of the queue, of Kafka, and a bulk row of evicted letters."""
        self.make()
        self.insert(7)
        self.insert(8, payload=None)
        self.insert(-1, payload=None, count=5, at="2026-03-01T12:00:00.000Z",
                    newest="2026-03-01T15:00:00.000Z")
        with sqlite3.connect(self.store) as db:
            db.execute("INSERT INTO partitions (number, log, topic, partition,"
                       " epoch) VALUES (3, 'k', 'orders', 5, 0)")
            db.execute("UPDATE failed_broadcast_logs SET partition = 3"
                       " WHERE id = 2")
            db.execute("UPDATE failed_broadcast_logs SET why = 'evicted',"
                       " message_id = '', replay = 2147483646 WHERE id = 3")
        db.close()
        rows = json.loads(self.list("--json"))["dead_letters"]
        self.assertEqual(
            [(row["topic"], row["partition"], row["position"],
              row["payload_size"], row["message_id"] is None, row["replay"])
             for row in rows],
            [(None, None, 7, 1, False, 0), ("orders", 5, 8, None, False, 0),
             (None, None, None, None, True, 0)])
        self.assertEqual(
            [(row["target_url"], row["first_attempt_at"], row["changed_at"],
              row["last_attempt_at"]) for row in rows],
            [("http://b/", None, None, None)] * 2
            + [("http://b/", None, None, "2026-03-01T15:00:00.000Z")])
        whole = [json.loads(line) for line in dead(
            "export", "-s", self.store).stdout.splitlines()]
        shown = [json.loads(dead("show", "--json", "-s", self.store,
                                 str(id)).stdout) for id in (1, 2, 3)]
        self.assertEqual(whole, shown)
        for row, all in zip(rows, whole):
            self.assertEqual(list(row), list(all)[:len(row)])
            self.assertEqual(row, {name: all[name] for name in row})
        for text, rows_of in ((self.list("--csv"), rows),
                              (dead("export", "--format=csv", "-s",
                                    self.store).stdout, whole)):
            self.assertEqual(
                [{name: row[name] for name in rows_of[0]}
                 for row in csv.DictReader(io.StringIO(text))],
                [{name: "" if value is None else str(value)
                  for name, value in row.items()} for row in rows_of])
        # When the newest of the evicted ones was given up.
        for command in (("list", "--json"), ("export",)):
            found = dead(*command, "-s", self.store, "--since",
                         "2026-03-01T14:00").stdout
            self.assertEqual(found.count('"evicted"'), 1)
            self.assertEqual(found.count('"message_id"'), 1)
        self.assertIn("2026-03-01T15:00:00.000Z",
                      self.list("--summary", "--csv"))

    def test_pages_through_more_than_it_holds(self):
        self.make()
        with sqlite3.connect(self.store) as db:
            db.executemany(
                f"INSERT INTO failed_broadcast_logs ({COLUMNS}) VALUES ('m',"
                " 'b', '', 'dead', 'attempts', 'B', 'HTTP_503', 503, 1, 9, 0,"
                " ?, 0, 1, NULL, x'00', NULL, '2026', NULL)",
                [(n,) for n in range(450)])
        db.close()
        rows = json.loads(self.list("--json"))["dead_letters"]
        self.assertEqual([row["position"] for row in rows], list(range(450)))
        rows = list(csv.reader(io.StringIO(self.list("--csv"))))
        self.assertEqual(len(rows), 451)

    def test_writes_csv(self):
        self.make()
        self.insert(7, target='say "a, b"')
        rows = list(csv.DictReader(io.StringIO(self.list("--csv"))))
        self.assertEqual(rows[0]["target"], 'say "a, b"')
        self.assertEqual(rows[0]["http_status"], "503")

    # -- show

    def test_shows_bytes_that_are_no_text_as_hex(self):
        self.make()
        self.insert(7, payload=b"\x00\x01abc" + bytes(20), answer=b"go away")
        shown = dead("show", "--store", self.store, "1").stdout
        self.assertIn("Payload, 25 bytes\n  00000000  00 01 61 62 63 00", shown)
        self.assertIn("..abc", shown)
        self.assertIn("Answer, 7 bytes\ngo away\n", shown)

    def test_says_where_a_payload_has_gone(self):
        self.make()
        self.insert(7, state="replayed", payload=None)
        self.insert(8, state="dropped", payload=None)
        for id, part in ((1, "went with the delivery"), (2, "is not kept")):
            found = dead("show", "--store", self.store, str(id))
            self.assertEqual((found.returncode, found.stderr), (0, ""))
            self.assertIn(part, found.stdout)
            self.assertNotIn("Payload", found.stdout)
        found = dead("show", "--store", self.store, "--raw", "2")
        self.assertEqual(found.returncode, 1)
        self.assertIn("was dropped, and has no payload", found.stderr)

    def test_writes_the_payload_alone(self):
        self.make()
        payload = bytes(range(256))
        self.insert(7, payload=payload)
        found = dead("show", "--raw", "--store", self.store, "1", text=False)
        self.assertEqual((found.returncode, found.stdout), (0, payload))
        self.insert(8, count=5, last=20, payload=None)
        found = dead("show", "--raw", "--store", self.store, "2")
        self.assertEqual((found.returncode, found.stdout), (1, ""))
        self.assertIn("stands for many messages", found.stderr)

    def test_shows_what_became_of_a_range(self):
        self.make()
        self.insert(8, cause="SHED", count=5, last=20, payload=None)
        shown = dead("show", "--store", self.store, "1").stdout
        self.assertIn("5, all that the target was to get from position 8 to 20",
                      " ".join(shown.split()))
        self.assertIn("expired: the queue has none of them", shown)
        with sqlite3.connect(self.store) as db:
            db.execute("INSERT INTO messages_0 (position, key_hash, created_at,"
                       " filled_before, body) VALUES (15, 0, 0, 0, x'00')")
        db.close()
        shown = dead("show", "--store", self.store, "1").stdout
        self.assertIn("in the queue from position 15 on",
                      " ".join(shown.split()))

    def test_says_that_an_id_is_unknown(self):
        self.make()
        found = dead("show", "--store", self.store, "7")
        self.assertEqual((found.returncode, found.stdout, found.stderr),
                         (1, "", "stagger dead: there is no dead letter 7\n"))

    # -- export

    def test_exports_everything(self):
        self.make()
        payloads = [b"caf\xc3\xa9 \"x\"\n", b"\xff\xfe", b""]
        for position, payload in enumerate(payloads):
            self.insert(position, payload=payload, answer=b"\xff")
        text = dead("export", "--store", self.store).stdout
        rows = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([row.get("payload") for row in rows],
                         ['café "x"\n', None, ""])
        self.assertEqual(rows[1]["payload_base64"], "//4=")
        self.assertEqual(rows[0]["answer_base64"], "/w==")
        text = dead("export", "--store", self.store, "--format", "csv",
                    text=False).stdout.decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        self.assertEqual([row["payload"] for row in rows],
                         ['café "x"\n', "//4=", ""])
        self.assertEqual([row["payload_encoding"] for row in rows],
                         ["text", "base64", ""])

    # -- stores

    def test_asks_a_hub_unless_a_store_is_named(self):
        self.make()
        env = {"STAGGER_STORE": self.store, "STAGGER_HUB": "http://127.0.0.1:1"}
        self.assertEqual(dead("list", "-s", self.store, **env).stdout,
                         "No dead letters.\n")
        for words in ["list"], ["show", "1"], ["export"]:
            found = dead(*words, **env)
            self.assertEqual((found.returncode, found.stdout), (1, ""), words)
            self.assertIn("no hub answers at http://127.0.0.1:1: ", found.stderr)
            self.assertIn("--hub URL", found.stderr)
            self.assertIn("--store FILE", found.stderr)
            for option in "--hub=http://h", "--token-file=x", "--ca=x":
                found = dead(*words, "-s", self.store, option)
                self.assertEqual((found.returncode, found.stdout), (2, ""))
                self.assertIn("--store: reads the store and asks no hub",
                              found.stderr)

    def test_refuses_what_is_no_store(self):
        path = os.path.join(self.folder, "other")
        with open(path, "w") as file:
            file.write("This is a text that is no database at all. " * 9)
        found = dead("list", "--store", path)
        self.assertEqual(found.returncode, 2)
        self.assertIn("no SQLite database", found.stderr)
        path = os.path.join(self.folder, "foreign")
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE t (x)")
        db.close()
        self.assertIn("no store of stagger",
                      dead("list", "--store", path).stderr)
        self.make()
        with sqlite3.connect(self.store) as db:
            db.execute("PRAGMA user_version = 77")
        db.close()
        self.assertIn("version 77", dead("list", "-s", self.store).stderr)

    # -- mistakes

    def test_refuses_mistakes(self):
        for words, part in (
                ([], "expected list, show, export, replay or drop"),
                (["lst"], "did you mean list?"),
                (["show"], "show: expected an id"),
                (["show", "x"], "x: expected an id"),
                (["list", "x"], "unexpected argument"),
                (["list", "--limit", "0"], "--limit=0: expected a number from 1"),
                (["list", "-n", "x"], "expected a number from 1"),
                (["list", "-n", "1", "--summary"], "has no --limit"),
                (["export", "-n", "1"], "export has no option --limit"),
                (["list", "--raw"], "list has no option --raw"),
                (["export", "--json"], "export has no option --json"),
                (["list", "--state", "ded"], "--state=ded: expected dead"),
                (["list", "--since", "soon"], "--since=soon: expected a time"),
                (["export", "--format", "xml"], "expected jsonl or csv")):
            found = dead(*words)
            self.assertEqual((found.returncode, found.stdout), (2, ""), words)
            self.assertIn(part, found.stderr)

    def test_has_colours_on_a_terminal_only(self):
        self.make()
        self.insert(7)
        ours, its = pty.openpty()
        env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
        env.pop("NO_COLOR", None)
        subprocess.run([STAGGER, "dead", "list", "-s", self.store], stdout=its,
                       env=env, timeout=60)
        os.close(its)
        self.assertIn(b"\x1b[1m", os.read(ours, 4096))
        os.close(ours)
        self.assertNotIn("\x1b", self.list())


if __name__ == "__main__":
    unittest.main()
