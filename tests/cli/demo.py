"""stagger demo, as its users see it."""
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

STAGGER = os.environ["STAGGER"]


class Demo(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, *arguments):
        demo = subprocess.Popen(
            [STAGGER, "demo", *arguments], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": self.folder})
        self.addCleanup(demo.kill)
        return demo

    def is_running(self, pid):
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def test_all_is_as_it_should_be(self):
        demo = self.start()
        out, err = demo.communicate(timeout=60)
        self.assertEqual((demo.returncode, err), (0, ""), out)
        self.assertEqual(
            re.findall(r"^\$ (stagger \w+|kill %\d)",
                       out.replace(f"$ {STAGGER} ", "$ stagger "), re.M),
            ["stagger sink"] * 4 + ["stagger hub", "stagger send",
             "stagger status", "stagger status", "stagger dead"]
            + [f"kill %{i}" for i in (5, 1, 2, 3, 4)])
        self.assertRegex(out, r"\n2000 messages accepted, ")
        # Three were tried, and the others are one row.
        self.assertRegex(out, r"\ndown +CONNECTION_REFUSED +dead +4 +2000 ")
        self.assertIn("event=stopped clean=true", out)
        self.assertEqual(out.count("\nduplicates     0\n"), 4)
        self.assertIn("each of the 2000 messages of the demo", out)
        self.assertNotIn("\033", out)
        self.assertEqual(os.listdir(self.folder), [])

    def test_shows_commands_as_they_can_be_typed(self):
        """PATH need not have the program."""
        demo = subprocess.Popen(
            ["bin/my-stagger", "demo"], executable=STAGGER, text=True,
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": self.folder})
        self.addCleanup(demo.kill)
        self.assertTrue(any(line.startswith("$ bin/my-stagger sink --listen")
                            for line in demo.stdout))
        demo.terminate()
        demo.communicate(timeout=60)

    def test_it_can_be_interrupted(self):
        demo = self.start()
        for expected in ("stagger hub", "messages accepted"):
            for line in demo.stdout:
                if expected in line:
                    break
        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=60)
        self.assertEqual((demo.returncode, err),
                         (130, "stagger demo: stopped by a signal\n"))
        self.assertEqual(os.listdir(self.folder), [])

    def test_what_it_started_ends_with_it(self):
        demo = self.start()
        for line in demo.stdout:
            if "messages accepted" in line:
                break
        with open(f"/proc/{demo.pid}/task/{demo.pid}/children") as file:
            children = file.read().split()
        self.assertGreaterEqual(len(children), 5)
        demo.kill()
        demo.communicate(timeout=60)
        while any(map(self.is_running, children)):
            time.sleep(0.01)

    def test_stays_with_a_page_and_keeps_what_it_is_told_to_keep(self):
        demo = self.start("--keep", "--stay")
        said = []
        for line in demo.stdout:
            said.append(line)
            if "stagger dead replay" in line:
                break
        text = "".join(said)
        page = re.search(r"Its page: (\S+)", text)[1]
        with urllib.request.urlopen(page, timeout=60) as answer:
            self.assertIn(b"stagger hub", answer.read())
        # What it says to type mends the target, and sends what it missed.
        sink = subprocess.Popen(
            [*re.search(r"\$ (\S+ sink .*)", text[text.index(page):])[1].split(),
             "--count", "2000"], stdout=subprocess.DEVNULL)
        self.addCleanup(sink.kill)
        replay = re.search(r"\$ (\S+ dead replay .*)", text)[1].split()
        subprocess.run([*replay, "--yes"], check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        self.assertEqual(sink.wait(timeout=60), 0)
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=60)
        self.assertEqual((demo.returncode, err), (0, ""), out)
        kept, = os.listdir(self.folder)
        self.assertIn(f"cd {self.folder}/{kept}\n", out)
        self.assertIn("hub.db", os.listdir(f"{self.folder}/{kept}"))

    def test_it_needs_a_directory_that_it_can_write(self):
        found = subprocess.run([STAGGER, "demo"], capture_output=True,
                               text=True, timeout=60,
                               env={**os.environ, "TMPDIR": "/nowhere"})
        self.assertEqual((found.returncode, found.stdout), (2, ""))
        self.assertIn("/nowhere", found.stderr)

    def test_words_are_refused(self):
        found = subprocess.run([STAGGER, "demo", "please"],
                               capture_output=True, text=True, timeout=60)
        self.assertEqual((found.returncode, found.stdout), (2, ""))
        self.assertIn("please", found.stderr)


if __name__ == "__main__":
    unittest.main()
