/* What a result of libpq means for a transaction, by SQLSTATE, and whether
 * COMMIT may have been carried out: only what the server surely rolled back is
 * marked as unsent. No connection is touched here, so that each case can be
 * tested without one. */
#include "adapters/pq_internal.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_state(const stg_pq_facts *f, const char *prefix)
{
    return f->sqlstate != NULL &&
           strncmp(f->sqlstate, prefix, strlen(prefix)) == 0;
}

static stg_fault fault_without_state(const stg_pq_facts *f)
{
    if (!f->is_broken)
        return STG_FAULT_ERROR;
    if (f->is_cancelled)
        return STG_FAULT_CANCELLED;
    return f->is_late ? STG_FAULT_TIMEOUT : STG_FAULT_CONNECTION_LOST;
}

static stg_outcome sort_error(const stg_pq_facts *f)
{
    stg_outcome o = stg_failed_sqlstate(f->sqlstate);

    if (f->sqlstate == NULL)
        return stg_failed(fault_without_state(f));
    if (is_state(f, "57014") && f->is_cancelled)
        o.fault = STG_FAULT_CANCELLED;
    else if (is_state(f, "57014") && f->is_late)
        o.fault = STG_FAULT_TIMEOUT;
    else if ((is_state(f, "25006") && f->is_standby) ||
             (is_state(f, "08P01") && f->is_fatal))
        o.fault = STG_FAULT_CONNECTION_LOST;
    else if (o.fault == STG_FAULT_NONE) // RAISE takes any code, of success too
        o.fault = STG_FAULT_SQL;
    return o;
}

stg_outcome stg_pq_sort(const stg_pq_facts *f)
{
    switch (f->status) {
    case PGRES_FATAL_ERROR:
        return sort_error(f);
    case PGRES_BAD_RESPONSE:
        return stg_failed(STG_FAULT_PROTOCOL);
    case PGRES_PIPELINE_ABORTED:
        return stg_failed_sqlstate("25P02");
    default:
        return stg_ok();
    }
}

/* The server wrote that it has failed: in PostgreSQL nothing that fails after
 * the commit is an ERROR. Of class 08 are the words of a pooler between, and
 * 40003 is to say just that. */
static bool is_surely_rolled_back(const stg_pq_facts *f)
{
    return f->sqlstate != NULL && !f->is_fatal && !is_state(f, "08") &&
           !is_state(f, "40003");
}

stg_outcome stg_pq_sort_commit(const stg_pq_facts *f)
{
    stg_outcome o = stg_pq_sort(f);

    if (o.fault == STG_FAULT_NONE)
        return o;
    if (is_surely_rolled_back(f))
        o.unsent = true;
    else
        o.fault = STG_FAULT_OUTCOME_UNKNOWN;
    return o;
}

/* The network's reasons, which libpq tells in the system's words. */
static bool find_reason(const char *words, stg_outcome *o)
{
    static const int errors[] = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH,
                                 ETIMEDOUT,    ECONNRESET,   EMFILE,
                                 ENFILE,       ENOENT};
    static const int names[] = {EAI_AGAIN, EAI_NONAME};

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strstr(words, strerror(errors[i])) != NULL) {
            *o = stg_failed_errno(errors[i]);
            if (errors[i] == ENOENT) // no socket: no server
                o->fault = STG_FAULT_REFUSED;
            else if (errors[i] == ETIMEDOUT)
                o->fault = STG_FAULT_CONNECT_TIMEOUT;
            return true;
        }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(words, gai_strerror(names[i])) != NULL) {
            *o = stg_failed_resolver(names[i]);
            return true;
        }
    return false;
}

/* With several hosts libpq's words have a line for each. The first SQLSTATE
 * that means more than a refused statement decides, or else what the network
 * said. */
stg_outcome stg_pq_sort_connect(const char *words)
{
    stg_outcome last = stg_failed(STG_FAULT_CONNECTION_LOST), reason;
    const char *at = words;

    while ((at = stg_pq_next_state(at)) != NULL) {
        char state[6] = "";

        memcpy(state, at, 5);
        last = stg_failed_sqlstate(state);
        if (last.fault != STG_FAULT_SQL)
            return last;
    }
    return find_reason(words, &reason) ? reason : last;
}

uint64_t stg_pq_read_ms(const char *text)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"", 1},        {"ms", 1},      {"s", 1000},
                 {"min", 60000}, {"h", 3600000}, {"d", 86400000}};
    uint64_t count;
    char *unit;

    if (text == NULL)
        return 0;
    count = strtoull(text, &unit, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0)
            return count * units[i].ms;
    return 0;
}

size_t stg_pq_count_hosts(const char *hosts)
{
    size_t count = 1;

    for (; hosts != NULL && *hosts != '\0'; hosts++)
        count += *hosts == ',';
    return count;
}

const char *stg_pq_begin_text(const stg_pq_options *options,
                              char text[STG_PQ_BEGIN_MAX])
{
    static const char *const isolations[] = {
        [STG_PQ_DEFAULT] = "",
        [STG_PQ_READ_COMMITTED] = " ISOLATION LEVEL READ COMMITTED",
        [STG_PQ_REPEATABLE_READ] = " ISOLATION LEVEL REPEATABLE READ",
        [STG_PQ_SERIALIZABLE] = " ISOLATION LEVEL SERIALIZABLE",
    };

    snprintf(text, STG_PQ_BEGIN_MAX, "BEGIN%s%s%s",
             isolations[options->isolation],
             options->read_only ? " READ ONLY" : "",
             options->deferrable ? " DEFERRABLE" : "");
    return text;
}
