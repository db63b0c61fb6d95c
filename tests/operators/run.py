"""One run: a hub in a folder of its own, what it speaks to, and the acts of a
script, carried out one after the other. hands.py has the acts; judge.py says at
the end whether all is well."""
import copy
import json
import os
import random
import shutil
import tempfile
import threading
import time

import expectations
import hands
import judge
from house import Failure, House, free_port
from producers import SECRET, WORD, Producers
from script import filled
from services import Services

SECRETS = {
    "sign.secret": SECRET, "sign.secret.2": SECRET.replace("A", "B"),
    "word.secret": WORD, "target.token": "Bearer hush-1", "proxy.url": "@proxy@",
    "slack.url": "@leaf@/alerts/hush", "teams.url": "@leaf@/alerts/hush/teams",
    "pager.key": "hush" * 8, "pager.token": "Bearer hush-2",
    "kafka.password": "hush-3", "collector.token": "Bearer hush-4",
    "oauth.secret": "hush-5", "secrets.key": "1f" * 32,
    "mail.password": "hush-6"}


def find_act(name):
    for module in hands, expectations:
        if hasattr(module, f"act_{name}"):
            return getattr(module, f"act_{name}")
    raise Failure("script", f"there is no act {name}")


ADDED = 3  # targets by call, at most


class Run:
    """Settings are kept with their @words@, in three: what the file says, what
    the hub has taken, and what it has started with."""

    def __init__(self, script, shared, seed, tools):
        self.script, self.shared = script, shared
        self.rng = random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="stagger-operators-")
        self.services = Services(shared, seed)
        self.house = House(self.folder, shared)
        self.producers = Producers(self.house, seed)
        self.words = {**self.services.words(), "folder": self.folder,
                      "listen": f"127.0.0.1:{free_port()}",
                      **tools.words(script.settings)}
        self.settings = copy.deepcopy(script.settings)
        self.in_force = copy.deepcopy(script.settings)
        self.silence = judge.Silence()
        self.uncertain = set()  # targets that are judged by their books alone
        self.held, self.jobs, self.moved = [], [], {}
        self.kills, self.is_judged, self.wrong = 0, True, None
        self.has_started = self.has_ended_acts = False
        self.changed = {}  # targets to whether a reload has changed them
        self.is_copy_lost = False
        self.keep = None
        self.said = []  # answers to looks

    # -- files

    def furnish(self):
        for name, text in SECRETS.items():
            self.house.put(name, filled(text, self.words) + "\n")
        self.house.put("lines.txt", "one\ntwo\n")
        self.house.put("tokens", self.shared.tokens[0][1])
        self.house.put("ops.token", self.shared.tokens[0][0] + "\n")
        self.house.client.tokens = [word for word, _ in self.shared.tokens]

    def furnish_again(self):
        """All that was moved or changed is as it was."""
        self.furnish()
        for name in ("hub.crt", "hub.key"):
            shutil.copy(self.house.at(name.replace("hub", "server")),
                        self.house.at(name))
        shutil.copy(os.path.join(self.shared.folder, "root.crt"), self.folder)
        self.moved.clear()

    def write(self):
        """A hub may take what is written, whoever asks for it."""
        self.house.targets = max(self.house.targets, ADDED +
                                 len(self.settings["targets"]))
        self.house.write(filled(self.settings, self.words))
        names = {t["name"]: t for t in self.settings["targets"]}
        for each in self.script.settings["targets"]:
            now = names.get(each["name"])
            if now is None or "match" in now or "topics" in now:
                self.uncertain.add(each["name"])
            if now != each:
                self.changed[each["name"]] = True
        if self.settings.get("dead-letters", {}).get("copy") != \
                self.script.settings.get("dead-letters", {}).get("copy"):
            self.is_copy_lost = True

    def mend(self):
        """The file is as the hub has taken it."""
        self.settings = copy.deepcopy(self.in_force)
        self.write()

    # -- lives of the hub

    def listen(self):
        return filled(self.settings["listen"], self.words)

    def start(self):
        """On the settings of the file; it does what `check` has said."""
        self.write()
        code, said = self.house.run("check", "-c", "hub.yaml")
        ended = self.house.start(self.listen())
        if ended is None and code == 0:
            self.take()
            return
        if (code == 0) != (ended is None):
            raise Failure("check", f"`check` exits with {code}, the hub "
                          f"{'starts' if ended is None else f'exits with {ended}'}:"
                          f" {said[-600:]} {self.last()}")
        if ended != 2:
            raise Failure("exit", f"{ended} at a start, not 2: {said[-600:]}")
        if not self.has_started:
            raise Failure("settings", said[-2000:])
        # Files are missing, or the file is spoilt: the operator sees to it.
        self.furnish_again()
        self.mend()
        ended = self.house.start(self.listen())
        if ended is not None:
            raise Failure("exit", f"{ended} at a start with good settings: "
                          f"{self.last()}")
        self.take()

    def last(self):
        return getattr(self.house.hub, "lines", [])[-3:]

    def take(self):
        """The settings of the file are in force."""
        self.in_force = copy.deepcopy(self.settings)
        self.has_started = True
        self.silence.update(self.in_force)

    # -- all of it

    def carry_out(self, tell):
        self.furnish()
        self.start()
        for act in self.script.acts:
            time.sleep(act.after / 1000)
            self.house.check()
            tell(act)
            find_act(act.name)(self, **act.args)
            self.complain()
        self.house.check()
        self.has_ended_acts = True
        if self.is_judged:
            judge.judge(self, tell)

    def complain(self):
        for wrong in (self.wrong, self.producers.wrong, self.house.watcher.wrong):
            if wrong is not None:
                raise wrong

    def behind(self, call, *words):
        """In a thread: what may take long."""
        def work():
            try:
                call(*words)
            except Failure as failure:
                self.wrong = self.wrong or failure
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self.jobs.append(thread)

    def close(self):
        self.producers.over.set()
        hands.let_go(self)
        self.house.close()
        self.services.close()
        for thread in self.jobs:
            thread.join(20)
        if self.keep:
            self.save()
        shutil.rmtree(self.folder, ignore_errors=True)

    def save(self):
        """Copies the files of the run to where they are kept."""
        shutil.copytree(self.folder, self.keep, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("*.sock"))
        lines = self.house.log + (self.house.hub.lines if self.house.hub else [])
        with open(os.path.join(self.keep, "hub.log"), "w") as log:
            log.writelines(json.dumps(line) + "\n" for line in lines)


def run(script, shared, seed, tools, keep=None, tell=lambda _: None,
        is_judged=True):
    """Returns the failure, or None, and the run. keep: a folder for the files of a
    run that failed. tell: is called for each act. is_judged: else the run ends with
    its last act."""
    one = Run(script, shared, seed, tools)
    one.is_judged = is_judged
    failure = None
    try:
        one.carry_out(tell)
    except Failure as found:
        failure = one.house.why(found)
        failure.is_early = not one.has_ended_acts
        one.keep = keep
    finally:
        one.close()
    return failure, one
