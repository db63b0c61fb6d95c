/* Any answer of a token endpoint: what is taken of it can stand in a header, and
 * what is said of it in a line of a log. The first byte chooses the status. */
#include <string.h>

#include "base/visible.h"
#include "fuzz/fuzz.h"
#include "http/oauth.h"

static void check_token(const stg_oauth_answer *a)
{
    size_t size = strlen(a->token);

    HOLDS(size > 0 && size <= STG_OAUTH_TOKEN_MAX);
    for (size_t i = 0; i < size; i++)
        HOLDS(a->token[i] > ' ' && a->token[i] <= '~' && a->token[i] != ',' &&
              a->token[i] != '"');
    HOLDS(a->lifetime == 0 ||
          (a->lifetime >= STG_MS && a->lifetime <= 365 * STG_DAY));
}

static void check_words(stg_error *err)
{
    char before[sizeof err->text];

    memcpy(before, err->text, sizeof before);
    HOLDS(strcmp(stg_visible_string(err->text, STG_VISIBLE_IN_LINE), before) ==
          0);
    HOLDS(strncmp(before, "answered ", 9) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 201, 400, 401, 500, 302};
    stg_oauth_answer a;
    stg_error err;
    stg_span body;

    if (size == 0)
        return 0;
    body = (stg_span){(const char *)data + 1, size - 1};
    if (stg_oauth_answer_read(&a, statuses[data[0] % 6], body, &err) ==
        STG_OK) {
        HOLDS(data[0] % 6 < 2);
        check_token(&a);
    } else {
        HOLDS(a.token == NULL);
        check_words(&err);
    }
    free(a.token);
    return 0;
}
