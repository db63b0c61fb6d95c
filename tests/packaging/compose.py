"""packaging/compose: a project that Compose takes, whose parts belong together,
with settings that the hub takes.

usage: compose.py STAGGER

Compose itself reads the file where there is `docker compose`; else its library
does, which scripts/deps builds (build/tools/compose/cmd).
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FOLDER = SOURCE / "packaging/compose"
READER = SOURCE / "build/tools/compose/cmd"
STAGGER = None


def has_compose():
    return shutil.which("docker") is not None and subprocess.run(
        ["docker", "compose", "version"], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL).returncode == 0


def read():
    """The project as Compose has it, its variables replaced."""
    words = (["docker", "compose", "-f", "compose.yaml", "config", "--format",
              "json"] if has_compose() else
             [READER, "-format", "json", "compose.yaml"])
    r = subprocess.run(words, cwd=FOLDER, text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout)


def seconds(text):
    parts = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", text)
    return 60 * int(parts[1] or 0) + int(parts[2] or 0)


class Compose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.project = read()
        cls.services = cls.project["services"]
        cls.settings = yaml.safe_load((FOLDER / "stagger.yaml").read_text())

    def test_waits_for_services_that_can_tell(self):
        for name, service in self.services.items():
            for other, how in service.get("depends_on", {}).items():
                with self.subTest(f"{name} on {other}"):
                    if how["condition"] == "service_healthy":
                        self.assertIn("test",
                                      self.services[other]["healthcheck"])

    def test_mounts_what_is_there(self):
        for name, service in self.services.items():
            for volume in service.get("volumes") or []:
                with self.subTest(f"{name}: {volume['target']}"):
                    if volume["type"] == "bind":
                        self.assertTrue(pathlib.Path(
                            FOLDER / volume["source"]).is_file())
                    else:
                        self.assertIn(volume["source"],
                                      self.project["volumes"])

    def test_the_hub_has_time_to_end(self):
        hub = self.services["hub"]
        self.assertEqual(hub["deploy"]["replicas"], 2)
        self.assertGreaterEqual(seconds(hub["stop_grace_period"]),
                                seconds(self.settings["drain"]) + 10)
        self.assertTrue(hub["read_only"])
        self.assertEqual(hub["cap_drop"], ["ALL"])

    def test_parts_name_each_other_as_they_are(self):
        broker, _, port = self.settings["kafka"]["brokers"].partition(":")
        kafka = self.services["kafka"]["environment"]
        self.assertIn(f"{broker}:{port}", kafka["KAFKA_ADVERTISED_LISTENERS"])
        self.assertIn(broker, self.services)
        user, host, base = re.fullmatch(r"postgres://(.*)@(.*)/(.*)", self
                                        .settings["store"]["path"]).groups()
        postgres = self.services[host]["environment"]
        self.assertEqual((user, base), (postgres["POSTGRES_USER"],
                                        postgres["POSTGRES_DB"]))
        self.assertEqual(self.services["hub"]["environment"]["PGPASSWORD"],
                         postgres["POSTGRES_PASSWORD"])
        balancer = (FOLDER / "haproxy.cfg").read_text()
        port = self.settings["listen"]["address"].rpartition(":")[2]
        self.assertIn(f"hub:{port} check", balancer)
        self.assertIn("httpchk GET /readyz", balancer)

    @unittest.skipIf(shutil.which("haproxy") is None, "no haproxy")
    def test_the_balancer_takes_its_file(self):
        subprocess.run(["haproxy", "-c", "-f", FOLDER / "haproxy.cfg"],
                       check=True)

    def test_the_hub_takes_its_settings(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = os.path.join(folder, "tokens")
            setup = self.services["setup"]["command"][0]
            subprocess.run(["sh", "-c", setup], cwd=folder, check=True,
                           stdout=subprocess.DEVNULL,
                           env={"PATH": f"{os.path.dirname(STAGGER)}:/bin"})
            settings = (FOLDER / "stagger.yaml").read_text().replace(
                self.settings["listen"]["tokens"], tokens)
            path = os.path.join(folder, "stagger.yaml")
            pathlib.Path(path).write_text(settings)
            r = subprocess.run(
                [STAGGER, "check", path], text=True,
                env=self.services["hub"]["environment"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(r.returncode, 0, r.stdout)
            r = subprocess.run([STAGGER, "check", path], text=True, env={},
                               stdout=subprocess.PIPE)
            self.assertIn("`${TARGET_URL}`", r.stdout)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    STAGGER = os.path.realpath(sys.argv.pop(1))
    if not READER.exists() and not has_compose():
        print("left out: compose (no docker compose, and no reader)")
        sys.exit(77)
    unittest.main()
