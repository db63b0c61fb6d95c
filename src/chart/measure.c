#include "chart/measure.h"

#include <stdint.h>
#include <string.h>

/* Thousandths of the size, ' ' to '~': from the metrics of Helvetica. */
static const uint16_t widths[] = {
    278, 278, 355, 556, 556,  889, 667, 191, 333, 333, 389, 584, 278, 333,
    278, 278, 556, 556, 556,  556, 556, 556, 556, 556, 556, 556, 278, 278,
    584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722,  778, 667, 778, 722, 667, 611, 722, 667, 944,
    667, 667, 611, 278, 278,  278, 469, 556, 333, 556, 556, 500, 556, 556,
    278, 556, 556, 222, 222,  500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500,  500, 500, 334, 260, 334, 584};

/* DejaVu Sans, the widest in use, is 16 % wider on the whole. */
static const double room = 1.16;

static double width_of(unsigned char c)
{
    enum { OTHER = 650 };

    if (c >= 0x80 && c < 0xC0)
        return 0; // a character counts with its first byte
    return c >= ' ' && c <= '~' ? widths[c - ' '] : OTHER;
}

double stg_measure(const char *text, double size)
{
    double sum = 0;

    for (; *text != '\0'; text++)
        sum += width_of((unsigned char)*text);
    return sum * size * room / 1000;
}

size_t stg_measure_fit(const char *text, double size, double width)
{
    double sum = 0;
    size_t length = 0;

    for (; text[length] != '\0'; length++) {
        sum += width_of((unsigned char)text[length]);
        if (sum * size * room / 1000 > width)
            break;
    }
    while (text[length] != '\0' && ((unsigned char)text[length] & 0xC0) == 0x80)
        length--;
    return length;
}

size_t stg_measure_break(const char *text, double size, double width)
{
    size_t length = stg_measure_fit(text, size, width), at = length;

    if (text[length] == '\0')
        return length;
    while (at > 0 && text[at] != ' ')
        at--;
    if (at > 0)
        return at;
    return length > 0 ? length : strlen(text);
}
