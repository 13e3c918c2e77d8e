#!/usr/bin/env python3
"""Writes the table of fields that `harness lint manifest` reads: manifest_fields.py SCHEMAS CRDS > fields.txt

SCHEMAS is the folder `kubernetes_validate/kubernetes-json-schema` of the unpacked wheel kubernetes-validate (Apache License),
CRDS the folder of custom resource definitions (`kube/` of the test corpus, Apache-2.0). Needs PyYAML. Only names, types and
versions of fields are taken, no descriptions.

A line `kind KIND VERSION TYPE [@FIRST][-LAST]` is an object, a line `type NAME FIELD:TYPE ...` its fields. `!` behind a name:
required. Types: s text, i integer, n number, b boolean, q quantity, x integer or text, * anything, [T a list, {T a map, else a
name. `(A|B)` behind s: the values. `@31` behind a type: from Kubernetes 1.31 on; `@29-33`: until 1.33.
"""
import json
import lzma
import pathlib
import sys

import yaml

VERSIONS = range(29, 38)
KINDS = """Pod PodTemplate ReplicationController Service ConfigMap Secret PersistentVolume PersistentVolumeClaim Namespace
ServiceAccount ResourceQuota LimitRange Job CronJob Deployment StatefulSet DaemonSet ReplicaSet Role ClusterRole RoleBinding
ClusterRoleBinding StorageClass NetworkPolicy PodDisruptionBudget PriorityClass RuntimeClass MutatingWebhookConfiguration
ValidatingWebhookConfiguration ResourceClaim ResourceClaimTemplate DeviceClass HorizontalPodAutoscaler""".split()
CRDS = {
    "crd-jobset.yaml": "JobSet", "crd-kueue-localqueue.yaml": "LocalQueue", "crd-mpijob-v2beta1.yaml": "MPIJob",
    "crd-pytorchjob-v1.yaml": "PyTorchJob", "crd-trainingruntime.yaml.xz": "TrainingRuntime", "crd-trainjob.yaml": "TrainJob",
}
# The published schemas hold texts where the server allows few values.
VALUES = {
    ("PodSpec", "restartPolicy"): "Always|OnFailure|Never",
    ("PodSpec", "dnsPolicy"): "ClusterFirst|ClusterFirstWithHostNet|Default|None",
    ("PodSpec", "preemptionPolicy"): "Never|PreemptLowerPriority",
    ("Container", "imagePullPolicy"): "Always|IfNotPresent|Never",
    ("Container", "terminationMessagePolicy"): "File|FallbackToLogsOnError",
    ("Toleration", "effect"): "NoSchedule|PreferNoSchedule|NoExecute",
    ("TopologySpreadConstraint", "whenUnsatisfiable"): "DoNotSchedule|ScheduleAnyway",
    ("JobSpec", "completionMode"): "NonIndexed|Indexed",
    ("JobSpec", "podReplacementPolicy"): "TerminatingOrFailed|Failed",
    ("CronJobSpec", "concurrencyPolicy"): "Allow|Forbid|Replace",
    ("ServiceSpec", "type"): "ClusterIP|NodePort|LoadBalancer|ExternalName",
}
CLEAN = "All|Running|None"  # cleanPodPolicy of Kubeflow's jobs
PLAIN = {"Quantity": "q", "IntOrString": "x", "Time": "s", "MicroTime": "s", "RawExtension": "*", "FieldsV1": "*", "JSON": "*",
         "JSONSchemaProps": "*"}


def short(name):
    return name.rsplit(".", 1)[-1]


class Core:
    """Types of Kubernetes itself, over all versions."""

    def __init__(self, folder):
        self.defs = {v: json.load(open(folder / f"v1.{v}.0-local" / "_definitions.json"))["$defs"] for v in VERSIONS}
        self.types, self.kinds, self.names = {}, [], {}

    def name(self, full):
        """The last part, or the last two where two types share it."""
        taken = self.names.setdefault(short(full), full)
        return short(full) if taken == full else "".join(part.capitalize() for part in full.split(".")[-3:-1]) + short(full)

    def of(self, schema):
        if "$ref" in schema:
            full = schema["$ref"].rsplit("/", 1)[-1]
            if short(full) in PLAIN:
                return PLAIN[short(full)]
            self.add(full)
            return self.name(full)
        kinds = schema.get("type", "object")
        kind = kinds if isinstance(kinds, str) else next(k for k in kinds if k != "null")
        if kind == "array":
            return "[" + self.of(schema["items"])
        if kind == "object":
            more = schema.get("additionalProperties")
            return "{" + self.of(more) if isinstance(more, dict) else "*"
        return {"string": "s", "integer": "i", "number": "n", "boolean": "b"}[kind]

    def add(self, full):
        name = self.name(full)
        if name in self.types:
            return
        fields = self.types[name] = {}
        known = [v for v in VERSIONS if full in self.defs[v]]
        for v in known:
            schema = self.defs[v][full]
            for field, of in schema.get("properties", {}).items():
                entry = fields.setdefault(field, {"of": of, "in": [], "must": True})
                entry["of"] = of
                entry["in"].append(v)
                entry["must"] &= field in schema.get("required", [])
        for field, entry in fields.items():
            type_ = self.of(entry.pop("of"))
            if (name, field) in VALUES:
                type_ = f"s({VALUES[name, field]})"
            first, last = entry["in"][0], entry["in"][-1]
            entry["must"] &= len(entry["in"]) == len(known)
            # A type that came as a whole is dated where it is used.
            begins, ends = first > known[0], last < known[-1]
            entry["text"] = type_ + (f"@{first}" if begins or ends else "") + (f"-{last}" if ends else "")

    def collect(self):
        found = {}
        for v in VERSIONS:
            for full, schema in self.defs[v].items():
                for kind in schema.get("x-kubernetes-group-version-kind", []):
                    if kind["kind"] in KINDS and short(full) == kind["kind"]:
                        version = "/".join(part for part in (kind["group"], kind["version"]) if part)
                        found.setdefault((kind["kind"], version, full), []).append(v)
        for (kind, version, full), known in sorted(found.items(), key=lambda row: (row[0][0], -len(row[1]), row[0][1])):
            self.add(full)
            dated = "" if known == list(VERSIONS) else f" @{known[0]}" + (f"-{known[-1]}" if known[-1] < VERSIONS[-1] else "")
            self.kinds.append(f"kind {kind} {version} {self.name(full)}{dated}")


class Custom:
    """Types of custom resources; what they hold of Kubernetes' own is that."""

    def __init__(self, core):
        self.core, self.types, self.same, self.kinds = core, {}, {}, []

    def of(self, schema, path):
        kind = schema.get("type", "object")
        properties = schema.get("properties", {})
        if schema.get("x-kubernetes-int-or-string") or "anyOf" in schema and not properties:
            return "x"
        if kind == "array":
            return "[" + self.of(schema["items"], path)
        if kind == "object" and not properties:
            more = schema.get("additionalProperties")
            return "{" + self.of(more, path) if isinstance(more, dict) else "*"
        if kind != "object":
            values = [str(value) for value in schema.get("enum", [])]
            if path.endswith("CleanPodPolicy"):
                values = CLEAN.split("|")
            letter = {"string": "s", "integer": "i", "number": "n", "boolean": "b"}[kind]
            return f"{letter}({'|'.join(values)})" if values and kind == "string" else letter
        if {"containers", "dnsPolicy", "volumes"} <= properties.keys():
            return "PodSpec"
        if set(properties) == {"metadata", "spec"} and "dnsPolicy" in properties["spec"].get("properties", {}):
            return "PodTemplateSpec"
        if {"completions", "parallelism", "template"} <= properties.keys():
            return "JobSpec"
        must = schema.get("required", [])
        fields = []
        for field, of in sorted(properties.items()):
            if field == "metadata":
                type_ = "ObjectMeta"
            elif field == "status" and path.count(".") == 0:
                type_ = "*"
            else:
                type_ = self.of(of, path + "." + field[:1].upper() + field[1:])
            fields.append(f"{field}{'!' if field in must else ''}:{type_}")
        text = " ".join(fields)
        core = [name for name, known in self.core.types.items() if set(known) == set(properties)]
        if len(core) == 1:
            return core[0]
        if text not in self.same:
            # Numbered, as the path to some of them has ten names.
            depth = path.count(".")
            self.same[text] = path.replace(".", "") if depth < 2 else f"{path.split('.')[0]}{len(self.types)}"
            self.types[self.same[text]] = text
        return self.same[text]

    def add(self, path, kind):
        opened = lzma.open if path.suffix == ".xz" else open
        crd = yaml.load(opened(path, "rb"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))["spec"]
        for version in crd["versions"]:
            if version.get("served"):
                api = f"{crd['group']}/{version['name']}"
                of = self.of(version["schema"]["openAPIV3Schema"], kind)
                self.kinds.append(f"kind {kind} {api} {of}")
                if kind == "TrainingRuntime":
                    self.kinds.append(f"kind ClusterTrainingRuntime {api} {of}")


core = Core(pathlib.Path(sys.argv[1]))
core.collect()
custom = Custom(core)
for file, kind in CRDS.items():
    custom.add(pathlib.Path(sys.argv[2]) / file, kind)
print("# Names, types and versions of fields of Kubernetes 1.29 to 1.37 and of custom resources, made by")
print("# tests/oracle/manifest_fields.py, which says what the letters mean. Their authors: the Kubernetes authors and the authors")
print("# of Kubeflow, JobSet and Kueue (Apache-2.0).")
print("\n".join(core.kinds + custom.kinds))
for name, fields in sorted(core.types.items()):
    if not name.endswith("Status") or name == "HTTPStatus":
        print(f"type {name} " + " ".join(f"{field}{'!' if entry['must'] else ''}:{entry['text']}" for field, entry in sorted(fields.items())))
for name, text in sorted(custom.types.items()):
    print(f"type {name} {text}")
