"""Readers of the tree's comments, messages, table cells and static functions.

Each reader takes a text and yields pairs of a line number, from 1, and what
stands there. A comment is a `/* */`, or a run of lines that begin with `//` or
`#`, or a docstring of Python. Titles (`-- reading ----`) and what tools read
(`# noqa`, `#!`) are left out.
"""

import ast
import io
import pathlib
import re
import subprocess
import tokenize

C = {".c", ".h", ".cpp", ".hpp"}
SCRIPT = {".js", ".mjs", ".ts"}
PYTHON = {".py"}
HASH = {".sh", ".cmake", ".yaml", ".yml", ".toml"}
PAGES = {".md"}

# Folders whose files are data of a test or of a tool, and nobody's prose.
DATA = re.compile(r"^(fuzz/corpus|tests/.*/(golden|events|data|samples)|tests/mutants)/")

STRING = r'"(?:\\.|[^"\\\n])*"'
LEXEMES = re.compile(
    rf"""(?P<string>{STRING}|`(?:\\.|[^`\\])*`|'(?:\\.|[^'\\\n])*')
    |(?P<block>/\*.*?\*/)|(?P<line>//[^\n]*)|(?P<other>[^"'`/]+|.)""", re.S | re.X)
C_LEXEMES = re.compile(
    rf"""(?P<string>{STRING}|'(?:\\.|[^'\\\n])*')
    |(?P<block>/\*.*?\*/)|(?P<line>//[^\n]*)|(?P<other>[^"'/]+|.)""", re.S | re.X)
TOOL = re.compile(r"(!|noqa|type:|pragma|shellcheck|fmt:|clang-format|NOLINT|ruff|mypy|"
                  r"cppcheck|eslint|yaml-language-server|-\*-)")
TITLE = re.compile(r"-{2,}|={2,}")


def kind(path):
    """The suffix by which a file is read: scripts without one have `.sh` or `.py`."""
    if path.suffix or path.name in ("Makefile", "Dockerfile"):
        return ".sh" if path.name in ("Makefile", "Dockerfile") else path.suffix
    try:
        first = path.read_text().split("\n", 1)[0]
    except (UnicodeDecodeError, IsADirectoryError):
        return ""
    if not first.startswith("#!"):
        return ""
    return ".py" if "python" in first else ".sh"


def tracked(root):
    """Files of a checkout, relative to its root: as git lists them, or all where
    there is no git."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co",
                             "--exclude-standard", "-z"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if listed.returncode == 0:
        names = listed.stdout.decode().split("\0")[:-1]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")
                 if "build" not in path.relative_to(root).parts]
    return sorted(pathlib.PurePath(name) for name in names
                  if not DATA.match(name) and (root / name).is_file())


def lexemes(text, is_script=False):
    """Triples of kind, line and text of a source in C or JavaScript."""
    line = 1
    for match in (LEXEMES if is_script else C_LEXEMES).finditer(text):
        yield match.lastgroup, line, match[0]
        line += match[0].count("\n")


def is_prose(words):
    return bool(words) and not TITLE.match(words) and not TOOL.match(words)


def plain(comment):
    """The words of a comment: its marks and line breaks are gone."""
    lines = [re.sub(r"^\s*(/\*+|\*+(?=[\s/]|$)|//+[!/<]*|#+)?", "", line)
             for line in comment.splitlines()]
    return re.sub(r"\s+", " ", " ".join(lines)).removesuffix("*/").strip()


def runs(lines):
    """Joins (line, comment) pairs that stand on lines in a row."""
    start, last, parts = None, None, []
    for line, text in lines:
        if parts and line == last + 1:
            parts.append(text)
        else:
            if parts:
                yield start, "\n".join(parts)
            start, parts = line, [text]
        last = line
    if parts:
        yield start, "\n".join(parts)


def c_comments(text, is_script=False):
    found, lines = [], []
    for what, line, lexeme in lexemes(text, is_script):
        if what == "block":
            found.append((line, lexeme))
        elif what == "line":
            lines.append((line, lexeme))
    return sorted(found + list(runs(lines)))


def hash_comments(text):
    return runs((i, line.strip()) for i, line in enumerate(text.splitlines(), 1)
                if line.lstrip().startswith("#") and not line.startswith("#!"))


def docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef,
                             ast.AsyncFunctionDef)):
            words = ast.get_docstring(node)
            if words:
                yield node.body[0].lineno, words


def python_comments(text):
    marks = [(token.start[0], token.string)
             for token in tokenize.generate_tokens(io.StringIO(text).readline)
             if token.type == tokenize.COMMENT]
    return sorted([*runs(marks), *docstrings(ast.parse(text))])


def comments(text, suffix):
    """Line and words of each comment in prose."""
    if suffix in C or suffix in SCRIPT:
        found = c_comments(text, suffix in SCRIPT)
    elif suffix in PYTHON:
        found = python_comments(text)
    elif suffix in HASH:
        found = hash_comments(text)
    else:
        found = []
    for line, comment in found:
        words = plain(comment)
        if is_prose(words):
            yield line, words


def c_messages(text, is_script=False):
    """String literals; those with nothing but space between are one."""
    start, parts = 0, []
    for what, line, lexeme in lexemes(text, is_script):
        if what == "string" and lexeme[0] != "'" or what == "string" and is_script:
            start = start if parts else line
            parts.append(lexeme[1:-1])
        elif parts and (what != "other" or lexeme.strip()):
            yield start, "".join(parts)
            parts = []
    if parts:
        yield start, "".join(parts)


def python_messages(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(
                part.value if isinstance(part, ast.Constant) else "{}"
                for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def messages(text, suffix):
    """Line and text of each string that a user may read."""
    if suffix in C or suffix in SCRIPT:
        found = c_messages(text, suffix in SCRIPT)
    elif suffix in PYTHON:
        found = python_messages(text)
    else:
        # A manual, or a page of the console: its macros end a paragraph.
        found = runs((i, line) for i, line in enumerate(text.splitlines(), 1)
                     if line.strip() and not line.startswith((".", "'")))
    return ((line, re.sub(r"\s+", " ", words)) for line, words in found)


# -- pages


def unfenced(text):
    """The lines of a page that stand in no fenced block, with their numbers."""
    is_inside = False
    for i, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_inside = not is_inside
        elif not is_inside:
            yield i, line


def cells(text):
    """Each cell of the tables of a page."""
    for line, row in unfenced(text):
        if not row.startswith("|") or re.fullmatch(r"[|:\- ]+", row):
            continue
        inner = re.sub(r"`[^`]*`", lambda code: code[0].replace("|", "/"),
                       row.strip().strip("|").replace(r"\|", "/"))
        for cell in inner.split("|"):
            if cell.strip():
                yield line, cell.strip()


def paragraphs(text):
    """Each row of a table, and each run of other lines of a page, as one line."""
    rows = [(i, row) for i, row in unfenced(text) if row.strip()]
    for line, words in sorted([
            *((i, row) for i, row in rows if row.startswith("|")),
            *runs((i, row) for i, row in rows if not row.startswith("|"))]):
        yield line, re.sub(r"\s+", " ", words)


# -- static functions

STATIC = re.compile(r"^static\b([^;={}]*?)\b(\w+)\s*\((?!\s*\*)", re.M)


def statics(text):
    """Line and name of each static function that a source in C defines."""
    code = "".join(lexeme if what == "other" else
                   '""' if what == "string" else re.sub(r"[^\n]", " ", lexeme)
                   for what, _, lexeme in lexemes(text))
    code = re.sub(r"\b(?:STG_\w+|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)",
                  lambda macro: "\n" * macro[0].count("\n"), code)
    seen = set()
    for match in STATIC.finditer(code):
        name = match[2]
        if name not in seen and not name.isupper() and name != "_Static_assert":
            seen.add(name)
            yield code.count("\n", 0, match.start(2)) + 1, name
