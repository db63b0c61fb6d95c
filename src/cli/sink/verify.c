/* Verifies what a sink gets: with the secrets of --verify, by the signature's own
 * headers. What does not hold is answered with 401 and why, and counts as no
 * attempt of its message. */
#include "cli/sink/sink.h"

#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "host/files.h"
#include "host/wall.h"
#include "ingress/ask.h"

/* The one line of a file, as a text of its own. */
static stg_status read_file(const char *path, char **secret, stg_error *err)
{
    char *text;
    size_t size;
    stg_status status = stg_secret_file_read(path, &text, &size, err);
    stg_span line;

    if (status != STG_OK)
        return status;
    line = (stg_span){text, size};
    if (line.size > 0 && line.at[line.size - 1] == '\n')
        line.size--;
    line = stg_span_trim(line);
    *secret = strndup(line.at, line.size);
    stg_secret_file_free(text, size);
    return *secret != NULL ? STG_OK : stg_hub_refuse(err, STG_IO, "no memory");
}

/* A secret says itself that it is one: all else is the name of a file, so that one
 * that is misspelt is not taken for a secret. */
static bool is_secret(const char *text)
{
    return strncmp(text, "whsec_", 6) == 0 || strncmp(text, "whsk_", 5) == 0 ||
           strncmp(text, "whpk_", 5) == 0;
}

/* The words do not repeat a secret. */
stg_status stg_sink_verify_with(sink *s, const char *text, stg_error *err)
{
    bool is_file = !is_secret(text);
    char *secret = is_file ? NULL : strdup(text);
    stg_status status = STG_OK;
    stg_error why;

    if (s->verifier_count == SINK_VERIFIERS_MAX)
        status = stg_hub_refuse(&why, STG_INVALID, "%d of them; expected fewer",
                                SINK_VERIFIERS_MAX + 1);
    else if (is_file)
        status = read_file(text, &secret, &why);
    if (status == STG_OK)
        status = stg_verifier_new_any(&s->verifiers[s->verifier_count], secret,
                                      &why);
    free(secret);
    if (status == STG_OK)
        s->verifier_count++;
    else
        (void)stg_hub_refuse(err, status, "--verify%s%.120s: %s",
                             is_file ? "=" : "", is_file ? text : "", why.text);
    return status;
}

/* One secret that fits is enough; why is the last one's. */
bool stg_sink_verify(const sink *s, const stg_request *r, const stg_text *body,
                     stg_error *why)
{
    stg_verify_request asked =
        stg_verify_request_of(r, (stg_span){body->at, body->size});
    uint64_t now = stg_wall_now() / STG_S;

    if (body->is_short) {
        (void)stg_hub_refuse(why, STG_IO, "there is no memory for the body");
        return false;
    }
    for (size_t i = 0; i < s->verifier_count; i++)
        if (stg_verifier_check(s->verifiers[i], &asked, now, why) ==
            STG_SIGNATURE_RIGHT)
            return true;
    return false;
}

void stg_sink_verify_close(sink *s)
{
    for (size_t i = 0; i < s->verifier_count; i++)
        stg_verifier_free(s->verifiers[i]);
}
