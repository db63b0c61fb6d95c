#!/usr/bin/env python3
"""The log `kafka` on a real broker, which is started for it and ended.

usage: kafka_broker.py PROGRAM

PROGRAM is test_kafka_broker. Exits with 77 where there is no Java, Maven or
kcat.
"""

import os
import subprocess
import sys
import tempfile

KAFKA = os.path.join(os.environ["STAGGER_SOURCE"], "scripts", "kafka")


def main():
    with tempfile.TemporaryDirectory(prefix="stagger-kafka-") as folder:
        try:
            up = subprocess.run([KAFKA, "up", folder], text=True,
                                stdout=subprocess.PIPE)
            if up.returncode != 0:
                return up.returncode
            return subprocess.run(
                sys.argv[1:],
                env={**os.environ, "STAGGER_BROKERS": up.stdout.strip()},
            ).returncode
        finally:
            subprocess.run([KAFKA, "down", "--clear", folder])
            os.makedirs(folder, exist_ok=True)


if __name__ == "__main__":
    sys.exit(main())
