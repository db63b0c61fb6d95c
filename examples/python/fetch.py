#!/usr/bin/env python3
"""fetch.py - gets a page, and is patient with its server.

usage: fetch.py URL

What urllib raises is understood: a 503 or a broken connection is repeated, as
late as its Retry-After asks for; a 404 is not. Each attempt that failed is a
line on stderr.
"""

import logging
import sys
import urllib.error
import urllib.request

import stagger

POLICY = "exponential base=200ms cap=10s jitter=full attempts=5 deadline=1m"


@stagger.retry(POLICY)
def fetch(url: str) -> bytes:
    operation = stagger.current()
    assert operation is not None
    with urllib.request.urlopen(url, timeout=operation.timeout) as answer:
        body: bytes = answer.read()
        return body


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        sys.stdout.buffer.write(fetch(sys.argv[1]))
    except urllib.error.URLError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
