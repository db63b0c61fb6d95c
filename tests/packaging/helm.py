"""The Helm chart: linted, refuses values that are wrong, and what it renders is
of Kubernetes' types, fits together, and has settings that the hub takes.

usage: helm.py STAGGER

The types are those of the package `kubernetes` in build/tools: its models are
made of the API's own description, and are read as texts.
"""
import ast
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CHART = SOURCE / "packaging/helm/stagger"
VALUES = SOURCE / "tests/packaging/helm"
TOOLS = SOURCE / "build/tools"
MODELS = TOOLS / "kubernetes/kubernetes/client/models"
HELM = shutil.which("helm") or str(TOOLS / "helm/helm")
STAGGER = None
# What the settings take from the environment, which other objects give the pod.
ENVIRONMENT = {"SHOP_HOST": "shop.example", "IN_FLIGHT": "32"}


def helm(*words):
    return subprocess.run([HELM, *map(str, words)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def render(name, *words, values=None):
    """Of a file of values in VALUES, or of a text."""
    r = subprocess.run([HELM, "template", "hub", CHART, "-f",
                        "-" if values else VALUES / f"{name}.yaml", *words],
                       text=True, input=values,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert r.returncode == 0, r.stderr
    return [o for o in yaml.safe_load_all(r.stdout) if o is not None]


def names():
    return sorted(path.stem for path in VALUES.glob("*.yaml"))


# -- Kubernetes' types ---------------------------------------------------------

class Types:
    """Each a name of fields, with their types; and which are needed."""

    def __init__(self):
        self.all, self.needed = {}, {}
        for path in MODELS.glob("v1_*.py"):
            text = path.read_text()
            name = re.search(r"^class (\w+)\(", text, re.M)[1]
            types, keys = (ast.literal_eval(
                re.search(rf"^    {word} = (\{{.*?^    \}})", text,
                          re.M | re.S)[1])
                for word in ("openapi_types", "attribute_map"))
            self.all[name] = {keys[k]: types[k] for k in types}
            self.needed[name] = {keys[k] for k in re.findall(
                r"Invalid value for `(\w+)`, must not be `None`", text)}

    def judge(self, value, kind, at):
        """The first mistake of a value, in words."""
        part = re.match(r"(list|dict)(?:\[|\()(?:str, )?(.*)[\])]$", kind)
        if part is not None:
            outer = {"list": list, "dict": dict}[part[1]]
            if not isinstance(value, outer):
                return f"{at}: no {part[1]}: {value!r}"
            items = enumerate(value) if outer is list else value.items()
            return self.first((v, part[2], f"{at}[{k!r}]") for k, v in items)
        if kind in self.all:
            return self.judge_object(value, kind, at)
        plain = {"str": str, "int": int, "bool": bool, "object": object,
                 "datetime": str}[kind]
        if not isinstance(value, plain) or (plain is int and
                                            isinstance(value, bool)):
            return f"{at}: no {kind}: {value!r}"
        return None

    def judge_object(self, value, kind, at):
        if not isinstance(value, dict):
            return f"{at}: no map: {value!r}"
        fields = self.all[kind]
        for key in value:
            if key not in fields:
                return f"{at}: {kind} has no {key}"
        for key in self.needed[kind] - set(value):
            return f"{at}: {kind} needs {key}"
        return self.first((v, fields[k], f"{at}.{k}")
                          for k, v in value.items())

    def first(self, parts):
        return next((w for w in (self.judge(*p) for p in parts) if w), None)


# -- the chart ------------------------------------------------------------------

class Chart(unittest.TestCase):
    maxDiff = None

    def test_is_linted(self):
        for name in names():
            r = helm("lint", "--strict", CHART, "-f", VALUES / f"{name}.yaml")
            self.assertEqual(r.returncode, 0, r.stdout)

    def test_has_the_version_of_the_hub(self):
        version = re.search(r'define STG_VERSION "(.*)"', (
            SOURCE / "include/stagger/stagger.h").read_text())[1]
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.assertEqual((chart["version"], chart["appVersion"]),
                         (version, version))

    def test_refuses_values_that_are_wrong(self):
        for words, said in (
            (["mode=cluster"], "mode"),
            (["replica=3"], "replica"),
            (["mode=kafka"], "kafka"),
            (["quota=lots"], "quota"),
            (["settings.drain=5s"], "drain"),
            (["settings.listen.address=0.0.0.0:1"], "address"),
            (["settings.store.path=/tmp/x"], "path"),
            (["drainSeconds=-1"], "drainSeconds"),
            (["service.port=70000"], "port"),
            (["secrets.name="], "stagger token new"),
            (["ingress.enabled=true"], "ingress.host"),
            (["serviceMonitor.enabled=true"], "tokenSecret.name"),
            (["mode=kafka", "kafka.brokers={a:1}", "kafka.topics={a}",
              "postgres.url=postgres://hub:pw@db/hub"], "url"),
        ):
            with self.subTest(words):
                r = helm("template", "hub", CHART, "-f", VALUES / "queue.yaml",
                         *(w for word in words for w in ("--set", word)))
                self.assertNotEqual(r.returncode, 0)
                self.assertIn(said, r.stdout)

    @unittest.skipUnless(MODELS.is_dir(), f"no {MODELS}")
    def test_renders_objects_of_kubernetes_types(self):
        types = Types()
        for name in names():
            for o in render(name):
                if o["kind"] == "ServiceMonitor":
                    continue
                with self.subTest(f"{name}: {o['kind']}"):
                    self.assertIsNone(types.judge(o, "V1" + o["kind"],
                                                  o["kind"]))

    def test_renders_parts_that_belong_together(self):
        for name in names():
            with self.subTest(name):
                objects = render(name)
                self.look_at(objects)
                self.assertEqual(len({(o["kind"], o["metadata"]["name"])
                                      for o in objects}), len(objects))

    def look_at(self, objects):
        def all_of(kind):
            return [o for o in objects if o["kind"] == kind]

        owner, = all_of("StatefulSet") + all_of("Deployment")
        spec = owner["spec"]["template"]["spec"]
        labels = owner["spec"]["template"]["metadata"]["labels"]
        selectors = [owner["spec"]["selector"]["matchLabels"]]
        selectors += [o["spec"]["selector"] for o in all_of("Service")]
        selectors += [o["spec"]["selector"]["matchLabels"] for o in
                      all_of("PodDisruptionBudget")]
        selectors += [o["spec"]["podSelector"]["matchLabels"] for o in
                      all_of("NetworkPolicy")]
        for selector in selectors:
            self.assertLessEqual(selector.items(), labels.items())
        container, = spec["containers"]
        ports = {p["name"] for p in container["ports"]}
        for probe in "startupProbe", "livenessProbe", "readinessProbe":
            self.assertIn(container[probe]["httpGet"]["port"], ports)
        for service in all_of("Service"):
            for port in service["spec"]["ports"]:
                self.assertIn(port["targetPort"], ports)
        volumes = [v["name"] for v in spec["volumes"]] + [
            c["metadata"]["name"] for c in
            owner["spec"].get("volumeClaimTemplates", [])]
        self.assertEqual(sorted(m["name"] for m in container["volumeMounts"]),
                         sorted(volumes))
        self.look_at_rights(spec, container, objects)
        self.look_at_names(spec, all_of, owner)

    def look_at_rights(self, spec, container, objects):
        self.assertTrue(spec["securityContext"]["runAsNonRoot"])
        self.assertEqual(spec["securityContext"]["seccompProfile"]["type"],
                         "RuntimeDefault")
        self.assertEqual(container["securityContext"], {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]}})
        self.assertFalse(spec["automountServiceAccountToken"])
        # What it is given to end in is what it takes, and some more.
        settings = self.settings(objects)
        wait = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        self.assertGreaterEqual(
            spec["terminationGracePeriodSeconds"],
            wait + int(settings["drain"].removesuffix("s")) + 10)

    def look_at_names(self, spec, all_of, owner):
        made = {(o["kind"], o["metadata"]["name"])
                for kind in ("ConfigMap", "Secret", "Service") for o in
                all_of(kind)}
        projected = spec["volumes"][0]["projected"]["sources"]
        self.assertIn(("ConfigMap", projected[0]["configMap"]["name"]), made)
        if owner["kind"] == "StatefulSet":
            self.assertIn(("Service", owner["spec"]["serviceName"]), made)
        if all_of("Secret"):
            self.assertIn(("Secret", projected[1]["secret"]["name"]), made)
        for account in all_of("ServiceAccount"):
            self.assertEqual(account["metadata"]["name"],
                             spec["serviceAccountName"])

    def settings(self, objects):
        config, = (o for o in objects if o["kind"] == "ConfigMap")
        return yaml.safe_load(config["data"]["stagger.yaml"])

    def test_renders_settings_that_the_hub_takes(self):
        for name in names():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                out = self.check(pathlib.Path(folder), render(name))
                self.assertEqual(out.returncode, 0, out.stdout)
                self.assertNotIn("0 targets", out.stdout)

    def check(self, folder, objects):
        """As in the pod: the settings and the Secret's files in one folder,
        with the volume elsewhere."""
        settings = self.settings(objects)
        if settings["store"]["path"].startswith("/"):
            settings["store"]["path"] = str(folder / "stagger.db")
        self.put(folder, "stagger.yaml", yaml.safe_dump(settings))
        subprocess.run([STAGGER, "token", "new", folder / "tokens", "--role",
                        "publish"], check=True, stdout=subprocess.DEVNULL)
        for name in "shop", "sasl":
            self.put(folder, name, "Bearer hush\n")
        self.put(folder, "slack", "https://hooks.example/T\n")
        if "tls" in settings["listen"]:
            (folder / "tls").mkdir()
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=hub",
                 "-days", "90", "-keyout", folder / "tls/tls.key", "-out",
                 folder / "tls/tls.crt"], check=True,
                stderr=subprocess.DEVNULL)
        return subprocess.run([STAGGER, "check", folder / "stagger.yaml"],
                              text=True, env=ENVIRONMENT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    @staticmethod
    def put(folder, name, text):
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)

    def test_takes_the_values_of_the_documentation(self):
        page = (SOURCE / "docs/containers.md").read_text()
        found = re.findall(r"^```\n((?:.*\n)*?settings:\n(?:.*\n)*?)```$",
                           page, re.M)
        self.assertEqual(len(found), 2)
        for values in found:
            self.look_at(render("documentation", values=values))

    def test_keeps_large_numbers(self):
        self.assertEqual(self.settings(render("full"))["store"]["keys"]["max"],
                         5000000)

    def test_rolls_when_the_settings_change(self):
        def sums(*words):
            owner, = (o for o in render("full", *words)
                      if o["kind"] == "StatefulSet")
            found = owner["spec"]["template"]["metadata"]["annotations"]
            return found["checksum/settings"], found["checksum/secrets"]

        before = sums()
        other = sums("--set", "settings.memory=256MiB")
        self.assertNotEqual(other[0], before[0])
        self.assertEqual(other[1], before[1])
        other = sums("--set", "secrets.files.shop=Bearer new")
        self.assertEqual(other[0], before[0])
        self.assertNotEqual(other[1], before[1])
        self.assertEqual(len(before[0]), hashlib.sha256().digest_size * 2)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    STAGGER = sys.argv.pop(1)
    if not pathlib.Path(HELM).exists():
        print("left out: helm (no helm)")
        sys.exit(77)
    unittest.main()
