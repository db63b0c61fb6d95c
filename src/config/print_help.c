#include <string.h>

#include "config/print.h"
#include "config/values.h"

enum { WIDTH = 79, INDENT = 24 };

static int count_backquotes(const char *word, int size)
{
    int count = 0;

    for (int i = 0; i < size; i++)
        count += word[i] == '`';
    return count;
}

static void print_word(FILE *to, const char *word, int size)
{
    for (int i = 0; i < size; i++)
        if (word[i] != '`')
            fputc(word[i], to);
}

void stg_print_wrapped(FILE *to, const char *text, int used, int indent)
{
    bool is_first = true;

    fprintf(to, "%*s", used < indent ? indent - used : 0, "");
    used = used < indent ? indent : used;
    while (*text != '\0') {
        int size = (int)strcspn(text, " ");
        int width = size - count_backquotes(text, size);

        if (!is_first && used + 1 + width > WIDTH) {
            fprintf(to, "\n%*s", indent, "");
            used = indent;
            is_first = true;
        }
        if (!is_first)
            fputc(' ', to);
        print_word(to, text, size);
        used += width + (is_first ? 0 : 1);
        is_first = false;
        text += size;
        text += strspn(text, " ");
    }
    fputc('\n', to);
}

void stg_settings_print_option(FILE *to, const char *flag, const char *says)
{
    bool has_letter = flag[0] == '-' && flag[1] != '-';
    int used = fprintf(to, has_letter ? "  %s" : "      %s", flag);

    if (used > INDENT - 2) {
        fputc('\n', to);
        used = 0;
    }
    stg_print_wrapped(to, says, used, INDENT);
}

/* Words come first: shells complete them from there. */
static bool has_words(const stg_setting *s)
{
    return s->kind == STG_KIND_WORD && s->flag[strlen(s->flag) - 1] != '-';
}

void stg_settings_print_flag(FILE *to, const stg_setting *s)
{
    bool has_standard = s->standard != NULL;
    const char *standard = has_standard ? s->standard : "";
    char says[600], wanted[STG_EXPECTED_MAX];

    if (has_words(s))
        snprintf(says, sizeof says, "%s (%s). %s",
                 stg_setting_expected(s, wanted), standard, s->says);
    else
        snprintf(says, sizeof says, "%s%s%s%s", s->says,
                 has_standard ? " (" : "", standard, has_standard ? ")" : "");
    stg_settings_print_option(to, s->flag, says);
}
