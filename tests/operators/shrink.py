"""A failing script made small: acts, then targets, then settings are taken out for
as long as a run still fails in the same way."""
import copy
import time

from script import Script


def without_acts(script, first, count):
    return Script(script.settings,
                  script.acts[:first] + script.acts[first + count:])


def smaller_settings(settings):
    """Copies with one thing less: a target, a receiver, a webhook, a key."""
    for path in (("targets",), ("alerts", "receivers"), ("inbound",)):
        whole = settings
        for key in path:
            whole = whole.get(key, {})
        for number in range(len(whole)):
            yield cut(settings, (*path, number))
    for path in paths_of(settings):
        yield cut(settings, path)


def paths_of(value, path=()):
    """Yields the paths of keys, a map before its keys."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list) and path in (("targets",), ("inbound",)):
        items = list(enumerate(value))
    else:
        return
    for key, below in items:
        if not isinstance(key, int) and (*path, key) not in (
                ("store",), ("listen",), ("targets",), ("kafka",), ("source",)):
            yield (*path, key)
        yield from paths_of(below, (*path, key))


def cut(settings, path):
    found = copy.deepcopy(settings)
    at = found
    for key in path[:-1]:
        at = at[key]
    del at[path[-1]]
    return found


def shrink(script, fails, seconds, tell):
    """fails(script): whether it still does. Until nothing can go, or time is
    over."""
    until = time.monotonic() + seconds

    def tries(candidate):
        return time.monotonic() < until and fails(candidate)

    size = max(1, len(script.acts) // 2)
    while size:
        first = 0
        while first < len(script.acts):
            candidate = without_acts(script, first, size)
            if tries(candidate):
                script = candidate
                tell(script)
            else:
                first += size
        size //= 2
    has_shrunk = True
    while has_shrunk and time.monotonic() < until:
        has_shrunk = False
        for settings in smaller_settings(script.settings):
            candidate = Script(settings, script.acts)
            if tries(candidate):
                script, has_shrunk = candidate, True
                tell(script)
                break
    return script
