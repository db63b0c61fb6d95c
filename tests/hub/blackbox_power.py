"""The disk of blackbox.py, which can lose its power: blackbox_disk.c, with the
store directly on it, or in an image of ext4 on it, where that can be mounted."""
import contextlib
import os
import shutil
import subprocess
import time

TOOL = os.environ.get("STAGGER_DISK", "")
IMAGE_MB = 512


class Disk:
    def __init__(self, folder, is_ext4):
        self.folder = folder
        self.there = os.path.join(folder, "disk")
        os.mkdir(self.there)
        self.image = None
        self.cuts = self.lost = self.of = 0
        self.process = subprocess.Popen(
            [TOOL, self.there], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        self.is_there = self.process.stdout.readline() == "mounted\n"
        if self.is_there and is_ext4:
            self.make_image()

    def make_image(self):
        bare, self.image = self.there, os.path.join(self.there, "image")
        self.there = os.path.join(self.folder, "ext4")
        os.mkdir(self.there)
        with open(self.image, "wb") as file:
            file.truncate(IMAGE_MB << 20)
        subprocess.run(["mkfs.ext4", "-q", self.image], check=True)
        for path in (self.image, bare):
            one = os.open(path, os.O_RDONLY)
            os.fsync(one)
            os.close(one)
        self.mount()

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.image, self.there],
                       check=True)

    def unmount(self):
        """And the loop device lets go of the image, with all that it knows."""
        subprocess.run(["umount", self.there], check=True)
        while subprocess.run(["losetup", "-j", self.image], check=True,
                             capture_output=True).stdout:
            time.sleep(0.01)

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def cut(self, seed):
        """The power is gone, and the hub with it: what is there afterwards."""
        if self.image:
            self.unmount()
        words = self.say(f"cut {seed}").split()
        self.cuts += 1
        self.lost += int(words[1])
        self.of += int(words[3])
        if self.image:
            self.mount()

    def summary(self):
        return (f"{self.cuts} power cuts{' in ext4' if self.image else ''}, "
                f"{self.lost} of {self.of} unsynced sectors lost")

    def close(self):
        """The store stays, beside it."""
        if self.is_there:
            with contextlib.suppress(OSError): # it has no power
                shutil.copytree(self.there, self.folder, dirs_exist_ok=True,
                                ignore=shutil.ignore_patterns("lost+found"))
        if self.image:
            with contextlib.suppress(subprocess.CalledProcessError):
                self.unmount()
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def can_mount_images():
    return (os.geteuid() == 0 and os.path.exists("/dev/loop-control") and
            shutil.which("mkfs.ext4") is not None)


def make(folder, ways, is_ext4):
    """None: none is needed, or can be had. is_ext4: if that can be had, and the
    environment does not say otherwise."""
    if not os.path.exists(TOOL) or not {"power", "slow"} & set(ways):
        return None
    said = os.environ.get("STAGGER_EXT4")
    disk = Disk(folder, said == "1" if said else
                is_ext4 and can_mount_images())
    if disk.is_there:
        return disk
    disk.close()
    return None
