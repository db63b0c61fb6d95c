#include "cli/say_json.h"
#include "cli/status/status.h"

static json_t *target_of(const status_row *row)
{
    json_t *target = json_copy((json_t *)row->target);
    json_t *rate = row->rate == STATUS_NONE
                       ? json_null()
                       : json_real((double)row->rate / 1000);

    if (json_object_set_new(target, "delivered_per_s", rate) == 0)
        return target;
    json_decref(target);
    return NULL;
}

void status_json_print(const status_look *look, bool is_line)
{
    json_t *targets = json_array();
    json_t *all = json_pack("{s:O, s:o}", "hub", look->hub, "targets", targets);

    for (size_t i = 0; i < look->count; i++)
        (void)json_array_append_new(targets, target_of(&look->rows[i]));
    stg_say_json(stdout, all, is_line);
    json_decref(all);
}
