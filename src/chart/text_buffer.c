#include "chart/text_buffer.h"

#include <stdarg.h>
#include <string.h>

/* A text that grows, and numbers in it. Numbers become an integer of the digits
 * wanted, rounded half up, and are printed from that: goldens compare the
 * bytes, so a change of how a number is scaled may change them.
 *
 * Without memory the buffer is short from then on and takes nothing more, not
 * even what would fit: a text with a hole would look whole. Callers check
 * is_short once, at the end. */

enum { FIRST_SIZE = 4096 };

stg_text_buffer stg_text_buffer_on(const stg_memory *memory)
{
    return (stg_text_buffer){.memory = memory};
}

void stg_text_buffer_free(stg_text_buffer *p)
{
    if (p->text != NULL)
        p->memory->release(p->memory->ctx, p->text);
    *p = stg_text_buffer_on(p->memory);
}

void stg_text_buffer_clear(stg_text_buffer *p)
{
    p->length = 0;
    p->is_short = false;
    if (p->text != NULL)
        p->text[0] = '\0';
}

/* Room for `count` bytes more and the terminator. A buffer that takes nothing
 * (is_short from the start) never asks for memory: svg.c measures with one. */
static bool reserve(stg_text_buffer *p, size_t count)
{
    size_t size = p->size == 0 ? FIRST_SIZE : p->size;
    char *text;

    if (p->is_short || count > SIZE_MAX / 4)
        return false;
    while (size - p->length <= count)
        size *= 2;
    if (size == p->size)
        return true;
    text = p->memory->allocate(p->memory->ctx, size);
    if (text == NULL)
        return false;
    if (p->text != NULL) {
        memcpy(text, p->text, p->length);
        p->memory->release(p->memory->ctx, p->text);
    }
    p->text = text;
    p->size = size;
    return true;
}

void stg_text_buffer_put_part(stg_text_buffer *p, const char *bytes,
                              size_t count)
{
    if (!reserve(p, count)) {
        p->is_short = true;
        return;
    }
    memcpy(p->text + p->length, bytes, count);
    p->length += count;
    p->text[p->length] = '\0';
}

void stg_text_buffer_put(stg_text_buffer *p, const char *text)
{
    stg_text_buffer_put_part(p, text, strlen(text));
}

void stg_text_buffer_put_char(stg_text_buffer *p, char c)
{
    stg_text_buffer_put_part(p, &c, 1);
}

void stg_text_buffer_put_escaped(stg_text_buffer *p, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            stg_text_buffer_put(p, "&amp;");
            break;
        case '<':
            stg_text_buffer_put(p, "&lt;");
            break;
        case '>':
            stg_text_buffer_put(p, "&gt;");
            break;
        case '"':
            stg_text_buffer_put(p, "&quot;");
            break;
        default:
            // Most control characters cannot be in XML 1.0, not even escaped.
            if ((unsigned char)*text < ' ' && *text != '\n' && *text != '\t')
                stg_text_buffer_put_char(p, '?');
            else
                stg_text_buffer_put_char(p, *text);
        }
    }
}

/* -- numbers */

/* The digits of a number, `places` of them after the point, without the zeros
 * at their end; grouped by thousands where is_grouped. */
static void put_digits(stg_text_buffer *p, uint64_t digits, int places,
                       bool is_grouped)
{
    char text[32];
    size_t at = sizeof text;
    int whole = 0;

    while (places > 0 && digits % 10 == 0) {
        digits /= 10;
        places--;
    }
    for (int i = 0; i < places; i++, digits /= 10)
        text[--at] = (char)('0' + digits % 10);
    if (places > 0)
        text[--at] = '.';
    do {
        if (is_grouped && whole > 0 && whole % 3 == 0)
            text[--at] = ',';
        text[--at] = (char)('0' + digits % 10);
        whole++;
        digits /= 10;
    } while (digits > 0);
    stg_text_buffer_put_part(p, text + at, sizeof text - at);
}

void stg_text_buffer_put_count(stg_text_buffer *p, uint64_t number)
{
    put_digits(p, number, 0, false);
}

/* Writes "none" for an infinite number or NaN and returns false; else writes
 * the sign and makes *number positive. x - x is 0 for finite numbers only. */
static bool put_sign(stg_text_buffer *p, double *number)
{
    if (!(*number - *number == 0)) {
        stg_text_buffer_put(p, "none");
        return false;
    }
    if (*number < 0) {
        stg_text_buffer_put_char(p, '-');
        *number = -*number;
    }
    return true;
}

/* Powers that a double holds exactly. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

enum { POWER_MAX = 22 };

/* number * 10^power; one rounding for each 22 of the power. */
static double shift(double number, int power)
{
    for (; power > POWER_MAX; power -= POWER_MAX)
        number *= powers[POWER_MAX];
    for (; power < -POWER_MAX; power += POWER_MAX)
        number /= powers[POWER_MAX];
    return power < 0 ? number / powers[-power] : number * powers[power];
}

/* e of 10^e <= number < 10^(e + 1); of 0 it is 0. */
static int exponent_of(double number)
{
    int exponent = 0;

    if (number == 0)
        return 0;
    while (shift(number, -exponent) >= 10)
        exponent++;
    while (shift(number, -exponent) < 1)
        exponent--;
    return exponent;
}

static uint64_t round_up_at_half(double number)
{
    return (uint64_t)(number + 0.5);
}

/* Numbers of 9.2e18 and more after scaling print as 9.2e18: the digits are a
 * uint64_t. stg_text_buffer_put_rounded() takes the exponent form before. */
static void put_fixed(stg_text_buffer *p, double number, int places,
                      bool is_grouped)
{
    const double most = 9.2e18;
    double scaled;

    if (number - number == 0 && number < 0 &&
        round_up_at_half(shift(-number, places)) == 0)
        number = 0; // no "-0"
    if (!put_sign(p, &number))
        return;
    scaled = shift(number, places);
    put_digits(p, scaled < most ? round_up_at_half(scaled) : (uint64_t)most,
               places, is_grouped);
}

void stg_text_buffer_put_fixed(stg_text_buffer *p, double number, int places)
{
    put_fixed(p, number, places, false);
}

void stg_text_buffer_put_number(stg_text_buffer *p, double number, int digits)
{
    enum { PLAIN_LEAST = -5, PLAIN_MOST = 15 };
    int exponent, places;
    uint64_t all;

    if (!put_sign(p, &number))
        return;
    exponent = exponent_of(number);
    places = digits - 1 - exponent;
    all = round_up_at_half(shift(number, places));
    if (all >= (uint64_t)powers[digits]) { // 9.99 of two digits is 10
        all /= 10;
        exponent++;
        places--;
    }
    if (exponent >= PLAIN_LEAST && exponent < PLAIN_MOST) {
        for (; places < 0; places++)
            all *= 10;
        put_digits(p, all, places, false);
        return;
    }
    put_digits(p, all, digits - 1, false);
    stg_text_buffer_put(p, exponent < 0 ? "e-" : "e+");
    put_digits(p, (uint64_t)(exponent < 0 ? -exponent : exponent), 0, false);
}

/* Three digits below 1,000 and whole numbers above; what would be very long or
 * all zeros has an exponent. */
void stg_text_buffer_put_rounded(stg_text_buffer *p, double number)
{
    double size = number < 0 ? -number : number;
    int exponent;

    if (!(size - size == 0)) {
        stg_text_buffer_put(p, "none");
        return;
    }
    exponent = exponent_of(size);
    if (exponent >= 15 || exponent < -4)
        stg_text_buffer_put_number(p, number, 3);
    else
        put_fixed(p, number, exponent >= 2 ? 0 : 2 - exponent, true);
}

void stg_text_buffer_put_counted(stg_text_buffer *p, double number,
                                 const char *one, const char *many)
{
    bool is_one = number > 0.995 && number < 1.005;

    stg_text_buffer_put_rounded(p, number);
    stg_text_buffer_put(p, is_one ? one : many);
}

void stg_text_buffer_put_percent(stg_text_buffer *p, double share)
{
    const double least = 0.0001;

    if (share > 0 && share < least)
        stg_text_buffer_put(p, "less than 0.01");
    else
        stg_text_buffer_put_rounded(p, 100 * share);
    stg_text_buffer_put(p, " %");
}

/* Chooses the largest unit that is not longer than the time, then rounds: a
 * time just below a unit may print as 1,000 ms or 60 s. */
void stg_text_buffer_put_time(stg_text_buffer *p, double ms)
{
    static const struct {
        double ms;
        const char *name;
    } units[] = {{86400e3, " d"}, {3600e3, " h"}, {60e3, " min"}, {1e3, " s"},
                 {1, " ms"},      {1e-3, " us"},  {1e-6, " ns"}};
    size_t i = 0, last = sizeof units / sizeof *units - 1;
    double size = ms < 0 ? -ms : ms;

    if (ms == 0) {
        stg_text_buffer_put(p, "0 ms");
        return;
    }
    while (i < last && size < units[i].ms)
        i++;
    stg_text_buffer_put_rounded(p, ms / units[i].ms);
    stg_text_buffer_put(p, ms - ms == 0 ? units[i].name : "");
}

/* No checks of types by the compiler: %f takes a double and %d an int, and text
 * of a user has to be %e in XML and HTML. */
void stg_text_buffer_form(stg_text_buffer *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    for (const char *next; *format != '\0'; format = next) {
        for (next = format; *next != '\0' && *next != '%';)
            next++;
        stg_text_buffer_put_part(p, format, (size_t)(next - format));
        if (*next == '\0')
            break;
        switch (next[1]) {
        case 's':
            stg_text_buffer_put(p, va_arg(args, const char *));
            break;
        case 'e':
            stg_text_buffer_put_escaped(p, va_arg(args, const char *));
            break;
        case 'd':
            stg_text_buffer_put_fixed(p, va_arg(args, int), 0);
            break;
        case 'f':
            stg_text_buffer_put_fixed(p, va_arg(args, double), 1);
            break;
        default:
            stg_text_buffer_put_char(p, next[1]);
        }
        next += 2;
    }
    va_end(args);
}
