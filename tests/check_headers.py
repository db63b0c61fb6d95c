#!/usr/bin/env python3
"""Every public header stands alone, as C11 and as C++17; those of C++ as C++17
and as C++20.

usage: check_headers.py CC CXX [HEADER | -FLAG]...

A flag is for the headers after it. A CXX that does not exist is not tried.
"""

import os
import pathlib
import shutil
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]


def main(arguments):
    if len(arguments) < 3:
        sys.exit(__doc__)
    cc, cxx, *rest = arguments
    include = pathlib.Path(os.environ["STAGGER_SOURCE"], "include")
    languages = {".h": [[cc, "-std=c11", "-xc"]], ".hpp": []}
    if shutil.which(cxx):
        languages[".h"] += [[cxx, "-std=c++17", "-xc++"]]
        languages[".hpp"] = [[cxx, f"-std=c++{year}", "-xc++"]
                             for year in (17, 20)]
    flags, failed = [], 0
    for header in rest:
        if header.startswith("-"):
            flags.append(header)
            continue
        name = pathlib.Path(header).relative_to(include)
        # Twice, for its guard; through stdin, for a header given by name is
        # compiled as one, with warnings of its own.
        text = f"#include <{name}>\n" * 2 + "int main(void) { return 0; }\n"
        newest = "needs C++20" in pathlib.Path(header).read_text()
        for command in languages[name.suffix][-1 if newest else 0:]:
            run = subprocess.run([*command, *WARNINGS, *flags, f"-I{include}",
                                  "-"], input=text, text=True)
            failed += run.returncode != 0
    print(f"{len(rest) - len(flags)} headers, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
