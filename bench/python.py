#!/usr/bin/env python3
"""Measures the cost of the Python package.

usage: python3 bench/python.py

Needs the wheel (make wheel) and tenacity installed. A call that succeeds at
once may cost a third of tenacity's at most. 100,000 async calls wait together:
each may take a bounded amount of memory, and the event loop may stand still no
longer than a batch of them takes to begin. As many end their waits in virtual
time.
"""

import asyncio
import random
import resource
import time
import timeit

import stagger
import tenacity

TASKS = 100_000
BATCH = 100


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


async def beat(stalls):
    """The times between two turns of the event loop."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0)
        stalls.append(time.perf_counter() - began)
        del stalls[1:-1]
        stalls[0] = max(stalls)
        await asyncio.sleep(0.001)


async def wait_together(f, stalls):
    heart = asyncio.create_task(beat(stalls))
    tasks = []
    for _ in range(TASKS // BATCH):
        tasks += [asyncio.create_task(f()) for _ in range(BATCH)]
        await asyncio.sleep(0)
    await asyncio.wait(tasks)
    heart.cancel()
    assert all(type(task.exception()) is ConnectionRefusedError for task in tasks)


async def refuse():
    raise ConnectionRefusedError


async def nap():
    """The same without stagger."""
    await asyncio.sleep(random.uniform(10, 30))
    raise ConnectionRefusedError


def together(refuse):
    """KiB for each of so many tasks that wait at once, the longest stall of the
    loop, and how long it took, in seconds."""
    stalls = []
    before = peak_kib()
    began = time.perf_counter()
    asyncio.run(wait_together(refuse, stalls))
    return (peak_kib() - before) / TASKS, max(stalls), time.perf_counter() - began


def main():
    theirs = tenacity.retry(stop=tenacity.stop_after_attempt(4))
    ours = stagger.retry("attempts=4")
    print(f"{'':24}{'stagger':>10}{'tenacity':>10}")
    for name, measure, f in (("plain", cost, work), ("async", cost_async, later)):
        a, b = measure(ours(f)), measure(theirs(f))
        print(f"{name + ' call, us':24}{a:10.2f}{b:10.2f}   1/{b / a:.1f}")
    print(f"{TASKS} tasks that wait at once, {BATCH} begun in a turn:")
    retry = stagger.retry("fixed base=20s jitter=50% attempts=2", log=None)
    for name, f in (("stagger", retry(refuse)), ("asyncio.sleep()", nap)):
        each, stall, took = together(f)
        print(f"{name:>24}{each:10.1f} KiB each, {took:.1f} s, longest stall of "
              f"the loop {stall * 1e3:.0f} ms")
    with stagger.testing.virtual_time(seed=1) as virtual:
        hours = "fixed base=1h jitter=50% attempts=3 deadline=none"
        _, _, took = together(stagger.retry(hours, log=None)(refuse))
    print(f"{TASKS} tasks in virtual time: {len(virtual.waits)} waits, "
          f"{virtual.now / 3600:.1f} h in {took:.1f} s")


if __name__ == "__main__":
    main()
