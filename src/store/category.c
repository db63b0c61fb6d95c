#include "store/category.h"

#include <stddef.h>

const char *stg_category_letter(stg_category category)
{
    switch (category) {
    case STG_CATEGORY_CONNECT:
        return "A";
    case STG_CATEGORY_SERVER:
        return "B";
    case STG_CATEGORY_REQUEST:
        return "C";
    case STG_CATEGORY_OVERLOAD:
        return "D";
    default:
        return NULL;
    }
}
