"""Records what patches do: (object, media type, patch, code, answer)."""
from server import collection, lean, must, prepare, remove, request, write

JSON, MERGE, STRATEGIC = (f"application/{kind}" for kind in ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json"))


def container(name, **more):
    return {"name": name, "image": "registry.test/app:1", **more}


def template(*containers, **spec):
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers), **spec}}


DEPLOYMENT = ("apps/v1", "deployments", "io.k8s.api.apps.v1.Deployment", {
    "metadata": {"name": "web", "labels": {"app": "web", "tier": "front"}, "annotations": {"a/b": "1", "cd": "2"}},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template(
        container("app", args=["a", "b"], env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                  ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 443, "name": "https"}],
                  volumeMounts=[{"name": "data", "mountPath": "/data"}]),
        container("side"), volumes=[{"name": "data", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "c"}}],
        tolerations=[{"key": "a", "operator": "Exists"}], nodeSelector={"disk": "ssd"})}})
SERVICE = ("v1", "services", "io.k8s.api.core.v1.Service", {
    "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [
        {"name": "http", "port": 80}, {"name": "https", "port": 443}, {"name": "dns", "port": 53, "protocol": "UDP"}]}})
POD = ("v1", "pods", "io.k8s.api.core.v1.Pod", {
    "metadata": {"name": "web", "finalizers": ["test/a", "test/b", "test/c"],
                 "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": n} for n in ("x", "y")]},
    "spec": {"automountServiceAccountToken": False, "containers": [container("app")], "tolerations": [{"key": "a", "operator": "Exists"}]}})
ACCOUNT = ("v1", "serviceaccounts", "io.k8s.api.core.v1.ServiceAccount", {
    "metadata": {"name": "web"}, "secrets": [{"name": "s1"}, {"name": "s2"}], "imagePullSecrets": [{"name": "p1"}, {"name": "p2"}]})
CONFIG = ("v1", "configmaps", "io.k8s.api.core.v1.ConfigMap", {"metadata": {"name": "web"}, "data": {"a": "1", "b": "2", "c": "3"}})
JOB = ("batch/v1", "jobs", "io.k8s.api.batch.v1.Job", {
    "metadata": {"name": "web"}, "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container("app")]}}}})
BUDGET = ("policy/v1", "poddisruptionbudgets", "io.k8s.api.policy.v1.PodDisruptionBudget", {
    "metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "1", "b": "2"}}}})
INGRESS = ("networking.k8s.io/v1", "ingresses", "io.k8s.api.networking.v1.Ingress", {
    "metadata": {"name": "web"}, "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}, "tls": [{"hosts": ["a", "b"]}]}})
WIDGET = ("record.windlass.test/v1", "widgets", "", {
    "apiVersion": "record.windlass.test/v1", "kind": "Widget", "metadata": {"name": "web"},
    "spec": {"n": 1, "f": 1.5, "list": [1, 2, 3], "objects": [{"a": 1}, {"b": None}], "map": {"x": {"y": "z"}}, "none": None, "text": "t"}})


def spec(**fields):
    return {"spec": {"template": {"spec": fields}}}


def op(name, path, value=..., **more):
    return {"op": name, "path": path, **({} if value is ... else {"value": value}), **more}


def names(*values):
    return [{"name": value} for value in values]


C = "/spec/template/spec/containers"
CASES = [(DEPLOYMENT, JSON, patch) for patch in [
    [op("replace", "/spec/replicas", 3)],
    [op("test", "/spec/replicas", 2), op("replace", "/spec/replicas", 5)],
    [op("test", "/spec/replicas", 3), op("replace", "/spec/replicas", 5)],
    [op("test", "/spec/replicas", 2.0)],
    [op("test", "/metadata/labels", {"tier": "front", "app": "web"}), op("add", "/metadata/labels/x", "y")],
    [op("test", "/metadata/labels/none", None), op("add", "/metadata/labels/x", "y")],
    [op("test", "/metadata/labels/none"), op("add", "/metadata/labels/x", "y")],
    [op("test", "/metadata/labels/none", "x")],
    [op("test", "/metadata/none/x", None)],
    [op("test", C + "/5", None)],
    [op("test", C + "/0/args", ["a", "b"]), op("remove", C + "/0/args/0")],
    [op("add", C + "/0/args/0", "x")], [op("add", C + "/0/args/1", "x")], [op("add", C + "/0/args/2", "x")],
    [op("add", C + "/0/args/3", "x")], [op("add", C + "/0/args/-", "x")], [op("add", C + "/0/args/-1", "x")],
    [op("add", C + "/0/args/-3", "x")], [op("add", C + "/0/args/-4", "x")], [op("add", C + "/0/args/x", "x")],
    [op("add", C + "/0/args/01", "x")], [op("add", C + "/0/args/+1", "x")],
    [op("remove", C + "/0/args/-1")], [op("remove", C + "/0/args/-")], [op("remove", C + "/0/args/2")], [op("remove", C + "/-1")],
    [op("replace", C + "/-1/image", "x")], [op("replace", C + "/0/args/2", "x")], [op("replace", C + "/0/args/-1", "x")],
    [op("add", "/metadata/annotations/a~1b", "9")], [op("remove", "/metadata/annotations/cd")],
    [op("replace", "/metadata/annotations/new", "9")],
    [op("add", "/metadata/none/x", "9")], [op("remove", "/metadata/labels/none")], [op("remove", "/metadata/none/x")],
    [op("add", "metadata/labels/x", "9")], [op("add", "x/metadata/labels/y", "9")],
    [op("move", "/metadata/labels/moved", **{"from": "/metadata/labels/tier"})],
    [op("move", "/metadata/labels/moved", **{"from": "/metadata/labels/none"})],
    [op("move", C + "/1", **{"from": C + "/0"})],
    [op("copy", "/metadata/labels/copied", **{"from": "/metadata/labels/tier"})],
    [op("copy", "/metadata/annotations/copied", **{"from": "/metadata/labels/none"})],
    [op("copy", C + "/-", **{"from": C + "/1"}), op("replace", C + "/2/name", "copy")],
    [op("add", "", {})], [op("remove", "")], [op("replace", "", 1)], [op("move", "/x", **{"from": ""})], [op("copy", "/x", **{"from": ""})],
    [op("ADD", "/metadata/labels/x", "y")], [{"path": "/a"}], [{"op": "add", "value": 1}], [None], [], {"a": 1}, "x", 1, None,
    [1], ["x"], [{"op": 1, "path": "/a"}], [{"op": "add", "path": ["a"]}], [{"op": "move", "path": "/a", "from": {}}],
    [op("test", "/kind", "Deployment")] * 10001,
]] + [(DEPLOYMENT, MERGE, patch) for patch in [
    {"spec": {"replicas": 3}}, {"metadata": {"labels": {"tier": None, "x": "y"}}}, {"metadata": {"annotations": None}},
    spec(containers=[container("only")]), spec(tolerations=None, nodeSelector={"disk": None, "cpu": "fast"}),
    {}, [], [1], "x", 1, None, True,
]] + [(DEPLOYMENT, STRATEGIC, patch) for patch in [
    {"spec": {"replicas": 3}},
    {"metadata": {"labels": {"tier": None, "x": "y"}}},
    spec(containers=[{"name": "side", "image": "x"}]),
    spec(containers=[container("new")]),
    spec(containers=[container("new"), {"name": "app", "image": "x"}]),
    spec(containers=[{"name": "side", "$patch": "delete"}]),
    spec(containers=[{"name": "none", "$patch": "delete"}]),
    spec(containers=[{"$patch": "delete"}]),
    spec(containers=[{"$patch": "replace"}, container("only", volumeMounts=[])]),
    spec(containers=[container("only"), {"$patch": "replace"}]),
    spec(containers=[{"name": "app", "$patch": "merge"}]),
    spec(containers=[{"name": "app", "$patch": "other"}]),
    spec(containers=[{"image": "x"}]),
    spec(containers=["x"]),
    spec(containers=[{"name": "app", "args": ["c"]}]),
    spec(containers=[{"name": "app", "args": None}]),
    spec(containers=[{"name": "app", "env": [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]}]),
    spec(containers=[{"name": "app", "env": [{"name": "A", "$patch": "delete"}]}]),
    spec(containers=[{"name": "app", "env": [{"name": "A", "value": None, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]),
    spec(containers=[{"name": "app", "ports": [{"containerPort": 443, "hostPort": 443}, {"containerPort": 8080}]}]),
    spec(containers=[{"name": "app", "ports": [{"containerPort": 80, "$patch": "delete"}]}]),
    spec(containers=[{"name": "app", "ports": [{"name": "http"}]}]),
    spec(containers=[{"name": "app", "volumeMounts": [{"mountPath": "/more", "name": "data"}]}]),
    {"spec": {"template": {"spec": {"$setElementOrder/containers": names("side", "app")}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": names("new", "side", "app"), "containers": [container("new")]}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": names("side", "new"), "containers": [container("new")]}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": names("app"), "containers": [container("new")]}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": [], "containers": [container("new"), container("newer")]}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": names("app", "side"), "containers": [{"name": "side", "image": "x"}, {"name": "app", "image": "y"}]}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"x": 1}], "containers": [{"name": "side", "image": "x"}]}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": "x"}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/none": []}}}},
    {"spec": {"template": {"spec": {"$setElementOrder": []}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": names("app", "side"), "containers": [{"name": "side", "$patch": "delete"}]}}}},
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}},
    {"spec": {"strategy": {"$retainKeys": "type", "type": "Recreate"}}},
    {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}},
    {"spec": {"strategy": {"$patch": "delete"}}},
    {"spec": {"strategy": {"$patch": "merge", "type": "Recreate"}}},
    {"spec": {"strategy": {"$patch": 1}}},
    {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}},
    {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
    spec(volumes=[{"name": "data", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]),
    spec(volumes=[{"name": "conf", "configMap": {"name": "d"}}, {"name": "new", "emptyDir": {"medium": "Memory"}}]),
    spec(tolerations=[{"key": "b", "operator": "Exists"}]), spec(nodeSelector={"$patch": "replace", "cpu": "fast"}),
    spec(securityContext={"runAsUser": 1, "seLinuxOptions": {"level": None, "role": "r"}}),
    spec(affinity={"nodeAffinity": None, "$patch": "replace"}),
    {"metadata": {"labels": {"$patch": "delete"}}},
    {}, [], "x", 1, None,
]] + [(SERVICE, STRATEGIC, patch) for patch in [
    {"spec": {"ports": [{"port": 443, "targetPort": 8443}]}},
    {"spec": {"ports": [{"port": 8080, "name": "alt"}]}},
    {"spec": {"$setElementOrder/ports": [{"port": 443}, {"port": 80}], "ports": [{"port": 53, "$patch": "delete"}]}},
    {"spec": {"selector": {"app": None, "role": "x"}}},
    {"spec": {"selector": None}},
]] + [(POD, STRATEGIC, patch) for patch in [
    {"metadata": {"finalizers": ["test/d"]}},
    {"metadata": {"finalizers": ["test/d", "test/b"]}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["test/b"]}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["test/b"], "$setElementOrder/finalizers": ["test/c", "test/a"]}},
    {"metadata": {"$setElementOrder/finalizers": ["test/c", "test/d", "test/a"], "finalizers": ["test/d"]}},
    {"metadata": {"$setElementOrder/finalizers": ["test/a"], "finalizers": ["test/d"]}},
    {"metadata": {"$deleteFromPrimitiveList": ["test/b"]}},
    {"metadata": {"$deleteFromPrimitiveList/none": ["test/b"]}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": [1]}},
    {"metadata": {"finalizers": [1]}},
    {"metadata": {"finalizers": None}},
    {"metadata": {"ownerReferences": [{"uid": "y", "$patch": "delete"}]}},
    {"metadata": {"ownerReferences": [{"uid": "y", "name": "z"}]}},
    {"metadata": {"ownerReferences": [{"name": "z"}]}},
    {"spec": {"containers": [{"name": "app", "image": "x"}]}},
    {"metadata": {"annotations": {"new": "a", "nil": None}}},
]] + [(ACCOUNT, STRATEGIC, patch) for patch in [
    {"secrets": [{"name": "s3"}]}, {"imagePullSecrets": [{"name": "p3"}]}, {"secrets": [{"name": "s1", "$patch": "delete"}]},
    {"$setElementOrder/secrets": names("s2", "s1")}, {"secrets": None}, {"imagePullSecrets": [{"$patch": "replace"}]},
]] + [(CONFIG, STRATEGIC, patch) for patch in [
    {"data": {"a": None, "d": "4"}}, {"data": {"$patch": "replace", "z": "9"}}, {"data": {"$retainKeys": ["a", "z"], "z": "9"}},
    {"data": {"$retainKeys": ["a"], "z": "9"}}, {"data": None}, {"binaryData": {"x": "eA=="}},
]] + [
    (JOB, STRATEGIC, {"spec": {"suspend": False, "parallelism": 3}}), (JOB, MERGE, {"spec": {"suspend": None, "parallelism": 3}}),
    (BUDGET, STRATEGIC, {"spec": {"selector": {"matchLabels": {"c": "3"}}}}), (BUDGET, MERGE, {"spec": {"selector": {"matchLabels": {"c": "3"}}}}),
    (BUDGET, STRATEGIC, {"spec": {"minAvailable": None, "maxUnavailable": "50%"}}),
    (INGRESS, STRATEGIC, {"spec": {"tls": [{"hosts": ["c"]}], "defaultBackend": {"service": {"port": {"number": 81}}}}}),
] + [(WIDGET, MERGE, patch) for patch in [
    {"spec": {"list": [4, None]}}, {"spec": {"objects": [{"c": None, "d": {"e": None}}]}}, {"spec": {"new": [{"c": None}], "deep": {"x": None, "y": {"z": None}}}},
    {"spec": {"map": [{"c": None}]}}, {"spec": {"list": {"a": None, "b": 1}}}, {"spec": {"none": {"a": None}}}, {"spec": {"text": {"a": [None]}}},
    {"spec": {"n": 2.5, "f": None}}, {"spec": {"map": {"x": {"y": None, "w": 1}}}},
]] + [(WIDGET, JSON, patch) for patch in [
    [op("test", "/spec/none", None), op("add", "/spec/ok", True)], [op("add", "/spec/none/x", 1)], [op("replace", "/spec/none", {"x": 1})],
    [op("test", "/spec/objects", [{"a": 1}, {"b": None}]), op("remove", "/spec/objects/1/b")], [op("add", "/spec/text/x", 1)],
    [op("copy", "/spec/map/x/x", **{"from": "/spec/map/x"})], [op("move", "/spec/map/y/y", **{"from": "/spec/map/x"})],
    [op("test", "/spec/f", 1.5), op("add", "/spec/list/-", {"a": [1]}), op("add", "/spec/list/3/a/0", None)], [op("test", "/spec/f", 1.50001)],
    [op("add", "/spec/list/1", None), op("add", "/spec/list/1/x", 1)],
]]

DEFINITION = {"metadata": {"name": "widgets.record.windlass.test"}, "spec": {
    "group": "record.windlass.test", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def record(case):
    (api, resource, kind, body), media, patch = case
    path = collection(api, resource)
    item = f"{path}/{body['metadata']['name']}"
    must("POST", path, body)
    old = must("GET", item)
    code, answer = request("PATCH", item, "null" if patch is None else patch if not isinstance(patch, str) else f'"{patch}"', media)
    remove(item)
    # Ten thousand operations need not be stored one by one.
    many = len(patch) if isinstance(patch, list) and len(patch) > 100 else 1
    row = {"type": kind, "media": media, "patch": patch[:1] if many > 1 else patch, "object": lean(old), "code": code, "answer": lean(answer)}
    return {**row, "repeat": many} if many > 1 else row


prepare()
request("DELETE", f"{DEFINITIONS}/{DEFINITION['metadata']['name']}")
must("POST", DEFINITIONS, DEFINITION)
while request("GET", collection(WIDGET[0], WIDGET[1]))[0] != 200:
    pass
try:
    rows = [record(case) for case in CASES]
finally:
    request("DELETE", f"{DEFINITIONS}/{DEFINITION['metadata']['name']}")
for media, name in [(JSON, "json"), (MERGE, "merge"), (STRATEGIC, "strategic")]:
    write(f"patch/{name}.jsonl", [row for row in rows if row["media"] == media])
