/* Causes of dead letters as words: reads what operators write, in every
 * spelling that policies know, as the pattern that the table of dead letters
 * has; suggests the word that was meant; and names the causes of bulk rows.
 * Pure. */
#include "store/cause.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "core/codes.h"
#include "core/rule.h"

static stg_reader over(const char *word)
{
    return (stg_reader){word, word + strlen(word)};
}

static bool set_pattern(stg_cause *cause, const char *pattern)
{
    snprintf(cause->pattern, sizeof cause->pattern, "%s", pattern);
    return true;
}

static bool read_shed(stg_cause *cause, const char *word)
{
    stg_reader r = over(word);

    for (int i = 0; i < STG_SHED_CAUSES; i++) {
        const char *name = stg_shed_cause_name((stg_shed_cause)i);

        if (stg_reader_spells(&r, name))
            return set_pattern(cause, name);
    }
    return false;
}

/* Records have the codes of a family, and not the family. */
static bool set_family(stg_cause *cause, stg_family family)
{
    static const char *const patterns[] = {
        [STG_FAMILY_3XX] = "HTTP_3*",
        [STG_FAMILY_4XX] = "HTTP_4*",
        [STG_FAMILY_5XX] = "HTTP_5*",
        [STG_FAMILY_GRPC] = "GRPC_*",
    };

    return set_pattern(cause, patterns[family]);
}

static bool set_category(stg_cause *cause, stg_category category)
{
    const char *letter = stg_category_letter(category);

    if (letter != NULL)
        snprintf(cause->category, sizeof cause->category, "%s", letter);
    return letter != NULL;
}

/* A rule may name what no outcome has: dead letters have no such cause. */
static bool set_fault(stg_cause *cause, const stg_rule *rule)
{
    stg_outcome o = stg_spelling_outcome(rule);

    if (o.fault == STG_FAULT_NONE || (rule->code_kind != STG_CODE_EXIT &&
                                      stg_rule_check(rule, NULL) != STG_OK))
        return false;
    stg_outcome_cause(&o, cause->pattern);
    return true;
}

/* Causes of bulk rows come first, for policies do not know these words. */
static bool read(stg_cause *cause, const char *word)
{
    stg_rule rule;

    *cause = (stg_cause){.pattern = ""};
    if (read_shed(cause, word))
        return true;
    if (!stg_spelling_read(over(word), &rule))
        return false;
    switch ((stg_link_kind)rule.link) {
    case STG_LINK_CODE:
    case STG_LINK_NAME:
        return set_fault(cause, &rule);
    case STG_LINK_FAMILY:
        return set_family(cause, (stg_family)rule.value);
    case STG_LINK_CATEGORY:
        return set_category(cause, (stg_category)rule.value);
    case STG_LINK_ANY:
        break;
    }
    return false;
}

/* In the letters of records. */
static void fold(char upper[STG_CAUSE_MAX], const char *word)
{
    size_t size = 0;

    for (; size < STG_CAUSE_MAX - 1 && word[size] != '\0'; size++)
        upper[size] = word[size] == '-' ? '_'
                      : word[size] >= 'a' && word[size] <= 'z'
                          ? (char)(word[size] - 'a' + 'A')
                          : word[size];
    upper[size] = '\0';
}

/* What ends with a status was meant to be one. */
static bool find_status(const char *word, char near[STG_CAUSE_MAX])
{
    size_t length = strlen(word);
    stg_cause meant;

    if (length <= 3 || stg_is_digit(word[length - 4]) ||
        strspn(word + length - 3, "0123456789") != 3 ||
        !read(&meant, word + length - 3))
        return false;
    snprintf(near, STG_CAUSE_MAX, "%s", meant.pattern);
    return true;
}

/* A bulk row's causes, and then what the parser reads. */
static const char *word_at(size_t i)
{
    return i < STG_SHED_CAUSES ? stg_shed_cause_name((stg_shed_cause)i)
                               : stg_spelling_word(i - STG_SHED_CAUSES);
}

/* Finds the word that this one is most like, in the letters of records. Only
 * words that read() takes count: what is suggested can be used. */
static void find_word(const char *word, char near[STG_CAUSE_MAX])
{
    char upper[STG_CAUSE_MAX], next[STG_CAUSE_MAX];
    const char *const names[] = {near, next, NULL};
    const char *known;
    stg_cause cause;

    fold(upper, word);
    for (size_t i = 0; (known = word_at(i)) != NULL; i++) {
        fold(next, known);
        if (stg_suggest(upper, names) == next && read(&cause, next))
            memcpy(near, next, STG_CAUSE_MAX);
    }
    if (read(&cause, near) && cause.pattern[0] != '\0' &&
        strchr(cause.pattern, '*') == NULL)
        memcpy(near, cause.pattern, STG_CAUSE_MAX);
}

bool stg_cause_read(stg_cause *cause, const char *word,
                    char near[STG_CAUSE_MAX])
{
    near[0] = '\0';
    if (read(cause, word))
        return true;
    if (!find_status(word, near))
        find_word(word, near);
    return false;
}

bool stg_cause_fits(const char *pattern, const char *cause)
{
    size_t length = strlen(pattern);

    if (length > 0 && pattern[length - 1] == '*')
        return strncmp(pattern, cause, length - 1) == 0;
    return strcmp(pattern, cause) == 0;
}

/* -- categories ------------------------------------------------------------ */

const char *stg_category_letter(stg_category category)
{
    switch (category) {
    case STG_CATEGORY_CONNECT:
        return "A";
    case STG_CATEGORY_SERVER:
        return "B";
    case STG_CATEGORY_REQUEST:
        return "C";
    case STG_CATEGORY_OVERLOAD:
        return "D";
    default:
        return NULL;
    }
}

/* -- bulk rows ------------------------------------------------------------- */

/* Whether it was cancelled or expired says more than the reason, which is that
 * of the lane at the time. */
stg_shed_how stg_shed_how_of(const stg_change *c)
{
    if (c->is_cancelled)
        return STG_SHED_HOW_CANCELLED;
    if (c->is_expired)
        return STG_SHED_HOW_EXPIRED;
    return c->reason == STG_SHED_OPEN ? STG_SHED_HOW_SHED
                                      : STG_SHED_HOW_RETENTION;
}

const char *stg_shed_how_name(stg_shed_how how)
{
    static const char *const names[STG_SHED_HOWS] = {
        [STG_SHED_HOW_SHED] = "shed",
        [STG_SHED_HOW_RETENTION] = "retention",
        [STG_SHED_HOW_EXPIRED] = "expired",
        [STG_SHED_HOW_CANCELLED] = "cancelled"};

    return names[how];
}

/* The same order as in stg_shed_how_of(). */
stg_shed_cause stg_shed_cause_of(const stg_change *c)
{
    if (c->is_cancelled)
        return STG_SHED_CAUSE_CANCELLED;
    if (c->is_expired)
        return STG_SHED_CAUSE_EXPIRED;
    return c->reason == STG_SHED_PAUSED ? STG_SHED_CAUSE_PAUSED
           : c->reason == STG_SHED_SLOW ? STG_SHED_CAUSE_SLOW
                                        : STG_SHED_CAUSE_SHED;
}

const char *stg_shed_cause_name(stg_shed_cause cause)
{
    static const char *const names[STG_SHED_CAUSES] = {
        [STG_SHED_CAUSE_SHED] = "SHED",
        [STG_SHED_CAUSE_PAUSED] = "PAUSED",
        [STG_SHED_CAUSE_SLOW] = "SLOW",
        [STG_SHED_CAUSE_EXPIRED] = "EXPIRED",
        [STG_SHED_CAUSE_CANCELLED] = "CANCELLED"};

    return names[cause];
}
