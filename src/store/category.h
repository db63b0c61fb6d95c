/* category.h - the categories of faults as people know them: A to D. */
#ifndef STAGGER_STORE_CATEGORY_H
#define STAGGER_STORE_CATEGORY_H

#include <stagger/fault.h>

/* "A" connect, "B" server, "C" request, "D" overload; NULL for the others.
 * Static. */
const char *stg_category_letter(stg_category category);

#endif
