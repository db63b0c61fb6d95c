/* The settings, one row each, in the order of the documentation. Help, manual,
 * schema and documentation of a setting are made of its row; its kind reads its
 * value. Words of an enum stand in the order of the enum, since their number is
 * what is stored.
 *
 * A new setting needs a field in config/settings.h, a row here, its key in the
 * examples, and docs/configuration.md, the manual and the schema made anew:
 * `stagger check --docs`, `--manual`, `--schema`. */
#include "config/table.h"

#include <string.h>

#include "config/kinds/kinds.h"
#include "config/table_rows.h"

static const char *const fulls[] = {"shed", "refuse", NULL};
static const char *const empties[] = {"wait", "give-up", NULL};
static const char *const nulls[] = {"skip", "send", NULL};
static const char *const losses[] = {"drop", "dead-letter", NULL};
static const char *const expireds[] = {"continue", "stop", NULL};
static const char *const shards[] = {"partitions", "targets", NULL};
static const char *const formats[] = {"logfmt", "json", NULL};
static const char *const resolvers[] = {"dns", "system", NULL};
static const char *const traces[] = {"begin", "pass", "off", NULL};
static const char *const client_auths[] = {"required", "optional", NULL};
static const char *const types[] = {"slack",    "mail",      "webhook",
                                    "teams",    "pagerduty", "opsgenie",
                                    "template", NULL};
static const char *const starttls[] = {"required", "optional", "none", NULL};

/* clang-format off */
static const stg_setting hub_rows[] = {
/* -- what comes in --------------------------------------------------------- */
{HUB("source", source, source), .standard = "queue",
 .example = "kafka://k1:9092,k2:9092/orders?group=hub", .is_fixed = true,
 .flag = "-f, --from FROM",
 .says = "Where messages come from: `queue`, what is published by HTTP and kept in "
         "the store; "
         "`kafka`, topics as `kafka` says; or "
         "kafka://HOST:PORT,.../TOPIC,...?group=GROUP&start=START in one. "
         "Lines of a pipe are published by `stagger send`."},
{SECTION(STG_IN_HUB, "kafka"),
 .says = "With `source: kafka`: docs/kafka.md. The topics are the log, and what "
         "is published by HTTP is written to them."},
{HUB_LIST("kafka.brokers", brokers, kafka.brokers.at, kafka.brokers.count),
 RANGE(1, 100), .example = "[k1.example:9092, k2.example:9092]",
 .is_fixed = true, .says = "Brokers to ask first; they name the others."},
{HUB_LIST("kafka.topics", topics, kafka.topics.at, kafka.topics.count),
 RANGE(1, 1000), .example = "[orders, '^audit\\..*']", .is_fixed = true,
 .says = "Topics whose records are the messages: names, or patterns that begin "
         "with ^ and stand for all topics that they match, also those that are "
         "made later (docs/kafka.md)."},
{HUB("kafka.group", text, kafka.group), RANGE(1, 200), .standard = "stagger",
 .example = "hub", .is_fixed = true,
 .says = "The consumer group. Hubs of one group share the partitions."},
{HUB_LIST("kafka.headers", rules, kafka.headers.at, kafka.headers.count),
 .standard = "[traceparent, tracestate, Content-Encoding, Content-Language, "
             "ce-*, X-*]",
 .example = "[traceparent, X-*, Event-Type]", .is_fixed = true,
 .says = "Headers of a record that go on to the targets: names, or the "
         "beginning of names and `*`. Content-Type always does."},
{HUB("kafka.headers-lost", word, kafka.headers_lost), .words = losses,
 .standard = "drop", .example = "dead-letter", .is_fixed = true,
 .says = "What to do with a record whose headers `kafka.headers` keeps, but HTTP "
         "cannot send (they are not valid, or more than 16 KiB): `drop` these "
         "headers and send the rest, or make the record a `dead-letter` of each "
         "target."},
{HUB("kafka.tombstones", word, kafka.null_value), .words = nulls, .standard = "skip",
 .example = "send", .is_fixed = true,
 .says = "A record whose value is null, as compacted topics have them: `skip` "
         "it, or `send` it with an empty body."},
{HUB("kafka.start", text, kafka.start), RANGE(1, 40), .standard = "latest",
 .example = "earliest", .is_fixed = true,
 .says = "Where the group begins in a topic that neither the store nor the group "
         "knows: `latest`, with what comes from now on, `earliest`, with all "
         "that the topic has, or at a time such as 2026-03-01T12:00:00Z. It "
         "applies once; partitions and topics that appear later begin at their "
         "first record."},
{HUB("kafka.expired", word, kafka.expired), .words = expireds,
 .standard = "continue", .example = "stop", .is_fixed = true,
 .says = "What to do when a topic no longer has the record that is to be read "
         "next: `continue` with its first record, or `stop` reading the "
         "partition, with an error."},
{HUB_LIST("kafka.options", properties, kafka.options, kafka.option_count),
 .example = "{security.protocol: SASL_SSL, sasl.password: {file: kafka.pw}}",
 .is_fixed = true,
 .says = "Properties of librdkafka, as its CONFIGURATION.md has them. A value "
         "may be the content of a file that nobody else may read. Properties "
         "that the hub sets itself are refused."},
{SECTION(STG_IN_HUB, "shard"),
 .says = "How several hubs share the work: docs/scaling.md."},
{HUB("shard.mode", word, shard.mode), .words = shards, .standard = "partitions",
 .example = "targets", .is_fixed = true,
 .says = "`partitions`: each hub of the group has some, and sends to all "
         "targets; `targets`: each hub has all partitions, and sends to its "
         "share of the targets."},
{HUB("shard.count", count, shard.count), RANGE(1, 1024), .standard = "1",
 .example = "4", .is_fixed = true,
 .says = "With `mode: targets`, how many hubs there are. Change it only while "
         "all of them are stopped."},
{HUB("shard.index", count, shard.index), RANGE(1, 1024), .standard = "1",
 .example = "2", .is_fixed = true, .says = "The number of this hub, from 1."},
{SECTION(STG_IN_HUB, "listen"),
 .says = "The hub's own HTTP: publishing, the admin API, metrics and health."},
{HUB("listen.address", address, listen.address), .standard = "127.0.0.1:8080",
 .example = "'[::1]:8080'", .is_fixed = true, .flag = "-l, --listen A:P",
 .says = "Address and port to listen on. With port 0 the system chooses one, "
         "which the log line event=ready names. `unix:/path` is a socket in the "
         "file system, for all who may write to it. An address that other "
         "machines can reach needs `listen.tokens`.",
 .flag_says = "Address and port of the hub's HTTP (publishing, API, metrics), "
              "such as 127.0.0.1:8080, [::1]:8080, 0.0.0.0:8080 for every "
              "address of this machine, or unix:/run/hub.sock, a socket in the "
              "file system. With port 0 the system chooses one, which the log "
              "line event=ready names. An address that other machines can reach "
              "needs --token-file."},
{HUB("listen.tokens", file, listen.token_file), .example = "tokens",
 .is_secret = true, .flag = "--token-file FILE",
 .says = "File of tokens with their roles, one a line, as `stagger token` makes "
         "it. Without it every process on this machine may do everything."},
{HUB_LIST("listen.headers", rules, listen.headers.at, listen.headers.count),
 .standard = "[traceparent, tracestate, Content-Encoding, Content-Language, "
             "ce-*, X-*]",
 .example = "[traceparent, X-*, Event-Type]",
 .says = "Headers of a published message that go on to the targets: names, or "
         "the beginning of names and `*`. Content-Type and Stagger-Key always do."},
{SECTION(STG_IN_HUB, "listen.tls"),
 .says = "The hub's own certificate. With it the hub speaks only HTTPS, of TLS "
         "1.2 and 1.3. The files are read again at a reload, and at the first "
         "connection a second after they have changed. Open connections go on, "
         "and a certificate that cannot be used changes nothing."},
{HUB("listen.tls.certificate", file, listen.certificate_file),
 .example = "hub.pem", .flag = "--tls-cert FILE",
 .says = "The hub's certificate, in PEM, followed by its chain up to the "
         "authority."},
{HUB("listen.tls.key", file, listen.key_file), .example = "hub.key",
 .is_secret = true, .flag = "--tls-key FILE",
 .says = "The key of that certificate, in PEM, without a passphrase."},
{HUB("listen.tls.client-ca", file, listen.client_ca_file),
 .example = "clients.pem",
 .says = "Certificate authorities, in PEM, that sign the certificates of clients "
         "(mutual TLS). A client needs such a certificate in addition to its "
         "token, which says what it may do."},
{HUB("listen.tls.client-auth", word, listen.client_auth),
 .words = client_auths, .standard = "required", .example = "optional",
 .says = "With `client-ca`: `required`, or `optional` while clients are "
         "migrated: one without a certificate is accepted, one with a wrong "
         "certificate is not."},
{SECTION(STG_IN_HUB, "listen.connections"),
 .says = "How many connections may be open at once."},
{HUB("listen.connections.max", count, listen.connections_max),
 RANGE(1, 60000), .standard = "1024", .example = "4096",
 .says = "Connections in all."},
{HUB("listen.connections.per-address", count, listen.address_connections_max),
 RANGE(1, 60000), .standard = "512", .example = "64",
 .says = "Connections of one client, which is known by its token, or without one "
         "by its address."},
{HUB_LIST("inbound", inbounds, inbound, inbound_count),
 .example = "[{name: github, scheme: github, secrets: {file: github.secret}}]",
 .says = "Webhooks that others send, at `POST /v1/in/NAME`: a request that is "
         "signed with one of the secrets is a message, and needs no token "
         "(docs/inbound.md)."},
/* -- what is kept ---------------------------------------------------------- */
{SECTION(STG_IN_HUB, "store"),
 .says = "The queue, parked deliveries and dead letters: one SQLite file. With "
         "Kafka it may be a PostgreSQL database that hubs share."},
{HUB("store.path", store, store.path), .standard = "stagger.db",
 .example = "/var/lib/stagger/hub.db", .is_fixed = true,
 .flag = "-s, --store FILE",
 .says = "The store; created if missing. Without this setting it is "
         "STAGGER_STORE in the environment, else ./stagger.db. With Kafka also "
         "postgres://USER@HOST/DATABASE, without a password: that is in a file "
         "of libpq's (`?passfile=FILE`, or ~/.pgpass), or comes from the "
         "environment (`${NAME}` in the URL, or PGPASSWORD)."},
{HUB("store.quota", size, store.quota), RANGE(16 * MIB, 16 * TIB),
 .standard = "8GiB", .example = "100GiB", .is_fixed = true,
 .flag = "--quota SIZE",
 .says = "Maximum size of the store. At 80 percent of it the hub refuses new "
         "messages, so that those it has accepted have room."},
{HUB("store.retention", time, store.retention), RANGE(STG_MIN, 365 * STG_DAY),
 .standard = "24h", .example = "3d", .is_fixed = true, .flag = "--retention D",
 .says = "A message that waits longer than this for its first attempt is given "
         "up, in a bulk dead letter of its target. Parked deliveries are not: "
         "they end by their policy."},
{HUB("store.full", word, store.full), .words = fulls, .standard = "shed",
 .example = "refuse", .is_fixed = true,
 .says = "What happens to a target's oldest messages at the end of the retention "
         "or at half of the quota: `shed` gives them up, in one bulk dead "
         "letter; `refuse` keeps them, and at 80 percent of the quota producers "
         "get a 503 until the target has caught up."},
{HUB("store.keep", time, store.keep), RANGE(STG_MIN, 365 * STG_DAY),
 .none = "off", .standard = "off", .example = "3d", .is_fixed = true,
 .flag = "--keep D",
 .says = "How long the queue keeps messages that every target has got, to be "
         "sent again by `stagger targets rewind` or `stagger resend`; while "
         "they fill less than half of the quota."},
{SECTION(STG_IN_HUB, "store.keys"),
 .says = "Idempotency keys of producers: the same key and message get the same "
         "id. With `source: kafka` they need a store in PostgreSQL."},
{HUB("store.keys.keep", time, store.keys_kept), RANGE(STG_MIN, 365 * STG_DAY),
 .standard = "24h", .example = "2h", .is_fixed = true,
 .says = "How long a key is remembered."},
{HUB("store.keys.max", count, store.keys_max), RANGE(1, 1000000000),
 .standard = "1000000", .example = "50000", .is_fixed = true,
 .says = "How many keys are remembered; the oldest is forgotten first. In "
         "PostgreSQL there is no such limit."},
{SECTION(STG_IN_HUB, "dead-letters"),
 .says = "How long dead letters are kept, and a copy of them. Those that were "
         "replayed, dropped or cancelled, or have expired, are deleted after a "
         "day. The others stay until `keep`, `max` or `share` is reached; then "
         "the oldest are evicted: a bulk dead letter of their target and cause "
         "counts them, without their bodies."},
{HUB("dead-letters.copy", letters, letters), .example = "file:dead.jsonl",
 .is_fixed = true, .flag = "--dead-letters WHERE",
 .says = "A copy of each dead letter: `file:FILE`, as JSON lines, or with Kafka "
         "`kafka:TOPIC`, a record each. Nothing is evicted before it is copied, "
         "unless the store is full. The hub never rotates or deletes the file: "
         "rename it, at any time."},
{HUB("dead-letters.keep", time, dead.keep), RANGE(STG_MIN, 365 * STG_DAY),
 .none = "none", .standard = "none", .example = "30d", .is_fixed = true,
 .says = "How long they are kept; `none`: for ever."},
{HUB("dead-letters.max", count, dead.max), RANGE(1, 1000000000000),
 .none = "none", .standard = "none", .example = "100000", .is_fixed = true,
 .says = "How many are kept; `none`: any number."},
{HUB("dead-letters.share", percent, dead.share), RANGE(1, 30),
 .standard = "25%", .example = "10%", .is_fixed = true,
 .says = "How much of `store.quota` they may fill. With `store.full: refuse` "
         "none is evicted for room; and a PostgreSQL database has no quota."},
{SECTION(STG_IN_HUB, "receipts"),
 .says = "Receipts of attempts, for `GET /v1/messages/ID` and the console: what "
         "each target answered, when, and how long it took, of deliveries that "
         "succeeded, too. Those of the last second may be lost in a crash."},
{HUB("receipts.keep", time, receipts.keep), RANGE(STG_MIN, 365 * STG_DAY),
 .none = "off", .standard = "off", .example = "7d", .is_fixed = true,
 .says = "How long they are kept; `off`: there are none."},
{HUB("receipts.share", percent, receipts.share), RANGE(1, 100),
 .standard = "100%", .example = "10%", .is_fixed = true,
 .says = "How many messages have receipts. A message has them for all of its "
         "targets, or for none."},
{HUB("receipts.quota", size, receipts.quota), RANGE(MIB, TIB),
 .standard = "256MiB", .example = "4GiB", .is_fixed = true,
 .says = "How much of the store they may fill, at 80 bytes each; then the oldest "
         "go. In a file at most an eighth of `store.quota`."},
{HUB("receipts.copy", letters, receipts.copy), .example = "file:receipts.jsonl",
 .is_fixed = true,
 .says = "A copy of each receipt, also where the store keeps none: `file:FILE`, as "
         "JSON lines, or with Kafka `kafka:TOPIC`, a record each."},
{SECTION(STG_IN_HUB, "secrets"),
 .says = "Secrets of targets that are added by API, in the store: docs/api.md."},
{HUB("secrets.key", file, secrets_key), .example = "secrets.key",
 .is_fixed = true, .is_secret = true, .flag = "--secrets-key FILE",
 .says = "File with the key that encrypts the settings of targets that are added "
         "by API, in the store: 32 bytes as 64 hexadecimal digits or in Base64, "
         "such as `openssl rand -hex 32` makes. With several keys, a line "
         "each, the first encrypts and all decrypt. Without this setting it is "
         "the credential `stagger-secrets-key` that systemd gives the service; "
         "and without a key a target with secrets is refused."},
{HUB("audit", file, audit), .example = "/var/log/stagger/audit.log",
 .is_fixed = true,
 .says = "File that records every change made through the API: who, when, what."},
/* -- how much -------------------------------------------------------------- */
{HUB("memory", size, memory_max), RANGE(8 * MIB, TIB), .standard = "128MiB",
 .example = "1GiB", .is_fixed = true, .flag = "--memory SIZE",
 .says = "Memory for messages. A message may have at most 1/32 of this size; what "
         "is in flight to one target, 3/16 of it."},
{HUB("in-flight", count, in_flight_max), RANGE(1, 1000000), .standard = "10000",
 .example = "2000",
 .says = "Maximum of requests in flight, to all targets together. One request to "
         "each target does not count."},
{HUB("budget", budget, budget), .standard = "none",
 .example = "ratio:0.2+100/s",
 .says = "Retry budget of all targets together, written as `budget=` of a "
         "policy: docs/retry.md."},
{HUB("budget-empty", word, budget_empty), .words = empties, .standard = "wait",
 .example = "give-up",
 .says = "What happens to a retry for which this `budget` has nothing left: it "
         "waits, or it is given up as a dead letter. For a target's own budget "
         "its policy's `budget-empty=` decides."},
{HUB("drain", time, drain), RANGE(0, STG_DAY), .standard = "10s",
 .example = "1m", .flag = "--drain D",
 .says = "Time for requests in flight to end when the hub is stopped, and for "
         "Kafka to acknowledge what was published to it."},
/* -- what is told ---------------------------------------------------------- */
{SECTION(STG_IN_HUB, "log"), .says = "What goes to standard error."},
{HUB("log.format", word, log.is_json), .words = formats, .standard = "logfmt",
 .example = "json", .is_fixed = true, .flag = "--log FORMAT",
 .says = "Format of the log; each event is a line."},
{HUB("log.level", word, log.least), .words = stg_log_levels, .standard = "info",
 .example = "warn",
 .says = "Lowest level that is logged; `debug` logs each delivery, too, and folds "
         "nothing: other levels have ten lines a second for one event and cause."},
{SECTION(STG_IN_HUB, "metrics"), .says = "What Prometheus reads at /metrics."},
{HUB("metrics.targets", count, metrics.targets_max), RANGE(0, 100000),
 .standard = "1000", .example = "50", .is_fixed = true,
 .says = "Targets with metrics of their own; the others are one sum."},
{HUB("trace", word, trace), .words = traces, .standard = "begin",
 .example = "pass", .is_fixed = true, .flag = "--trace WHAT",
 .says = "W3C trace context: `begin` passes a message's trace on to the "
         "targets, or begins one; `pass` only passes it on; with `off` a "
         "message's `traceparent` and `tracestate` are dropped."},
{SECTION(STG_IN_HUB, "traces"),
 .says = "Spans of attempts for an OpenTelemetry collector, by OTLP/HTTP in JSON: "
         "docs/delivery.md. Without an endpoint there are none."},
{HUB("traces.endpoint", url, traces.endpoint),
 .example = "http://127.0.0.1:4318/v1/traces", .is_fixed = true,
 .says = "The collector's URL for traces, with its path."},
{HUB("traces.share", percent, traces.share), RANGE(0, 100), .standard = "1%",
 .example = "10%", .is_fixed = true,
 .says = "How many of the traces that nobody has decided to sample are exported, "
         "and marked as sampled where the hub begins them. A trace that comes as "
         "sampled is exported, and so is each attempt that fails."},
{HUB_LIST("traces.headers", headers, traces.headers, traces.header_count),
 .example = "{Authorization: {file: collector.token}}", .is_fixed = true,
 .says = "Headers of requests to the collector: a value, or `{file: PATH}`."},
{HUB("traces.ca", file, traces.ca_file), .example = "ca.pem",
 .is_fixed = true,
 .says = "Certificate authorities to trust, in PEM; without it the system's."},
/* -- where to -------------------------------------------------------------- */
{HUB("resolver", word, resolver), .words = resolvers, .standard = "dns",
 .example = "system",
 .says = "Who resolves the names of targets: `dns` asks the name servers of "
         "/etc/resolv.conf, for all names at once, after /etc/hosts; `system` "
         "asks the system, with its nsswitch.conf (mDNS, LDAP ...), for a few "
         "names at a time, so that slow ones delay the others."},
{SECTION(STG_IN_HUB, "egress"),
 .says = "Which addresses the hub may connect to. The address is checked at each "
         "connection, after the name was resolved. Of the networks that contain "
         "it the smallest decides. Link-local and metadata addresses, multicast "
         "and 0.0.0.0/8 are refused unless allowed; private ones are not."},
{HUB_LIST("egress.allow", cidrs, egress.allow,
 egress.allow_count), .example = "[169.254.10.0/24]",
 .says = "Networks that are allowed."},
{HUB_LIST("egress.deny", cidrs, egress.deny,
 egress.deny_count), .example = "[10.0.0.0/8, 'fd00::/8']",
 .says = "Networks that are refused."},
{HUB_LIST("policies", policies, policies, policy_count),
 .example = "{patient: exponential base=1s cap=5m attempts=12 deadline=2h "
            "attempt-timeout=20s}",
 .says = "Policies with names for `policy`: a preset and what it changes, or a "
         "text in full. A text in full has no circuit breaker unless it says "
         "`breaker=`. What a policy can say is in docs/retry.md."},
{.in = STG_IN_HUB, .path = "defaults", .kind = &stg_kind_defaults,
 .example = "{shed-after: 30m, timeouts: {connect: 2s}}",
 .says = "Settings of targets that do not have their own: every key of a target "
         "but its `name` and `url`. A target's `headers` and `tags` are added to "
         "these; of a name in both the target's own value is used."},
{HUB_LIST("targets", targets, targets, target_count),
 .is_needed = true, .flag = "-t, --to [NAME=]URL",
 .example = "[{name: shop, url: https://shop.example/in}]",
 .says = "The targets. Every message goes to every target, except for what "
         "`match` leaves out. `[]`: all of them are added by API "
         "(docs/api.md).",
 .flag_says = "A target to send every message to, such as "
              "shop=https://shop.example/in; again for each target. Without a "
              "name it is made of the URL: host-port, then a hash of path and "
              "query. Without any target the first one is added while the hub "
              "runs, by stagger targets add."},
{SECTION(STG_IN_HUB, "alerts"),
 .says = "Which alerts are sent, to whom, and how often."},
};

static const stg_setting alert_rows[] = {
/* -- alerts ---------------------------------------------------------------- */
{HUB("alerts.threshold", threshold, alerts.threshold),
 .standard = "10 failures in 5m", .example = "1 failure in 10s",
 .says = "So many dead letters of one target in this time are an alert; `off`: "
         "never."},
{HUB("alerts.threshold-all", threshold, alerts.threshold_all),
 .standard = "10 failures in 5m", .example = "off",
 .says = "The same for all targets together."},
{HUB("alerts.alerts", alerts, alerts.alerts),
 .standard = "[dead-letters, breaker, gone, disabled, token, store, lag, certificate, retention]",
 .example = "[dead-letters, store]", .says = "Which alerts are sent at all."},
{SECTION(STG_IN_HUB, "alerts.lag"), .says = "When a target is far behind."},
{HUB("alerts.lag.messages", count, alerts.lag_messages),
 RANGE(0, 1000000000000), .standard = "100000", .example = "5000",
 .says = "Alert when it is this many messages behind; 0: never."},
{HUB("alerts.lag.time", time, alerts.lag_time), RANGE(STG_S, 365 * STG_DAY),
 .none = "never", .standard = "10m", .example = "1h",
 .says = "Or when its oldest message is this old."},
{HUB("alerts.certificate", time, alerts.certificate), RANGE(0, 365 * STG_DAY),
 .standard = "14d", .example = "30d",
 .says = "Alert when a target's certificate is valid for less than this; 0: "
         "never."},
{HUB("alerts.interval", time, alerts.interval), RANGE(STG_MIN, 7 * STG_DAY),
 .standard = "15m", .example = "1h",
 .says = "Minimum time between two messages about one alert of one target."},
{HUB("alerts.repeat-interval", time, alerts.repeat_interval), RANGE(STG_MIN, 365 * STG_DAY),
 .none = "never", .standard = "4h", .example = "1d",
 .says = "An alert that goes on unchanged is sent again after this; not below "
         "`alerts.interval`."},
{HUB("alerts.group-wait", time, alerts.group_wait), RANGE(0, 10 * STG_MIN),
 .standard = "5s", .example = "30s",
 .says = "Alerts of this time are sent in one message."},
{HUB("alerts.min-interval", time, alerts.min_interval), RANGE(0, STG_HOUR), .standard = "1m",
 .example = "5m",
 .says = "Minimum time between two messages to one receiver; not above "
         "`alerts.interval`."},
{HUB("alerts.resolve-after", time, alerts.resolve_after), RANGE(0, STG_DAY), .standard = "1m",
 .example = "10m",
 .says = "An alert is resolved when its cause has not occurred for this time."},
{HUB("alerts.send-resolved", flag, alerts.send_resolved), .standard = "true",
 .example = "false",
 .says = "Whether a message is sent when an alert is resolved."},
{HUB("alerts.hub-name", text, alerts.hub_name), RANGE(1, 64),
 .example = "hub-eu-1",
 .says = "Name of the hub in messages; without it, the machine's name."},
{HUB_LIST("alerts.receivers", receivers, alerts.receivers,
 alerts.receiver_count),
 .example = "[{name: ops, type: slack, url-file: slack.url}]",
 .says = "Receivers of alerts, up to 32. Without one no alert is sent."},
/* -- a receiver ------------------------------------------------------------ */
{RECEIVER("name", name, name), .is_needed = true, .example = "ops",
 .says = "Name of the receiver: 1 to 64 of A-Z a-z 0-9 . _ -."},
{RECEIVER("type", word, type), .words = types, .is_needed = true,
 .example = "mail",
 .says = "`slack`, an incoming webhook; `mail`, SMTP; `webhook`, JSON by POST; "
         "`teams`, an incoming webhook of its Workflows; `pagerduty`, its Events "
         "API v2; `opsgenie`, its Alert API; `template`, a POST of `body`."},
{RECEIVER("url", text, url), RANGE(1, 2048),
 .example = "smtp://mail.example:587",
 .says = "For mail smtp://HOST:PORT or smtps://HOST:PORT, for a webhook and a "
         "template http(s). Those of Slack and Teams are secrets: use "
         "`url-file`. For Opsgenie in the EU https://api.eu.opsgenie.com."},
{RECEIVER("url-file", file, url_file), .is_secret = true,
 .example = "slack.url", .says = "File with the URL."},
{RECEIVER("key-file", file, key_file), .is_secret = true,
 .example = "pagerduty.key",
 .says = "File with the routing key of PagerDuty, or the API key of Opsgenie."},
{RECEIVER("body", lines, body), RANGE(1, 65536),
 .example = "'{\"text\": \"{title}\", \"id\": \"{key}\"}'",
 .says = "For a template: the body, with {field} words in it (docs/alerts.md). It "
         "is JSON, unless `headers` have another Content-Type."},
{RECEIVER("ca", file, ca_file), .example = "ca.pem",
 .says = "Certificate authorities to trust, in PEM; without it the system's."},
{RECEIVER("proxy", proxy, proxy), .example = "http://10.0.0.1:3128",
 .says = "For Slack and a webhook: forward proxy, as of a target. It is not that "
         "of the targets' defaults."},
{RECEIVER("timeout", time, timeout), RANGE(STG_S, STG_MIN), .standard = "10s",
 .example = "30s", .says = "For one attempt to send."},
{RECEIVER_LIST("headers", receiver_headers, headers, header_count),
 .example = "{Authorization: {file: pager.token}}",
 .says = "For a webhook and a template: headers, as of a target."},
{SECTION(STG_IN_RECEIVER, "sign"),
 .says = "For a webhook: signs its requests, as those of a target: "
         "docs/verify.md."},
{RECEIVER("sign.scheme", word, sign.scheme), .words = stg_sign_schemes,
 .standard = "none", .example = "standard-webhooks",
 .says = "How, as `sign.scheme` of a target."},
{RECEIVER_LIST("sign.secrets", secrets, secrets, secret_count),
 .example = "{file: pager.secret}",
 .says = "Secrets, or files with one that nobody else may read, as of a target."},
{RECEIVER("sign.header", text, sign.header), RANGE(1, 256),
 .example = "X-Signature",
 .says = "With `custom`: the header of the signature."},
{RECEIVER("sign.timestamp-header", text, sign.time_header), RANGE(1, 256),
 .example = "X-Timestamp", .says = "With `custom`: a header with the time."},
{RECEIVER("sign.signs", text, sign.signs), RANGE(1, 1024),
 .example = "'{timestamp}.{body}'", .says = "With `custom`: what is signed."},
{RECEIVER("sign.prefix", text, sign.prefix), RANGE(1, 256),
 .example = "sha256=",
 .says = "With `custom`: what goes before the signature."},
{RECEIVER("sign.algorithm", word, sign.algorithm),
 .words = stg_sign_algorithms, .standard = "sha256", .example = "sha512",
 .says = "With `custom`: the hash of the HMAC, sha256 or sha512. With `rfc9421` and a "
         "key of RSA: rsa-pss-sha512, as without it, or rsa-v1_5-sha256."},
{RECEIVER("sign.encoding", word, sign.encoding), .words = stg_sign_encodings,
 .standard = "hex", .example = "base64",
 .says = "With `custom`: how the signature is written."},
{RECEIVER_LIST("sign.covers", texts, sign.covers, sign.cover_count),
 RANGE(1, 16), .example = "['@method', '@target-uri', content-digest]",
 .says = "With `rfc9421`: what is signed."},
{RECEIVER("sign.key-id", text, sign.key_id), RANGE(1, 256), .example = "hub-1",
 .says = "With `rfc9421`: the name of the key."},
{RECEIVER("starttls", word, starttls), .words = starttls,
 .standard = "required", .example = "none",
 .says = "For smtp://: `required`, `optional` (where the server offers it) or "
         "`none`."},
{RECEIVER("user", text, user), RANGE(1, 256), .example = "hub@example.org",
 .says = "For mail: user to log in as."},
{RECEIVER("password-file", file, password_file), .is_secret = true,
 .example = "mail.password", .says = "For mail: file with the password."},
{RECEIVER("from", text, from), RANGE(1, 254), .example = "hub@example.org",
 .says = "For mail: the sender."},
{RECEIVER_LIST("to", texts, to, to_count),
 RANGE(1, 100), .example = "[ops@example.org]",
 .says = "For mail: the recipients, up to 100."},
{RECEIVER("alerts", alerts, alerts),
 .standard = "[dead-letters, breaker, gone, disabled, token, store, lag, certificate, retention]",
 .example = "[store]", .says = "Only these alerts."},
{RECEIVER_LIST("targets", texts, targets, target_count),
 RANGE(1, 10000), .example = "[shop]",
 .says = "Only alerts of these targets."},
{RECEIVER_LIST("tags", receiver_tags, tags, tag_count),
 .example = "{team: shop}",
 .says = "Only alerts of targets that have one of these tags."},
};
/* clang-format on */

/* The tables, in the order of the documentation. */
enum { TABLES = 4 };

typedef struct table {
    const stg_setting *rows;
    size_t count;
} table;

static void find_tables(table all[TABLES])
{
    all[0] = (table){hub_rows, sizeof hub_rows / sizeof *hub_rows};
    all[1].rows = stg_setting_inbound_rows(&all[1].count);
    all[2].rows = stg_setting_target_rows(&all[2].count);
    all[3] = (table){alert_rows, sizeof alert_rows / sizeof *alert_rows};
}

const stg_setting *stg_setting_at(size_t i)
{
    table all[TABLES];

    find_tables(all);
    for (size_t t = 0; t < TABLES; i -= all[t++].count)
        if (i < all[t].count)
            return &all[t].rows[i];
    return NULL;
}

/* Whether s is one of these; *number: its number among them. */
static bool is_in(const stg_setting *s, const table *t, size_t *number)
{
    // As numbers, for rows may be of another array; what is before wraps around.
    *number = (size_t)((uintptr_t)s - (uintptr_t)t->rows) / sizeof *t->rows;
    return *number < t->count;
}

void *stg_setting_base(const stg_setting *s, void *base)
{
    return s->is_common ? ((stg_target_settings *)base)->common : base;
}

size_t stg_setting_number(const stg_setting *s)
{
    size_t before = 0, number;
    table all[TABLES];

    find_tables(all);
    for (size_t t = 0; t < TABLES; before += all[t++].count)
        if (is_in(s, &all[t], &number))
            return before + number;
    return before;
}

size_t stg_setting_count(void)
{
    size_t count = 0;

    while (stg_setting_at(count) != NULL)
        count++;
    return count;
}

const stg_setting *stg_setting_find(stg_setting_in in, const char *path,
                                    size_t size)
{
    const stg_setting *s;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->in == in && strncmp(s->path, path, size) == 0 &&
            s->path[size] == '\0')
            return s;
    return NULL;
}
