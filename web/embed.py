#!/usr/bin/env python3
"""Puts what a page refers to into the page itself: styles, scripts, and the
engine, so that it is one file that needs no server and asks for nothing.

usage: embed.py PAGE ENGINE VERSION OUTPUT

A <link rel="stylesheet" href> and a <script src> are replaced by what they name,
beside the page; <script id="engine"> gets the bytes of ENGINE, as base64. What
scripts may run is said by their hashes: nothing else will, and nothing can be
fetched (Content-Security-Policy).
"""
import base64
import hashlib
import html
import pathlib
import re
import sys

STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)">')
SCRIPT = re.compile(r'<script(| class="\w+") src="([^"]+)"></script>')
ENGINE = re.compile(r'(<script id="engine" [^>]*>)(</script>)')
RUNS = re.compile(r'<script(?:| class="\w+")>(.*?)</script>', re.S)


def read_part(folder, name, end):
    """A file that may stand between two tags."""
    text = (folder / name).read_text(encoding="utf-8")
    if end in text:
        sys.exit(f"{folder / name}: has {end} in it")
    return text


def put_once(pattern, put, page, what):
    page, count = pattern.subn(put, page)
    if count != 1:
        sys.exit(f"expected one {what}, found {count}")
    return page


def policy_of(page):
    hashes = " ".join(
        "'sha256-" + base64.b64encode(
            hashlib.sha256(script.encode()).digest()).decode() + "'"
        for script in RUNS.findall(page))
    return ("default-src 'none'; base-uri 'none'; form-action 'none'; "
            f"style-src 'unsafe-inline'; script-src {hashes} "
            "'wasm-unsafe-eval' blob:; worker-src blob:; img-src data:")


def main(arguments):
    if len(arguments) != 4:
        sys.exit(__doc__)
    source, engine, version, output = arguments
    folder = pathlib.Path(source).parent
    page = pathlib.Path(source).read_text(encoding="utf-8")
    page = page.replace("@version@", html.escape(version))
    page = STYLE.sub(
        lambda found: "<style>\n"
        + read_part(folder, found[1], "</style") + "</style>", page)
    page = SCRIPT.sub(
        lambda found: f"<script{found[1]}>\n"
        + read_part(folder, found[2], "</script") + "</script>", page)
    code = base64.b64encode(pathlib.Path(engine).read_bytes()).decode()
    page = put_once(ENGINE, lambda found: found[1] + code + found[2], page,
                    "engine")
    page = put_once(re.compile("@policy@"), lambda _: policy_of(page), page,
                    "@policy@")
    pathlib.Path(output).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
