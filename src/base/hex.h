/* hex.h - the value of a hexadecimal digit. */
#ifndef STAGGER_BASE_HEX_H
#define STAGGER_BASE_HEX_H

/* Of 0 to 9 and a to f; -1: it is none. */
static inline int stg_hex_lower(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* And of A to F. */
static inline int stg_hex_digit(char c)
{
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : stg_hex_lower(c);
}

#endif
