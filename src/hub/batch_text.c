/* What batch.h says of texts, by jansson and OpenSSL. */
#include "hub/batch.h"

#include <assert.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* -- the request ----------------------------------------------------------- */

bool stg_batch_takes(stg_span body, const char **why)
{
    stg_scan s = stg_scan_of(body);
    stg_span value;

    if (stg_scan_value(&s, &value) && stg_scan_end(&s))
        return true;
    *why = s.wrong;
    return false;
}

static char *put_line(char *to, stg_span body)
{
    for (size_t i = 0; i < body.size; i++) {
        char c = body.at[i];

        *to++ = c;
        if (c == '\n' || c == '\r')
            to[-1] = ' ';
    }
    *to++ = '\n';
    return to;
}

char *stg_batch_put(stg_batch_format format, char *to, stg_span body,
                    bool is_first)
{
    if (format == STG_BATCH_LINES)
        return put_line(to, body);
    *to++ = is_first ? '[' : ',';
    memcpy(to, body.at, body.size);
    return to + body.size;
}

char *stg_batch_end(stg_batch_format format, char *to)
{
    if (format == STG_BATCH_ARRAY)
        *to++ = ']';
    return to;
}

/* Source: CloudEvents 1.0.2, "JSON Event Format", 4. */
const char *stg_batch_content_type(stg_batch_format format, bool are_events)
{
    if (format != STG_BATCH_ARRAY)
        return "application/x-ndjson";
    return are_events ? "application/cloudevents-batch+json; charset=utf-8"
                      : "application/json";
}

/* Half of a SHA-256: 128 bits, so that two batches never share one. */
bool stg_batch_id(stg_span ids, char id[STG_BATCH_ID_MAX])
{
    enum { BYTES = 16 };
    unsigned char hash[EVP_MAX_MD_SIZE] = {0};
    int used = snprintf(id, STG_BATCH_ID_MAX, "batch-");

    if (EVP_Digest(ids.at, ids.size, hash, NULL, EVP_sha256(), NULL) != 1)
        return false;
    for (int i = 0; i < BYTES; i++)
        used += snprintf(id + used, STG_BATCH_ID_MAX - (size_t)used, "%02x",
                         hash[i]);
    assert(used < STG_BATCH_ID_MAX);
    return true;
}

/* -- the answer ------------------------------------------------------------ */

/* A result is believed as a status line would be: what is no status is no result. */
static bool read_result(const json_t *item, stg_outcome *o)
{
    enum { FIRST = 200, LAST = 599, WAIT_MAX = 365 * 24 * 3600 };
    json_int_t status = json_integer_value(json_object_get(item, "status"));
    const json_t *wait = json_object_get(item, "retry-after");
    json_int_t seconds = json_integer_value(wait);

    if (status < FIRST || status > LAST)
        return false;
    if (wait != NULL &&
        (!json_is_integer(wait) || seconds < 0 || seconds > WAIT_MAX))
        return false;
    *o = stg_answered_after((int)status, (stg_ns)seconds * STG_S);
    return true;
}

bool stg_batch_results(stg_span answer, stg_outcome *outcomes, size_t count)
{
    json_t *all =
        json_loadb(answer.at, answer.size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *results = json_object_get(all, "results");
    bool is_right = json_array_size(results) == count;

    for (size_t i = 0; is_right && i < count; i++)
        is_right = read_result(json_array_get(results, i), &outcomes[i]);
    json_decref(all);
    return is_right;
}
