/* One table says what options a command has; everything else follows from it.
 *
 * The number of a row, behind NOT_LETTERS, is what getopt knows a long option
 * by, and a letter stands in its row's flag, so that nothing has to be said
 * twice. --help is the row after the last. What getopt would print is said here
 * instead: in one line, and with the option that was meant. */
#include "cli/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/say.h"
#include "core/reader.h"

static void complain(const char *who, const char *format, va_list args)
{
    fprintf(stderr, "%s: ", who);
    stg_say_brief_args(stderr, format, args);
    fputc('\n', stderr);
}

void stg_options_complain(const char *who, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    complain(who, format, args);
    va_end(args);
}

static int see_help(const char *who)
{
    fprintf(stderr, "See %s --help.\n", who);
    return STG_EXIT_USAGE;
}

int stg_options_refuse(const char *who, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    complain(who, format, args);
    va_end(args);
    return see_help(who);
}

/* Of a long text a window of 72 bytes is shown, with the mistake in it. */
void stg_options_point(const char *text, uint32_t column)
{
    enum { SHOWN = 72, BEFORE = 48 };
    size_t length = strcspn(text, "\r\n");
    size_t at = column > 0 ? column - 1 : 0, start, end;

    if (at > length)
        at = length;
    start = length > SHOWN && at > BEFORE ? at - BEFORE : 0;
    end = length - start > SHOWN ? start + SHOWN : length;
    fputs(start > 0 ? "  ..." : "  ", stderr);
    // A byte is a column here, and a tab would be many.
    for (size_t i = start; i < end; i++)
        if (text[i] == '\t')
            fputc(' ', stderr);
        else
            stg_say_text(stderr, text + i, 1, STG_VISIBLE_IN_COLUMN);
    fputs(end < length ? "...\n" : "\n", stderr);
    fprintf(stderr, "%*s^\n", (int)(at - start) + (start > 0 ? 5 : 2), "");
}

/* The whole text must be the number: "5s" and "5 " are refused. */
bool stg_options_read_int(const char *text, uint32_t least, uint32_t most,
                          uint32_t *number)
{
    stg_reader r = {text, text + strlen(text)};

    return stg_read_int(&r, number) && stg_reader_is_empty(&r) &&
           *number >= least && *number <= most;
}

bool stg_options_read_duration(const char *text, stg_ns *duration)
{
    stg_reader r = {text, text + strlen(text)};

    return stg_read_duration(&r, duration) && stg_reader_is_empty(&r);
}

const char *stg_options_suggest(char suggestion[STG_SUGGESTION_MAX],
                                const char *word, const char *const *names)
{
    const char *near = stg_suggest(word, names);

    snprintf(suggestion, STG_SUGGESTION_MAX, "%s%.64s%s",
             near != NULL ? "; did you mean " : "", near != NULL ? near : "",
             near != NULL ? "?" : "");
    return suggestion;
}

/* A long option, perhaps with its value: unknown, or short for several. */
static void refuse_long(const char *who, const char *word,
                        const struct option *options)
{
    const char *name = word + strspn(word, "-");
    size_t length = strcspn(name, "=");
    stg_suggestion s = stg_suggestion_begin(name, length);
    const struct option *begun = NULL;

    for (; options->name != NULL; options++) {
        if (begun == NULL && strncmp(options->name, name, length) == 0)
            begun = options;
        stg_suggestion_try(&s, options->name);
    }
    if (begun != NULL)
        stg_options_complain(who, "option '%.*s' is ambiguous",
                             (int)(name + length - word), word);
    else if (s.name != NULL)
        stg_options_complain(who,
                             "unrecognized option '%.*s', did you mean --%s?",
                             (int)(name + length - word), word, s.name);
    else
        stg_options_complain(who, "unrecognized option '%.*s'",
                             (int)(name + length - word), word);
}

static const struct option *find_option(const struct option *options, int value)
{
    while (options->name != NULL && options->val != value)
        options++;
    return options;
}

/* getopt_long(), with its complaints as ours. '?': there was one. */
static int next_option(int argc, char **argv, const char *letters,
                       const struct option *options)
{
    const struct option *known;
    int option;

    opterr = 0;
    option = getopt_long(argc, argv, letters, options, NULL);
    if (option != '?')
        return option;
    known = find_option(options, optopt);
    if (optopt == 0)
        refuse_long(argv[0], argv[optind - 1], options);
    else if (strncmp(argv[optind - 1], "--", 2) == 0 && known->name != NULL)
        stg_options_complain(argv[0],
                             known->has_arg == required_argument
                                 ? "option '--%s' requires an argument"
                                 : "option '--%s' doesn't allow an "
                                   "argument",
                             known->name);
    else if (known->name != NULL || strchr(letters, optopt) != NULL)
        stg_options_complain(argv[0], "option requires an argument -- '%c'",
                             optopt);
    else
        stg_options_complain(argv[0], "invalid option -- '%c'", optopt);
    return option;
}

/* -- the table ------------------------------------------------------------- */

enum { OPTIONS_MAX = 64, NOT_LETTERS = 256 };

/* The options as tables for getopt_long(). */
typedef struct parser {
    struct option options[OPTIONS_MAX + 2]; /* --help, and the end */
    char names[OPTIONS_MAX][STG_OPTION_NAME_MAX];
    char letters[3 * OPTIONS_MAX + 4];
    size_t rows;
} parser;

static bool is_end(const stg_option *o)
{
    return o->flag == NULL && o->says == NULL;
}

static char letter_of(const stg_option *o)
{
    return o->flag != NULL && o->flag[1] != '-' ? o->flag[1] : '\0';
}

const char *stg_option_name(const stg_option *o, char name[STG_OPTION_NAME_MAX])
{
    const char *at = strstr(o->flag, "--") + 2;

    snprintf(name, STG_OPTION_NAME_MAX, "%.*s", (int)strcspn(at, " ["), at);
    return name;
}

/* The value follows a blank, or "[=" where it may be left out. */
static int argument_of(const stg_option *o)
{
    const char *at = strstr(o->flag, "--");

    at += strcspn(at, " [");
    return *at == ' '   ? required_argument
           : *at == '[' ? optional_argument
                        : no_argument;
}

/* Headings have no option but count as rows, so that a row's number is its
 * place in the table. '+' makes getopt stop at the first word: what follows is
 * the command of `stagger run`. */
static void make_parser(parser *p, const stg_usage *u)
{
    const stg_option *o = u->options;
    struct option *next;
    char *letters;

    *p = (parser){.rows = 0};
    next = p->options;
    letters = p->letters;
    if (u->stops_at_word)
        *letters++ = '+';
    for (; !is_end(o); o++, p->rows++) {
        int argument;

        assert(p->rows < OPTIONS_MAX);
        if (o->flag == NULL)
            continue;
        argument = argument_of(o);
        *next++ = (struct option){stg_option_name(o, p->names[p->rows]),
                                  argument, NULL, NOT_LETTERS + (int)p->rows};
        if (letter_of(o) == '\0')
            continue;
        *letters++ = letter_of(o);
        if (argument == required_argument)
            *letters++ = ':';
    }
    *next =
        (struct option){"help", no_argument, NULL, NOT_LETTERS + (int)p->rows};
    *letters = 'h';
}

/* Its number; p->rows: --help. */
static size_t find_row(const parser *p, const stg_option *options, int found)
{
    size_t row = 0;

    if (found >= NOT_LETTERS)
        return (size_t)(found - NOT_LETTERS);
    while (row < p->rows && letter_of(&options[row]) != (char)found)
        row++;
    return row;
}

/* What the command's reader gets: the value of the row, or its letter, or its
 * number. */
static int value_of(const stg_option *options, size_t row)
{
    const stg_option *o = &options[row];

    return o->value != 0          ? o->value
           : letter_of(o) != '\0' ? letter_of(o)
                                  : STG_OPTION_ROW + (int)row;
}

/* -- subcommands and arguments --------------------------------------------- */

/* "list, show or drop" */
static const char *list_subcommands(const stg_usage *u, char text[128])
{
    const stg_subcommand *s = u->subcommands;
    size_t size = 0;

    for (; s->name != NULL; s++)
        size +=
            (size_t)snprintf(text + size, size < 128 ? 128 - size : 0, "%s%s",
                             size == 0           ? ""
                             : s[1].name == NULL ? " or "
                                                 : ", ",
                             s->name);
    return text;
}

static int refuse_subcommand(const stg_usage *u, const char *who,
                             const char *word)
{
    enum { SUBCOMMANDS_MAX = 8 };
    const char *names[SUBCOMMANDS_MAX + 1] = {NULL};
    char suggestion[STG_SUGGESTION_MAX], text[128];

    list_subcommands(u, text);
    if (word == NULL)
        return stg_options_refuse(who, "expected %s", text);
    for (size_t i = 0; u->subcommands[i].name != NULL; i++) {
        assert(i < SUBCOMMANDS_MAX);
        names[i] = u->subcommands[i].name;
    }
    return stg_options_refuse(who, "%s: expected %s%s", word, text,
                              stg_options_suggest(suggestion, word, names));
}

/* A usage with a default subcommand takes the first without being told; its
 * number is 0. */
static int take_subcommand(const stg_usage *u, const char *who,
                           stg_arguments *left)
{
    const stg_subcommand *s = u->subcommands;

    if (left->count == 0 && u->has_default)
        return 0;
    if (left->count == 0)
        return refuse_subcommand(u, who, NULL);
    while (s->name != NULL && strcmp(s->name, left->at[0]) != 0)
        s++;
    if (s->name == NULL)
        return refuse_subcommand(u, who, left->at[0]);
    left->subcommand = (size_t)(s - u->subcommands);
    left->at++;
    left->count--;
    return 0;
}

/* Whole names: "list" is not in "listen". */
static bool is_for(const stg_option *o, const char *subcommand)
{
    size_t size = strlen(subcommand);

    for (const char *at = o->of; at != NULL; at = strpbrk(at, ", ")) {
        at += strspn(at, ", ");
        if (strcspn(at, ",") == size && strncmp(at, subcommand, size) == 0)
            return true;
    }
    return o->of == NULL;
}

/* An option that the subcommand has no use for is a mistake. */
static int check_used(const stg_usage *u, const char *who, const char *name,
                      const bool *used)
{
    char option[STG_OPTION_NAME_MAX];

    for (size_t i = 0; !is_end(&u->options[i]); i++)
        if (used[i] && !is_for(&u->options[i], name))
            return stg_options_refuse(
                who, "%s has no option --%s, only %s", name,
                stg_option_name(&u->options[i], option), u->options[i].of);
    return 0;
}

static int take_arguments(const stg_usage *u, const char *who, const bool *used,
                          stg_arguments *left)
{
    int most = u->arguments_max, code = 0;

    if (u->subcommands != NULL) {
        code = take_subcommand(u, who, left);
        if (code == 0)
            code =
                check_used(u, who, u->subcommands[left->subcommand].name, used);
        most = u->subcommands[left->subcommand].arguments_max;
    }
    if (code == 0 && left->count > most)
        code =
            stg_options_refuse(who, "unexpected argument %s", left->at[most]);
    return code;
}

/* The values of options are taken in their order, and --help ends it at once,
 * also after an option that is wrong for the subcommand. */
int stg_options_read(const stg_usage *u, int argc, char **argv,
                     int (*read)(void *ctx, int value), void *ctx,
                     stg_arguments *left)
{
    bool used[OPTIONS_MAX + 1] = {false};
    int found, code;
    size_t row;
    parser p;

    make_parser(&p, u);
    optind = 1;
    while ((found = next_option(argc, argv, p.letters, p.options)) != -1) {
        if (found == '?')
            return see_help(argv[0]);
        row = find_row(&p, u->options, found);
        if (row == p.rows) {
            stg_options_print(u);
            return stg_options_finish(argv[0], STG_HELPED);
        }
        used[row] = true;
        code = read(ctx, value_of(u->options, row));
        if (code != 0)
            return code;
    }
    *left = (stg_arguments){.count = argc - optind, .at = argv + optind};
    return take_arguments(u, argv[0], used, left);
}

/* -- help ------------------------------------------------------------------ */

enum { WIDTH = 79, INDENT = 24 };

/* Without the backquotes that settings have in the documentation. Returns how
 * many columns it takes; `to` may be NULL. */
static int print_word(FILE *to, const char *word, int size)
{
    int width = 0;

    for (int i = 0; i < size; i++)
        if (word[i] != '`') {
            if (to != NULL)
                fputc(word[i], to);
            width++;
        }
    return width;
}

/* A paragraph that goes on from column `used`, and lines that are as they are. */
static void print_text(const char *text, int used)
{
    bool is_first = true;

    printf("%*s", used < INDENT ? INDENT - used : 0, "");
    for (used = INDENT; *text != '\0' && *text != '\n';) {
        int size = (int)strcspn(text, " \n");
        int width = print_word(NULL, text, size);

        if (!is_first && used + 1 + width > WIDTH) {
            printf("\n%*s", INDENT, "");
            used = INDENT;
            is_first = true;
        }
        if (!is_first)
            used += printf(" ");
        used += print_word(stdout, text, size);
        is_first = false;
        text += size;
        text += strspn(text, " ");
    }
    for (; *text == '\n'; text += 1 + strcspn(text + 1, "\n"))
        printf("\n%*s%.*s", INDENT, "", (int)strcspn(text + 1, "\n"), text + 1);
    putchar('\n');
}

/* The subcommands that it is for come first, unless the heading says them. */
static void print_option(const stg_option *o, const stg_option *heading)
{
    enum { TEXT_MAX = 1024 };
    bool is_said = o->of == NULL || (heading != NULL && heading->of != NULL &&
                                     strcmp(heading->of, o->of) == 0);
    char text[TEXT_MAX];
    int used;

    used = printf(letter_of(o) != '\0' ? "  %s" : "      %s", o->flag);
    if (used > INDENT - 2)
        used = printf("\n") - 1;
    snprintf(text, sizeof text, "%s%s%s", is_said ? "" : o->of,
             is_said ? "" : ": ", o->says);
    print_text(text, used);
}

static void print_options(const stg_option *o)
{
    static const stg_option help = {"-h, --help", "print this help", 0, NULL};
    const stg_option *heading = NULL;

    for (; !is_end(o); o++)
        if (o->flag != NULL) {
            print_option(o, heading);
        } else {
            printf("\n%s%s", o->says, o->says[0] != '\0' ? "\n" : "");
            heading = o;
        }
    if (heading != NULL && heading->says[0] != '\0')
        putchar('\n');
    print_option(&help, NULL);
}

/* Sentences that are as wide as those of options. */
static void print_subcommands(const stg_subcommand *all)
{
    for (const stg_subcommand *s = all; s != NULL && s->name != NULL; s++)
        print_text(s->says, printf("  %s", s->name));
}

void stg_options_print(const stg_usage *u)
{
    fputs(u->head, stdout);
    print_subcommands(u->subcommands);
    if (u->subcommands != NULL && u->options->flag != NULL)
        putchar('\n');
    print_options(u->options);
    if (u->print_tail != NULL)
        u->print_tail();
    fputs(u->tail, stdout);
}

/* Output that could not be written (a full disk, a closed pipe) must not end
 * with 0: a script would take half a list for all of it. */
int stg_options_finish(const char *who, int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    stg_options_complain(who, "cannot write the output: %s", strerror(errno));
    return STG_EXIT_USAGE;
}
