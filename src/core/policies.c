/* A file of policies with names, a line each, walked without a copy: what is
 * found points into the caller's text. The presets are texts of the same
 * language, so a policy may begin with one and change some of its settings. */
#include <stagger/policies.h>

#include <string.h>

#include <stagger/text.h>

#include "base/suggest.h"
#include "core/text_internal.h"
#include "core/writer.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name_char(char c)
{
    return is_letter(c) || stg_is_digit(c) || c == '-' || c == '_' || c == '.';
}

/* The next line without its end and its comment. A '#' begins a comment
 * anywhere, for no word of the language has one. */
static stg_reader next_line(stg_policies *walk)
{
    stg_reader rest = {walk->text + walk->at, walk->text + walk->size};
    stg_reader line = stg_read_until(&rest, '\n');
    stg_reader code = line;

    walk->at = (size_t)(rest.at - walk->text);
    walk->line++;
    code = stg_read_until(&code, '#');
    if (code.end == line.end && code.at != code.end && code.end[-1] == '\r')
        code.end--;
    return code;
}

static void skip_blanks(stg_reader *r)
{
    while (!stg_reader_is_empty(r) && stg_is_blank(*r->at))
        r->at++;
}

static stg_reader read_name(stg_reader *line)
{
    stg_reader name = {line->at, line->at};

    while (name.end != line->end && is_name_char(*name.end))
        name.end++;
    line->at = name.end;
    return name;
}

/* The line that defines a name, before the one that starts at `end`; 0 if none
 * does. */
static uint32_t find_line(const stg_policies *walk, const stg_reader *name,
                          size_t end)
{
    stg_policies before = {.text = walk->text, .size = end};

    while (before.at < before.size) {
        stg_reader line = next_line(&before), other;

        skip_blanks(&line);
        other = read_name(&line);
        if (other.end - other.at == name->end - name->at &&
            memcmp(other.at, name->at, (size_t)(name->end - name->at)) == 0)
            return before.line;
    }
    return 0;
}

/* A preset's name is refused: a text that begins with it would mean two
 * policies. */
static bool check_name(const stg_policies *walk, const stg_parser *at,
                       const stg_reader *name, const stg_reader *rest)
{
    size_t length = (size_t)(name->end - name->at);
    uint32_t line;
    char expected[64];
    stg_writer w = stg_writer_on(expected, sizeof expected);

    if (length == 0 || !is_letter(*name->at))
        return stg_parser_refuse(at, name->at, rest->end,
                                 "expected `name: policy`, with a name that "
                                 "starts with a letter");
    if (length >= STG_NAME_MAX)
        return stg_parser_refuse(at, name->at, name->end,
                                 "too long, expected a name of at most 64");
    if (stg_reader_is_empty(rest) || *rest->at != ':')
        return stg_parser_refuse(at, rest->at, rest->end,
                                 "expected a colon behind the name");
    if (stg_preset_find(name) != NULL)
        return stg_parser_refuse(at, name->at, name->end,
                                 "is the name of a preset, expected another");
    line = find_line(walk, name, (size_t)(at->text - walk->text));
    if (line == 0)
        return true;
    stg_write_text(&w, "has a policy already, in line ");
    stg_write_number(&w, line);
    return stg_parser_refuse(at, name->at, name->end, expected);
}

/* The next line that says something; false at the end. *start is where its
 * line begins, blanks included: columns count from there. */
static bool next_entry(stg_policies *walk, stg_reader *line, const char **start)
{
    while (walk->at < walk->size) {
        *start = walk->text + walk->at;
        *line = next_line(walk);
        skip_blanks(line);
        if (!stg_reader_is_empty(line))
            return true;
    }
    return false;
}

/* *walk moves on only where a policy was read, or at the end: after an error,
 * the next call finds the same error. */
stg_status stg_policies_next(stg_policies *walk, char name[STG_NAME_MAX],
                             stg_policy *policy, stg_error *err)
{
    stg_policies next;
    stg_reader line, word;
    stg_parser at;
    const char *start;

    if (walk == NULL || walk->text == NULL || name == NULL || policy == NULL)
        return stg_refuse(err, "policies: an argument is NULL");
    next = *walk;
    if (!next_entry(&next, &line, &start)) {
        *walk = next;
        return STG_NOT_FOUND;
    }
    at = (stg_parser){
        .source = walk->source == NULL ? "policies" : walk->source,
        .line = next.line,
        .column = 1,
        .text = start,
        .err = err,
    };
    word = read_name(&line);
    if (!check_name(walk, &at, &word, &line))
        return STG_INVALID;
    line.at++; // the colon
    skip_blanks(&line);
    if (stg_parser_run(policy, at.source, at.line,
                       1 + (uint32_t)(line.at - start), line.at,
                       (size_t)(line.end - line.at), err) != STG_OK)
        return STG_INVALID;
    memcpy(name, word.at, (size_t)(word.end - word.at));
    name[word.end - word.at] = '\0';
    *walk = next;
    return STG_OK;
}

/* near: the name in the file that it is most like, or "". */
static stg_status refuse_unknown(const stg_policies *file, const char *name,
                                 const char *near, stg_error *err)
{
    stg_writer w = stg_writer_on_error(err);

    stg_write_path(&w, file->source == NULL ? "policies" : file->source);
    stg_write_text(&w, ": has no policy called ");
    stg_write_word(&w, name, strlen(name));
    if (*near == '\0')
        return STG_NOT_FOUND;
    stg_write_text(&w, ", did you mean ");
    stg_write_text(&w, near);
    stg_write_char(&w, '?');
    return STG_NOT_FOUND;
}

/* Reads to the end although the name was found: an error further down is
 * reported, whichever name is asked for. */
stg_status stg_policies_find(const stg_policies *file, const char *name,
                             stg_policy *policy, stg_error *err)
{
    stg_policies walk;
    stg_policy read;
    char read_as[STG_NAME_MAX], near[STG_NAME_MAX] = "";
    stg_suggestion s;
    bool is_found = false;
    stg_status status;

    if (file == NULL || name == NULL || policy == NULL)
        return stg_refuse(err, "policies: an argument is NULL");
    walk = *file;
    s = stg_suggestion_begin(name, strlen(name));
    while ((status = stg_policies_next(&walk, read_as, &read, err)) == STG_OK) {
        if (strcmp(read_as, name) == 0) {
            *policy = read;
            is_found = true;
        }
        stg_suggestion_try(&s, read_as);
        if (s.name == read_as) { // the next one is read to the same place
            memcpy(near, read_as, sizeof near);
            s.name = near;
        }
    }
    if (status != STG_NOT_FOUND)
        return status;
    return is_found ? STG_OK : refuse_unknown(file, name, near, err);
}

/* -- the presets */

static const stg_preset presets[] = {
    {"broadcast",
     "fixed base=1s jitter=none attempts=3 attempt-timeout=10s deadline=none "
     "breaker=20:200ms-30s breaker-connect=3 "
     "retry=500,502,503,504,timeout,reset,protocol,429,408,425,"
     "pushback,grpc:4,grpc:10,grpc:14,transient once=connect-timeout,tls-timeout",
     "one message to many endpoints: quick, few attempts, fails fast on what "
     "is down"},
    {"broadcast-wide",
     "fixed base=1s jitter=50% attempts=3 attempt-timeout=10s deadline=none "
     "breaker=20:200ms-30s breaker-connect=3 "
     "retry=500,502,503,504,timeout,reset,protocol,429,408,425,"
     "pushback,grpc:4,grpc:10,grpc:14,transient once=connect-timeout,tls-timeout",
     "the same to 50 endpoints and more: spread, so that they do not come "
     "back together"},
    {"backend",
     "exponential base=200ms cap=30s jitter=full attempts=5 deadline=2m "
     "budget=tokens:100:10/s",
     "a service that calls a service or a database"},
    {"client", "exponential base=1s cap=10s jitter=full attempts=4",
     "a program far from the server, one of many"},
    {"interactive", "exponential base=100ms cap=10s jitter=full attempts=6",
     "somebody waits for the answer"},
    {"unjittered", "exponential base=500ms cap=30s jitter=none attempts=4",
     "one client only: exact waits, which many clients would share"},
    {"webhook",
     "list=5s,5m,30m,2h,5h,10h,10h jitter=20% attempts=8 deadline=none "
     "attempt-timeout=30s retry=any never=410 "
     "breaker=20:200ms-30s breaker-connect=3",
     "a partner's endpoint: for more than a day, until it says 410 Gone"},
    {"aws", "exponential base=1s cap=20s jitter=full attempts=3 budget=aws",
     "what the AWS SDKs call standard"},
    {"none", "attempts=1", "no retry"},
};

const stg_preset *stg_preset_at(size_t i)
{
    return i < sizeof presets / sizeof *presets ? &presets[i] : NULL;
}
