/* stagger demo: a hub and five targets. One is well, and the others fail now and
 * then, ask for patience, are slow, or are down.
 *
 * It decides nothing and draws nothing: it starts the commands that anybody
 * would type, each as a process of its own in a directory of its own, shows the
 * command line in front of what it prints, and asks `stagger status` until every
 * delivery has ended. What runs beside it (the hub and the sinks) has a process
 * group of its own, so that Ctrl-C reaches the demo alone, and ends with the
 * demo, whatever ends that. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"

static const char who[] = "stagger demo";

enum { KEEP = STG_OPTION_ROW, STAY };

static const stg_option options[] = {
    {"--keep",
     "leave the directory with the hub's store and log, and say where it is",
     KEEP, NULL},
    {"--stay",
     "go on until Ctrl-C when all is done: there is a page to look at, and a "
     "target to mend",
     STAY, NULL},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger demo [--keep] [--stay]\n"
        "\n"
        "Shows the hub at work, in some ten seconds: 2000 messages to five targets,\n"
        "of which one is well, one fails now and then, one asks for patience, one is\n"
        "slow, and one is down. It runs the commands that you would type, and shows\n"
        "each with what it prints. Everything stays on this machine, on ports that\n"
        "are free.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "Exit code: 0 if every message was delivered to every target or is a dead\n"
        "letter; 1 if not; 2 for an option that is wrong, or where it cannot begin;\n"
        "130 after SIGINT.\n",
};

enum {
    MESSAGES = 2000,
    SINKS = 4,           /* and one target that is down */
    PATIENCE_MS = 25000, /* it takes less than half of that */
    START_MS = 10000,
    LOOK_MS = 200,
    WORDS_MAX = 24,
    WIDTH = 79,
    EXIT_WRONG = 1,
    EXIT_SIGNAL = 128
};

static const struct {
    const char *name, *deed;
    const char *words[5]; /* of `stagger sink`, behind --listen */
} sinks[SINKS] = {
    {"healthy", "answers 200", {NULL}},
    {"flaky", "503 to one in ten", {"--random", "200:90,503:10"}},
    {"overloaded",
     "now and then 429, Retry-After: 1",
     {"--random", "200:997,429:3", "--retry-after", "1"}},
    {"slow", "takes 20 to 60 ms", {"--delay", "20ms-60ms"}},
};

typedef struct demo {
    char program[256]; /* as it was typed */
    char directory[256];
    sigset_t before;          /* the signals' mask of the processes */
    pid_t sinks[SINKS], hub;  /* 0: not started, or ended */
    char targets[SINKS][100]; /* NAME=URL */
    char down[100];
    int down_socket; /* bound, and nobody listens there */
    char url[80];    /* the hub's */
    int stopped_by;  /* a signal; 0: none */
    bool is_killing; /* by a second one */
    bool is_kept, stays;
} demo;

/* -- processes ------------------------------------------------------------- */

/* Waits; a signal to the demo ends it. False: there was one, now or before. */
static bool nap(demo *d, long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    sigset_t ends;
    int signal;

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    signal = sigtimedwait(&ends, NULL, &time);
    if (signal > 0) {
        d->is_killing = d->stopped_by != 0;
        d->stopped_by = signal;
    }
    return d->stopped_by == 0;
}

/* "$ stagger hub ...", as one could type it. */
static void show(const demo *d, const char *const *words, const char *behind)
{
    int column = printf("$ %s", d->program);

    for (size_t i = 0; words[i] != NULL; i++) {
        // An option stays beside its value.
        int size = (int)strlen(words[i]) + 1;
        bool has_value = words[i][0] == '-' && words[i + 1] != NULL &&
                         words[i + 1][0] != '-';
        int needed = size + (has_value ? (int)strlen(words[i + 1]) + 1 : 0);

        if (column + needed > WIDTH - 2 && i > 0 && words[i - 1][0] != '-')
            column = printf(" \\\n     ") - 3;
        column += printf(" %s", words[i]);
    }
    printf("%s\n", behind);
    fflush(stdout);
}

/* In the child. Where it has an output of its own it runs beside the demo. */
static void become(const demo *d, const char *const *words, const char *output)
{
    char name[] = "stagger", *arguments[WORDS_MAX + 2] = {name};
    size_t count = 1;
    int file;

    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)sigprocmask(SIG_SETMASK, &d->before, NULL);
    while (words[count - 1] != NULL && count <= WORDS_MAX) {
        arguments[count] = (char *)words[count - 1]; // exec changes none
        count++;
    }
    if (chdir(d->directory) != 0)
        _exit(EXIT_WRONG);
    if (output != NULL) {
        file = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        if (file < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0 ||
            setpgid(0, 0) != 0)
            _exit(EXIT_WRONG);
    }
    (void)execv("/proc/self/exe", arguments);
    _exit(EXIT_WRONG);
}

/* 0: it cannot be started. */
static pid_t start(const demo *d, const char *const *words, const char *output)
{
    pid_t child = fork();

    if (child == 0)
        become(d, words, output);
    return child > 0 ? child : 0;
}

static bool has_ended(pid_t *child, int *code)
{
    int status;

    if (*child != 0 && waitpid(*child, &status, WNOHANG) != *child)
        return false;
    if (*child != 0)
        *code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_WRONG;
    *child = 0;
    return true;
}

/* Its exit code; -1 for one that was not running. */
static int await(demo *d, pid_t *child)
{
    int code = -1;

    while (!has_ended(child, &code))
        if (!nap(d, 10) && *child != 0)
            kill(*child, d->is_killing ? SIGKILL : SIGTERM);
    return code;
}

static bool fail(const demo *d, const char *what, const char *why)
{
    if (d->stopped_by == 0)
        stg_options_complain(who, "%s: %s", what, why);
    return false;
}

/* A command in front, with its line. */
static bool run(demo *d, const char *const *words)
{
    pid_t child;

    show(d, words, "");
    child = start(d, words, NULL);
    if (await(d, &child) == 0)
        return true;
    return fail(d, words[0], "it has failed");
}

static FILE *open_file(const demo *d, const char *name, const char *how)
{
    char path[sizeof d->directory + 32];

    snprintf(path, sizeof path, "%s/%s", d->directory, name);
    return fopen(path, how);
}

/* Shows the first line of what it prints, which says where it listens: *at is
 * what stands behind `before`. */
static bool await_line(demo *d, pid_t *child, const char *output,
                       const char *before, char at[64])
{
    char text[512];
    int code;

    for (int waited = 0; waited < START_MS; waited += 10) {
        FILE *file = open_file(d, output, "r");
        bool is_there = file != NULL && fgets(text, sizeof text, file) != NULL;
        const char *found = is_there ? strstr(text, before) : NULL;

        if (file != NULL)
            fclose(file);
        if (found != NULL && strchr(text, '\n') != NULL) {
            fputs(text, stdout);
            found += strlen(before);
            snprintf(at, 64, "%.*s", (int)strcspn(found, " \n"), found);
            return true;
        }
        if (has_ended(child, &code))
            return fail(d, output, is_there ? text : "it has ended");
        if (!nap(d, 10))
            return false;
    }
    return fail(d, output, "it does not say where it listens");
}

/* -- the scene ------------------------------------------------------------- */

static bool start_sink(demo *d, int i)
{
    const char *words[WORDS_MAX] = {"sink", "--listen", "127.0.0.1:0"};
    char url[64];

    memcpy(words + 3, sinks[i].words, sizeof sinks[i].words);
    printf("\n# %s: %s\n", sinks[i].name, sinks[i].deed);
    show(d, words, " &");
    d->sinks[i] = start(d, words, sinks[i].name);
    if (!await_line(d, &d->sinks[i], sinks[i].name, "listening on ", url))
        return false;
    snprintf(d->targets[i], sizeof d->targets[i], "%s=%s", sinks[i].name, url);
    return true;
}

/* An address where nobody listens, as long as the demo runs. */
static bool find_down(demo *d)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;

    d->down_socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (d->down_socket < 0 ||
        bind(d->down_socket, (struct sockaddr *)&a, sizeof a) != 0 ||
        getsockname(d->down_socket, (struct sockaddr *)&a, &size) != 0)
        return fail(d, "a port", strerror(errno));
    snprintf(d->down, sizeof d->down, "down=http://127.0.0.1:%d",
             ntohs(a.sin_port));
    return true;
}

/* Port 0: the system chooses one, and the hub's first line of log says
 * which. */
static bool start_hub(demo *d)
{
    const char *words[WORDS_MAX] = {"hub",     "--listen", "127.0.0.1:0",
                                    "--store", "hub.db",   "--shed-after",
                                    "5s",      "--to",     d->down};
    size_t count = 9;
    char address[64];

    for (int i = 0; i < SINKS; i++) {
        words[count++] = "--to";
        words[count++] = d->targets[i];
    }
    puts("");
    show(d, words, " &");
    d->hub = start(d, words, "hub.log");
    if (!await_line(d, &d->hub, "hub.log", "listen=", address))
        return false;
    snprintf(d->url, sizeof d->url, "http://%s", address);
    return true;
}

static bool publish(demo *d)
{
    const char *const words[] = {"send",    "--hub",        d->url,
                                 "--lines", "messages.txt", NULL};
    FILE *file = open_file(d, "messages.txt", "w");

    if (file == NULL)
        return fail(d, "messages.txt", strerror(errno));
    for (int i = 1; i <= MESSAGES; i++)
        fprintf(file, "message %d\n", i);
    if (fclose(file) != 0)
        return fail(d, "messages.txt", strerror(errno));
    puts("");
    return run(d, words);
}

/* Whether each delivery has ended, by the books of each target. */
static bool is_over(demo *d)
{
    const char *const words[] = {"status", "--once", "--json",
                                 "--hub",  d->url,   NULL};
    char path[sizeof d->directory + 32];
    pid_t child = start(d, words, "status");
    json_t *status, *targets, *each;
    size_t i, ended = 0;

    if (await(d, &child) != 0)
        return false;
    snprintf(path, sizeof path, "%s/status", d->directory);
    status = json_load_file(path, 0, NULL);
    targets = json_object_get(status, "targets");
    json_array_foreach(targets, i, each) ended +=
        json_integer_value(json_object_get(each, "delivered")) +
            json_integer_value(json_object_get(each, "dead")) ==
        MESSAGES;
    json_decref(status);
    return ended == SINKS + 1;
}

/* Bounded: a demo that hangs would tell nothing. */
static bool await_end(demo *d)
{
    for (int waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
        if (is_over(d))
            return true;
        if (!nap(d, LOOK_MS))
            return false;
    }
    return fail(d, "the deliveries", "they take too long");
}

/* Prints the output of a background command from its second line on, but only
 * lines that contain `with`. */
static void show_rest(const demo *d, const char *output, const char *with)
{
    FILE *file = open_file(d, output, "r");
    char line[1024];

    for (bool is_first = true;
         file != NULL && fgets(line, sizeof line, file) != NULL;
         is_first = false)
        if (!is_first && strstr(line, with) != NULL)
            fputs(line, stdout);
    if (file != NULL)
        fclose(file);
}

/* After a signal the sinks are ended without a word. */
static bool end_sinks(demo *d)
{
    for (int i = 0; i < SINKS; i++) {
        if (d->sinks[i] == 0)
            continue;
        kill(d->sinks[i], SIGTERM);
        if (await(d, &d->sinks[i]) != 0 && d->stopped_by == 0)
            return fail(d, sinks[i].name, "it has failed");
        if (d->stopped_by != 0)
            continue;
        printf("\n$ kill %%%d    # %s\n", i + 1, sinks[i].name);
        show_rest(d, sinks[i].name, "");
    }
    return true;
}

/* After a signal the hub is ended as well, but nothing is said of it. */
static bool end_hub(demo *d)
{
    int code;

    if (d->hub == 0)
        return true;
    kill(d->hub, SIGTERM);
    code = await(d, &d->hub);
    if (d->stopped_by != 0)
        return false;
    printf("\n$ kill %%%d    # the hub\n", SINKS + 1);
    show_rest(d, "hub.log", "event=stopped");
    return code == 0 || fail(d, "the hub", "it has failed");
}

static bool act(demo *d)
{
    const char *const status[] = {"status", "--once", "--hub", d->url, NULL};
    const char *const dead[] = {"dead",  "list", "--summary",
                                "--hub", d->url, NULL};

    printf(
        "# Five targets: four sinks, and %s,\n# where nobody "
        "listens.\n",
        d->down);
    for (int i = 0; i < SINKS; i++)
        if (!start_sink(d, i))
            return false;
    if (!start_hub(d) || !publish(d) || !nap(d, 1000))
        return false;
    puts(
        "\n# A second later. A failure waits for 1 s and is tried again, three "
        "times in all;\n# a refused connection is a dead letter at once.");
    if (!run(d, status) || !await_end(d))
        return false;
    puts(
        "\n# When every delivery has ended. After three refused connections "
        "the target's\n# messages were held back, and after 5 s given up "
        "together.");
    if (!run(d, status))
        return false;
    puts("");
    return run(d, dead);
}

/* Until Ctrl-C, which is the end of this alone. The port of the target that is
 * down is given up for a sink. */
static void stay(demo *d)
{
    const char *address = strstr(d->down, "//") + 2;

    printf(
        "\n# The hub goes on, until Ctrl-C. Its page: %s/\n"
        "#\n"
        "# See why `down` fails, and mend it, in another terminal:\n"
        "$ %s sink --listen %s\n"
        "# Then send what it has missed: `Dead letters` on the page, or\n"
        "$ %s dead replay --target down --hub %s\n",
        d->url, d->program, address, d->program, d->url);
    fflush(stdout);
    close(d->down_socket);
    d->down_socket = -1;
    while (nap(d, 1000))
        ;
    d->stopped_by = 0;
}

/* -- beginning and end ----------------------------------------------------- */

/* The commands that are shown are to be typed again, and the binary need not be on PATH. main()
 * has put the command's title in place of argv[0]. */
static void find_program(demo *d)
{
    FILE *words = fopen("/proc/self/cmdline", "r");
    bool is_there =
        words != NULL && fgets(d->program, sizeof d->program, words) != NULL;

    if (words != NULL)
        fclose(words);
    if (!is_there || d->program[0] == '\0')
        snprintf(d->program, sizeof d->program, "stagger");
}

/* The demo makes files only, and no folders; hidden ones would stay, and the
 * directory with them. */
static void remove_directory(const demo *d)
{
    DIR *folder = opendir(d->directory);
    struct dirent *entry;

    if (folder == NULL)
        return;
    while ((entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    (void)rmdir(d->directory);
}

/* The store and all outputs are in a new directory of the demo, so it cannot
 * touch the store of a real hub. */
static bool make_directory(demo *d)
{
    const char *parent = getenv("TMPDIR");

    if (parent == NULL || *parent == '\0' || strlen(parent) > 200)
        parent = "/tmp";
    snprintf(d->directory, sizeof d->directory, "%s/stagger-demo-XXXXXX",
             parent);
    return mkdtemp(d->directory) != NULL ||
           fail(d, parent, "cannot make a directory in it");
}

static int run_demo(demo *d)
{
    bool holds = act(d);

    if (holds && d->stays)
        stay(d);
    // The hub first, so that it sends nothing to who is not there any more.
    holds = end_hub(d) && holds;
    holds = end_sinks(d) && holds;
    if (d->stopped_by != 0) {
        stg_options_complain(who, "stopped by a signal");
        return EXIT_SIGNAL + d->stopped_by;
    }
    if (holds)
        printf(
            "\n# Delivered or dead: each of the %d messages of the demo, for each "
            "of the\n# targets%s. Nothing was lost, and `duplicates` of the "
            "sinks says that\n# none came twice.\n",
            MESSAGES, d->stays ? ", before it waited" : "");
    if (holds && !d->stays)
        puts("# With --stay it goes on, and has a page to look at.");
    if (d->is_kept)
        printf("# It is all kept: cd %s\n", d->directory);
    return stg_options_finish(who, holds ? 0 : EXIT_WRONG);
}

static int read_option(void *ctx, int option)
{
    demo *d = ctx;

    if (option == KEEP)
        d->is_kept = true;
    else
        d->stays = true;
    return 0;
}

/* Signals are blocked and taken in nap(), so that children are always ended
 * first. */
int stg_cli_demo(int argc, char **argv)
{
    demo d = {.down_socket = -1};
    stg_arguments none;
    int code = stg_options_read(&usage, argc, argv, read_option, &d, &none);
    sigset_t ends;

    if (code != 0)
        return code;
    find_program(&d);
    if (!find_down(&d) || !make_directory(&d))
        return STG_EXIT_USAGE;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &ends, &d.before);
    code = run_demo(&d);
    if (d.down_socket >= 0)
        close(d.down_socket);
    if (!d.is_kept)
        remove_directory(&d);
    return code;
}
