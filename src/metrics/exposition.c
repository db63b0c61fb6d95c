/* Writes the text format of Prometheus into one buffer that grows. Fractions
 * are printed from integers, exactly, without floating point.
 *
 * An allocation that fails sets has_failed, and every call after it does
 * nothing, so that callers check only the end. */
#include "metrics/snapshot.h"

#include <assert.h>
#include <string.h>

enum { LABELS_MAX = 4, NUMBER_MAX = 32 };

/* -- bytes ----------------------------------------------------------------- */

/* What would end the value, or the line, is written as two bytes. */
static void add_escaped(stg_exposition *p, const char *text,
                        const char *special)
{
    for (;;) {
        size_t plain = strcspn(text, special);
        char escape[2] = {'\\', text[plain] == '\n' ? 'n' : text[plain]};

        stg_text_add(&p->text, text, plain);
        if (text[plain] == '\0')
            return;
        stg_text_add(&p->text, escape, 2);
        text += plain + 1;
    }
}

/* -- numbers --------------------------------------------------------------- */

static char *print_number(char *end, uint64_t number)
{
    do {
        *--end = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return end;
}

/* n / 10^places, exactly, with as many digits as there are. Returns text. */
static const char *print_decimal(char text[NUMBER_MAX], uint64_t n, int places)
{
    uint64_t one = 1, part;
    char *end = &text[NUMBER_MAX - 1], *at;

    for (int i = 0; i < places; i++)
        one *= 10;
    *end = '\0';
    part = n % one;
    if (part == 0)
        return print_number(end, n / one);
    at = end - places;
    for (char *digit = end; digit > at; part /= 10)
        *--digit = (char)('0' + part % 10);
    while (end[-1] == '0')
        *--end = '\0';
    *--at = '.';
    return print_number(at, n / one);
}

static const char *print_seconds(char text[NUMBER_MAX], stg_ns ns)
{
    return ns == STG_NEVER ? "+Inf" : print_decimal(text, ns, 9);
}

/* -- samples --------------------------------------------------------------- */

void stg_page_family(stg_exposition *p, const char *name, const char *type,
                     const char *help)
{
    p->family = name;
    stg_text_put(&p->text, "# HELP ");
    stg_text_put(&p->text, name);
    stg_text_put(&p->text, " ");
    add_escaped(p, help, "\\\n");
    stg_text_put(&p->text, "\n# TYPE ");
    stg_text_put(&p->text, name);
    stg_text_put(&p->text, " ");
    stg_text_put(&p->text, type);
    stg_text_put(&p->text, "\n");
}

static void add_labels(stg_exposition *p, const stg_label *labels, size_t count)
{
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        stg_text_add(&p->text, i == 0 ? "{" : ",", 1);
        stg_text_put(&p->text, labels[i].name);
        stg_text_put(&p->text, "=\"");
        add_escaped(p, labels[i].value, "\\\"\n");
        stg_text_put(&p->text, "\"");
    }
    stg_text_put(&p->text, "}");
}

static void add_sample(stg_exposition *p, const char *suffix,
                       const stg_label *labels, size_t count, const char *value)
{
    stg_text_put(&p->text, p->family);
    stg_text_put(&p->text, suffix);
    add_labels(p, labels, count);
    stg_text_put(&p->text, " ");
    stg_text_put(&p->text, value);
    stg_text_put(&p->text, "\n");
}

void stg_page_sample(stg_exposition *p, const char *suffix,
                     const stg_label *labels, size_t count, uint64_t value)
{
    char text[NUMBER_MAX];

    add_sample(p, suffix, labels, count, print_decimal(text, value, 0));
}

void stg_page_seconds(stg_exposition *p, const char *suffix,
                      const stg_label *labels, size_t count, stg_ns value)
{
    char text[NUMBER_MAX];

    add_sample(p, suffix, labels, count, print_seconds(text, value));
}

void stg_page_thousandths(stg_exposition *p, const stg_label *labels,
                          size_t count, uint64_t value)
{
    char text[NUMBER_MAX];

    add_sample(p, "", labels, count, print_decimal(text, value, 3));
}

/* Buckets are kept by themselves, and printed as Prometheus wants them: each has all
 * that is below its bound. */
void stg_page_histogram(stg_exposition *p, const stg_label *labels,
                        size_t count, const stg_histogram *h)
{
    stg_label all[LABELS_MAX];
    uint64_t below = 0;
    char bound[NUMBER_MAX];

    assert(count < LABELS_MAX);
    if (count > 0)
        memcpy(all, labels, count * sizeof *labels);
    all[count].name = "le";
    for (int i = 0; i <= STG_HISTOGRAM_BOUNDS; i++) {
        below += h->counts[i];
        all[count].value =
            i < STG_HISTOGRAM_BOUNDS
                ? print_decimal(bound, stg_histogram_bounds[i], 9)
                : "+Inf";
        stg_page_sample(p, "_bucket", all, count + 1, below);
    }
    stg_page_seconds(p, "_sum", labels, count, h->sum);
    stg_page_sample(p, "_count", labels, count, below);
}

char *stg_page_take(stg_exposition *p, size_t *size)
{
    char *bytes = p->text.is_short ? NULL : p->text.at;

    if (bytes == NULL)
        stg_text_free(&p->text);
    *size = bytes == NULL ? 0 : p->text.size;
    *p = (stg_exposition){.family = NULL};
    return bytes;
}
