/* How requests go out: a proxy, and an address of this machine. Each is `none`
 * where a target has not what the defaults have.
 *
 * A proxy's URL may have a password in it. It is never repeated, and may be the
 * content of a file that nobody else may read. */
#include <string.h>
#include <uv.h>

#include "config/kinds/kinds.h"
#include "config/loading.h"
#include "http/proxy.h"

/* -- proxies --------------------------------------------------------------- */

static bool is_none(const char *text)
{
    return strcmp(text, "none") == 0;
}

static void read_proxy(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, const char *text, void *base)
{
    const char *value = is_none(text) ? NULL : text;
    char expected[STG_EXPECTED_MAX];
    stg_proxy proxy = {.basic = NULL};
    stg_error err;

    if (value != NULL && stg_proxy_parse(&proxy, value, &err) != STG_OK) {
        bool is_url = strncmp(err.text, "url: ", 5) == 0;

        stg_complain(l->c, n->place, "`%s`: %s; expected %s", s->path,
                     is_url ? err.text + 5 : err.text,
                     stg_setting_expected(s, expected));
        return;
    }
    stg_proxy_free(&proxy);
    stg_kind_put_text(s, base, value);
}

/* A text, or {file: PATH}. */
static void load_proxy(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, void *base)
{
    stg_sign_secret secret = {.file = NULL};

    if (stg_node_is_null(n) || n->kind == STG_NODE_LIST) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    if (!stg_load_secret_value(l, s, n, &secret))
        return;
    if (secret.file == NULL && l->is_exposed &&
        strchr(secret.value, '@') != NULL)
        stg_warn(l->c, n->place,
                 "the password of `%s` is in a file that others may read; "
                 "expected the URL in one of its own: {file: PATH}",
                 s->path);
    read_proxy(l, s, n, secret.value, base);
}

static json_t *schema_of_proxy(const stg_setting *s)
{
    (void)s;
    return stg_schema_either(
        stg_schema_text("^([Hh][Tt][Tt][Pp]://[^ ]+:[0-9]{1,5}/?|none)$"),
        stg_schema_file());
}

const stg_kind stg_kind_proxy = {
    .expected =
        "http://HOST:PORT, http://USER:PASSWORD@HOST:PORT, {file: PATH} "
        "with such a URL in it, or none",
    .load = load_proxy,
    .texts = 1,
    .schema = schema_of_proxy,
};

/* -- addresses of this machine --------------------------------------------- */

static bool read_ip(const stg_setting *s, const char *text, void *base,
                    stg_value_flaw *flaw)
{
    unsigned char address[16];

    if (is_none(text)) {
        stg_kind_put_text(s, base, NULL);
        return true;
    }
    if (uv_inet_pton(AF_INET, text, address) != 0 &&
        (strchr(text, '%') != NULL ||
         uv_inet_pton(AF_INET6, text, address) != 0))
        return stg_kind_refuse(flaw, text, "is no IP address");
    stg_kind_put_text(s, base, text);
    return true;
}

const stg_kind stg_kind_ip = {
    .expected = "an IP address of this machine, like 192.0.2.7, or none",
    .read = read_ip,
    .texts = 1,
    .pattern = "^([0-9.]+|[0-9a-fA-F:.]+|none)$",
};
