/* How one target's requests go out: whether the proxy's address may be connected
 * to, and whether this machine has the address that its connections come from. A
 * name is checked when it is resolved. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/refuse.h"
#include "config/loading.h"
#include "http/proxy.h"

/* Whether this machine has it, by what the system says of a socket. Where none
 * can be made now, it is not refused. */
static bool is_here(const struct sockaddr *at, size_t size)
{
    int fd = socket(at->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_bound = fd < 0 || bind(fd, at, (socklen_t)size) == 0;

    if (fd >= 0)
        close(fd);
    return is_bound;
}

static stg_status check_source(const char *text, stg_error *err)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    bool is_v4 = uv_ip4_addr(text, 0, &v4) == 0;

    if (is_v4 ? is_here((const struct sockaddr *)&v4, sizeof v4)
              : uv_ip6_addr(text, 0, &v6) == 0 &&
                    is_here((const struct sockaddr *)&v6, sizeof v6))
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID,
        "this machine has no address %.60s; expected one that "
        "it has",
        text);
}

/* False: it was refused when it was read. */
static bool read_proxy(const char *text, stg_url *url)
{
    stg_proxy proxy;

    if (text == NULL || stg_proxy_parse(&proxy, text, NULL) != STG_OK)
        return false;
    *url = proxy.url;
    stg_proxy_free(&proxy);
    return true;
}

stg_status stg_settings_check_route(const stg_settings *s,
                                    const stg_target_settings *t,
                                    stg_error *err)
{
    stg_url proxy;
    stg_error why;

    if (read_proxy(t->common->proxy, &proxy) &&
        stg_settings_check_egress(s, &proxy, &why) != STG_OK)
        return stg_hub_refuse(err, STG_INVALID, "its proxy: %.300s", why.text);
    return t->common->source == NULL ? STG_OK
                                     : check_source(t->common->source, err);
}

/* Those of the defaults are checked with the first target that has them. */
static bool is_new(const char *value, const char *of_defaults,
                   bool *has_checked)
{
    bool is_first = value != of_defaults || !*has_checked;

    *has_checked = *has_checked || value == of_defaults;
    return value != NULL && is_first;
}

void stg_validate_route(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    const stg_target_settings *d = &l->s->defaults;
    stg_url proxy;
    stg_error err;

    if (is_new(t->common->proxy, d->common->proxy, &l->has_checked_proxy) &&
        read_proxy(t->common->proxy, &proxy))
        stg_validate_egress(l, stg_load_target_place(l, target, "proxy"),
                            "proxy", &proxy);
    if (is_new(t->common->source, d->common->source, &l->has_checked_source) &&
        check_source(t->common->source, &err) != STG_OK)
        stg_complain(l->c, stg_load_target_place(l, target, "source-address"),
                     "`source-address`: %s", err.text);
}
