"""Acts of a random operator, drawn ahead of the run: an act names what it wants
(the last message, a target by its name), and the run finds out what that is.
"""
import random

import settings as drawing
from script import Act, Script

LOOKS = ["/v1/status", "/v1/targets?limit=1000", "/v1/targets/@t@",
         "/v1/targets/@t@/history", "/v1/targets/@t@/plan",
         "/v1/targets/@t@/attempts", "/v1/targets/@t@/rewind", "/v1/history",
         "/v1/dead-letters?limit=50", "/v1/dead-letters?target=@t@",
         "/v1/dead-letters/1", "/v1/messages/@last@", "/v1/replays",
         "/v1/targets?limit=1000", "/v1/targets/@t@", "/v1/token", "/metrics", "/readyz", "/", "/v1/targets/nobody"]
COMMANDS = [
    ["store", "verify", "-s", "@store@"],
    ["store", "backup", "-s", "@store@", "copy.db"],
    ["dead", "list", "-s", "@store@"],
    ["dead", "export", "-s", "@store@"],
    ["check", "-c", "hub.yaml"],
    ["status", "--once", "-n", "10ms", "@hub@"],
    ["targets", "list", "@hub@"],
    ["dead", "list", "--summary", "@hub@"],
    ["dead", "export", "@hub@"],
    ["dead", "replay", "--all", "--yes", "@hub@"],
    ["reload", "@hub@"],
    ["alert", "test", "@hub@"],
    ["send", "--lines", "lines.txt", "@hub@"],
    ["pause", "@t@", "@hub@"],
    ["resume", "@t@", "@hub@"],
]
FILES = ["sign.secret", "word.secret", "target.token", "slack.url", "pager.key",
         "proxy.url", "tokens", "collector.token", "oauth.secret",
         "secrets.key", "hub.crt", "root.crt", "kafka.password", "mail.password"]
WRITTEN = ["dead.jsonl", "receipts.jsonl", "audit.log"]
SPOILS = ["yaml", "unknown", "empty", "gone", "url-file", "missing-file",
          "late", "egress", "duplicate", "same-file"]
CALLS = ["pause", "resume", "probe", "rewind", "unwind", "resend", "replay",
         "drop", "test"]
# Name to weight. Acts of one kind can be left out by --without NAME.
WEIGHTS = {
    "edit": 20, "spoil": 5, "rotate": 6, "move": 4, "copy": 4, "add": 6,
    "change": 4, "remove": 5, "forget": 2, "call": 14, "look": 12, "stream": 3,
    "command": 5, "turn": 8, "hup": 3, "restart": 3, "kill": 3, "second": 1, "restore": 1, "storm": 3,
    "connections": 2, "freeze": 1,
}
NAMES = "abcdefgh"
ADDED = ["x", "y", "z"]


def draw_target_edit(rng):
    name = rng.choice(NAMES)
    if rng.random() < 0.25:
        return {"target": drawing.draw_target(rng, name, 0.1)}
    if rng.random() < 0.2:
        return {"without": name}
    key = rng.choice([*drawing.TARGET, "sign", "oauth2"])
    values = {"sign": drawing.SIGN, "oauth2": drawing.OAUTH}.get(
        key) or drawing.TARGET[key]
    return {"of": name, "key": key, "value": rng.choice([*values, None])}


def draw_edit(rng):
    """Draws a change of any setting but three: a run listens at one address, and has
    one store and one source."""
    draw = rng.random()
    if draw < 0.05:
        return {"crowd": rng.choice([0, 20, 100])}
    if draw < 0.5:
        return draw_target_edit(rng)
    if draw < 0.6:
        return {"set": {"alerts.receivers": drawing.draw_receivers(rng)}}
    if draw < 0.65:
        return {"set": {"inbound": drawing.draw_inbound(rng)}}
    if draw < 0.7:
        return {"set": {"policies.quick": rng.choice(
            list(drawing.POLICIES.values()))}}
    if draw < 0.75:
        return {"set": {"defaults.shed-after":
                        rng.choice(drawing.TARGET["shed-after"])}}
    path = rng.choice(list(drawing.HUB))
    return {"set": {path: rng.choice([*drawing.HUB[path], None])}}


def draw_file(rng):
    return {"file": rng.choice(FILES)}


def draw_added(rng):
    target = drawing.draw_target(rng, rng.choice(ADDED), 0.1)
    for key in "headers", "tls", "sign", "oauth2", "proxy", "policy":
        if "file" in str(target.get(key)) or key in ("policy", "tls"):
            target.pop(key, None)  # a call names no files
    return target


ARGUMENTS = {
    "edit": draw_edit,
    "spoil": lambda rng: {"how": rng.choice(SPOILS)},
    "rotate": draw_file,
    "move": lambda rng: {**draw_file(rng), "how":
                         rng.choice(["remove", "rename", "open", "back"])},
    "copy": lambda rng: {"file": rng.choice(WRITTEN), "how":
                         rng.choice(["remove", "rename", "cut"])},
    "add": lambda rng: {"target": draw_added(rng)},
    "change": lambda rng: {"name": rng.choice(ADDED), "body": rng.choice([
        {"rate": "100/s"}, {"rate": None}, {"in-flight": 2},
        {"shed-after": "1s"}, {"nonsense": 1}, {"paused": True},
        {"paused": False}, {"url": "@leaf@/ok/@n@"}])},
    "remove": lambda rng: {"name": rng.choice(ADDED),
                           "waiting": rng.choice([True, False])},
    "forget": lambda rng: {"name": rng.choice(NAMES)},
    "call": lambda rng: {"what": rng.choice(CALLS), "name":
                         rng.choice([*NAMES, *ADDED])},
    "look": lambda rng: {"path": rng.choice(LOOKS), "name":
                         rng.choice(NAMES)},
    "stream": lambda rng: {"path": rng.choice(["/v1/events", "/v1/live",
                                               "/v1/events?level=debug"]),
                           "reads": rng.choice([True, False])},
    "command": lambda rng: {"words": rng.choice(COMMANDS),
                            "name": rng.choice(NAMES)},
    "turn": lambda rng: {"name": rng.choice([*NAMES, *ADDED]),
                         "to": rng.choice(drawing.BEHAVIOURS)},
    "connections": lambda rng: {"count": rng.choice([10, 40])},
    "restart": lambda rng: {"twice": rng.random() < 0.2},
    "freeze": lambda rng: {"seconds": rng.choice([0.2, 1.5])},
}


def draw_acts(rng, count, without):
    names = [name for name in WEIGHTS if name not in without]
    weights = [WEIGHTS[name] for name in names]
    for _ in range(count):
        name, = rng.choices(names, weights)
        arguments = ARGUMENTS.get(name, lambda rng: {})(rng)
        if name == "spoil" and arguments["how"] in without:
            continue
        yield Act(rng.choice([0, 0, 10, 50, 150, 400]), name, arguments)
        if name in ("edit", "rotate", "move", "copy") and rng.random() < 0.85:
            yield Act(rng.choice([0, 50]), "reload",
                      {"how": rng.choice(["call", "call", "hup"])})


def draw_producers(rng, is_kafka):
    """The mock of Kafka keeps a few MiB of a partition: nothing huge goes there."""
    kinds = ["plain", "huge", "keyed", "event", "repeated", "binary", "structured",
             "expiring", "scheduled", "traced", "wrong", "batch", "inbound",
             "cut"]
    drawn = rng.sample(kinds, rng.randint(3, len(kinds)))
    if is_kafka:
        drawn = [kind for kind in drawn if kind != "huge"]
    return {"kinds": sorted(drawn),
            "rate": rng.choice([20, 60, 150])}


def draw(seed, tools, without=()):
    """The script of a seed. without: acts, and paths of settings, left out."""
    rng = random.Random(seed)
    first = drawing.draw(rng, {"queue"} if "kafka" in without else
                         {*tools, *({"no-queue"} if "queue" in without else ())})
    acts = [Act(0, "produce", draw_producers(rng, "kafka" in first))]
    acts += draw_acts(rng, rng.choice([15, 30, 60]), without)
    for path in without:
        drawing.take(first, path)
    acts = [act for act in acts if not any(
        path in act.args.get("set", {}) or path == act.args.get("file")
        or path == act.args.get("key") for path in without)]
    return Script(first, acts)
