#include <stagger/cancel.h>

#include <stdatomic.h>

bool stg_cancel_is_set(const stg_cancel *c)
{
    return atomic_load((stg_flag *)&c->is_set) != 0;
}
