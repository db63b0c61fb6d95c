/* Any text: a policy that is printed and read again as it is, or a refusal
 * with a place in the text. */
#include <stagger/text.h>

#include <string.h>

#include "fuzz/fuzz.h"

static void check_policy(const stg_policy *p)
{
    char text[STG_POLICY_TEXT_MAX], again[STG_POLICY_TEXT_MAX];
    stg_policy read;
    stg_error err;

    HOLDS(stg_policy_check(p, &err) == STG_OK);
    HOLDS(stg_policy_print(p, text) == STG_OK);
    HOLDS(memchr(text, '\0', sizeof text) != NULL);
    HOLDS(stg_policy_parse(&read, text, &err) == STG_OK);
    HOLDS(stg_policy_equal(p, &read));
    HOLDS(stg_policy_print(&read, again) == STG_OK);
    HOLDS(strcmp(text, again) == 0);
}

static void check_error(const stg_error *err, const char *text)
{
    char place[64];
    size_t length = (size_t)snprintf(place, sizeof place,
                                     "policy:1:%u: ", (unsigned)err->column);

    HOLDS(err->line == 1);
    HOLDS(err->column >= 1 && err->column <= strlen(text) + 1);
    HOLDS(memchr(err->text, '\0', sizeof err->text) != NULL);
    HOLDS(strncmp(err->text, place, length) == 0);
    HOLDS(strlen(err->text) > length);
    for (const char *c = err->text; *c != '\0'; c++)
        HOLDS(*c >= ' ' && *c <= '~');
}

/* No byte of the policy is written when its text is refused. */
static void check_untouched(const stg_policy *p, int byte)
{
    const unsigned char *bytes = (const unsigned char *)p;

    for (size_t i = 0; i < sizeof *p; i++)
        HOLDS(bytes[i] == byte);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { UNTOUCHED = 0x5a };
    char *text = malloc(size + 1); // of its own size, for the sanitizer to see
    stg_policy p, other;
    stg_error err;

    HOLDS(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    memset(&p, UNTOUCHED, sizeof p);
    memset(&err, UNTOUCHED, sizeof err);
    if (stg_policy_parse(&p, text, &err) == STG_OK) {
        HOLDS(stg_policy_parse(&other, text, NULL) == STG_OK);
        HOLDS(stg_policy_equal(&p, &other));
        check_policy(&p);
    } else {
        HOLDS(stg_policy_parse(&p, text, NULL) == STG_INVALID);
        check_untouched(&p, UNTOUCHED);
        check_error(&err, text);
    }
    free(text);
    return 0;
}
