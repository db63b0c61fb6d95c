/* What may be shown of a URL. */
#include <stdlib.h>

#include "http/url.h"
#include "tests/harness.h"

static void check(const char *url, const char *shown)
{
    char *masked = stg_url_mask(url);

    CHECK_STR(masked, shown);
    free(masked);
}

TEST(url_mask, leaves_what_is_no_secret)
{
    check("http://a/", "http://a/");
    check("https://a.example:8443/b/c", "https://a.example:8443/b/c");
    check("http://a/b@c", "http://a/b@c");
    check("", "");
    check("?", "?");
}

TEST(url_mask, hides_values_of_the_query)
{
    check("http://a/b?token=x", "http://a/b?token=***");
    check("http://a/?a=1&b=2&c", "http://a/?a=***&b=***&***");
    check("http://a/?a=b=c;d=&e", "http://a/?a=***;d=***&***");
    check("http://a/?&&x", "http://a/?&&***");
    check("http://a?secret", "http://a?***");
    check("http://a/?a=x?b=y", "http://a/?a=***");
    check("x?a=b", "x?a=***");
}

TEST(url_mask, hides_who_asks_and_what_is_not_sent)
{
    check("http://me:secret@a/b", "http://***@a/b");
    check("http://me:se@cret@a/b?c", "http://***@a/b?***");
    check("http://a/b#c?d", "http://a/b");
    check("http://a/?b=c#d=e", "http://a/?b=***");
}
