#!/usr/bin/env python3
"""What the Python package costs.

usage: python3 bench/python.py

Needs the wheel (make wheel) and tenacity installed. A call that succeeds at
once may cost a third of tenacity's at most; and 100,000 async calls that wait
at once a bounded piece of memory each.
"""

import asyncio
import resource
import time
import timeit

import stagger
import tenacity

TASKS = 100_000


def work():
    return 1


async def later():
    return 1


def cost(call, count=20_000):
    """In microseconds, the least of some runs."""
    return min(timeit.repeat(call, number=count, repeat=7)) / count * 1e6


def cost_async(f, count=20_000):
    async def run():
        began = time.perf_counter()
        for _ in range(count):
            await f()
        return (time.perf_counter() - began) / count * 1e6

    return min(asyncio.run(run()) for _ in range(5))


def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


async def wait_together(f):
    await asyncio.gather(*(f() for _ in range(TASKS)), return_exceptions=True)


def memory(decorate):
    """KiB for each of so many tasks that wait at once."""

    @decorate
    async def refuse():
        raise ConnectionRefusedError

    before = peak_kib()
    began = time.perf_counter()
    asyncio.run(wait_together(refuse))
    return (peak_kib() - before) / TASKS, time.perf_counter() - began


def main():
    theirs = tenacity.retry(stop=tenacity.stop_after_attempt(4))
    ours = stagger.retry("attempts=4")
    print(f"{'':24}{'stagger':>10}{'tenacity':>10}")
    for name, measure, f in (("plain", cost, work), ("async", cost_async, later)):
        a, b = measure(ours(f)), measure(theirs(f))
        print(f"{name + ' call, us':24}{a:10.2f}{b:10.2f}   1/{b / a:.1f}")
    each, took = memory(
        stagger.retry("fixed base=5s jitter=10% attempts=2", log=None))
    print(f"{TASKS} tasks that wait: {each:.1f} KiB each, {took:.1f} s")


if __name__ == "__main__":
    main()
