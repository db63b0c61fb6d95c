#include <string.h>

#include "config/kinds/kinds.h"
#include "config/print.h"

static const char head[] =
    ".\\\" Made by `stagger check --manual` of src/config/table.c: change "
    "that.\n"
    ".Dd November 21, 2026\n"
    ".Dt STAGGER.YAML 5\n"
    ".Os\n"
    ".Sh NAME\n"
    ".Nm stagger.yaml\n"
    ".Nd settings of the hub\n"
    ".Sh DESCRIPTION\n"
    "The file that\n"
    ".Ql stagger hub -c\n"
    "takes its settings from: YAML in UTF-8, one document, 16 MiB at most.\n"
    "A key that is unknown or comes twice is a mistake, and so is one without a\n"
    "value: leave it out for the default.\n"
    "Anchors and aliases work; tags and merge keys are refused.\n"
    "Names of files are relative to the directory of the settings file.\n"
    ".Pp\n"
    ".Xr stagger-check 1\n"
    "says every mistake at once, and what is legal but unwise.\n"
    ".Pp\n"
    "A time is a number and its unit, ns, us, ms, s, m, h or d; only 0 needs "
    "none.\n"
    "A size is a number of bytes, or has a unit, a power of 1024: 64KiB, 8GiB.\n"
    "A rate is 100/s or 0.5/s.\n"
    "A list of one may be the one alone.\n"
    ".Pp\n"
    "A secret is in a file of its own that nobody else may read, and it is shown\n"
    "nowhere.\n"
    ".Pp\n"
    "A setting with\n"
    ".Dq restart\n"
    "is one that a reload cannot change.\n";

static const char tail[] =
    ".Ed\n"
    ".Sh SEE ALSO\n"
    ".Xr stagger-check 1 ,\n"
    ".Xr stagger-hub 1\n";

/* One sentence a line, as mdoc wants it; what is code is bold. */
static void print_text(FILE *to, const char *text)
{
    bool is_code = false;

    for (const char *at = text; *at != '\0'; at++) {
        bool begins = at == text || at[-1] == '\n';

        if (begins && (*at == '.' || *at == '\''))
            fputs("\\&", to);
        if (*at == '`') {
            is_code = !is_code;
            fputs(is_code ? "\\fB" : "\\fR", to);
        } else if (*at == '\\') {
            fputs("\\e", to);
        } else if (*at == ' ' && at > text && at[-1] == '.' && !is_code) {
            fputc('\n', to);
        } else {
            fputc(*at, to);
        }
    }
    fputc('\n', to);
}

static void print_value(FILE *to, const stg_setting *s)
{
    char wanted[STG_EXPECTED_MAX], text[STG_EXPECTED_MAX + 160];

    if (s->kind == &stg_kind_section)
        return;
    stg_setting_expected(s, wanted);
    wanted[0] = wanted[0] >= 'a' && wanted[0] <= 'z' && wanted[1] == ' '
                    ? (char)(wanted[0] - 'a' + 'A')
                    : wanted[0];
    snprintf(text, sizeof text, "Value: %s.%s%s%s%s", wanted,
             s->standard != NULL ? " Default: `" : "",
             s->standard != NULL ? s->standard : "",
             s->standard != NULL ? "`." : "",
             s->is_needed  ? " It is needed."
             : s->is_fixed ? " Restart."
                           : "");
    print_text(to, text);
}

static void print_setting(FILE *to, const stg_setting *s)
{
    fprintf(to, ".It Sy %s\n", s->path);
    print_text(to, s->says);
    print_value(to, s);
    if (s->example != NULL) {
        fputs("For example \\fB", to);
        print_text(to, s->example);
        fputs("\\fR\n", to);
    }
}

static void print_list(FILE *to, const char *title, stg_setting_in in)
{
    const stg_setting *s;

    fprintf(to, ".Sh %s\n.Bl -tag -width Ds\n", title);
    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->in == in)
            print_setting(to, s);
    fputs(".El\n", to);
}

void stg_settings_print_manual(FILE *to)
{
    fputs(head, to);
    print_list(to, "THE HUB", STG_IN_HUB);
    print_list(to, "A TARGET", STG_IN_TARGET);
    print_list(to, "A SINK OF ALERTS", STG_IN_SINK);
    fputs(".Sh EXAMPLES\n.Bd -literal -offset indent\n", to);
    fputs(stg_settings_example, to);
    fputs(tail, to);
}
