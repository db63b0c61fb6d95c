/* The settings of a target, and so of `defaults`: rows of the table of settings,
 * see table.c. */
#include "config/kinds/kinds.h"
#include "config/table_rows.h"

static const char *const grants[] = {"client-credentials", "none", NULL};
static const char *const auths[] = {"basic", "body", NULL};
static const char *const orders[] = {"none", "key", "strict", NULL};
static const char *const batches[] = {"json-array", "ndjson", NULL};
static const char *const cloud_events[] = {"as-is", "binary", "structured",
                                           NULL};
static const char *const replays[] = {"off", "on-recovery", NULL};
static const char *const starts[] = {"latest", "earliest", NULL};

/* clang-format off */
static const stg_setting rows[] = {
{TARGET("name", name, name), .is_own = true, .example = "shop",
 .says = "Name of the target, by which it keeps its lane when the URL changes: 1 "
         "to 64 of A-Z a-z 0-9 . _ -. Without one it is made of the URL: "
         "host-port, then a hash of path and query, so that another query is another "
         "target."},
{TARGET("url", url, url), .is_own = true, .is_needed = true,
 .example = "https://shop.example/in",
 .says = "URL to send to. User and password go into a header, not into the URL. "
         "Its path and query may be made of each message, by {id}, {key}, {topic}, "
         "{header.NAME} and {body.NAME.NAME}: docs/delivery.md. {{ is a brace."},
{COMMON("method", method, method), .standard = "POST", .example = "PUT",
 .says = "HTTP method of its requests."},
{TARGET_LIST("headers", headers, headers, header_count),
 .example = "{X-Source: hub, Authorization: {file: shop.token}}",
 .says = "Headers of its requests. A value may be the content of a file that "
         "nobody else may read (one end of line at its end is left out): use "
         "that for secrets. Headers that the hub sets itself are refused. "
         "A value that is not from a file may have {...} in it, as the URL. "
         "Without User-Agent it is `stagger/VERSION`."},
{SECTION(STG_IN_TARGET, "sign"),
 .says = "Signs its requests, so that it can tell them from those of others, and "
         "from old ones: docs/verify.md."},
{COMMON("sign.scheme", word, sign.scheme), .words = stg_sign_schemes, .standard = "none",
 .example = "standard-webhooks",
 .says = "How: `standard-webhooks`, with Webhook-Id, Webhook-Timestamp and "
         "Webhook-Signature; `github`, with X-Hub-Signature-256; `stripe`, with "
         "Stripe-Signature; `rfc9421`, HTTP Message Signatures, with Signature-Input "
         "and Signature; or `custom`, as the keys from `sign.header` on say."},
{TARGET_LIST("sign.secrets", secrets, secrets, secret_count),
 .example = "[{file: shop.secret}, {file: shop.old-secret}]",
 .says = "Secrets, or files with one that nobody else may read. With "
         "`standard-webhooks` (whsec_ or whsk_ and Base64: `stagger secret new` "
         "makes one) and `stripe` a request has a signature for each of up to 8, "
         "so that a new secret can be added before the old one goes; with the "
         "others there is one. 24 bytes or more; of `rfc9421` also a private key of "
         "Ed25519, ECDSA (P-256) or RSA in PEM. A reload reads the files again."},
{COMMON("sign.header", text, sign.header), RANGE(1, 256),
 .example = "X-Signature",
 .says = "With `custom`: the header of the signature."},
{COMMON("sign.timestamp-header", text, sign.time_header), RANGE(1, 256),
 .example = "X-Timestamp",
 .says = "With `custom`: a header with the time of the attempt, in seconds since "
         "1970."},
{COMMON("sign.signs", text, sign.signs), RANGE(1, 1024),
 .example = "'{timestamp}.{body}'",
 .says = "With `custom`: what is signed, with {body}, {timestamp} and {id}, which "
         "is that of Idempotency-Key. Without it, {body}."},
{COMMON("sign.prefix", text, sign.prefix), RANGE(1, 256), .example = "sha256=",
 .says = "With `custom`: what goes before the signature in its header."},
{COMMON("sign.algorithm", word, sign.algorithm), .words = stg_sign_algorithms,
 .standard = "sha256", .example = "sha512",
 .says = "With `custom`: the hash of the HMAC, sha256 or sha512. With `rfc9421` and a "
         "key of RSA: rsa-pss-sha512, as without it, or rsa-v1_5-sha256."},
{COMMON("sign.encoding", word, sign.encoding), .words = stg_sign_encodings,
 .standard = "hex", .example = "base64",
 .says = "With `custom`: how the signature is written."},
{COMMON_LIST("sign.covers", texts, sign.covers, sign.cover_count),
 RANGE(1, 16), .example = "['@method', '@target-uri', content-digest]",
 .says = "With `rfc9421`: what is signed, of @method, @target-uri, @authority, "
         "@scheme, @request-target, @path, @query, content-digest, content-type "
         "and idempotency-key. Without it @method, @target-uri, content-digest, "
         "content-type and idempotency-key; content-digest has to be there."},
{COMMON("sign.key-id", text, sign.key_id), RANGE(1, 256), .example = "hub-1",
 .says = "With `rfc9421`: the name by which the receiver finds the key."},
{SECTION(STG_IN_TARGET, "oauth2"),
 .says = "Its requests carry an access token of OAuth 2.0 (`Authorization: "
         "Bearer`), which the hub gets as a client and replaces before it ends: "
         "docs/oauth2.md. Targets with the same settings share a token."},
{COMMON("oauth2.token-url", url, oauth.token_url),
 .example = "https://login.example/oauth2/token",
 .says = "URL of the token endpoint. Without it there is no token."},
{COMMON("oauth2.grant", word, oauth.grant), .words = grants,
 .standard = "client-credentials", .example = "none",
 .says = "How a token is got; `none`: this target has no token, though the "
         "defaults say how to get one."},
{COMMON("oauth2.client-id", text, oauth.client_id), RANGE(1, 1024),
 .example = "stagger", .says = "The hub's name at the authorization server."},
{COMMON_LIST("oauth2.client-secret", secrets, oauth.secrets, oauth.secret_count),
 .example = "{file: idp.secret}",
 .says = "Its secret, or a file with it that nobody else may read. A reload "
         "reads the file again."},
{COMMON("oauth2.auth", word, oauth.auth), .words = auths, .standard = "basic",
 .example = "body",
 .says = "How the secret is sent: `basic`, in a header (client_secret_basic), or "
         "`body` (client_secret_post)."},
{COMMON_LIST("oauth2.private-key", secrets, oauth.keys, oauth.key_count),
 .example = "{file: idp.key}",
 .says = "Instead of a secret: a key in PEM, RSA, P-256 or Ed25519, that signs "
         "JWTs which say who the hub is (private_key_jwt)."},
{COMMON("oauth2.key-id", text, oauth.key_id), RANGE(1, 256), .example = "hub-1",
 .says = "With `private-key`: its name at the server, the `kid` of a JWT."},
{COMMON("oauth2.assertion-audience", text, oauth.assertion_audience),
 RANGE(1, 2048), .example = "https://login.example",
 .says = "With `private-key`: whom a JWT is for, its `aud`. Without it, "
         "`oauth2.token-url`."},
{COMMON_LIST("oauth2.scope", texts, oauth.scope.at, oauth.scope.count),
 RANGE(1, 100), .example = "[orders:write]", .says = "Scopes to ask for."},
{COMMON("oauth2.audience", text, oauth.audience), RANGE(1, 2048),
 .example = "https://shop.example/",
 .says = "`audience` to ask for, which some servers want."},
{COMMON("oauth2.ca", file, oauth.ca_file), .example = "idp-ca.pem",
 .says = "Certificate authorities to trust for the token endpoint, in PEM; "
         "without it the system's."},
{COMMON("policy", policy, policy_text), .example = "patient",
 .flag = "-p, --policy P",
 .says = "What to do about failures: a name of `policies`, a preset, or a text. "
         "Without one `broadcast`, and `broadcast-wide` from 50 targets on."},
{COMMON("in-flight", count, in_flight_max), RANGE(1, 10000), .standard = "64",
 .example = "8", .flag = "--in-flight N",
 .says = "Maximum of requests in flight, to one target. The hub begins with one, "
         "and finds out how many the target can take."},
{SECTION(STG_IN_TARGET, "batch"),
 .says = "Several messages in one request: docs/batches.md."},
{COMMON("batch.max", count, batch.max), RANGE(1, 10000), .standard = "1",
 .example = "100",
 .says = "Maximum of messages in a request. 1: each has a request of its own, "
         "with its own headers."},
{COMMON("batch.bytes", size, batch.bytes_max), RANGE(1024, 64 * MIB),
 .standard = "1MiB", .example = "256KiB",
 .says = "Maximum of a request's body; a message that is larger is sent by itself."},
{COMMON("batch.linger", time, batch.linger), RANGE(0, STG_MIN),
 .standard = "50ms", .example = "1s",
 .says = "How long the first message waits for others. While as many requests are "
         "in flight as the target can take, it waits longer."},
{COMMON("batch.format", word, batch.format), .words = batches,
 .standard = "json-array", .example = "ndjson",
 .says = "The body of such a request: `json-array`, an array of the messages' "
         "bodies, or `ndjson`, a line each. Bodies have to be JSON."},
{COMMON("batch.results", flag, batch.has_results), .standard = "false",
 .example = "true",
 .says = "Whether an answer may have a result for each message: "
         "{\"results\": [{\"status\": 200}, ...]}, in their order."},
{COMMON("rate", rate, rate), RANGE(1, 1000000000), .example = "100/s",
 .flag = "--rate N/s",
 .says = "Maximum of requests a second, to one target. Without it, `rate=` of "
         "its policy."},
{COMMON("burst", count, burst), RANGE(1, 1000000), .example = "20",
 .says = "With a rate: requests that may be sent at once after a pause. Without "
         "it, a tenth of a second's."},
{COMMON("order", word, order), .words = orders, .standard = "none",
 .example = "key", .flag = "--order WHAT",
 .says = "`key`: a message is sent when the one before it with the same "
         "Stagger-Key has ended; `strict`: when the one before it has ended, whatever "
         "its key."},
{COMMON("parked-max", count, parked_max), RANGE(1, 1000000), .standard = "10000",
 .example = "100000",
 .says = "Maximum of parked deliveries, which were tried and wait for their next "
         "attempt; at this number no new message is tried."},
{COMMON("shed-after", time, shed_after), RANGE(0, 365 * STG_DAY), .none = "none",
 .standard = "10m", .example = "1h", .flag = "--shed-after D",
 .says = "How long the circuit breaker of a target may be open before its "
         "messages are given up, in a bulk dead letter; `none`: for ever. It has "
         "no effect if the policy has no breaker."},
{COMMON("replay", word, replay), .words = replays, .standard = "off",
 .example = "on-recovery",
 .says = "`on-recovery`: after an outage, dead letters of the target that never "
         "reached it (no connection, or given up untried) are sent again by "
         "themselves, once, when its circuit closes (docs/delivery.md)."},
{COMMON("disable-after", time, disable_after), RANGE(STG_MIN, 365 * STG_DAY),
 .none = "none", .standard = "none", .example = "5d",
 .says = "A target whose attempts have all failed for so long, ten or more, is "
         "paused, with the alert `disabled`, until a call resumes it. The hub "
         "looks every ten seconds. `none`: never."},
{TARGET("owner", text, owner), RANGE(1, 2048),
 .example = "shop@example.org",
 .says = "Who is told, besides the receivers of alerts, when `disable-after` has "
         "paused the target: a mail address, for a mail by the server of the "
         "first receiver of type mail; or an http(s) URL, for JSON as a webhook "
         "receiver gets it."},
{TARGET("paused", flag, is_paused), .standard = "false", .example = "true",
 .says = "The hub sends nothing to it; its messages wait, up to "
         "`store.retention`."},
{COMMON("start", word, start), .words = starts, .standard = "latest",
 .example = "earliest",
 .says = "Where a new target begins: `latest`, with the next message, or "
         "`earliest`, with the first one that the log is sure to keep "
         "(docs/delivery.md). A target that the store knows goes on where it "
         "was."},
{COMMON("cloudevents", word, cloud_events), .words = cloud_events,
 .standard = "as-is", .example = "structured",
 .says = "How the target gets messages that are CloudEvents: `binary`, attributes in "
         "headers `ce-*`; `structured`, all in a body of "
         "application/cloudevents+json; `as-is`, as they were published. Messages "
         "that are none stay as they are (docs/filters.md)."},
{TARGET_LIST("match", match, match, match_count),
 .example = "{X-Event: [order.paid, order.sent]}",
 .says = "Only messages with all of these headers, each with this value, or with "
         "one of a list, byte by byte, or as a condition has it: "
         "`[{prefix: order.}]`. It may name Content-Type and Stagger-Key, and "
         "headers that `listen.headers` keeps, or with Kafka `kafka.headers`. "
         "`body` is a pattern of the body, which must be JSON, in the words of "
         "Amazon EventBridge (docs/filters.md); `stagger check --try` says who "
         "would get a message."},
{TARGET_LIST("topics", topics, topics.at, topics.count), RANGE(1, 1000),
 .example = "[orders]",
 .says = "With Kafka: only messages of these topics: names, or patterns that "
         "begin with ^, as in `kafka.topics`."},
{SECTION(STG_IN_TARGET, "timeouts"),
 .says = "How long the five parts of an attempt, and all of it, may take: 1ms "
         "to 1d, or `none`. docs/delivery.md has the fault of each."},
{COMMON("timeouts.resolve", time, resolve_timeout), RANGE(STG_MS, STG_DAY),
 .none = "none", .standard = "5s", .example = "1s",
 .says = "To resolve the name."},
{COMMON("timeouts.connect", time, connect_timeout), RANGE(STG_MS, STG_DAY),
 .none = "none", .standard = "5s", .example = "500ms", .says = "To connect."},
{COMMON("timeouts.tls", time, tls_timeout), RANGE(STG_MS, STG_DAY),
 .none = "none", .standard = "10s", .example = "3s",
 .says = "For the TLS handshake."},
{COMMON("timeouts.write", time, write_timeout), RANGE(STG_MS, STG_DAY),
 .none = "none", .standard = "none", .example = "30s",
 .says = "To send the request."},
{COMMON("timeouts.first-byte", time, first_byte_timeout),
 RANGE(STG_MS, STG_DAY), .none = "none", .standard = "none", .example = "5s",
 .says = "From the end of the request to the first byte of the answer."},
{COMMON("timeouts.attempt", time, attempt_timeout), RANGE(STG_MS, STG_DAY),
 .none = "none", .example = "20s",
 .says = "For all of an attempt, instead of the policy's `attempt-timeout=`."},
{SECTION(STG_IN_TARGET, "connections"),
 .says = "Connections are kept open for the next request."},
{COMMON("connections.idle-max", count, idle_count_max), RANGE(0, 10000),
 .standard = "64", .example = "4", .says = "Maximum of idle connections."},
{COMMON("connections.idle", time, idle_max), RANGE(STG_MS, STG_DAY),
 .standard = "1m", .example = "15s",
 .says = "How long an idle connection is kept."},
{COMMON("connections.age", time, age_max), RANGE(STG_MS, STG_DAY),
 .standard = "10m", .example = "2m",
 .says = "Maximum age of a connection; then the name is resolved again."},
{SECTION(STG_IN_TARGET, "answer"), .says = "What is read of an answer's body."},
{COMMON("answer.read", size, answer_max), RANGE(0, GIB), .standard = "64KiB",
 .example = "1MiB",
 .says = "Maximum that is read, so that the connection can be used again."},
{COMMON("answer.keep", size, excerpt_max), RANGE(0, MIB), .standard = "1KiB",
 .example = "4KiB", .says = "Maximum that is kept, for a dead letter."},
{COMMON("proxy", proxy, proxy), .example = "http://10.0.0.1:3128",
 .says = "Forward proxy for its requests, which they pass by CONNECT; `none`: not "
         "that of the defaults. With a user and a password the URL is a secret: put "
         "it into a file that nobody else may read. The proxy resolves the target's "
         "name, and has to refuse what the target may not be (docs/delivery.md)."},
{COMMON("source-address", ip, source), .example = "192.0.2.7",
 .says = "IP address of this machine that its connections come from; `none`: not "
         "that of the defaults. Only addresses of its family are connected to."},
{SECTION(STG_IN_TARGET, "tls"), .says = "For https."},
{COMMON("tls.ca", file, ca_file), .example = "ca.pem", .flag = "--ca FILE",
 .says = "Certificate authorities to trust, in PEM; without it the system's."},
{COMMON("tls.certificate", file, certificate_file), .example = "client.pem",
 .says = "The hub's own certificate, for targets that ask for one; in PEM, with "
         "its chain."},
{COMMON("tls.key", file, key_file), .example = "client.key", .is_secret = true,
 .says = "The key of that certificate."},
{COMMON("tls.server-name", text, server_name), RANGE(1, 253),
 .example = "shop.internal",
 .says = "Name to ask for (SNI), which the target's certificate must have; "
         "without it the URL's host."},
{COMMON("tls.verify", flag_not, is_unverified), .standard = "true",
 .example = "false",
 .says = "Whether the target's certificate is checked. Where it is not, "
         "somebody in the network path can pose as the target."},
{TARGET_LIST("tags", tags, tags, tag_count),
 .example = "{team: shop, tier: '1'}",
 .says = "Labels of your own, for alerts and for you."},
};
/* clang-format on */

const stg_setting *stg_setting_target_rows(size_t *count)
{
    *count = sizeof rows / sizeof *rows;
    return rows;
}
