/* Formats as the sources have them: %s, %%, and %u and %llu with a width and a 0
 * before it at most. Any other ends the text, which a test would see. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct printer {
    char *text;
    size_t size, length; /* the room; what was wanted */
} printer;

static void put(printer *p, char c)
{
    if (p->length + 1 < p->size)
        p->text[p->length] = c;
    p->length++;
}

static void put_number(printer *p, uint64_t number, unsigned width, char fill)
{
    char digits[20];
    unsigned count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (; width > count; width--)
        put(p, fill);
    while (count > 0)
        put(p, digits[--count]);
}

static void put_text(printer *p, const char *text)
{
    for (; *text != '\0'; text++)
        put(p, *text);
}

int vsnprintf(char *text, size_t size, const char *format, va_list args)
{
    printer p = {text, size, 0};

    for (; *format != '\0'; format++) {
        unsigned width = 0, longs = 0;
        char fill = ' ';

        if (*format != '%') {
            put(&p, *format);
            continue;
        }
        format++;
        if (*format == '0')
            fill = *format++;
        for (; *format >= '0' && *format <= '9'; format++)
            width = 10 * width + (unsigned)(*format - '0');
        for (; *format == 'l'; format++)
            longs++;
        if (*format == '%')
            put(&p, '%');
        else if (*format == 's')
            put_text(&p, va_arg(args, const char *));
        else if (*format == 'u' && longs == 0)
            put_number(&p, va_arg(args, unsigned), width, fill);
        else if (*format == 'u' && longs == 2)
            put_number(&p, va_arg(args, unsigned long long), width, fill);
        else
            break;
    }
    if (size > 0)
        text[p.length < size ? p.length : size - 1] = '\0';
    return (int)p.length;
}

int snprintf(char *text, size_t size, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text, size, format, args);
    va_end(args);
    return length;
}
