#!/usr/bin/env python3
"""No public function is hurt by a NULL or a zeroed struct, from C or from C++.

usage: check_nulls.py CC CXX LIBRARY [LIBRARY | -FLAG]...

The calls are written from the declarations in include/, so that no function can
be left out: each function with each mixture of NULL, zeroed memory and, where it
has one, an object in use for its pointers, and of least and greatest numbers. A
CXX that does not exist is not tried; without libstagger-uv.a uv.h is left out, and
likewise curl.h and pq.h.
"""

import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# An object in use, by type; and a function, by the type of its pointer.
MADE = {"stg_policy", "stg_peer", "stg_with", "stg_retry", "stg_budget",
        "stg_breaker", "stg_limiter", "stg_operation", "stg_loop", "stg_rng",
        "stg_progress", "char"}
FUNCTIONS = {"stg_call_fn": "call_me", "stg_uv_start_fn": "start_me",
             "stg_uv_done_fn": "end_me", "stg_pq_fn": "ask_me",
             "stg_curl_done_fn": "transferred", "stg_curl_timer_fn": "tick"}
# What other libraries make: zeroed memory would be none of theirs.
FOREIGN = {"uv_loop_t": "uv_default_loop()", "CURL": "curl_easy_init()",
           "CURLM": "curl_multi_init()",
           "PGconn": "PQconnectStart(nowhere)",
           "PGresult": "PQmakeEmptyPGresult(NULL, PGRES_FATAL_ERROR)"}
PLACES = 8  # more than a function has parameters

PREAMBLE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t places[%(places)d][8192];
static stg_policy policy;
static stg_peer peer;
static stg_with with;
static stg_outcome call_me(void *ctx) { (void)ctx; return stg_ok(); }
#ifdef STAGGER_UV_H
static void start_me(stg_uv *op, uint32_t n) { (void)op; (void)n; }
static void end_me(stg_uv *op, const stg_report *r) { (void)op; (void)r; }
#endif
#ifdef STAGGER_CURL_H
static void transferred(stg_curl_transfer *t, CURLcode c, const stg_report *r) { (void)t; (void)c; (void)r; }
static int tick(CURLM *m, long ms, void *data) { (void)m; (void)ms; (void)data; return 0; }
#endif
#ifdef STAGGER_PQ_H
static const char nowhere[] = "nowhere";
static stg_outcome ask_me(PGconn *conn, void *ctx) { (void)conn; return call_me(ctx); }
#endif

static void *zeroed(int i)
{
    return memset(places[i], 0, sizeof places[i]);
}

static stg_policy *make_stg_policy(int i)
{
    stg_policy *p = (stg_policy *)zeroed(i);

    stg_policy_parse(p, "backend breaker=5:1s", NULL);
    return p;
}

static stg_peer *make_stg_peer(int i)
{
    stg_peer *p = (stg_peer *)zeroed(i);

    stg_peer_init(p, make_stg_policy(%(places)d - 1));
    return p;
}

/* All that it points to is zeroed. */
static stg_with *make_stg_with(int i)
{
    static stg_peer no_peer;
    static stg_budget no_budget;
    static stg_cancel no_cancel;
    static stg_hook no_hook;
    static stg_env no_env;
    static stg_retry no_retry;
    stg_with *w = (stg_with *)zeroed(i);

    w->peer = &no_peer;
    w->shared_budget = &no_budget;
    w->cancel = &no_cancel;
    w->hook = &no_hook;
    w->env = &no_env;
    w->parent = &no_retry;
    w->method = "";
    return w;
}

static stg_retry *make_stg_retry(int i)
{
    stg_retry *r = (stg_retry *)zeroed(i);

    stg_retry_start(r, &policy, &with, 0);
    stg_retry_admit(r, 0, NULL);
    return r;
}

static stg_budget *make_stg_budget(int i)
{
    stg_budget *b = (stg_budget *)zeroed(i);

    stg_budget_init(b, &policy.budget);
    return b;
}

static stg_breaker *make_stg_breaker(int i)
{
    stg_breaker *b = (stg_breaker *)zeroed(i);

    stg_breaker_init(b, &policy.breaker);
    return b;
}

static stg_limiter *make_stg_limiter(int i)
{
    stg_limiter *l = (stg_limiter *)zeroed(i);

    stg_limiter_init(l, 1000, 1, NULL);
    return l;
}

static stg_operation *make_stg_operation(int i)
{
    stg_operation *op = (stg_operation *)zeroed(i);

    stg_operation_begin(op, &policy, &with);
    return op;
}

static stg_loop *make_stg_loop(int i)
{
    stg_loop *l = (stg_loop *)zeroed(i);

    stg_loop_begin(l, &policy, &with);
    return l;
}

static stg_rng *make_stg_rng(int i)
{
    stg_rng *r = (stg_rng *)zeroed(i);

    *r = stg_rng_seed(1);
    return r;
}

static stg_progress *make_stg_progress(int i)
{
    stg_progress *p = (stg_progress *)zeroed(i);

    stg_retry_save(make_stg_retry(%(places)d - 1), p);
    return p;
}

static char *make_char(int i)
{
    return strcpy((char *)zeroed(i), "backend");
}

static int told; /* a pipe's end: here a child writes each call before it is made */

static void tell(const char *call)
{
    if (write(told, &call, sizeof call) < 0)
        _exit(2);
}

static int try_all(const char *name, void (*calls)(void))
{
    const char *last = "";
    int ends[2], status = 0;

    if (pipe(ends) != 0)
        return 1;
    fflush(NULL);
    if (fork() == 0) {
        told = ends[1];
        calls();
        _exit(0);
    }
    close(ends[1]);
    while (read(ends[0], &last, sizeof last) == sizeof last)
        ;
    close(ends[0]);
    wait(&status);
    if (status != 0)
        printf("%%s: %%s\n", name, last);
    return status != 0;
}
"""


def strip_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"//.*", " ", text)


def declarations(headers):
    """(name, [(type, parameter)]) of each STG_API function."""
    for header in headers:
        text = re.sub(r"^\s*#.*", "", strip_comments(header.read_text()),
                      flags=re.M)
        marks = len(re.findall(r"\bSTG_API\b", text))
        found = re.findall(r"\bSTG_API\b[^;]*?(\w+)\(([^;]*)\);", text)
        if len(found) != marks:
            sys.exit(f"{header}: {marks} declarations, {len(found)} read")
        for name, parameters in found:
            yield name, [split(p) for p in parameters.split(",")
                         if p.strip() != "void"]


def split(parameter):
    """'const char text[N]' as ('const char *', is a pointer)."""
    text = " ".join(parameter.split())
    is_array = "[" in text
    text = re.sub(r"\[.*", "", text)
    kind = re.sub(r"\w+$", "", text).strip()
    return kind + (" *" if is_array else "")


def values(kind, place, has_loop):
    """What to give for a parameter of this type."""
    plain = re.sub(r"\b(const|struct)\b|\*", "", kind).strip()
    if "*" not in kind:
        if plain.startswith("stg_outcome"):
            return ["stg_ok()", "stg_failed(STG_FAULT_ERROR)"]
        if plain == "bool":
            return ["false", "true"]
        return [f"({kind})0", f"({kind})1", f"({kind})-1"]
    if plain in FUNCTIONS:
        return ["NULL", FUNCTIONS[plain]]
    if plain in FOREIGN:
        return ["NULL", FOREIGN[plain]]
    given = ["NULL", f"({kind})zeroed({place})"]
    # An operation on a real loop would outlive the call.
    if plain in MADE and kind.count("*") == 1 and not has_loop:
        given.append(f"make_{plain}({place})")
    return given


def calls(name, kinds):
    """Each mixture for the pointers; the numbers go together."""
    has_loop = any("uv_loop_t" in kind for kind in kinds)
    given = [values(kind, i, has_loop) for i, kind in enumerate(kinds)]
    pointers = [v if "*" in k else [None] for k, v in zip(kinds, given)]
    numbers = max([len(v) for k, v in zip(kinds, given) if "*" not in k],
                  default=1)
    if len(kinds) >= PLACES:
        sys.exit(f"{name}: more parameters than {PLACES - 1}")
    for mixture in itertools.product(*pointers):
        for number in range(numbers):
            yield "{}({})".format(name, ", ".join(
                v[min(number, len(v) - 1)] if m is None else m
                for m, v in zip(mixture, given)))


def program(headers, include):
    lines = [f"#include <{h.relative_to(include)}>" for h in headers]
    lines.append(PREAMBLE % {"places": PLACES})
    names, count = [], 0
    for name, kinds in declarations(headers):
        names.append(name)
        lines.append(f"static void try_{name}(void)\n{{")
        for call in calls(name, kinds):
            lines.append(f'    tell("{call}"); (void){call};')
            count += 1
        lines.append("}\n")
    lines.append("int main(void)\n{\n    int failed = 0;\n"
                 "    if (stg_policy_parse(&policy, \"backend breaker=5:1s\", "
                 "NULL) != STG_OK || stg_peer_init(&peer, &policy) != STG_OK)\n"
                 "        return 2;\n    with.peer = &peer;")
    lines += [f'    failed += try_all("{n}", try_{n});' for n in names]
    lines.append(f'    printf("{len(names)} functions, {count} calls, '
                 '%d functions hurt\\n", failed);\n'
                 "    return failed != 0;\n}\n")
    return "\n".join(lines)


def main(arguments):
    if len(arguments) < 3:
        sys.exit(__doc__)
    cc, cxx, *rest = arguments
    flags = [a for a in rest if a.startswith("-")]
    libraries = [a for a in rest if not a.startswith("-")]
    include = pathlib.Path(os.environ["STAGGER_SOURCE"], "include")
    headers = sorted((include / "stagger").glob("*.h"))
    names = {pathlib.Path(library).name for library in libraries}
    headers = [h for h in headers if h.stem not in ("uv", "curl", "pq")
               or f"libstagger-{h.stem}.a" in names]
    languages = [[cc, "-std=c11", "-xc"]]
    if shutil.which(cxx):
        languages.append([cxx, "-std=c++17", "-xc++"])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, command in enumerate(languages):
            binary = pathlib.Path(folder, f"nulls{i}")
            subprocess.run(
                [*command, "-O0", "-D_GNU_SOURCE", f"-I{include}", "-",
                 "-xnone", *reversed(libraries), *flags, "-lpthread",
                 "-o", binary],
                input=program(headers, include), text=True, check=True)
            failed += subprocess.run([binary], check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
