#include <stagger/cancel.h>

#include <stdatomic.h>
#include <stddef.h>

bool stg_cancel_is_set(const stg_cancel *c)
{
    return c != NULL && atomic_load((stg_flag *)&c->is_set) != 0;
}
