#!/usr/bin/env python3
"""The units for systemd: what they let the hub do is little, and enough.

usage: unit.py CMAKE BUILD_DIR
"""
import ctypes
import errno
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

STAGGER = os.environ["STAGGER"]
EXPOSURE_MAX = 20  # tenths
PATIENCE = 60  # seconds; only a test that fails waits so long
SETTINGS = """
store: {{path: {folder}/hub.db}}
listen: {{address: "127.0.0.1:0"}}
log: {{format: json}}
dead-letters: {{copy: "file:{folder}/letters"}}
targets:
  - {{name: a, url: "http://localhost:{port}/"}}
  - {{name: gone, url: "https://localhost:1/"}}
"""


def run(*words, **more):
    return subprocess.run(words, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=PATIENCE, **more)


# -- the filter of a unit, as the kernel has it ---------------------------------

ALLOW, ERRNO, KILL = 0x7fff0000, 0x00050000, 0x80000000
NE, EQ, MASKED_EQ = 1, 4, 7
PROT_WRITE, PROT_EXEC = 2, 4


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("how", ctypes.c_int),
                ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


class Filter:
    """A filter for system calls: what is not named is answered by `default`."""

    library = None

    def __init__(self, default):
        if Filter.library is None:
            Filter.library = ctypes.CDLL("libseccomp.so.2")
            Filter.library.seccomp_init.restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.library.seccomp_init(default))

    def rule(self, call, action, *comparisons):
        number = self.library.seccomp_syscall_resolve_name(call.encode())
        if number == -1:
            return  # not on this machine
        array = (Comparison * len(comparisons))(*comparisons)
        code = self.library.seccomp_rule_add_array(
            self.context, ctypes.c_uint32(action), number, len(comparisons),
            array)
        if code != 0 and -code != errno.EACCES:  # it is the default
            raise OSError(-code, f"seccomp, {call}")

    def load(self):
        code = self.library.seccomp_load(self.context)
        if code != 0:
            raise OSError(-code, "seccomp_load")


def calls(name):
    """What a name of SystemCallFilter= stands for."""
    if not name.startswith("@"):
        return {name}
    text = run("systemd-analyze", "syscall-filter", "--no-pager", name).stdout
    found = set()
    for line in text.splitlines()[1:]:
        word = line.strip()
        if word and not word.startswith("#"):
            found |= calls(word)
    return found


def settings(unit):
    """name: values, in their order."""
    found = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", unit, re.M):
        found.setdefault(name, []).append(value)
    return found


def allowed(unit):
    found = set()
    for value in settings(unit)["SystemCallFilter"]:
        names = set().union(*map(calls, value.removeprefix("~").split()))
        found = found - names if value.startswith("~") else found | names
    return found


def confine(path):
    """This process, and what it becomes, as the unit says."""
    unit = pathlib.Path(path).read_text()
    names = allowed(unit)
    families = settings(unit)["RestrictAddressFamilies"][0].split()
    import socket
    families = [getattr(socket, name) for name in families]

    writable = Filter(ALLOW)  # MemoryDenyWriteExecute=
    both = PROT_WRITE | PROT_EXEC
    refuse = ERRNO | errno.EPERM
    writable.rule("mmap", refuse, Comparison(2, MASKED_EQ, both, both))
    writable.rule("mprotect", refuse,
                  Comparison(2, MASKED_EQ, PROT_EXEC, PROT_EXEC))
    sockets = Filter(ERRNO | errno.EAFNOSUPPORT)
    for name in names - {"socket"}:
        sockets.rule(name, ALLOW)
    for name in ("seccomp", "prctl"):  # for the filters still to come
        sockets.rule(name, ALLOW)
    for family in families:
        sockets.rule("socket", ALLOW, Comparison(0, EQ, family, 0))
    only = Filter(refuse)
    for name in names:
        only.rule(name, ALLOW)
    writable.load()
    sockets.load()
    only.load()


# -- tests ---------------------------------------------------------------------

class Leaf(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(
            self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.came.set()

    def log_message(self, *words):
        pass


class Unit(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        found = run(CMAKE, "--install", BUILD, "--prefix", cls.folder / "usr")
        assert found.returncode == 0, found.stdout
        cls.units = cls.folder / "usr/lib/systemd/system"

    def test_little_is_left_to_someone_who_breaks_in(self):
        for name in ("stagger.service", "stagger@.service"):
            found = run("systemd-analyze", "security", "--offline=true",
                        "--no-pager", f"--threshold={EXPOSURE_MAX}",
                        self.units / name)
            self.assertEqual(found.returncode, 0, found.stdout)
            print(found.stdout.splitlines()[-1].encode("ascii", "ignore")
                  .decode().strip())

    def test_systemd_finds_nothing_wrong(self):
        for name, instance in (("stagger.service", "stagger.service"),
                               ("stagger@.service", "stagger@some.service")):
            copy = self.folder / instance
            shutil.copy(self.units / name, copy)
            found = run("systemd-analyze", "verify", "--man=no", copy)
            self.assertEqual((found.returncode, found.stdout), (0, ""))

    def test_the_command_and_its_settings_are_where_it_says(self):
        for name in ("stagger.service", "stagger@.service"):
            unit = (self.units / name).read_text()
            self.assertNotRegex(unit, r"@\w+@")
            for value in settings(unit)["ExecStart"]:
                words = value.split()
                self.assertEqual(words[0], str(self.folder / "usr/bin/stagger"))
                self.assertTrue(os.access(words[0], os.X_OK))
            self.assertEqual(settings(unit)["RestartPreventExitStatus"], ["2"])
            # A core has what the memory has: tokens, and bodies of messages.
            self.assertEqual(settings(unit)["LimitCORE"], ["0"])

    def test_the_hub_lives_within_it(self):
        """The whole of a short life, under the unit's own filters."""
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Leaf) as leaf:
            leaf.bodies, leaf.came = [], threading.Event()
            threading.Thread(target=leaf.serve_forever, daemon=True).start()
            settings = self.folder / "stagger.yaml"
            settings.write_text(SETTINGS.format(folder=self.folder,
                                                port=leaf.server_port))
            confined = [sys.executable, __file__, "--confined",
                        self.units / "stagger.service", STAGGER]
            check = run(*confined, "check", "-c", settings)
            self.assertEqual(check.returncode, 0, check.stdout)
            hub = subprocess.Popen([*confined, "hub", "-c", settings],
                                   stderr=subprocess.PIPE, text=True)
            try:
                line = hub.stderr.readline()
                self.assertIn('"ready"', line, line + "...")
                address = json.loads(line)["listen"]
                with urllib.request.urlopen(
                        urllib.request.Request(
                            f"http://{address}/v1/messages", b"hello"),
                        timeout=PATIENCE) as answer:
                    self.assertEqual(answer.status, 202)
                self.assertTrue(leaf.came.wait(PATIENCE))
                self.assertEqual(leaf.bodies, [b"hello"])
                hub.terminate()
                said = hub.communicate(timeout=PATIENCE)[1]
                self.assertEqual(hub.returncode, 0, said)
                self.assertTrue((self.folder / "letters").exists())
            finally:
                hub.kill()
                hub.wait()
                leaf.shutdown()

    def test_the_filter_is_one(self):
        """What the hub has no need of is refused: the test above can fail."""
        for code in ("import os; os.nice(1)",
                     "import os; os.setuid(os.getuid())",
                     "import mmap; mmap.mmap(-1, 4096, prot=7)",
                     "import socket; socket.socket(socket.AF_NETLINK)"):
            found = run(sys.executable, __file__, "--confined",
                        self.units / "stagger.service", sys.executable, "-c",
                        code)
            self.assertRegex(found.stdout, "PermissionError|EAFNOSUPPORT|"
                             "Address family not supported", code)


if __name__ == "__main__":
    if sys.argv[1] == "--confined":
        confine(sys.argv[2])
        os.execv(sys.argv[3], sys.argv[3:])
    CMAKE, BUILD = sys.argv[1:]
    if not shutil.which("systemd-analyze"):
        print("left out: no systemd-analyze")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
