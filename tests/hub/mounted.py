#!/usr/bin/env python3
"""Secrets in files that another program puts in place: a volume of Kubernetes,
whose files are links into a folder that is swapped, and credentials of systemd,
whose mode looks as if others could read them."""
import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import unittest

import case

OTHERS = 54321  # a group that the hub is not in


class Volume:
    """As the kubelet writes one: NAME -> ..data/NAME, and ..data -> a folder
    of the current version, which is renamed into place."""

    def __init__(self, path):
        self.path = path
        os.mkdir(path, 0o755)
        self.version = 0

    def write(self, **files):
        self.version += 1
        folder = os.path.join(self.path, f"..2026_11_26_{self.version}")
        link = os.path.join(self.path, "..data")
        old = os.readlink(link) if os.path.lexists(link) else None
        os.mkdir(folder, 0o755)
        for name, text in files.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)
            os.chmod(file.name, 0o440)
        os.symlink(os.path.basename(folder), link + "_tmp")
        os.rename(link + "_tmp", link)
        for name in files:
            there = os.path.join(self.path, name)
            if not os.path.lexists(there):
                os.symlink(f"..data/{name}", there)
        if old is not None:
            shutil.rmtree(os.path.join(self.path, old))


def make_token(folder):
    """A token, and the line of the file that the hub reads."""
    path = os.path.join(folder, "made")
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    token = subprocess.run([case.STAGGER, "token", "new", path, "--role",
                            "publish"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split()[-1]
    with open(path) as file:
        return token, file.read()


class Mounted(case.Case):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "stagger.yaml")

    def start(self, text, before=()):
        with open(self.path, "w") as file:
            file.write("listen:\n  address: 127.0.0.1:0\n"
                       f"{text}store: {{path: {self.store}}}\n")
        return self.hub(settings=self.path, before=before)

    def post(self, hub, token, body=b"x"):
        connection = self.kept(http.client.HTTPConnection(
            "127.0.0.1", hub.port, timeout=case.PATIENCE))
        connection.request("POST", "/v1/messages", body,
                           {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def test_a_reload_follows_the_links_of_a_volume(self):
        leaf = self.leaf()
        volume = Volume(os.path.join(self.folder, "secrets"))
        first, line = make_token(self.folder)
        volume.write(tokens=line, authorization="Bearer one\n")
        hub = self.start(
            "  tokens: secrets/tokens\n"
            f"targets:\n  - name: a\n    url: {leaf.url()}\n"
            "    headers: {Authorization: {file: secrets/authorization}}\n")
        self.assertEqual(self.post(hub, first), 202)
        self.assertEqual(leaf.wait(1)[0].headers["authorization"],
                         ["Bearer one"])
        second, line = make_token(self.folder)
        volume.write(tokens=line, authorization="Bearer two\n")
        self.reload(hub)
        self.assertEqual(self.post(hub, first), 401)
        self.assertEqual(self.post(hub, second), 202)
        self.assertEqual(leaf.wait(2)[1].headers["authorization"],
                         ["Bearer two"])
        self.assertEqual(hub.stop(), 0)

    def test_a_volume_without_the_file_changes_nothing(self):
        leaf = self.leaf()
        volume = Volume(os.path.join(self.folder, "secrets"))
        volume.write(authorization="Bearer one\n")
        hub = self.start(
            f"targets:\n  - name: a\n    url: {leaf.url()}\n"
            "    headers: {Authorization: {file: secrets/authorization}}\n")
        volume.write(other="x")
        hub.process.send_signal(signal.SIGHUP)
        self.assertIn("secrets/authorization cannot be read",
                      hub.event("reload-refused")["detail"])
        hub.post(b"x")
        self.assertEqual(leaf.wait(1)[0].headers["authorization"],
                         ["Bearer one"])

    @unittest.skipIf(os.geteuid() != 0, "only root may give files away")
    def test_a_credential_of_systemd_is_private(self):
        """An access control list lets the service read it, and shows in the
        mode as if its group could."""
        leaf = self.leaf()
        folder = os.path.join(self.folder, "credentials")
        os.mkdir(folder, 0o700)
        secret = os.path.join(folder, "shop")
        with open(secret, "w") as file:
            file.write("Bearer hush\n")
        os.chmod(secret, 0o440)
        os.chown(secret, -1, OTHERS)
        text = (f"targets:\n  - name: a\n    url: {leaf.url()}\n"
                "    headers:\n      Authorization:\n"
                "        file: ${CREDENTIALS_DIRECTORY}/shop\n")
        hub = self.start(text, ["env", f"CREDENTIALS_DIRECTORY={folder}"])
        hub.post(b"x")
        self.assertEqual(leaf.wait(1)[0].headers["authorization"],
                         ["Bearer hush"])
        self.reload(hub)
        self.assertEqual(hub.stop(), 0)
        # Any other file of that mode is one that others may read.
        with open(self.path, "w") as file:
            file.write(text.replace("${CREDENTIALS_DIRECTORY}", folder))
        found = subprocess.run([case.STAGGER, "check", self.path], text=True,
                               stdout=subprocess.PIPE)
        self.assertEqual(found.returncode, 2, found.stdout)
        self.assertIn("others may use the file", found.stdout)


case.main()
