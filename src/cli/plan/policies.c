/* Arguments of `stagger plan` as policies: a preset, a text, or a name in the
 * file. A text that lost its quotes arrives in pieces; where the pieces would
 * make one text it is refused with the quoted form, since each piece alone is a
 * valid policy that nobody meant. */
#include "cli/plan/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/load.h>

#include "base/suggest.h"
#include "cli/options.h"
#include "cli/say.h"
#include "core/reader.h"
#include "core/text_internal.h"

static const char who[] = "stagger plan";

static int fail_memory(void)
{
    stg_options_complain(who, "out of memory");
    return STG_EXIT_USAGE;
}

/* Adds a plan with a copy of its name. */
static int add(stg_plans *plans, const char *name, bool is_named,
               const stg_policy *policy)
{
    stg_plan *grown = realloc(plans->at, (plans->count + 1) * sizeof *grown);
    stg_plan *plan;

    if (grown == NULL)
        return fail_memory();
    plans->at = grown;
    plan = &plans->at[plans->count];
    plan->name = strdup(name);
    if (plan->name == NULL)
        return fail_memory();
    plan->is_named = is_named;
    plan->is_of_target = false;
    plan->policy = *policy;
    plans->count++;
    return 0;
}

/* -- a text in pieces */

/* One setting or growth, which could go on with the text before it. */
static bool is_piece(const char *word)
{
    return strpbrk(word, " \t") == NULL &&
           (strchr(word, '=') != NULL ||
            stg_growth_is_word(word, strlen(word)));
}

/* Whether the two words set the same, so that no text has both. */
static bool is_same_setting(const char *a, size_t length, const char *b)
{
    size_t key = strcspn(b, "=") + 1;

    if (stg_growth_is_word(b, strlen(b)))
        return stg_growth_is_word(a, length);
    return length >= key && strncmp(a, b, key) == 0;
}

/* Whether a text may go on with this piece. */
static bool goes_on(const char *text, const char *piece)
{
    if (!is_piece(piece))
        return false;
    while (*text != '\0') {
        size_t length = strcspn(text, " \t");

        if (is_same_setting(text, length, piece))
            return false;
        text += length;
        text += strspn(text, " \t");
    }
    return true;
}

/* Where the words end that could be one text, from `first` on. */
static int find_end(int first, int count, char **words)
{
    int end = first + 1;

    for (; end < count; end++)
        for (int i = first; i < end; i++)
            if (!goes_on(words[i], words[end]))
                return end;
    return end;
}

/* As the shell wants it: each text in quotes. */
static void show_quoted(int count, char **words)
{
    fprintf(stderr, "  %s", who);
    for (int i = 0; i < count;) {
        int end = find_end(i, count, words);
        bool is_text = end > i + 1 || strpbrk(words[i], " \t") != NULL;

        fputs(is_text ? " '" : " ", stderr);
        for (; i < end; i++)
            fprintf(stderr, "%s%s", words[i], i + 1 < end ? " " : "");
        fputs(is_text ? "'" : "", stderr);
    }
    fputc('\n', stderr);
}

/* `plan exponential base=1s` is two policies to us, and hardly to anybody
 * else; `plan jitter=full jitter=equal` can be nothing but two. */
static int check_whole(int count, char **words)
{
    for (int i = 0; i < count; i++) {
        if (find_end(i, count, words) == i + 1)
            continue;
        stg_options_complain(who,
                             "%s stands by itself; quote a text of several "
                             "words:",
                             words[i + 1]);
        show_quoted(count, words);
        return STG_EXIT_USAGE;
    }
    return 0;
}

/* -- names and texts */

static bool is_preset(const char *word)
{
    const stg_preset *preset;

    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++)
        if (strcmp(word, preset->name) == 0)
            return true;
    return false;
}

/* Of growths, presets and names of the file together, so that the nearest of
 * all is named. */
static void hint_name(const char *word, const stg_plans *known)
{
    stg_suggestion s = stg_suggestion_begin(word, strlen(word));
    const stg_preset *preset;

    for (unsigned i = 0; stg_growth_name(i) != NULL; i++)
        stg_suggestion_try(&s, stg_growth_name(i));
    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++)
        stg_suggestion_try(&s, preset->name);
    for (size_t i = 0; i < known->count; i++)
        stg_suggestion_try(&s, known->at[i].name);
    if (s.name != NULL)
        stg_say(stderr, "Did you mean %s?\n", s.name);
}

/* A word that can only be a name, and is nobody's. */
static int refuse_name(const char *word, const char *file,
                       const stg_plans *known)
{
    if (file != NULL)
        stg_options_complain(who, "%s: neither a policy of %s nor a preset",
                             word, file);
    else
        stg_options_complain(who, "%s: no preset, and no policy text", word);
    hint_name(word, known);
    fputs("See stagger plan --help for presets and the words of a text.\n",
          stderr);
    return STG_EXIT_USAGE;
}

/* Such a word cannot be the text of a policy either, once it is neither preset
 * nor growth. */
static bool is_name(const char *word)
{
    return word[0] != '\0' && word[strcspn(word, " \t=,:")] == '\0';
}

/* Names of the file come before presets and texts. */
static int read_text(stg_plans *plans, const char *word, const char *file,
                     const stg_plans *known)
{
    stg_policy policy;
    stg_error err;

    for (size_t i = 0; i < known->count; i++)
        if (strcmp(word, known->at[i].name) == 0)
            return add(plans, word, true, &known->at[i].policy);
    if (stg_policy_parse(&policy, word, &err) == STG_OK)
        return add(plans, word, is_preset(word), &policy);
    if (is_name(word))
        return refuse_name(word, file, known);
    stg_options_complain(who, "%s", err.text);
    if (word[0] != '\0' && err.line > 0)
        stg_options_point(word, err.column);
    return STG_EXIT_USAGE;
}

/* -- the file */

/* The error's line and column count in the file. */
static void point_into(const char *text, const stg_error *err)
{
    for (uint32_t line = 1; line < err->line; line++) {
        text = strchr(text, '\n');
        if (text == NULL)
            return;
        text++;
    }
    stg_options_point(text, err->column);
}

/* STG_NOT_FOUND is the end of the file. */
static int read_all(stg_plans *known, stg_policies *walk)
{
    char name[STG_NAME_MAX];
    stg_policy policy;
    stg_error err;
    stg_status status;
    int code = 0;

    while (code == 0 &&
           (status = stg_policies_next(walk, name, &policy, &err)) == STG_OK)
        code = add(known, name, true, &policy);
    if (code != 0 || status == STG_NOT_FOUND)
        return code;
    stg_options_complain(who, "%s", err.text);
    if (err.line > 0)
        point_into(walk->text, &err);
    return STG_EXIT_USAGE;
}

static int read_file(stg_plans *known, const char *path)
{
    stg_policies walk = {.source = path};
    stg_error err;
    char *text;
    int code;

    if (stg_file_read(path, &text, &walk.size, &err) != STG_OK) {
        stg_options_complain(who, "%s", err.text);
        return STG_EXIT_USAGE;
    }
    walk.text = text;
    code = read_all(known, &walk);
    free(text);
    return code;
}

/* Without arguments all of the file are shown, or the default policy. A file
 * with a mistake is refused as a whole, even if the name that is asked for
 * stands before it. */
int stg_plan_read(stg_plans *plans, const char *file, int count, char **words)
{
    stg_policy standard = stg_policy_default();
    stg_plans known = {0};
    int code = file == NULL ? 0 : read_file(&known, file);

    if (code == 0)
        code = check_whole(count, words);
    if (code == 0 && count == 0 && file != NULL) {
        *plans = known;
        if (known.count == 0) {
            stg_options_complain(who, "%s: has no policy", file);
            code = STG_EXIT_USAGE;
        }
        return code;
    }
    if (code == 0 && count == 0)
        code = add(plans, "default", true, &standard);
    for (int i = 0; code == 0 && i < count; i++)
        code = read_text(plans, words[i], file, &known);
    stg_plan_free(&known);
    return code;
}

#ifdef STAGGER_HUB
static int take(void *plans, const char *name, const stg_policy *policy)
{
    stg_plans *all = plans;
    int code = add(all, name, true, policy);

    if (code == 0)
        all->at[all->count - 1].is_of_target = true;
    return code;
}

int stg_plan_read_targets(stg_plans *plans, const char *config,
                          const char *const *targets, size_t count)
{
    return stg_plan_targets_walk(config, targets, count, take, plans);
}
#else
int stg_plan_read_targets(stg_plans *plans, const char *config,
                          const char *const *targets, size_t count)
{
    (void)plans;
    (void)config;
    (void)targets;
    (void)count;
    stg_options_complain(who,
                         "--target needs the hub, which this build was made "
                         "without");
    return STG_EXIT_USAGE;
}
#endif

void stg_plan_free(stg_plans *plans)
{
    for (size_t i = 0; i < plans->count; i++)
        free(plans->at[i].name);
    free(plans->at);
    *plans = (stg_plans){0};
}
