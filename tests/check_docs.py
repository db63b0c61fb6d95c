#!/usr/bin/env python3
"""What the documentation says is so, and its examples work.

usage: check_docs.py CC CXX LIBRARY

CC and CXX compile the examples, LIBRARY is the static library that they are linked
with. Without STAGGER, CXX or mandoc, what needs them is left out.

In README.md and docs/*.md a block marked

    c            compiles; with a main() it is linked, and runs to a good end
    c fragment   names nothing that is not there
    cpp          those of a page are one main(), in C++17, that runs to a good end
    python       is Python; bindings/python/tests run those of docs/python.md
                 and docs/comparison.md, and what stands there of other
                 libraries (python tenacity)
    sh           is run, with the command on the path, and succeeds
    sh long      is run where STAGGER_FULL is in the environment, as in `make check`
    sh install   is not run; the targets of make that it names exist
    text         behind one of sh: is what that printed. Where it has a time
                 (a number and ns, us, ms, s, min, h or d), any time will do
    formula      stands in a section with its "Source:" and its "Held by:"

"Held by: tests/core/test_x.c `name`, `name`; ..." names tests that exist: of C and C++ what
stands in TEST(), of Python what begins with test_. A script in Python may be named as a
whole, without names.

Each term of FIELD has a row in docs/glossary.md, so that a search for it finds our
page of it.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
STAGGER = os.environ.get("STAGGER")
MARKS = {"", "c", "c fragment", "cpp", "sh", "sh long", "sh install", "text", "formula",
         "python", "python tenacity", "python backoff", "python backoff differs"}
FIELD = ("at least once", "backpressure", "bulkhead", "circuit breaker", "closed", "open",
         "half-open", "consumer group", "dead letter queue", "DLQ", "exponential backoff",
         "fan-out", "full jitter", "equal jitter", "decorrelated jitter", "goodput",
         "head-of-line blocking", "hedging", "idempotency key", "load shedding",
         "metastable failure", "poison message", "rebalance", "redelivery",
         "retry amplification", "retry budget", "retry storm", "request smuggling",
         "slow loris", "SSRF", "thundering herd", "webhook")
TIME = re.compile(r"\b\d+(\.\d+)? ?(ns|us|ms|s|min|h|d)\b")
FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.M)
STRING = r'"((?:[^"\\]|\\.)*)"'


def read(name):
    return (SOURCE / name).read_text()


def pages():
    """README.md and docs/*.md, with their names."""
    for path in [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]:
        yield str(path.relative_to(SOURCE)), path.read_text()


def manuals():
    return sorted((SOURCE / "docs/man").glob("*.[1-9]"))


def run(*command, **options):
    return subprocess.run(command, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)


def differences(what, said, expected):
    """Yields a complaint for each member that only one of two sets has."""
    said, expected = set(said), set(expected)
    for each in sorted(said - expected):
        yield f"{what}: {each}: there is no such thing"
    for each in sorted(expected - said):
        yield f"{what}: {each}: is missing"


# -- Markdown


def blocks(text):
    """The fenced blocks: mark, line, code, and what stands between the last
    one and this."""
    end = 0
    for match in FENCE.finditer(text):
        yield (match[1].strip(), text.count("\n", 0, match.start()) + 1,
               match[2], text[end:match.start()])
        end = match.end()


def sections(text):
    """Title and text of each heading, without those below it."""
    text = FENCE.sub(lambda block: block[0].replace("\n#", "\n "), text)
    parts = re.split(r"^(#+ .*)$", text, flags=re.M)
    return [(parts[i].lstrip("# "), parts[i + 1])
            for i in range(1, len(parts), 2)]


def section(text, title):
    return next((body for name, body in sections(text) if name == title), "")


def rows(text):
    """The rows of its tables, an empty first cell filled from above, and
    without the heads."""
    above = ""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        is_head = i + 1 < len(lines) and lines[i + 1].startswith("|-")
        if not line.startswith("|") or line.startswith("|-") or is_head:
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        above = cells[0] = cells[0] or above
        yield cells


def spans(text):
    return re.findall(r"`([^`]+)`", text)


def anchor(title):
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


# -- docs/glossary.md


def missing_terms():
    cells = " ".join(row[0] for row in rows(section(
        read("docs/glossary.md"), "The field's words")))
    for term in FIELD:
        if not re.search(rf"\b{term}\b", cells):
            yield f"docs/glossary.md: {term}: is missing"


# -- docs/retry.md against the code


def tests_named(text):
    for match in re.finditer(r"^Held by: ((?:.+\n)+)", text, re.M):
        for group in match[1].split(";"):
            path = re.search(r"\b(?:bindings/python/)?tests/[\w/]+\.(?:cpp|c|py)\b",
                             group)
            yield path and path[0], spans(group)


def tests_in(path):
    if path.endswith(".py"):
        return re.findall(r"^ *(?:async )?def (test_\w+)\(", read(path), re.M)
    return re.findall(r"^TEST\(\w+,\s*(\w+)\)", read(path), re.M)


def wrong_tests(text):
    for path, names in tests_named(text):
        if not path or not (SOURCE / path).exists() or \
                not (names or path.endswith(".py")):
            yield f"Held by: {path}: {names}: expected a file of tests and names"
            continue
        for name in sorted(set(names) - set(tests_in(path))):
            yield f"{path} has no test {name}"


def lonely_formulas(text):
    for title, body in sections(text):
        if "```formula" not in body:
            continue
        for word in ("Source: ", "Held by: "):
            if not re.search(f"^{word}", body, re.M):
                yield f"{title}: a formula without its {word.strip()}"


def wrong_names(text):
    parser = (read("src/core/text_settings.c") +
              read("src/core/text_parse.c"))
    keys = re.findall(r'\{"([a-z-]+=)",', parser)
    keys += re.findall(r'stg_read_text\(&value, "([a-z-]+=)"\)', parser)
    growths = re.findall(r'\{"([a-z]+)", STG_[A-Z]+\}', parser)
    settings = [spans(row[0])[0] for row in rows(section(text, "Settings"))]
    grammar = re.findall(r'"([a-z-]+=?)"', section(text, "Grammar"))
    yield from differences("settings", settings, keys)
    for key in keys + growths:
        if key not in grammar:
            yield f"grammar: {key}: is missing"

    faults = set(re.findall(r"ROW\(\s*" + STRING, read("src/core/fault.c")))
    said = {name.split(":")[0] for row in rows(section(text, "Faults"))
            for name in spans(row[1])}
    for name in sorted(faults - {"ok", "5xx"} - said):
        yield f"faults: {name}: is missing"

    presets = re.findall(r'^    \{"([a-z-]+)",', read("src/core/policies.c"), re.M)
    yield from differences("presets", [spans(row[0])[0] for row in
                                       rows(section(text, "Presets"))], presets)

    names = re.findall(r'\[STG_WHY_\w+\] = \{"([a-z-]+)"',
                       read("src/core/report.c"))
    said = [spans(row[0])[0]
            for row in rows(section(text, "The order of the questions"))]
    yield from differences("reasons", said, names)
    last = names.index("invalid") + 1
    if said[:last] != names[:last]:
        yield f"reasons: the order is {' '.join(names[:last])}"


def fault_names():
    return dict(re.findall(r"\[(STG_FAULT_\w+)\]\s*=\s*ROW\(\s*" + STRING,
                           read("src/core/fault.c")))


def wrong_broker_codes(text):
    """The tables of codes.c but what they reject, and the one of the page."""
    sources = {"redis": "Redis", "amqp": "AMQP 0-9-1", "amqp1": "AMQP 1.0",
               "kafka": "Kafka"}
    names = fault_names()
    expected, said = set(), set()
    for table, body in re.findall(r"(\w+)\[\] = \{(.*?)\n\};",
                                  read("src/core/codes.c"), re.S):
        for name, code, fault in re.findall(
                r'\{(?:"(.*?)"|NULL), (-?\d+), (STG_FAULT_\w+)\}', body):
            if table in sources and names[fault] not in ("rejected", "ok"):
                word = name if table in ("redis", "amqp1") else code
                source = ("librdkafka" if int(code) < -1 else sources[table])
                expected.add((source, names[fault], word))
    for source, fault, codes, *_ in rows(section(text, "What is read as which")):
        if source in (*sources.values(), "librdkafka") and \
                spans(fault) not in ([], ["rejected"]):
            said |= {(source, spans(fault)[0], word) for word in re.findall(
                r"-?\b\d+\b|\b[A-Z]{2,}\b|\b[a-z.]+(?::[a-z-]+)+\b",
                codes.split(";")[0])}
    yield from differences("what is read as which", said, expected)


def wrong_codes(text):
    """The tables of classify.c, and the one of the page."""
    sources = {"errnos": "errno", "resolver": "resolver", "alerts": "TLS alert",
               "curls": "libcurl", "sqlstates": "SQLSTATE", "mysqls": "MySQL"}
    code = read("src/core/classify.c")
    code = re.sub(r"NAMED\((\w+), (\w+)\)", r"{\1, STG_FAULT_\2}", code)
    names = fault_names()
    expected, said = set(), set()
    for table, body in re.findall(r"(\w+)\[\] = \{(.*?)\n\};", code, re.S):
        if table in sources:
            for value, fault in re.findall(r'\{"?(\w+)"?, (STG_FAULT_\w+)',
                                           body):
                expected.add((sources[table], names[fault], value))
    expected -= {("errno", "timeout", "EWOULDBLOCK"), ("resolver", "error", "0")}
    for source, fault, codes, *_ in rows(section(text, "What is read as which")):
        if source in sources.values():
            said |= {(source, (spans(fault) or ["ok"])[0], value)
                     for value in re.findall(r"\b(?:E[A-Z_]+|[0-9][0-9A-Z]*)\b",
                                             codes.split(";")[0])}
    said -= {("libcurl", "ok", "0"), ("MySQL", "ok", "0"),
             ("errno", "timeout", "EWOULDBLOCK")}
    yield from differences("what is read as which", said, expected)


# -- docs/retry.md against the command


def plan(text):
    """What `stagger plan` knows of a text, or None if it refuses it."""
    found = subprocess.run([STAGGER, "plan", "--json", text], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           timeout=60)
    return json.loads(found.stdout)["policies"][0] if found.stdout else None


def canonical(text):
    found = plan(text)
    return found and found["text"]


def wrong_settings(text):
    default = canonical("retry=default")
    for key, value, ranges, *_ in rows(section(text, "Settings")):
        key = spans(key)[0]
        for word in spans(value)[:1]:
            if canonical(key + word) != default:
                yield f"settings: {key}{word} is not the default"
        for word in spans(ranges):
            if canonical(word if "=" in word else key + word) is None:
                yield f"settings: {key}{word} is refused"


def wrong_presets(text):
    for name, is_text, *_ in rows(section(text, "Presets")):
        name, is_text = spans(name)[0], spans(is_text)[0]
        if canonical(name) != canonical(is_text):
            yield f"presets: {name} is {canonical(name)}"


def wrong_faults(text):
    columns = {2: "retry=default", 3: "broadcast"}
    words = {None: "yes", 0: "no"}
    for column, policy in columns.items():
        expected = [f"{row['category']} {row['fault']} "
                  f"{words.get(row['retries_max'], row['retries_max'])}"
                  for row in plan(policy)["faults"]]
        said = [f"{row[0]} {fault} {row[column]}"
                for row in rows(section(text, "Faults"))
                for fault in spans(row[1])]
        yield from differences(f"faults, {policy}", said, expected)


# -- manuals


def items(page, macro):
    """The names in the .It lines with this macro."""
    for line in re.findall(rf"^\.It {macro} (.*)$", page, re.M):
        yield from re.findall(r"[\w-]+", line)


def flags(page):
    return {"-" + flag for line in re.findall(r"^\.It (Fl .*)$", page, re.M)
            for flag in re.findall(r"Fl (-?[\w-]+)", line)}


def commands():
    return re.findall(r'\{"(\w+)", (?:HUB\()?stg_cli_',
                      read("src/cli/main.c"))


def lint(mandoc):
    for path in manuals():
        found = subprocess.run([mandoc, "-T", "lint", "-W", "warning", path],
                               text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        yield from found.stdout.splitlines()


def eaten_quotes():
    """Quotes that begin a word of a macro's line are not printed."""
    for path in manuals():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.match(r"\.(?:Dl|D1)\b.*\"", line):
                yield f"{path.name}:{number}: write \\(dq for each quote"


def wrong_options():
    for command in ["", *commands()]:
        name = f"stagger-{command}.1" if command else "stagger.1"
        text = run(STAGGER, *command.split(), "--help").stdout
        if command:
            said = re.findall(r"^ {2,}(?:(-\w), )? *(--[\w-]+)", text, re.M)
            said = {flag for pair in said for flag in pair if flag}
        else:
            said = set(re.findall(r"(--\w+) \|", text)) \
                | set(re.findall(r"\| (--\w+)", text))
        page = read(f"docs/man/{name}")
        yield from differences(f"{name}, options", flags(page), said)
        if command and command not in items(read("docs/man/stagger.1"), "Cm"):
            yield f"stagger.1: the command {command} is missing"


def keys_of(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def wrong_fields():
    texts = ["backend", "aws", "broadcast", "client budget=ratio:0.2+1/s",
             "client budget=grpc:10:0.1", "client budget=share:20%+3",
             "client breaker=50%/20/10s",
             "unjittered", "client base-for=1s:overload", "client jitter=decorrelated attempts=20"]
    found = run(STAGGER, "plan", "--json", "--clients", "100", *texts).stdout
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("targets: [{name: a, url: 'http://127.0.0.1:1/'}]\n")
        file.flush()
        target = run(STAGGER, "plan", "--json", "-c", file.name, "--target",
                     "a")
    # Without the hub there are no targets.
    of_target = (["uncounted"] if "needs the hub" in target.stdout
                 else keys_of(json.loads(target.stdout)))
    page = read("docs/man/stagger-plan.1")
    yield from differences("stagger-plan.1, fields", items(page, "Va"),
                           {*keys_of(json.loads(found)), *of_target})
    code = "".join(path.read_text() for path in (SOURCE / "src/plan").rglob("*.c"))
    yield from differences(
        "stagger-plan.1, warnings", items(page, "Sy"),
        re.findall(r'stg_lint_add\(\s*lint,\s*"([a-z-]+)"', code))
    found = run(STAGGER, "run", "--json", "-p", "none", "false").stdout
    yield from differences("stagger-run.1, fields",
                           items(read("docs/man/stagger-run.1"), "Va"),
                           keys_of(json.loads(found)))


def literals(page):
    """Its literal blocks as they are read."""
    for block in re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$", page, re.M):
        yield block.replace("\\e", "\\").replace("\\&", "")


def headers():
    return "".join(path.read_text() for path in
                   sorted((SOURCE / "include/stagger").glob("*.h")))


def prototypes(text):
    for each in text.split(";"):
        each = re.sub(r"\s+", " ", each).replace("( ", "(").strip()
        if re.match(r"[a-z][\w *]*\bstg_\w+\(", each):
            yield each


def wrong_prototypes():
    code = re.sub(r"/\*.*?\*/", "", headers(), flags=re.S)
    declared = re.findall(r"STG_API\s+([^;{]*);", code)
    inlined = re.findall(r"^static inline\s+([^;{]*)\{", code, re.M)
    expected = ";".join(declared + inlined)
    said = ";".join(block for block in literals(read("docs/man/libstagger.3"))
                    if "main(" not in block)
    yield from differences("libstagger.3", prototypes(said), prototypes(expected))


# -- examples


# A page about the inside names what is inside.
INSIDE = {"docs/architecture.md"}


def wrong_identifiers():
    installed = set(re.findall(r"\b(?:stg|STG)_\w+", headers()))
    inside = {name for path in (SOURCE / "src").rglob("*.h")
              for name in re.findall(r"\b(?:stg|STG)_\w+", path.read_text())}
    texts = list(pages()) + [(path.name, path.read_text())
                             for path in manuals()]
    for name, text in texts:
        there = installed | inside if name in INSIDE else installed
        for each in sorted(set(re.findall(r"\b(?:stg|STG)_\w+", text)) - there):
            yield f"{name}: {each} is in no header that it may speak of"


def check_c(cc, library, where, code):
    has_main = re.search(r"\bmain\(", code)
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "example")
        program.with_suffix(".c").write_text(code)
        found = run(cc, "-std=c11", "-Wall", "-Wextra", "-Werror",
                    f"-I{SOURCE}/include", "example.c",
                    *(["-o", "example", library] if has_main else ["-c"]),
                    cwd=folder)
        if found.returncode == 0 and has_main:
            found = run(program, cwd=folder)
        if found.returncode != 0:
            yield f"{where}: {found.stdout}exit code {found.returncode}"


def check_cpp(cxx, library, where, code):
    includes = re.findall(r"^#include .*\n", code, re.M)
    body = re.sub(r"^#include .*\n", "", code, flags=re.M)
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "example.cpp").write_text(
            f"#include <cstdio>\n{''.join(includes)}int main() {{\n{body}\n}}\n")
        found = run(cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror",
                    "-Wno-unused", f"-I{SOURCE}/include", "example.cpp",
                    "-o", "example", library, cwd=folder)
        if found.returncode == 0:
            found = run(pathlib.Path(folder, "example"), cwd=folder)
        if found.returncode != 0:
            yield f"{where}: {found.stdout}exit code {found.returncode}"


def wrong_python(where, code):
    try:
        compile(code, where, "exec")
    except SyntaxError as error:
        yield f"{where}: {error}"


def run_sh(code):
    env = dict(os.environ)
    env.pop("STAGGER_ATTEMPT", None)
    env["PATH"] = f"{pathlib.Path(STAGGER).parent}:{env['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        return run("sh", "-e", "-c", code, cwd=folder, env=env)


def wrong_targets(where, code):
    targets = re.findall(r"^([\w -]+):(?!=)", read("Makefile"), re.M)
    targets = {word for line in targets for word in line.split()}
    for words in re.findall(r"\bmake((?: [\w=/.-]+)+)", code):
        for word in words.split():
            if "=" not in word and word not in targets:
                yield f"{where}: the Makefile has no {word}"


def wrong_blocks(cc, cxx, library):
    for name, text in pages():
        printed = None
        in_cpp = "".join(code for mark, _, code, _ in blocks(text)
                         if mark == "cpp")
        if in_cpp and cxx:
            yield from check_cpp(cxx, library, name, in_cpp)
        for mark, line, code, between in blocks(text):
            where = f"{name}:{line}"
            if mark not in MARKS:
                yield f"{where}: {mark} is no mark of a block"
            if mark == "c":
                yield from check_c(cc, library, where, code)
            if mark.startswith("python"):
                yield from wrong_python(where, code)
            if mark == "sh install":
                yield from wrong_targets(where, code)
            if mark == "text" and printed is not None and not between.strip():
                if TIME.sub("TIME", code) != TIME.sub("TIME", printed):
                    yield f"{where}: it prints\n{printed}"
            printed = None
            if STAGGER and (mark == "sh" or
                            mark == "sh long" and "STAGGER_FULL" in os.environ):
                found = run_sh(code)
                printed = found.stdout
                if found.returncode != 0:
                    yield f"{where}: {printed}exit code {found.returncode}"
    for block in literals(read("docs/man/libstagger.3")):
        if "main(" in block:
            yield from check_c(cc, library, "libstagger.3", block)


def wrong_links():
    for name, text in pages():
        text = FENCE.sub("", text)
        for span in spans(text):
            if span.startswith("make "):
                yield from wrong_targets(name, span)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in link:
                continue
            path, _, place = link.partition("#")
            target = (SOURCE / name).parent / path if path else SOURCE / name
            if not target.exists():
                yield f"{name}: {link}: there is no such file"
            elif place and place not in [anchor(title) for title, _ in
                                         sections(target.read_text())]:
                yield f"{name}: {link}: there is no such heading"


def main(arguments):
    if len(arguments) != 3:
        sys.exit(__doc__)
    cc, cxx, library = arguments
    if not shutil.which(cxx):
        print("left out: the examples in C++ (no compiler)")
        cxx = None
    text = read("docs/retry.md")
    found = [problem for check in (lonely_formulas, wrong_names,
                                   wrong_codes, wrong_broker_codes)
                  for problem in check(text)]
    found += [f"{name}: {problem}" for name, page in pages()
              for problem in wrong_tests(page)]
    found += [*missing_terms(), *wrong_prototypes(), *wrong_identifiers(), *wrong_links(),
              *eaten_quotes(), *wrong_blocks(cc, cxx, library)]
    mandoc = shutil.which("mandoc")
    if mandoc:
        found += lint(mandoc)
    else:
        print("left out: the form of the manuals (no mandoc)")
    if STAGGER:
        found += [problem for check in (wrong_settings, wrong_presets,
                                        wrong_faults)
                  for problem in check(text)]
        found += [*wrong_options(), *wrong_fields()]
    else:
        print("left out: what the command prints (not built)")
    tests = sum(len(names) for _, page in pages() for _, names in tests_named(page))
    print("\n".join(found) or f"docs: {tests} tests named, and all is so")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
