"""stagger demo, as its users see it."""
import os
import signal
import subprocess
import tempfile
import unittest

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

    def test_all_is_as_it_should_be(self):
        demo = self.start()
        out, err = demo.communicate(timeout=60)
        self.assertEqual((demo.returncode, err), (0, ""), out)
        self.assertNotIn("WRONG", out)
        self.assertEqual(out.count("\n  ok "), 7)
        self.assertRegex(out, r"CONNECTION_REFUSED +3 in 3 rows\n")
        self.assertRegex(out, r"CONNECTION_REFUSED +1997 in 1 bulk row, "
                              r"never tried\n")
        self.assertNotIn("\033", out)
        self.assertEqual(os.listdir(self.folder), [])

    def test_it_can_be_interrupted(self):
        demo = self.start()
        self.assertIn("2000 messages", demo.stdout.readline())
        demo.send_signal(signal.SIGINT)
        _, err = demo.communicate(timeout=60)
        self.assertEqual((demo.returncode, err),
                         (130, "stagger demo: stopped by a signal\n"))
        self.assertEqual(os.listdir(self.folder), [])

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
