"""The producer of blackbox.py: publishes, and asks again until it has a 2xx.

usage: blackbox_producer.py FOLDER SEED PORT

Publishes until its input ends, and ends when all of it was acknowledged. Each
message that was is a JSON line in FOLDER/accepted, durable before the next one:

    id, hash, type, key    of the message
    asked                  how often: more than once has an unknown outcome,
                           and the idempotency key is to make it one message
"""
import base64
import hashlib
import http.client
import json
import os
import random
import sys
import threading
import time

TYPES = [None, "text/plain", "application/json", "application/octet-stream"]


class Producer:
    def __init__(self, folder, seed, number, port):
        self.log = open(os.path.join(folder, "accepted"), "ab", buffering=0)
        self.rng = random.Random(f"{seed}/{number}")
        self.name = f"{seed}-{number}"
        self.port = port
        self.count = 0
        self.connection = None

    def make(self):
        self.count += 1
        size = self.rng.choice([0, 1, 10, 100, 1000, 5000, 40000])
        key = f"{self.name}-{self.count}"
        return {"idempotency_key": key,
                "body": self.rng.randbytes(self.rng.randint(0, size)),
                "type": self.rng.choice(TYPES),
                "key": self.rng.choice([None, "k1", "k2"])}

    def post(self, path, body, headers):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=2)
        try:
            self.connection.request("POST", path, body, headers)
            answer = self.connection.getresponse()
            text = answer.read()
            if answer.status // 100 == 2:
                return json.loads(text)
            if answer.status not in (408, 429, 503):
                sys.exit(f"refused with {answer.status}: {text}")
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            pass # the last: http.client takes a head that ends early
        self.connection.close()
        self.connection = None
        return None

    def ask(self, path, body, headers):
        """Until it is there: the answer, and how often it took."""
        asked = 1
        while (answer := self.post(path, body, headers)) is None:
            asked += 1
            time.sleep(0.02)
        return answer, asked

    def publish_one(self):
        m = self.make()
        headers = {"Idempotency-Key": m["idempotency_key"]}
        if m["type"] is not None:
            headers["Content-Type"] = m["type"]
        if m["key"] is not None:
            headers["Stagger-Key"] = m["key"]
        answer, asked = self.ask("/v1/messages", m["body"], headers)
        self.note([m], [answer["id"]], asked)

    def publish_batch(self):
        messages = [self.make() for _ in range(self.rng.randint(1, 20))]
        lines = []
        for m in messages:
            line = {"idempotency_key": m["idempotency_key"],
                    "body_base64": base64.b64encode(m["body"]).decode()}
            if m["type"] is not None:
                line["content_type"] = m["type"]
            if m["key"] is not None:
                line["key"] = m["key"]
            lines.append(json.dumps(line))
        answer, asked = self.ask("/v1/messages/batch",
                                 "\n".join(lines).encode(),
                                 {"Content-Type": "application/x-ndjson"})
        self.note(messages, answer["ids"], asked)

    def note(self, messages, ids, asked):
        if len(ids) != len(messages):
            sys.exit(f"{len(ids)} ids of {len(messages)} messages")
        for id, m in zip(ids, messages):
            self.log.write(json.dumps({
                "id": id, "hash": hashlib.sha256(m["body"]).hexdigest(),
                "type": m["type"], "key": m["key"],
                "asked": asked}).encode() + b"\n")
        os.fsync(self.log.fileno())

    def run(self, stop):
        while not stop.is_set():
            if self.rng.random() < 0.1:
                self.publish_batch()
            else:
                self.publish_one()
            time.sleep(self.rng.random() * 0.03)


def main(folder, seed, port):
    stop = threading.Event()
    failed = []

    def run(number):
        try:
            Producer(folder, seed, number, int(port)).run(stop)
        except BaseException as error:
            failed.append(error)
            stop.set()

    threads = [threading.Thread(target=run, args=[i]) for i in range(3)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    for error in failed:
        sys.exit(f"producer: {error!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
