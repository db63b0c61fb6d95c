#!/usr/bin/env python3
"""The figures of docs/jitter.md are what `make figures` draws, byte by byte.

usage: figures.py

The numbers and the findings that the page quotes are theirs.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

STAGGER = os.environ["STAGGER"]
SOURCE = pathlib.Path(os.environ["STAGGER_SOURCE"])
DOCS = SOURCE / "docs"


class Figures(unittest.TestCase):

    def test_are_what_the_command_makes(self):
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder)
            (made / "jitter.md").write_text((DOCS / "jitter.md").read_text())
            subprocess.run([sys.executable, SOURCE / "scripts/figures",
                            STAGGER, folder], check=True, timeout=280)
            names = sorted(path.name for path in (made / "figures").iterdir())
            self.assertEqual(names, sorted(
                path.name for path in (DOCS / "figures").iterdir()))
            for name in ["jitter.md", *(f"figures/{name}" for name in names)]:
                self.assertTrue(
                    (made / name).read_bytes() == (DOCS / name).read_bytes(),
                    f"docs/{name} is not what `make figures` makes")

    def test_are_all_on_the_page(self):
        page = (DOCS / "jitter.md").read_text()
        for path in (DOCS / "figures").iterdir():
            self.assertIn(f"(figures/{path.name})", page)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
