/* The table of settings as docs/configuration.md, as stagger.yaml(5) and as the
 * help of the hub's options. The files are in the tree, and tests/config/docs.py
 * holds that they are what this prints. */
#include <string.h>

#include "config/kinds/kinds.h"
#include "config/table.h"

/* -- docs/configuration.md and --help --------------------------------------- */

static const char example[] =
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
    "`stagger hub -c FILE` takes its settings from a file. `stagger check -c FILE` "
    "prints all\n"
    "mistakes in it at once, and warns of what is valid but risky. Without a file "
    "the hub takes\n"
    "its settings from options, which have the same names where there are some. "
    "With `-c` the\n"
    "options of the hub itself (address, store, log) override the file, and those "
    "of targets\n"
    "are refused.\n"
    "\n"
    "```\n";

static const char rules[] =
    "```\n"
    "\n"
    "[examples/stagger.yaml](../examples/stagger.yaml) has every part with a "
    "comment.\n"
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
    "- A **list** of one item may be that item alone.\n"
    "\n"
    "A **secret** is never in the settings, but in a file of its own that "
    "nobody else may read\n"
    "(`chmod 600`; or 0440 of a group of the hub, as Docker and Kubernetes "
    "have it), and it is\n"
    "shown nowhere: not in the log, not by `stagger check`, not in a dead "
    "letter. A credential of systemd\n"
    "and a file of a Secret's volume are such files; a reload reads what they "
    "are by then.\n"
    "\n"
    "### The environment\n"
    "\n"
    "In a value, `${NAME}` is what the environment has under that name, and "
    "`${NAME:-default}` the default\n"
    "where it has nothing or an empty text. A variable that is missing without "
    "a default is a mistake.\n"
    "`$${` stands for `${`, and a `$` without a brace for itself.\n"
    "\n"
    "```\n"
    "listen:\n"
    "  address: ${LISTEN:-127.0.0.1:8080}\n"
    "defaults: {in-flight: \"${IN_FLIGHT:-64}\"}\n"
    "targets:\n"
    "  - name: shop\n"
    "    url: https://${SHOP_HOST:-shop.example}/in\n"
    "```\n"
    "\n"
    "- It is replaced after YAML was read, so a value is one text (or number, "
    "or time) whatever it has in it,\n"
    "  and adds no key and no item. Keys and comments are left alone. In `{ }` "
    "and `[ ]` YAML wants quotes around it.\n"
    "- What came from the environment is not shown: mistakes, warnings and "
    "`stagger check` say `${NAME}`, and so do\n"
    "  the API, the console and dead letters of a target's URL. What the hub is "
    "told to call something (a target's\n"
    "  name and tags, an address that it listens on) has to be seen, and so "
    "has a host that cannot be found; a\n"
    "  number shows as it takes effect.\n"
    "- A secret is better in a file (`{file: PATH}`): the environment of a "
    "process is there for its children, for\n"
    "  crash reports and for `docker inspect`, and does not change while it "
    "runs. `{file: \"${CREDENTIALS_DIRECTORY}/shop\"}`\n"
    "  is a credential of systemd.\n"
    "- What comes by API is taken as it is: a call cannot read the hub's "
    "environment.\n";

static const char tail[] =
    "\n"
    "## Mistakes and warnings\n"
    "\n"
    "With a mistake the hub does not start, and a reload changes nothing. Mistakes "
    "are values\n"
    "out of range, and contradictions: a certificate without its key, or "
    "expired, or of another key, a\n"
    "secret that others may read, headers that the hub sets itself, a filter by "
    "a header that is not kept,\n"
    "two targets with one name, an address that `egress` refuses.\n"
    "\n"
    "`stagger check` warns of risks, and so does the hub when it starts: a "
    "`listen.address` that\n"
    "this machine does not have, no jitter with many targets, retries without an "
    "end, TLS\n"
    "without a check of the certificate, a secret sent in the clear, a quota that "
    "the disk does\n"
    "not have, and the like. With `--strict` a warning makes `stagger check` "
    "fail.\n"
    "\n"
    "## What a reload can change\n"
    "\n"
    "Targets, policies, defaults, alerts, egress, tokens, inbound webhooks, the "
    "headers that are\n"
    "kept and the limits of connections. A setting that only a restart can change is marked "
    "(*restart*); a\n"
    "reload that would change one is refused, whole. A file of such a setting "
    "whose content has changed,\n"
    "as when a password of `kafka.options` is rotated, is only warned of: it takes "
    "effect at a restart,\n"
    "and the rest is reloaded. Options of the command go before the file: settings "
    "are checked beside\n"
    "each other with the values in force.\n";

/* A pipe would end the cell. */
static void print_cell(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', to);
        fputc(*text, to);
    }
}

/* NULL is an empty cell. */
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

/* A section has no value of its own, only a sentence. */
static void print_row(FILE *to, const stg_setting *s)
{
    char expected[STG_EXPECTED_MAX];

    fprintf(to, "| `%s` | ", s->path);
    print_cell(to, s->kind == &stg_kind_section
                       ? ""
                       : stg_setting_expected(s, expected));
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

/* is_alerts: only settings whose path begins with `alerts.`, which have a table
 * of their own; else all others. */
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
    fputs(example, to);
    fputs(rules, to);
    print_table(to, "The hub", STG_IN_HUB, false);
    print_table(to, "One of inbound", STG_IN_INBOUND, false);
    print_table(to, "A target, and the defaults", STG_IN_TARGET, false);
    print_table(to, "Alerts", STG_IN_HUB, true);
    print_table(to, "One of alerts.receivers", STG_IN_RECEIVER, false);
    fputs(tail, to);
}

/* -- --help -- */

/* Words come first: shells complete them from there. */
static bool has_words(const stg_setting *s)
{
    return s->kind == &stg_kind_word && s->flag[strlen(s->flag) - 1] != '-';
}

/* The sentence is that of the file, with the default behind it, or before it
 * where shells look for words. */
const char *stg_settings_flag_text(const stg_setting *s,
                                   char text[STG_FLAG_TEXT_MAX])
{
    bool has_standard = s->standard != NULL;
    const char *standard = has_standard ? s->standard : "";
    const char *says = s->flag_says != NULL ? s->flag_says : s->says;
    char expected[STG_EXPECTED_MAX];

    if (has_words(s))
        snprintf(text, STG_FLAG_TEXT_MAX, "%s (%s). %s",
                 stg_setting_expected(s, expected), standard, says);
    else
        snprintf(text, STG_FLAG_TEXT_MAX, "%s%s%s%s", says,
                 has_standard ? " (" : "", standard, has_standard ? ")" : "");
    return text;
}

/* -- stagger.yaml(5) -------------------------------------------------------- */

static const char manual_head[] =
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
    "prints all mistakes at once, and warns of what is valid but risky.\n"
    ".Pp\n"
    "A time is a number and its unit, ns, us, ms, s, m, h or d; only 0 needs "
    "none.\n"
    "A size is a number of bytes, or has a unit, a power of 1024: 64KiB, 8GiB.\n"
    "A rate is 100/s or 0.5/s.\n"
    "A list of one item may be that item alone.\n"
    ".Pp\n"
    "A secret is in a file of its own that nobody else may read, and it is shown\n"
    "nowhere.\n"
    ".Pp\n"
    "In a value,\n"
    ".Ql ${NAME}\n"
    "is what the environment has under that name, and\n"
    ".Ql ${NAME:-default}\n"
    "the default where it has nothing or an empty text; a variable that is\n"
    "missing without a default is a mistake, and\n"
    ".Ql $${\n"
    "stands for the two characters.\n"
    "It is replaced after YAML was read: keys and comments are left alone, and a\n"
    "value adds no key.\n"
    "What came from the environment is shown as\n"
    ".Ql ${NAME} .\n"
    "Settings that come by API are taken as they are.\n"
    ".Pp\n"
    "A setting with\n"
    ".Dq restart\n"
    "is one that a reload cannot change.\n";

static const char manual_tail[] =
    ".Ed\n"
    ".Sh SEE ALSO\n"
    ".Xr stagger-check 1 ,\n"
    ".Xr stagger-hub 1\n";

/* One sentence a line, as mdoc wants it; what is code is bold. A line must not
 * begin with a dot or a quote, which would be a macro. */
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

/* A first word of one letter, as in "a time", begins the sentence in upper
 * case; a word of the setting itself is left as it is written. */
static void print_value(FILE *to, const stg_setting *s)
{
    char expected[STG_EXPECTED_MAX], text[STG_EXPECTED_MAX + 160];

    if (s->kind == &stg_kind_section)
        return;
    stg_setting_expected(s, expected);
    expected[0] = expected[0] >= 'a' && expected[0] <= 'z' && expected[1] == ' '
                      ? (char)(expected[0] - 'a' + 'A')
                      : expected[0];
    snprintf(text, sizeof text, "Value: %s.%s%s%s%s", expected,
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

/* In the order of the table, which keeps a section's settings behind it. */
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
    fputs(manual_head, to);
    print_list(to, "THE HUB", STG_IN_HUB);
    print_list(to, "AN INBOUND WEBHOOK", STG_IN_INBOUND);
    print_list(to, "A TARGET", STG_IN_TARGET);
    print_list(to, "A RECEIVER OF ALERTS", STG_IN_RECEIVER);
    fputs(".Sh EXAMPLES\n.Bd -literal -offset indent\n", to);
    fputs(example, to);
    fputs(manual_tail, to);
}
