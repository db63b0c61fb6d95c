/* Shares of the files that may be open: each side owns a quarter, half is for whom it
 * meets first. See the header. */
#include "host/files.h"

#include <stddef.h>
#include <sys/resource.h>

enum { OURS = 64, OURS_A_BROKER = 6, UNLIMITED = 1 << 30 };

static uint64_t find_limit(const stg_files *f)
{
    struct rlimit is;

    if (f->limit > 0)
        return f->limit;
    if (getrlimit(RLIMIT_NOFILE, &is) != 0 || is.rlim_cur >= UNLIMITED)
        return UNLIMITED;
    return (uint64_t)is.rlim_cur;
}

uint64_t stg_files_room(const stg_files *f)
{
    uint64_t limit = find_limit(f);
    uint64_t ours = OURS + OURS_A_BROKER * (uint64_t)f->brokers;
    uint64_t room = limit - (ours < limit / 2 ? ours : limit / 2);

    return room < 4 ? 4 : room;
}

static uint64_t own_share(const stg_files *f)
{
    return stg_files_room(f) / 4;
}

/* Of a side that has `is`, where the other one has `others`. Of the other
 * side's connections only those count that it owns: what it has beyond them,
 * it gives back when it is asked. */
static bool have_one(const stg_files *f, uint64_t is, uint64_t others)
{
    uint64_t own = own_share(f);

    return is + (others > own ? others : own) < stg_files_room(f);
}

bool stg_files_have_target(const stg_files *f)
{
    return have_one(f, f->targets, f->callers);
}

bool stg_files_have_caller(const stg_files *f)
{
    return have_one(f, f->callers, f->targets);
}

void stg_files_ask_callers(stg_files *f)
{
    if (f->callers > own_share(f) && f->evict_caller != NULL)
        (void)f->evict_caller(f->callers_ctx);
}

void stg_files_ask_targets(stg_files *f)
{
    if (f->targets > own_share(f) && f->evict_target != NULL)
        (void)f->evict_target(f->targets_ctx);
}
