"""What a call costs in Python, for bench/adapters.py.

usage: calls.py bare|stagger|tenacity|backoff|stamina plain|async success|retry

As calls.c; a failure is a ConnectionRefusedError.
"""

import asyncio
import logging
import sys
import time

COUNT = 4000


def by_hand(f):
    def call():
        while True:
            try:
                return f()
            except ConnectionRefusedError:
                pass
    return call


def by_hand_async(f):
    async def call():
        while True:
            try:
                return await f()
            except ConnectionRefusedError:
                pass
    return call


def decorator(name, is_async):
    if name == "stagger":
        import stagger
        return stagger.retry("fixed base=0 attempts=4 deadline=none")
    if name == "tenacity":
        import tenacity
        return tenacity.retry(stop=tenacity.stop_after_attempt(4),
                              wait=tenacity.wait_none())
    if name == "backoff":
        import backoff
        return backoff.on_exception(backoff.constant, ConnectionRefusedError,
                                    max_tries=4, interval=0, jitter=None)
    if name == "stamina":
        import stamina
        stamina.instrumentation.set_on_retry_hooks([])
        return stamina.retry(on=ConnectionRefusedError, attempts=4,
                             timeout=None, wait_initial=0, wait_max=0,
                             wait_jitter=0)
    return by_hand_async if is_async else by_hand


def main():
    name, kind, case = sys.argv[1:]
    logging.disable(logging.INFO)
    calls = 0

    def work():
        nonlocal calls
        calls += 1
        if case == "retry" and calls % 2 == 1:
            raise ConnectionRefusedError
        return 1

    async def work_async():
        return work()

    is_async = kind == "async"
    call = decorator(name, is_async)(work_async if is_async else work)

    async def measure_async(count):
        began = time.perf_counter_ns()
        for _ in range(count):
            await call()
        return (time.perf_counter_ns() - began) / count

    def measure(count):
        if is_async:
            return asyncio.run(measure_async(count))
        began = time.perf_counter_ns()
        for _ in range(count):
            call()
        return (time.perf_counter_ns() - began) / count

    measure(COUNT // 10)
    print(f"{measure(COUNT):.0f}")


main()
