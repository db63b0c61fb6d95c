/* The settings of an inbound webhook: rows of the table of settings, see table.c. */
#include "config/kinds/kinds.h"
#include "config/table_rows.h"

/* clang-format off */
static const stg_setting rows[] = {
{INBOUND("name", name, hook.name), .is_needed = true, .example = "github",
 .says = "Its name, and the last part of its path: 1 to 64 of A-Z a-z 0-9 . _ -."},
{INBOUND("scheme", word, hook.sign.scheme), .words = stg_sign_schemes,
 .least = STG_SIGN_STANDARD, .is_needed = true, .example = "github",
 .says = "How its sender signs: `standard-webhooks`, with Webhook-Id, "
         "Webhook-Timestamp and Webhook-Signature; `github`, with "
         "X-Hub-Signature-256; `stripe`, with Stripe-Signature; `rfc9421`, HTTP "
         "Message Signatures, with Signature-Input and Signature; or `custom`, "
         "as the keys from `header` on say."},
{INBOUND_LIST("secrets", secrets, secrets, secret_count), .is_needed = true,
 .example = "[{file: github.secret}, {file: github.old-secret}]",
 .says = "Secrets, or files with one that nobody else may read: a signature by "
         "one of them is enough, so that a secret can be changed. Up to 8, of 24 "
         "bytes or more. With `standard-webhooks` whsec_ and Base64, or for "
         "Ed25519 the public key, whpk_ and Base64; with the others the bytes of "
         "the text; of `rfc9421` each of these, or a public key in PEM. A reload reads the files again."},
{INBOUND("tolerance", time, hook.tolerance), RANGE(STG_S, STG_DAY),
 .standard = "5m", .example = "30s",
 .says = "How far a signature's timestamp may be from now. `github` has none."},
{INBOUND("topic", text, hook.topic), RANGE(1, 249), .example = "orders",
 .says = "With `source: kafka` the topic that its messages are written to; "
         "needed where the hub reads several."},
{INBOUND_LIST("keep", rules, keep.at, keep.count),
 .example = "[X-GitHub-Event]",
 .says = "Headers that go on to the targets: names, or the beginning of names and "
         "`*`; without it `listen.headers`. Those of its signature never do."},
{INBOUND("header", text, hook.sign.header), RANGE(1, 256),
 .example = "X-Signature",
 .says = "With `custom`: the header of the signature."},
{INBOUND("timestamp-header", text, hook.sign.time_header), RANGE(1, 256),
 .example = "X-Timestamp",
 .says = "With `custom`: the header of the time, in seconds since 1970."},
{INBOUND("id-header", text, hook.sign.id_header), RANGE(1, 256),
 .example = "X-Delivery",
 .says = "With `custom` and `rfc9421`: the header of the delivery's id, by which a redelivery is "
         "recognised. Without it, Idempotency-Key, if it is there."},
{INBOUND("signs", text, hook.sign.signs), RANGE(1, 1024),
 .example = "'{timestamp}.{body}'",
 .says = "With `custom`: what is signed, with {body}, {timestamp} and {id}. "
         "Without it, {body}."},
{INBOUND("prefix", text, hook.sign.prefix), RANGE(1, 256), .example = "sha256=",
 .says = "With `custom`: what goes before the signature in its header."},
{INBOUND("algorithm", word, hook.sign.algorithm), .words = stg_sign_algorithms,
 .standard = "sha256", .example = "sha512",
 .says = "With `custom`: the hash of the HMAC, sha256 or sha512. With `rfc9421` and a "
         "key of RSA: the only algorithm that is taken; without it both of RSA are."},
{INBOUND("encoding", word, hook.sign.encoding), .words = stg_sign_encodings,
 .standard = "hex", .example = "base64",
 .says = "With `custom`: how the signature is written."},
{INBOUND_LIST("covers", texts, hook.sign.covers, hook.sign.cover_count),
 RANGE(1, 16), .example = "['@method', '@path', content-digest]",
 .says = "With `rfc9421`: what a signature has to cover, at least: components as "
         "`sign.covers` of a target has them, and other headers in lower case. "
         "Without it content-digest; with it, too, that has to be there."},
};
/* clang-format on */

const stg_setting *stg_setting_inbound_rows(size_t *count)
{
    *count = sizeof rows / sizeof *rows;
    return rows;
}
