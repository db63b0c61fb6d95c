"""Settings of a random hub, drawn over everything that packaging/stagger.schema.json
has: each feature with a chance of its own, and each plain value out of a list.

`unknown()` names what the schema has and nothing here draws: a new setting has to
be added to a list, or to a feature.
"""
import json
import pathlib

SCHEMA = pathlib.Path(__file__).parents[2] / "packaging/stagger.schema.json"
SECRET = {"file": "sign.secret"}
POLICIES = {
    "quick": "fixed base=50ms jitter=none attempts=3 attempt-timeout=1s "
             "retry=5xx,429,timeout,reset,protocol deadline=none "
             "budget=ratio:0.5+200/s budget-empty=wait",
    "broken": "exponential base=20ms cap=200ms attempts=4 attempt-timeout=500ms "
              "retry=5xx,429,timeout,reset,protocol deadline=5s "
              "breaker=5:200ms-1s budget=ratio:0.5+200/s budget-empty=wait",
    "poor": "fixed base=20ms attempts=5 attempt-timeout=1s retry=5xx "
            "deadline=none budget=5:20/s budget-empty=give-up",
    "once": "attempts=1 attempt-timeout=1s",
}
TIMES = ["100ms", "1s", "5s"]

# Plain values of the hub: a path, and what may stand there.
HUB = {
    "store.quota": ["32MiB", "256MiB", "8GiB"],
    "store.retention": ["1h", "24h"],
    "store.full": ["shed", "refuse"],
    "store.keep": ["off", "1h"],
    "store.keys.keep": ["1h", "24h"],
    "store.keys.max": [10, 50000],
    "dead-letters.keep": ["none", "30d"],
    "dead-letters.max": [50, 1000],
    "dead-letters.share": ["1%", "25%"],
    "dead-letters.copy": ["file:dead.jsonl"],
    "receipts.keep": ["off", "1h"],
    "receipts.share": ["10%", "100%"],
    "receipts.quota": ["1MiB", "4MiB"],
    "receipts.copy": ["file:receipts.jsonl"],
    "secrets.key": ["secrets.key"],
    "audit": ["audit.log"],
    "memory": ["32MiB", "128MiB"],
    "in-flight": [1, 10, 10000],
    "budget": ["none", "10:50/s", "ratio:0.2+100/s"],
    "budget-empty": ["wait", "give-up"],
    "drain": ["0s", "1s", "10s"],
    "log.format": ["logfmt", "json"],
    "log.level": ["debug", "info", "warn", "error"],
    "metrics.targets": [0, 1, 1000],
    "trace": ["begin", "pass", "off"],
    "traces.endpoint": ["@leaf@/traces"],
    "traces.share": ["0%", "50%", "100%"],
    "traces.headers": [{"Authorization": {"file": "collector.token"}}],
    "traces.ca": ["root.crt"],
    "resolver": ["dns", "system"],
    "egress.allow": [["127.0.0.0/8"]],
    "egress.deny": [["10.0.0.0/8", "fd00::/8"], ["127.9.0.0/16"]],
    "listen.headers": [["traceparent", "X-*", "ce-*", "Event-Type"], ["X-*"]],
    "listen.connections.max": [64, 300, 4096],
    "listen.connections.per-address": [64, 512],
    "listen.tokens": ["tokens"],
    "alerts.threshold": ["off", "1 failure in 10s", "10 failures in 5m"],
    "alerts.threshold-all": ["off", "5 failures in 10s"],
    "alerts.alerts": [["dead-letters", "store"], ["breaker", "gone", "token"]],
    "alerts.lag.messages": [0, 10, 100000],
    "alerts.lag.time": ["never", "1s", "10m"],
    "alerts.certificate": ["0s", "14d"],
    "alerts.interval": ["1m"],
    "alerts.repeat-interval": ["15m", "never"],
    "alerts.group-wait": ["0s", "200ms"],
    "alerts.min-interval": ["0s", "1s"],
    "alerts.resolve-after": ["0s", "1s"],
    "alerts.send-resolved": [True, False],
    "alerts.hub-name": ["hub-1"],
}
# Plain values of a target, and of `defaults`.
TARGET = {
    "method": ["POST", "PUT"],
    "headers": [{"X-Plain": "x"}, {"Authorization": {"file": "target.token"}},
                {"X-Made": "{id}"}],
    "policy": list(POLICIES),
    "in-flight": [1, 4, 64],
    "rate": ["200/s", "1000/s"],
    "burst": [1, 100],
    "order": ["none", "key", "strict"],
    "parked-max": [5, 10000],
    "shed-after": ["0s", "500ms", "10m", "none"],
    "replay": ["off", "on-recovery"],
    "disable-after": ["1m", "none"],
    "owner": ["@leaf@/alerts"],
    "start": ["latest", "earliest"],
    "cloudevents": ["as-is", "binary", "structured"],
    "match": [{"X-Event": ["order.paid"]},
              {"body": {"type": [{"prefix": "order."}]}},
              {"body": {"n": [{"numeric": [">", 3]}]}}],
    "batch": [{"max": 10, "linger": "20ms"}, {"max": 3, "format": "ndjson"},
              {"max": 50, "bytes": "1KiB", "results": True}],
    "timeouts": [{"connect": "500ms", "first-byte": "500ms"},
                 {"resolve": "1s", "tls": "1s", "write": "1s",
                  "attempt": "700ms"}, {"write": "none"}],
    "connections": [{"idle-max": 0}, {"idle": "100ms", "age": "300ms"}],
    "answer": [{"read": 0, "keep": 0}, {"read": "1KiB", "keep": "4KiB"}],
    "proxy": ["@proxy@", {"file": "proxy.url"}, "none"],
    "source-address": ["127.0.0.1", "127.0.0.2", "none"],
    "tls": [{"ca": "root.crt", "certificate": "client.crt", "key": "client.key",
             "server-name": "leaf.internal"}, {"verify": False}],
    "tags": [{"team": "shop"}, {"tier": "1"}],
    "paused": [True, False],
}
SIGN = [
    {"scheme": "standard-webhooks", "secrets": SECRET},
    {"scheme": "standard-webhooks",
     "secrets": [SECRET, {"file": "sign.secret.2"}]},
    {"scheme": "github", "secrets": {"file": "word.secret"}},
    {"scheme": "stripe", "secrets": [{"file": "word.secret"}]},
    {"scheme": "custom", "secrets": {"file": "word.secret"},
     "header": "X-Signature", "timestamp-header": "X-At",
     "signs": "{timestamp}.{body}", "prefix": "sha256=", "algorithm": "sha512",
     "encoding": "base64"},
    {"scheme": "rfc9421", "secrets": {"file": "word.secret"}, "key-id": "hub-1",
     "covers": ["@method", "@target-uri", "content-digest"]},
    {"scheme": "rfc9421", "secrets": {"file": "client.key"}, "key-id": "k"},
    {"scheme": "none"},
]
OAUTH = [
    {"token-url": "@leaf@/token", "client-id": "hub",
     "client-secret": {"file": "oauth.secret"}, "scope": ["a", "b"]},
    {"token-url": "@tls@/token", "client-id": "hub", "ca": "root.crt",
     "client-secret": {"file": "oauth.secret"}, "auth": "body",
     "audience": "https://shop.example/"},
    {"token-url": "@leaf@/token", "client-id": "hub", "key-id": "k1",
     "private-key": {"file": "client.key"},
     "assertion-audience": "https://login.example"},
    {"grant": "none", "token-url": "@leaf@/token", "client-id": "hub",
     "client-secret": {"file": "oauth.secret"}},
]
BEHAVIOURS = ["ok", "ok", "ok", "flaky", "flaky", "any", "slow", "500", "404",
              "429", "busy", "moved", "late", "hang", "reset", "close", "half",
              "garbage", "large", "created"]
RECEIVERS = [
    {"type": "slack", "url-file": "slack.url"},
    {"type": "slack", "url-file": "slack.url", "proxy": "@proxy@"},
    {"type": "teams", "url-file": "teams.url"},
    {"type": "webhook", "url": "@leaf@/alerts", "tags": {"team": "shop"},
     "headers": {"Authorization": {"file": "pager.token"}}, "timeout": "1s"},
    {"type": "webhook", "url": "@leaf@/broken", "timeout": "1s"},
    {"type": "webhook", "url": "@tls@/alerts", "ca": "root.crt",
     "proxy": {"file": "proxy.url"}, "alerts": ["dead-letters", "gone"],
     "sign": {"scheme": "standard-webhooks", "secrets": SECRET}},
    {"type": "webhook", "url": "@leaf@/alerts", "sign": {
        "scheme": "custom", "secrets": {"file": "word.secret"},
        "header": "X-S", "timestamp-header": "X-T",
        "signs": "{timestamp}.{body}", "prefix": "p=", "algorithm": "sha256",
        "encoding": "hex"}},
    {"type": "webhook", "url": "@leaf@/alerts", "sign": {
        "scheme": "rfc9421", "secrets": {"file": "client.key"}, "key-id": "k",
        "covers": ["@method", "content-digest"]}},
    {"type": "pagerduty", "key-file": "pager.key", "url": "@leaf@/alerts"},
    {"type": "opsgenie", "key-file": "pager.key", "url": "@leaf@/alerts"},
    {"type": "template", "url": "@leaf@/alerts", "targets": ["a"],
     "body": '{"text": "{title}", "id": "{key}"}'},
    {"type": "mail", "url": "smtp://127.0.0.1:1", "from": "hub@example.org",
     "to": ["ops@example.org"], "starttls": "none"},
    {"type": "mail", "url": "smtps://127.0.0.1:1", "ca": "root.crt",
     "from": "hub@example.org", "to": ["ops@example.org"], "user": "hub",
     "password-file": "mail.password"},
]
INBOUND = [
    {"scheme": "github", "secrets": [{"file": "word.secret"}]},
    {"scheme": "stripe", "secrets": [{"file": "word.secret"}],
     "tolerance": "1m"},
    {"scheme": "standard-webhooks", "keep": ["X-*"],
     "secrets": [SECRET, {"file": "sign.secret.2"}]},
    {"scheme": "custom", "secrets": [{"file": "word.secret"}],
     "header": "X-Signature", "prefix": "sha256=", "algorithm": "sha256",
     "encoding": "hex", "signs": "{timestamp}.{body}", "id-header": "X-Delivery",
     "timestamp-header": "X-At"},
    {"scheme": "rfc9421", "secrets": [{"file": "word.secret"}],
     "covers": ["@method", "content-digest"]},
]
# Settings that features draw below, by hand, and the ones that a run never has.
BY_HAND = {"source", "kafka", "shard", "listen.address", "listen.tls", "inbound",
           "store.path", "policies", "defaults", "targets", "alerts.receivers",
           "target.name", "target.url", "target.sign", "target.oauth2",
           "target.topics", "receiver.name", "inbound.name", "inbound.topic"}


def put(settings, path, value):
    *keys, last = path.split(".")
    for key in keys:
        settings = settings.setdefault(key, {})
    settings[last] = value


def take(settings, path):
    """Takes out the value at a path, and maps that are empty without it."""
    head, _, rest = path.partition(".")
    if head not in settings:
        return
    if rest and isinstance(settings[head], dict):
        take(settings[head], rest)
    if not rest or settings[head] == {}:
        del settings[head]


def draw_target(rng, name, share):
    """share: of the keys that it has."""
    behaviour = rng.choice(BEHAVIOURS)
    scheme = "@tls@" if rng.random() < 0.2 else "@leaf@"
    target = {"name": name, "url": f"{scheme}/{behaviour}/{name}"}
    if rng.random() < 0.1:
        target["url"] = rng.choice(["@refused@/x/", "@hole@/x/"]) + name
    elif rng.random() < 0.1:
        target["url"] += "?id={id}"
    if scheme == "@tls@":
        target["tls"] = rng.choice(TARGET["tls"])
    for key, values in TARGET.items():
        if rng.random() < share and key not in ("tls", "paused", "burst"):
            target[key] = rng.choice(values)
    if "rate" in target and rng.random() < 0.5:
        target["burst"] = rng.choice(TARGET["burst"])
    if rng.random() < share * 2:
        target["sign"] = rng.choice(SIGN)
    if rng.random() < share:
        target["oauth2"] = rng.choice(OAUTH)
        if "headers" in target:  # two Authorizations would be a mistake
            target["headers"] = TARGET["headers"][0]
    return repaired(target)


def repaired(target):
    """Takes out keys that contradict each other."""
    if "batch" in target:
        for key in ("order", "headers", "cloudevents"):
            target.pop(key, None)
        target["url"] = target["url"].split("?")[0]
    if target.get("sign", {}).get("scheme") == "rfc9421":
        target["url"] = target["url"].split("?")[0]
    if target.get("order") == "strict" or "batch" in target:
        target.pop("parked-max", None)
    if target["url"].startswith("@hole@"):
        target.pop("proxy", None)
    return target


def draw_receivers(rng):
    found = []
    for number in range(rng.choice([0, 1, 3, 6])):
        found.append({"name": f"r{number}", **rng.choice(RECEIVERS)})
    return found


def draw_inbound(rng):
    return [{"name": f"in{number}", **hook} for number, hook in
            enumerate(rng.sample(INBOUND, rng.randrange(len(INBOUND) + 1)))]


def draw_source(rng, tools):
    """The queue; or topics of a mock of Kafka or of brokers that are away, with
    a store in a file or in PostgreSQL."""
    if (rng.random() < 0.75 or "queue" in tools) and "no-queue" not in tools:
        return {"store": {"path": "hub.db"}}
    brokers = "127.0.0.1:1"
    if "kafka" in tools and rng.random() < 0.7:
        brokers = "@kafka@"
    kafka = {"brokers": [brokers], "topics": ["t"], "group": "hub",
             "start": "earliest", "options": {
                 "session.timeout.ms": 3000, "heartbeat.interval.ms": 500,
                 "message.timeout.ms": 3000},
             "tombstones": rng.choice(["skip", "send"]),
             "expired": rng.choice(["continue", "stop"]),
             "headers": rng.choice([["X-*", "traceparent"], ["X-*", "ce-*"]]),
             "headers-lost": rng.choice(["drop", "dead-letter"])}
    if rng.random() < 0.3:
        kafka["options"]["sasl.password"] = {"file": "kafka.password"}
        kafka["options"]["sasl.username"] = "hub"
    found = {"source": "kafka", "kafka": kafka, "store": {"path": "hub.db"}}
    if "postgres" in tools and rng.random() < 0.4:
        found["store"] = {"path": "@postgres@"}
    elif rng.random() < 0.2:
        found["shard"] = {"mode": "targets", "count": 1, "index": 1}
    return found


def draw(rng, tools):
    """tools: names of what this machine has besides, kafka and postgres; queue:
    nothing else is the source."""
    settings = draw_source(rng, tools)
    settings["listen"] = {"address": rng.choice(
        ["@listen@"] * 5 + ["unix:@folder@/hub.sock"])}
    share = rng.choice([0.05, 0.15, 0.3])
    for path, values in HUB.items():
        if rng.random() < share:
            put(settings, path, rng.choice(values))
    if rng.random() < share:
        settings["listen"]["tls"] = rng.choice([
            {}, {"client-ca": "root.crt", "client-auth": "optional"},
            {"client-ca": "root.crt", "client-auth": "required"}])
        settings["listen"]["tls"] |= {"certificate": "hub.crt", "key": "hub.key"}
        settings["listen"]["address"] = "@listen@"
    settings["inbound"] = draw_inbound(rng) if rng.random() < 2 * share else []
    settings["policies"] = dict(POLICIES)
    settings["defaults"] = {"policy": rng.choice(["quick", "broken"])}
    for key in ("shed-after", "in-flight", "timeouts", "connections", "answer"):
        if rng.random() < share:
            settings["defaults"][key] = rng.choice(TARGET[key])
    put(settings, "alerts.receivers", draw_receivers(rng))
    settings["targets"] = [draw_target(rng, name, share / 2)
                           for name in "abcdefgh"[:rng.randint(1, 6)]]
    return settled(settings)


def settled(settings):
    """Takes out settings that contradict others."""
    connections = settings.get("listen", {}).get("connections", {})
    if connections.get("per-address", 0) > connections.get("max", 1024):
        take(settings, "listen.connections.per-address")
    if "endpoint" not in settings.get("traces", {}) or \
            settings.get("trace") == "off":
        settings.pop("traces", None)
    if "kafka" not in settings:
        return settings
    for path in ("dead-letters.share", "receipts", "store.keep", "store.keys"):
        take(settings, path)
    for path in ("store.quota", "store.full", "store.retention"):
        if settings["store"]["path"] != "hub.db":
            take(settings, path)
    for hook in settings["inbound"]:
        hook["topic"] = "t"
    return settings


# -- is all of the schema drawn?

def walk(path, node):
    if "properties" in node and not {"file"} == set(node["properties"]):
        for name, below in node["properties"].items():
            yield from walk(f"{path}.{name}" if path else name, below)
    else:
        yield path


def drawn():
    found = set(BY_HAND) | set(HUB) | {f"target.{key}" for key in TARGET}
    for kind, values in (("receiver", RECEIVERS), ("inbound", INBOUND)):
        found |= {f"{kind}.{key}" for value in values for key in value}
    return found


def unknown():
    """Paths of the schema that nothing here draws."""
    schema = json.loads(SCHEMA.read_text())
    paths = set(walk("", schema))
    for kind in ("target", "receiver", "inbound"):
        paths |= set(walk(kind, schema["$defs"][kind]))
    known = drawn()
    return sorted(path for path in paths if not any(
        path == each or path.startswith(each + ".") for each in known))
