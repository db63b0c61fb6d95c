#include <string.h>

#include "config/kinds/kinds.h"
#include "config/print.h"

const char stg_settings_example[] =
    "store:\n"
    "  path: /var/lib/stagger/hub.db\n"
    "  retention: 3d\n"
    "policies:\n"
    "  patient: exponential base=1s cap=5m attempts=12 deadline=12h\n"
    "    attempt-timeout=20s\n"
    "defaults:\n"
    "  policy: patient\n"
    "targets:\n"
    "  - name: shop\n"
    "    url: https://shop.example/in\n"
    "    headers: {Authorization: {file: shop.token}}\n"
    "  - name: stock\n"
    "    url: https://stock.example/in\n"
    "    rate: 50/s\n"
    "    match: {X-Event: [order.paid, order.sent]}\n";

static const char head[] =
    "# Settings of the hub\n"
    "\n"
    "<!-- Made by `stagger check --docs` of the table in "
    "src/config/table.c:\n"
    "     change that, and make it anew. -->\n"
    "\n"
    "`stagger hub -c FILE` takes its settings from a file, and `stagger check "
    "-c FILE`\n"
    "says what is wrong with it, all at once, and what is unwise. A hub without "
    "a file is\n"
    "set by options of the command, which have the same names where there are "
    "some; beside\n"
    "`-c` the options of the hub itself (where it listens, its store, its log) "
    "go before the\n"
    "file, and those of targets are refused.\n"
    "\n"
    "```\n";

static const char rules[] =
    "```\n"
    "\n"
    "[examples/stagger.yaml](../examples/stagger.yaml) has every part with a "
    "word on each.\n"
    "\n"
    "## The file\n"
    "\n"
    "YAML in UTF-8, one document, 16 MiB at most. A key that is unknown or comes "
    "twice is a\n"
    "mistake, and so is one without a value: leave it out for the default. "
    "Anchors and\n"
    "aliases work; tags and merge keys (`<<`) are refused: `defaults` is for "
    "what targets have\n"
    "in common. Names of files are relative to the directory of the settings "
    "file.\n"
    "\n"
    "- A **time** is a number and its unit, `ns`, `us`, `ms`, `s`, `m`, `h` or "
    "`d`: `1.5s`, `10m`.\n"
    "  Only 0 needs none.\n"
    "- A **size** is a number of bytes, or has a unit, a power of 1024: `64KiB`, "
    "`1.5G`, `8GiB`.\n"
    "- A **rate** is `100/s`, or `0.5/s`.\n"
    "- A **list** of one may be the one alone.\n"
    "\n"
    "A **secret** is never in the settings, but in a file of its own that "
    "nobody else may read\n"
    "(`chmod 600`; or 0440 of a group of the hub, as Docker and Kubernetes "
    "have it), and it is\n"
    "shown nowhere: not in the log, not by `stagger check`, not in a dead "
    "letter.\n";

static const char tail[] =
    "\n"
    "## What is a mistake, and what is unwise\n"
    "\n"
    "A mistake stops the hub before it starts, and a reload before it changes "
    "anything: a\n"
    "value out of its range, and what contradicts: retries that go on for "
    "longer than\n"
    "`store.retention`, a certificate without its key, or expired, or not that "
    "of the key, a\n"
    "secret that others may read, headers that are the hub's own, a filter by a "
    "header that\n"
    "is not kept, targets with one name, an address that `egress` refuses.\n"
    "\n"
    "What is unwise is told by `stagger check`, and by the hub when it starts: "
    "a `listen.address` that this machine does not have, no jitter with many targets,\n"
    "retries for ever, TLS without a check, a secret sent in the clear, a quota "
    "that the disk does\n"
    "not have, and the like. `stagger check --strict` fails by it.\n"
    "\n"
    "## What a reload can change\n"
    "\n"
    "Targets, policies, defaults, alerts, egress, tokens, the headers that are "
    "kept and the\n"
    "limits of connections. A setting that only a restart can change is marked "
    "(*restart*); a\n"
    "reload that would change one is refused, whole.\n";

/* A pipe would end the cell. */
static void print_cell(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', to);
        fputc(*text, to);
    }
}

static void print_code(FILE *to, const char *text)
{
    if (text == NULL) {
        fputs("|  ", to);
        return;
    }
    fputs("| `", to);
    print_cell(to, text);
    fputs("` ", to);
}

static void print_row(FILE *to, const stg_setting *s)
{
    char wanted[STG_EXPECTED_MAX];

    fprintf(to, "| `%s` | ", s->path);
    print_cell(to, s->kind == &stg_kind_section
                       ? ""
                       : stg_setting_expected(s, wanted));
    fputc(' ', to);
    if (s->is_needed)
        fputs("| needed ", to);
    else
        print_code(to, s->standard);
    print_code(to, s->example);
    fputs("| ", to);
    print_cell(to, s->says);
    fprintf(to, "%s |\n", s->is_fixed ? " (*restart*)" : "");
}

static bool is_of_alerts(const stg_setting *s)
{
    return strncmp(s->path, "alerts.", 7) == 0;
}

static void print_table(FILE *to, const char *title, stg_setting_in in,
                        bool is_alerts)
{
    const stg_setting *s;

    fprintf(to,
            "\n## %s\n\n"
            "| setting | value | default | for example | what it does |\n"
            "|---|---|---|---|---|\n",
            title);
    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->in == in && is_of_alerts(s) == is_alerts)
            print_row(to, s);
}

void stg_settings_print_docs(FILE *to)
{
    fputs(head, to);
    fputs(stg_settings_example, to);
    fputs(rules, to);
    print_table(to, "The hub", STG_IN_HUB, false);
    print_table(to, "A target, and the defaults", STG_IN_TARGET, false);
    print_table(to, "Alerts", STG_IN_HUB, true);
    print_table(to, "One of alerts.sinks", STG_IN_SINK, false);
    fputs(tail, to);
}

/* -- --help -- */

/* Words come first: shells complete them from there. */
static bool has_words(const stg_setting *s)
{
    return s->kind == &stg_kind_word && s->flag[strlen(s->flag) - 1] != '-';
}

const char *stg_settings_flag_text(const stg_setting *s,
                                   char text[STG_FLAG_TEXT_MAX])
{
    bool has_standard = s->standard != NULL;
    const char *standard = has_standard ? s->standard : "";
    char wanted[STG_EXPECTED_MAX];

    if (has_words(s))
        snprintf(text, STG_FLAG_TEXT_MAX, "%s (%s). %s",
                 stg_setting_expected(s, wanted), standard, s->says);
    else
        snprintf(text, STG_FLAG_TEXT_MAX, "%s%s%s%s", s->says,
                 has_standard ? " (" : "", standard, has_standard ? ")" : "");
    return text;
}
