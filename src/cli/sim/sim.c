/* stagger sim: its subcommands, and what every simulation does besides its own:
 * policies from arguments, the memory that it may use, how far it is, and an end
 * at SIGINT, after which what was simulated so far is shown. */
#include "cli/sim/sim.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/terminal.h"

/* -- subcommands ------------------------------------------------------------ */

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const stg_usage *usage;
} subcommands[] = {
    {"contention", stg_sim_contention, &stg_sim_contention_usage},
    {"overload", stg_sim_overload, &stg_sim_overload_usage},
    {"advise", stg_sim_advise, &stg_sim_advise_usage},
    {"delivery", stg_sim_delivery, &stg_sim_delivery_usage},
};

enum { SUBCOMMANDS = sizeof subcommands / sizeof *subcommands };

static int show_help(const char *who)
{
    for (size_t i = 0; i < SUBCOMMANDS; i++) {
        fputs(i > 0 ? "\n" : "", stdout);
        stg_options_print(subcommands[i].usage);
    }
    fputs(
        "\n"
        "The simulator runs the code of the library itself, in virtual time. The same\n"
        "seed gives the same output.\n",
        stdout);
    return stg_options_finish(who, STG_HELPED);
}

static int refuse(const char *who, const char *word)
{
    const char *names[SUBCOMMANDS + 1] = {NULL};
    char suggestion[STG_SUGGESTION_MAX] = "";

    for (size_t i = 0; i < SUBCOMMANDS; i++)
        names[i] = subcommands[i].name;
    return stg_options_refuse(
        who, "%s%sexpected contention, overload, advise or delivery%s",
        word != NULL ? word : "", word != NULL ? ": " : "",
        word != NULL ? stg_options_suggest(suggestion, word, names)
                     : suggestion);
}

/* argv[1] becomes "stagger sim NAME", so that getopt and all complaints take it
 * for the command. title lives until run() returns. */
int stg_cli_sim(int argc, char **argv)
{
    if (argc < 2)
        return refuse(argv[0], NULL);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return show_help(argv[0]);
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        if (strcmp(argv[1], subcommands[i].name) == 0) {
            char title[40];

            snprintf(title, sizeof title, "stagger sim %s", argv[1]);
            argv[1] = title;
            return subcommands[i].run(argc - 1, argv + 1);
        }
    return refuse(argv[0], argv[1]);
}

/* -- policies --------------------------------------------------------------- */

/* The text behind NAME=, or NULL: there is no name before it. A name that is a
 * setting's (jitter=full) is one where the whole is no text. */
static const char *find_text(const char *word)
{
    size_t length = strcspn(word, "= \t,:");

    if (length == 0 || length >= STG_SIM_NAME_MAX || word[length] != '=')
        return NULL;
    return word + length + 1;
}

/* Whether the word was taken for a policy up to its mistake: it begins with one
 * of its words, and what is before the "=" is no name. */
static bool is_policy(const stg_error *err)
{
    return err->column > 1 || strstr(err->text, "as the first word") == NULL;
}

/* Rows and charts tell policies by name only. */
static bool has_name(const stg_sim_policies *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->at[i].name, name) == 0)
            return true;
    return false;
}

static int complain(const char *who, const char *word, const stg_error *err)
{
    stg_options_complain(who, "--policy: %s", err->text);
    if (word[0] != '\0' && err->line > 0)
        stg_options_point(word, err->column);
    return STG_EXIT_USAGE;
}

/* The whole word is tried first: "jitter=full" is a text, and only what is no
 * text may be NAME=TEXT. Where both fail, the complaint is about the one that
 * the word looks like. */
int stg_sim_policies_add(stg_sim_policies *p, const char *who, const char *word)
{
    stg_sim_policy *added = &p->at[p->count];
    const char *text = find_text(word);
    stg_error err, err_behind;

    if (p->count == STG_SIM_POLICIES_MAX) {
        stg_options_complain(who, "--policy: more than %d",
                             STG_SIM_POLICIES_MAX);
        return STG_EXIT_USAGE;
    }
    if (stg_policy_parse(&added->policy, word, &err) == STG_OK) {
        snprintf(added->name, STG_SIM_NAME_MAX, "%s", word);
    } else if (text == NULL) {
        return complain(who, word, &err);
    } else if (stg_policy_parse(&added->policy, text, &err_behind) == STG_OK) {
        snprintf(added->name, sizeof added->name, "%.*s",
                 (int)(text - word - 1), word);
    } else {
        return is_policy(&err) ? complain(who, word, &err)
                               : complain(who, text, &err_behind);
    }
    (void)stg_policy_print(&added->policy, added->text);
    if (has_name(p, added->name)) {
        stg_options_complain(
            who, "--policy: two are called %s; write NAME=TEXT", added->name);
        return STG_EXIT_USAGE;
    }
    p->count++;
    return 0;
}

/* -- memory ----------------------------------------------------------------- */

/* Huge pages for large blocks: a million clients, each in a page of its own at
 * each step, wait for the table of pages as long as for what is in them. */
static void *allocate(void *ctx, size_t size)
{
    const size_t huge = (size_t)2 << 20;
    size_t whole = (size + huge - 1) / huge * huge;
    void *bytes;

    (void)ctx;
    if (size < huge || whole < size)
        return malloc(size);
    bytes = aligned_alloc(huge, whole);
#ifdef MADV_HUGEPAGE
    if (bytes != NULL)
        (void)madvise(bytes, whole, MADV_HUGEPAGE);
#endif
    return bytes;
}

static void release(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

stg_memory stg_sim_memory(void)
{
    return (stg_memory){allocate, release, NULL};
}

/* The number in the file behind `key`, or alone in it if that is "". Not found,
 * or no number: UINT64_MAX. */
static uint64_t read_number(const char *path, const char *key)
{
    FILE *file = fopen(path, "re");
    uint64_t number = UINT64_MAX;
    char line[128], *end;

    if (file == NULL)
        return number;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *text = line + strlen(key);
        unsigned long long found;

        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        found = strtoull(text, &end, 10);
        if (end != text)
            number = found;
        break;
    }
    fclose(file);
    return number;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Available, not free: the system gives up its caches. */
static uint64_t read_system(void)
{
    uint64_t kib = read_number("/proc/meminfo", "MemAvailable:");

    return kib == UINT64_MAX ? kib : kib * 1024;
}

/* Of the group of processes that we are in, as a container sees it. */
static uint64_t read_group(void)
{
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "");
    uint64_t used = read_number("/sys/fs/cgroup/memory.current", "");

    if (limit == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    return limit > used ? limit - used : 0;
}

static uint64_t read_limit(int resource)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

/* What the limits leave of addresses: a part of them is taken. */
static uint64_t read_limits(void)
{
    uint64_t most = least(read_limit(RLIMIT_AS), read_limit(RLIMIT_DATA));
    uint64_t kib = read_number("/proc/self/status", "VmSize:");

    if (most == UINT64_MAX || kib == UINT64_MAX)
        return most;
    return most > kib * 1024 ? most - kib * 1024 : 0;
}

/* The least of three bounds: the machine, the container, the limits of the
 * process. UINT64_MAX: none of them is known. */
uint64_t stg_sim_memory_left(void)
{
    return least(least(read_system(), read_group()), read_limits());
}

/* -- progress --------------------------------------------------------------- */

static stg_ns look_at_clock(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (stg_ns)t.tv_sec * STG_S + (stg_ns)t.tv_nsec;
}

void stg_sim_progress_begin(stg_sim_progress *p, double total)
{
    *p = (stg_sim_progress){.total = total, .is_shown = isatty(2) == 1};
    (void)pthread_mutex_init(&p->lock, NULL);
    p->begun_at = p->shown_at = look_at_clock();
}

/* The time that is left assumes that work goes on as fast as until now. Called
 * with the lock held. */
static void show(stg_sim_progress *p, stg_ns now)
{
    double share = p->total > 0 ? p->done / p->total : 1;
    double spent = (double)(now - p->begun_at);
    char text[STG_NS_TEXT_MAX];
    stg_ns left = 0;

    if (share > 0 && share < 1)
        left = (stg_ns)(spent / share - spent) / STG_S * STG_S;
    fprintf(stderr, "\r\033[K%3.0f %% done, about %s left", 100 * share,
            stg_ns_text(left, text));
    fflush(stderr);
    p->is_line_open = true;
    p->shown_at = now;
}

/* Called from all threads. Nothing is shown in the first second. */
void stg_sim_progress_add(stg_sim_progress *p, double work)
{
    const stg_ns first = STG_S, every = 200 * STG_MS;
    stg_ns now;

    (void)pthread_mutex_lock(&p->lock);
    p->done += work;
    if (p->is_shown) {
        now = look_at_clock();
        if (now - p->begun_at >= first && now - p->shown_at >= every)
            show(p, now);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void stg_sim_progress_end(stg_sim_progress *p)
{
    if (p->is_line_open)
        fputs("\r\033[K", stderr);
    p->is_line_open = false;
    (void)pthread_mutex_destroy(&p->lock);
}

/* -- interruption ----------------------------------------------------------- */

// A handler has nothing else to hang it on.
static atomic_bool is_stopped;

static void stop(int number)
{
    (void)number;
    atomic_store(&is_stopped, true);
}

/* The handler is for one signal only: a second one ends the process at once. A
 * signal that our parent ignores stays ignored. */
static void watch(int number)
{
    struct sigaction old, action = {.sa_handler = stop};

    action.sa_flags = (int)SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        (void)sigaction(number, &action, NULL);
}

const atomic_bool *stg_sim_stop_watch(void)
{
    watch(SIGINT);
    watch(SIGTERM);
    return &is_stopped;
}
