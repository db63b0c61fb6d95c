"""The rules for the first words of a comment, and for `is no`."""

import re

# Words that name nothing: the reader would have to look for the subject elsewhere.
PRONOUNS = {"of", "those", "they", "who", "whoever", "its", "it", "what"}
QUESTIONS = {"what", "who"}
ONE = {"of", "that", "which", "who", "is", "was", "has", "with", "to", "more"}
PREPOSITIONS = {"in", "as", "for", "by"}
ELLIPTIC = {"what", "who", "whom", "whoever", "those"}  # "For what is rare, ..."
PHRASE_MAX = 8  # words until the comma or colon that ends an opening phrase
UNITS = {"ns", "us", "ms", "s", "nanoseconds", "microseconds", "milliseconds", "seconds",
         "minutes", "hours", "days", "bytes", "bits", "KiB", "MiB", "GiB", "kB", "MB",
         "tenths", "hundredths", "thousandths", "millionths", "percent", "messages", "positions", "attempts", "columns",
         "lines", "characters", "words", "units", "pixels", "UTC"}
# For figures only: first words and pronouns as they were counted in other projects, and
# what begins a relative clause.
RAW = ("of", "what", "one", "it", "in", "its", "as", "for", "by", "those")
VAGUE = {"it", "its", "they", "them", "their", "those", "these", "that", "this", "which",
         "who", "whom", "whose", "whoever", "what", "one", "ones", "none", "neither"}
RELATIVE = re.compile(r"\b(?:which|who|whom|whose|(?<=[a-z] )that)\b", re.I)
COMPARATIVES = ("longer|more|less|shorter|such|larger|later|earlier|sooner|older|newer|"
                "higher|lower|smaller|greater|slower|faster|wider|narrower|bigger|closer|"
                "harder|easier|cheaper|deeper|further|farther|fewer|weaker|stronger|"
                "stricter|safer|better|worse|different")
IS_NO = re.compile(rf"\b(?P<verb>is|are) no (?!(?:{COMPARATIVES})\b)(?=[\w`'\"%<{{*])", re.I)
THERE = re.compile(r"\bthere(?: \w+)?$", re.I)
NO_MEMORY = re.compile(r"\bthere(?: is|'s| was) no memory\b", re.I)


def opening(words):
    """The first words, without the marks around them: lists, quotes, emphasis."""
    return re.sub(r"^[\s\-*•(\[\"'_]+", "", words)


def word_of(token):
    """A token's word in small letters: `It's` and `it,` are it."""
    return re.sub(r"(?:'s|'re|'ve|'d|'ll)?[.,:;!?)\]\"'*]*$", "", token).lower()


def is_question(text):
    return re.match(r"[^.!?]*\?", text) is not None


def ends_phrase(tokens):
    """Whether a comma, colon or dash ends the opening phrase in time."""
    for token in tokens[:PHRASE_MAX]:
        if re.search(r"[,:][)\"'`*]*$", token) or token in ("--", "-", "="):
            return True
        if re.search(r"[.;!?][)\"'`*]*$", token):
            return False
    return False


def unclear_start(text):
    """The first word, or two, that a comment or cell may not begin with, or None."""
    text = opening(text)
    tokens = text.split(" ")
    # A name in code, and a keyword in capitals (IN of SQL), mean themselves.
    if "`" in tokens[0] or len(tokens[0]) > 1 and tokens[0].isupper():
        return None
    first = word_of(tokens[0])
    second = word_of(tokens[1]) if len(tokens) > 1 else ""
    if first in QUESTIONS and is_question(text):
        return None
    if first in PRONOUNS:
        return tokens[0]
    if first == "one" and second in ONE:
        return " ".join(tokens[:2])
    if first in PREPOSITIONS and len(tokens) > 1:
        if second in ELLIPTIC:
            return " ".join(tokens[:2])
        if not ends_phrase(tokens) and re.sub(r"\W+$", "", tokens[1]) not in UNITS:
            return tokens[0]
    return None


def denials(text):
    """What stands around each `is no NOUN` and `there is no memory` of a text."""
    for match in IS_NO.finditer(text):
        before = text[:match.start()].rstrip()
        if match["verb"] and not THERE.search(before) \
                and not re.match(r"\w+ no there\b", text[match.start():]):
            yield match.start()
    for match in NO_MEMORY.finditer(text):
        yield match.start()


def around(text, at):
    """A few words around a fault, as a list shows it."""
    before = text[:at].split()[-3:]
    return " ".join([*before, *text[at:].split()[:6]])
