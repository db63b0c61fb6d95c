/* types.h - the numbers that PostgreSQL has for types: pg_type.dat of its
 * sources, and the same in every server. */
#ifndef STAGGER_STORE_POSTGRES_TYPES_H
#define STAGGER_STORE_POSTGRES_TYPES_H

enum {
    STG_PG_BYTEA = 17,
    STG_PG_INT8 = 20,
    STG_PG_INT2 = 21,
    STG_PG_INT4 = 23,
    STG_PG_TEXT = 25,
    STG_PG_BYTEAS = 1001, /* arrays */
    STG_PG_TEXTS = 1009,
    STG_PG_INT8S = 1016,
};

#endif
