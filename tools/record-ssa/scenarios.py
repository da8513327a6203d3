"""The sequences. A step is a dict; the helpers below say what it may hold."""

import random

KINDS = {
    "ConfigMap": dict(type="io.k8s.api.core.v1.ConfigMap", api="v1", resource="configmaps", reset={"": []}),
    "Secret": dict(type="io.k8s.api.core.v1.Secret", api="v1", resource="secrets", reset={"": []}),
    "ServiceAccount": dict(type="io.k8s.api.core.v1.ServiceAccount", api="v1", resource="serviceaccounts", reset={"": []}),
    "Service": dict(type="io.k8s.api.core.v1.Service", api="v1", resource="services",
                    reset={"": [["status"]], "status": [["spec"]]}),
    "Pod": dict(type="io.k8s.api.core.v1.Pod", api="v1", resource="pods",
                reset={"": [["status"]],
                       "status": [["spec"], ["metadata", "deletionTimestamp"], ["metadata", "ownerReferences"]]}),
    "PersistentVolumeClaim": dict(type="io.k8s.api.core.v1.PersistentVolumeClaim", api="v1",
                                  resource="persistentvolumeclaims", reset={"": [["status"]], "status": [["spec"]]}),
    "Deployment": dict(type="io.k8s.api.apps.v1.Deployment", api="apps/v1", resource="deployments",
                       reset={"": [["status"]], "status": [["spec"], ["metadata", "labels"]]},
                       replicas=["spec", "replicas"]),
    "StatefulSet": dict(type="io.k8s.api.apps.v1.StatefulSet", api="apps/v1", resource="statefulsets",
                        reset={"": [["status"]], "status": [["spec"]]}, replicas=["spec", "replicas"]),
    "CronJob": dict(type="io.k8s.api.batch.v1.CronJob", api="batch/v1", resource="cronjobs",
                    reset={"": [["status"]], "status": [["spec"]]}),
    "Ingress": dict(type="io.k8s.api.networking.v1.Ingress", api="networking.k8s.io/v1", resource="ingresses",
                    reset={"": [["status"]], "status": [["spec"]]}),
    "NetworkPolicy": dict(type="io.k8s.api.networking.v1.NetworkPolicy", api="networking.k8s.io/v1",
                          resource="networkpolicies", reset={"": []}),
    "Role": dict(type="io.k8s.api.rbac.v1.Role", api="rbac.authorization.k8s.io/v1", resource="roles", reset={"": []}),
    "HorizontalPodAutoscaler": dict(type="io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler", api="autoscaling/v2",
                                    resource="horizontalpodautoscalers",
                                    reset={"": [["status"]], "status": [["spec"]]}),
    "EndpointSlice": dict(type="io.k8s.api.discovery.v1.EndpointSlice", api="discovery.k8s.io/v1",
                          resource="endpointslices", reset={"": []}),
    "Lease": dict(type="io.k8s.api.coordination.v1.Lease", api="coordination.k8s.io/v1", resource="leases", reset={"": []}),
    "Gadget": dict(type="", api="record-ssa.windlass.dev/v1", resource="gadgets",
                   reset={"": [["status"]], "status": [["metadata"], ["spec"]]}),
}

STRING, INT = {"type": "string"}, {"type": "integer"}
CRD_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": INT,
                "size": {"x-kubernetes-int-or-string": True},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
                "args": {"type": "array", "items": STRING},
                "ports": {
                    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {"type": "object", "required": ["port"], "properties": {
                        "port": INT, "name": STRING, "protocol": {"type": "string", "default": "TCP"}}},
                },
                "labels": {"type": "object", "additionalProperties": STRING},
                "opts": {"type": "object", "additionalProperties": STRING, "x-kubernetes-map-type": "atomic"},
                "ref": {"type": "object", "x-kubernetes-map-type": "atomic",
                        "properties": {"name": STRING, "kind": STRING}},
                "nested": {"type": "object", "properties": {"a": STRING, "b": {"type": "object", "properties": {"c": INT}}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": STRING}},
            },
        },
        "status": {"type": "object", "properties": {"ready": INT, "note": STRING}},
    },
}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.record-ssa.windlass.dev"},
    "spec": {
        "group": "record-ssa.windlass.dev", "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                      "schema": {"openAPIV3Schema": CRD_SCHEMA}}],
    },
}


def create(manager, late=(), **body):
    return dict(verb="create", manager=manager, late=list(late), body=body)


def apply(manager, force=False, sub="", defaulted=(), **body):
    return dict(verb="apply", manager=manager, force=force, subresource=sub, defaulted=list(defaulted), body=body)


def merge(manager, sub="", **patch):
    return dict(verb="merge", manager=manager, subresource=sub, body=patch)


def patch(manager, *operations):
    return dict(verb="json", manager=manager, subresource="", body=list(operations))


def put(manager, change, sub=""):
    """`change` is merged into the live object, where None removes a field; `managedFields` are left out."""
    return dict(verb="put", manager=manager, subresource=sub, body=change)


def scale(manager, replicas):
    return dict(verb="scale", manager=manager, subresource="scale", replicas=replicas)


def deployment(containers=({"name": "c", "image": "i:1"},), **spec):
    out = {"selector": {"matchLabels": {"app": "x"}},
           "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": list(containers)}}}
    out.update(spec)
    return out


def c(name, **rest):
    return {"name": name, "image": "i:1", **rest}


def env(text):
    return [dict(zip(("name", "value"), pair.split("="))) for pair in text.split()]


SERVICE_LATE = ["/spec/clusterIP", "/spec/clusterIPs", "/spec/ipFamilies", "/spec/ipFamilyPolicy", "/spec/ports/0/nodePort"]
POD_LATE = ["/spec/containers/0/volumeMounts", "/spec/volumes", "/spec/tolerations", "/spec/serviceAccount",
            "/spec/serviceAccountName", "/spec/priority", "/spec/preemptionPolicy"]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

SCENARIOS = [
    ("configmap-create", "ConfigMap", [create("a", data={"x": "1"}, binaryData={"b": "AAEC"}, immutable=False)]),
    ("configmap-labels", "ConfigMap", [
        create("a", metadata={"labels": {"l": "1"}, "annotations": {"n": "1"}, "finalizers": ["e.x/f"]}),
        merge("b", metadata={"labels": {"l": "2", "m": "1"}, "finalizers": ["e.x/g", "e.x/f"]}),
        merge("c", metadata={"labels": None, "finalizers": []}),
    ]),
    ("configmap-owners", "ConfigMap", [
        create("a", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u1"}]}),
        apply("b", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "m", "uid": "u2"}]}),
        apply("b"),
    ]),
    ("configmap-update-moves", "ConfigMap", [
        create("a", data={"x": "1", "y": "1", "z": "1"}), merge("b", data={"x": "2", "z": None, "w": "1"}),
        merge("b", data={"y": "2"}), merge("c", data=None)]),
    ("configmap-noop", "ConfigMap", [
        create("a", data={"x": "1"}), merge("b", data={"x": "1"}), put("c", {}), apply("d", data={"x": "1"}),
        apply("d", data={"x": "1"}), merge("e", metadata={"labels": {}})]),
    ("configmap-share", "ConfigMap", [
        apply("a", data={"x": "1"}), apply("b", data={"x": "1", "y": "1"}), apply("a"), apply("b", data={"y": "1"})]),
    ("configmap-conflict", "ConfigMap", [
        apply("a", data={"x": "1", "y": "1"}), apply("b", data={"x": "2"}), apply("b", data={"x": "2", "y": "2"}),
        merge("u", data={"z": "1"}), apply("b", data={"x": "2", "z": "2"}),
        apply("b", force=True, data={"x": "2", "z": "2"}), apply("a", data={"y": "1"})]),
    ("configmap-prune", "ConfigMap", [
        apply("a", data={"x": "1", "y": "1", "z": "1"}), apply("b", data={"y": "1"}), merge("u", data={"w": "1"}),
        apply("a", data={"x": "1"}), apply("a")]),
    ("configmap-apply-and-update-by-one-name", "ConfigMap", [
        create("a", data={"x": "1"}), apply("a", data={"x": "1", "y": "1"}), apply("a", data={"x": "2"}),
        apply("a", force=True, data={"x": "2"})]),
    ("configmap-sent-entries", "ConfigMap", [
        create("a", data={"x": "1"}),
        patch("b", {"op": "replace", "path": "/metadata/managedFields", "value": [
            {"manager": "z", "operation": "Apply", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:x": {}}, "f:gone": {}}}]}),
        apply("z")]),
    ("configmap-sent-nonsense", "ConfigMap", [
        create("a", data={"x": "1"}),
        put("b", {"metadata": {"managedFields": [{"manager": "z", "operation": "Update", "apiVersion": "v1"}]}}),
        put("b", {"metadata": {"managedFields": [{"manager": "z", "operation": "Update", "apiVersion": "v1",
                                                   "fieldsType": "FieldsV1"}]}}),
    ]),
    ("configmap-reset-empty-list", "ConfigMap", [
        create("a", data={"x": "1"}), patch("b", {"op": "replace", "path": "/metadata/managedFields", "value": []}),
        merge("c", data={"y": "1"}), apply("d", data={"z": "1"}), apply("d")]),
    ("configmap-reset-empty-entry", "ConfigMap", [
        create("a", data={"x": "1"}), put("b", {"metadata": {"managedFields": [{}]}, "data": {"y": "1"}}),
        apply("d", data={"x": "2"}), apply("d", force=True, data={"x": "2"})]),
    ("configmap-entry-of-lost-version", "ConfigMap", [
        create("a", data={"x": "1"}),
        patch("b", {"op": "add", "path": "/metadata/managedFields/-", "value":
              {"manager": "z", "operation": "Update", "apiVersion": "old/v9", "time": "2020-01-01T00:00:00Z",
               "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:x": {}}}}})]),
    ("configmap-ancient", "ConfigMap", [create("m00", data={"k00": "1"})] + [
        merge(f"m{i:02}", data={f"k{i:02}": "1"}) for i in range(1, 14)]),
    ("configmap-ancient-with-appliers", "ConfigMap", [apply("a1", data={"a": "1"})] + [
        merge(f"m{i:02}", data={f"k{i:02}": "1"}) for i in range(12)] + [apply("a2", data={"k00": "1"})]),
    ("configmap-client-side-then-kubectl", "ConfigMap", [
        create("kubectl-client-side-apply", metadata={"annotations": {LAST_APPLIED:
               '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{},"name":"x"},"data":{"a":"1","b":"1"}}\n'}},
               data={"a": "1", "b": "1"}),
        merge("u", data={"b": "2"}), apply("kubectl", data={"a": "2", "b": "3"}), apply("kubectl", data={"a": "2<&>"}),
        apply("other", data={"a": "9"})]),
    ("configmap-null-and-empty", "ConfigMap", [
        apply("a", data={}), apply("a", data=None), apply("a", metadata={"labels": {}, "annotations": None}),
        merge("b", data={"x": "1"}), apply("a", data={})]),
    ("configmap-typed-errors", "ConfigMap", [
        apply("a", data={"x": 1}), apply("a", data=["x"]), apply("a", oops={}), apply("a", immutable="yes"),
        apply("a", data={"x": {"y": [1, "z", None, True, 1.5]}}), apply("a", metadata={"generation": "x"}),
        apply("a", metadata={"managedFields": []}), apply("a", apiVersion="v2"), apply("a", kind="Config"),
        apply("a", metadata={"labels": {"x": None}}, data={"ok": "1"}), apply("a", data={"a": 1, "b": 2})]),
    ("configmap-special-names", "ConfigMap", [
        create("a", metadata={"annotations": {"e.x/a": "1", "B": "1", "b.c_d": "1"}}, data={"a.b": "1", "A": "1", "_": "1"}),
        apply("b", metadata={"annotations": {"e.x/a": "2"}}, data={"a.b": "2"})]),
    ("secret", "Secret", [
        create("a", data={"x": "MQ=="}, type="Opaque"), apply("b", data={"x": "MQ=="}), apply("b", data={"y": "MQ=="}),
        apply("c", stringData={"z": "1"}), apply("c")]),
    ("serviceaccount", "ServiceAccount", [
        create("a", imagePullSecrets=[{"name": "s1"}], secrets=[{"name": "t1"}], automountServiceAccountToken=False),
        apply("b", imagePullSecrets=[{"name": "s2"}], secrets=[{"name": "t2"}]), apply("b", secrets=[{"name": "t3"}])]),
    ("service-create", "Service", [create("a", late=SERVICE_LATE, spec={"selector": {"app": "x"}, "ports": [
        {"name": "t", "port": 80}, {"port": 80, "protocol": "UDP", "name": "u"}]})]),
    ("service-ports", "Service", [
        apply("a", spec={"selector": {"app": "x"}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]}),
        apply("b", spec={"ports": [{"name": "dns", "port": 53, "protocol": "UDP"}]}),
        apply("c", spec={"ports": [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "http", "port": 80}]}),
        apply("a", spec={"ports": [{"name": "web", "port": 80}]}),
        apply("a", force=True, spec={"ports": [{"name": "web", "port": 80}]},
              defaulted=[".spec.ports[*].targetPort"]),
        apply("b"), apply("c", force=True, spec={"ports": [{"name": "http", "port": 80}]})]),
    ("service-port-duplicates", "Service", [
        apply("a", spec={"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]}), apply("a", spec={"ports": [None]}),
        apply("a", spec={"ports": [{"name": "x"}]}), apply("a", spec={"ports": "x"})]),
    ("service-status", "Service", [
        create("a", late=SERVICE_LATE, spec={"type": "LoadBalancer", "ports": [{"port": 80}]}),
        merge("lb", sub="status", status={"loadBalancer": {"ingress": [{"ip": "10.1.1.1"}]}}),
        apply("ssa", sub="status", status={"conditions": [
            {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"}]}),
        merge("x", sub="status", metadata={"labels": {"a": "b"}}, spec={"type": "ClusterIP"}),
        apply("ssa", sub="status")]),
    ("deployment-create", "Deployment", [create("a", spec=deployment(replicas=2))]),
    ("deployment-update", "Deployment", [
        create("a", spec=deployment(replicas=2)), merge("b", spec={"replicas": 3, "paused": True}),
        merge("c", spec={"template": {"metadata": {"annotations": {"r": "1"}}}}), merge("b", spec={"paused": None})]),
    ("deployment-rollout-strategy", "Deployment", [
        create("a", spec=deployment(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}})),
        apply("b", spec={"strategy": {"rollingUpdate": {"maxSurge": "25%"}}}),
        apply("b", force=True, spec={"strategy": {"rollingUpdate": {"maxSurge": "25%"}}}),
        apply("b", defaulted=[".spec.strategy.rollingUpdate.maxSurge"])]),
    ("deployment-apply", "Deployment", [
        apply("a", spec=deployment()), apply("b", spec={"replicas": 5}), apply("a", spec=deployment(replicas=2)),
        apply("a", spec=deployment(minReadySeconds=3)), apply("a", spec=deployment()),
        apply("b", defaulted=[".spec.replicas"])]),
    ("deployment-containers", "Deployment", [
        apply("a", spec=deployment([c("one", env=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]), c("two")])),
        apply("b", spec={"template": {"spec": {"containers": [
            c("side", ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}])]}}}),
        apply("a", spec=deployment([c("two"), c("one", env=[{"name": "B", "value": "1"}])])),
        apply("b", spec={"template": {"spec": {"containers": [c("side", image="i:2"), c("one")]}}}),
        apply("a", spec=deployment([c("two")])), apply("b", spec={})]),
    ("deployment-env-order", "Deployment", [
        apply("a", spec=deployment([c("c", env=[{"name": n, "value": "1"} for n in "ABCD"])])),
        apply("b", spec={"template": {"spec": {"containers": [c("c", env=[{"name": n, "value": "1"} for n in "DXB"])]}}}),
        apply("a", spec=deployment([c("c", env=[{"name": n, "value": "1"} for n in "CAB"])])),
        apply("a", spec=deployment([c("c", env=[{"name": n, "value": "1"} for n in "BYA"])]))]),
    ("deployment-env-duplicates", "Deployment", [
        create("u", spec=deployment([c("c", env=env("A=1 A=2 B=1"))])),
        apply("a", spec={"template": {"spec": {"containers": [c("c", env=env("B=1 C=1"))]}}}),
        put("v", {"spec": {"template": {"spec": {"containers": [c("c", env=env("A=1 A=3 B=1 C=1"))]}}}}),
        put("w", {"spec": {"template": {"spec": {"containers": [c("c", env=env("A=1 B=1 C=1"))]}}}}),
        put("v", {"spec": {"template": {"spec": {"containers": [c("c", env=env("C=1 A=1 A=1 A=1 B=1 B=2"))]}}}}),
        apply("a", spec={"template": {"spec": {"containers": [c("c", env=env("A=5 B=1"))]}}}),
        apply("a", force=True, spec={"template": {"spec": {"containers": [c("c", env=env("A=5 B=1"))]}}}),
        put("v", {"spec": {"template": {"spec": {"containers": [c("c", env=env("A=5 A=6 B=1"))]}}}}),
        apply("a", spec={"template": {"spec": {"containers": [c("c", env=env("B=1"))]}}}),
        apply("a", spec={"template": {"spec": {"containers": [c("c", env=env("A=5 A=6"))]}}}),
        apply("a")]),
    ("deployment-env-duplicates-dropped", "Deployment", [
        apply("a", spec=deployment([c("c", env=env("A=1 B=1"))])),
        put("v", {"spec": {"template": {"spec": {"containers": [c("c", env=env("A=1 B=1 A=1"))]}}}}),
        apply("a", spec=deployment([c("c", env=env("B=1"))])),
        apply("a", spec=deployment([c("c", env=env("B=1 A=1"))]))]),
    ("deployment-volumes", "Deployment", [
        apply("a", spec={**deployment([c("c", volumeMounts=[{"name": "v", "mountPath": "/v"}])]), "template": {
            "metadata": {"labels": {"app": "x"}}, "spec": {
                "containers": [c("c", volumeMounts=[{"name": "v", "mountPath": "/v"}])],
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "m", "items": [
                    {"key": "k", "path": "p"}]}}],
                "tolerations": [{"key": "a"}], "nodeSelector": {"n": "1"}, "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["h"]}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "k", "operator": "Exists"}]}]}}},
                "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
                "securityContext": {"runAsUser": 1}}}}),
        apply("b", spec={"template": {"spec": {"nodeSelector": {"m": "1"}, "securityContext": {"fsGroup": 2},
                                               "imagePullSecrets": [{"name": "p"}],
                                               "initContainers": [c("i", resources={"limits": {"cpu": "0.5", "memory": "1Gi"}})]}}}),
        apply("b", spec={"template": {"spec": {"nodeSelector": {"m": "1"},
                                               "initContainers": [c("i", resources={"limits": {"cpu": "0.5"}})]}}}),
        apply("b")]),
    ("deployment-probe", "Deployment", [
        apply("a", spec=deployment([c("c", readinessProbe={"httpGet": {"path": "/", "port": "http"}},
                                      command=["a", "b"], resources={"requests": {"cpu": "100m"}})])),
        apply("b", spec={"template": {"spec": {"containers": [{"name": "c", "readinessProbe": {"periodSeconds": 5},
                                                              "resources": {"requests": {"memory": "1M"}}}]}}}),
        apply("b", force=True, spec={"template": {"spec": {"containers": [{"name": "c", "readinessProbe": {"periodSeconds": 5},
                                                              "command": ["z"]}]}}}),
        apply("b", spec={"template": {"spec": {"containers": [{"name": "c"}]}}},
              defaulted=[".spec.template.spec.containers[*].readinessProbe.periodSeconds"])]),
    ("deployment-quantity-noop", "Deployment", [
        apply("a", spec=deployment([c("c", resources={"requests": {"cpu": "0.5"}})])),
        apply("b", spec={"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}}}),
        apply("b", spec={"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "0.5"}}}]}}})]),
    ("deployment-status", "Deployment", [
        create("a", spec=deployment()),
        merge("kcm", sub="status", status={"replicas": 1, "conditions": [
            {"type": "Available", "status": "True", "lastUpdateTime": "2024-01-01T00:00:00Z",
             "lastTransitionTime": "2024-01-01T00:00:00Z", "reason": "r", "message": "m"}]}),
        merge("kcm", sub="status", status={"readyReplicas": 1}),
        apply("ssa", sub="status", status={"replicas": 1, "observedGeneration": 7}),
        merge("x", metadata={"annotations": {"a": "1"}}, status={"replicas": 9}),
        apply("y", spec={"paused": True}, status={"replicas": 9})]),
    ("deployment-scale", "Deployment", [
        create("a", spec=deployment(replicas=1)), scale("s", 3), scale("s", 4), merge("b", spec={"replicas": 5})]),
    ("deployment-scale-after-apply", "Deployment", [
        apply("a", spec=deployment(replicas=1)), scale("s", 1), scale("s", 3), scale("t", 4), apply("a", spec=deployment(replicas=1)),
        apply("a", spec=deployment()), scale("t", 5)]),
    ("statefulset", "StatefulSet", [
        apply("a", spec={"serviceName": "s", **deployment(), "volumeClaimTemplates": [
            {"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}),
        apply("b", spec={"replicas": 2}), scale("s", 3), apply("b", defaulted=[".spec.replicas"])]),
    ("pod-create", "Pod", [create("a", late=POD_LATE, spec={"containers": [c("c")]})]),
    ("pod-apply", "Pod", [
        apply("a", metadata={"labels": {"l": "1"}}, spec={"containers": [c("c", ports=[{"containerPort": 1}])]}),
        apply("b", metadata={"labels": {"m": "1"}, "finalizers": ["e.x/b"]}),
        apply("a", metadata={"finalizers": ["e.x/a"]}, spec={"containers": [c("c", image="i:2", ports=[{"containerPort": 1}])]}),
        apply("b", metadata={"finalizers": ["e.x/c", "e.x/a"]}), apply("a", spec={"containers": [c("c", image="i:2")]})]),
    ("pod-status", "Pod", [
        create("a", late=POD_LATE, spec={"containers": [c("c")]}),
        merge("kubelet", sub="status", status={"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "conditions": [
            {"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]}),
        apply("gate", sub="status", status={"conditions": [{"type": "x.y/gate", "status": "True"}]}),
        apply("gate", sub="status", status={"conditions": [{"type": "x.y/gate", "status": "False"},
                                                              {"type": "Ready", "status": "True"}]}),
        apply("gate", sub="status")]),
    ("pvc", "PersistentVolumeClaim", [
        create("a", late=["/metadata/finalizers"], spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
        apply("b", metadata={"labels": {"x": "1"}}, spec={"resources": {"requests": {"storage": "1Gi"}}}),
        merge("c", sub="status", status={"phase": "Bound", "capacity": {"storage": "1Gi"}})]),
    ("cronjob", "CronJob", [
        create("a", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [c("c")]}}}}}),
        apply("b", spec={"suspend": True}), apply("b", spec={"suspend": True, "timeZone": "UTC"}), apply("b", spec={"suspend": True})]),
    ("ingress", "Ingress", [
        apply("a", spec={"rules": [{"host": "h", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {
            "service": {"name": "s", "port": {"number": 80}}}}]}}]}),
        apply("b", spec={"tls": [{"hosts": ["h"], "secretName": "t"}], "ingressClassName": "n"}),
        apply("b", spec={"ingressClassName": "n"})]),
    ("networkpolicy", "NetworkPolicy", [
        create("a", spec={"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": 80}]}]}),
        apply("b", spec={"podSelector": {"matchLabels": {"a": "b"}}}),
        apply("b", force=True, spec={"podSelector": {"matchLabels": {"a": "b"}}})]),
    ("role", "Role", [
        create("a", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
        apply("b", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
        apply("b", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])]),
    ("hpa", "HorizontalPodAutoscaler", [
        create("a", spec={"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}),
        apply("b", spec={"minReplicas": 2}), apply("c", spec={"metrics": [{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]})]),
    ("endpointslice", "EndpointSlice", [
        create("a", addressType="IPv4", endpoints=[{"addresses": ["10.0.0.1"]}], ports=[{"port": 80}]),
        merge("b", endpoints=[{"addresses": ["10.0.0.2"]}]), apply("c", ports=[{"port": 81}])]),
    ("lease", "Lease", [
        create("a", spec={"holderIdentity": "x", "leaseDurationSeconds": 5, "renewTime": "2024-01-01T00:00:00.000001Z"}),
        merge("a", spec={"renewTime": "2024-01-01T00:00:02.000001Z"}), merge("b", spec={"holderIdentity": "y"}),
        apply("c", spec={"renewTime": "2024-01-01T00:00:02.000001Z"})]),
    ("gadget-create", "Gadget", [create("a", metadata={"labels": {"l": "1"}}, spec={
        "replicas": 1, "size": "10%", "tags": ["b", "a"], "args": ["x"], "ports": [{"port": 9}, {"port": 10, "protocol": "UDP"}],
        "labels": {"x": "1"}, "opts": {"x": "1"}, "ref": {"name": "n"}, "nested": {"a": "1", "b": {"c": 1}},
        "free": {"a": {"b": [1, {"c": 2}]}, "e": {}}, "half": {"known": "k", "other": {"x": 1}}})]),
    ("gadget-apply", "Gadget", [
        apply("a", spec={"tags": ["a", "b"], "ports": [{"port": 1, "name": "x"}], "opts": {"a": "1"}, "ref": {"name": "n"}}),
        apply("b", spec={"tags": ["c", "b"], "ports": [{"port": 1, "protocol": "TCP"}], "opts": {"b": "1"}}),
        apply("b", force=True, spec={"tags": ["c", "b"], "ports": [{"port": 1, "protocol": "TCP"}], "opts": {"b": "1"}}),
        apply("a", spec={"tags": ["b"], "ref": {"kind": "k"}}), apply("a"), apply("b", spec={"tags": ["d"]})]),
    ("gadget-free", "Gadget", [
        apply("a", spec={"free": {"m": {"x": 1, "y": [1]}}, "half": {"known": "k", "o": {"p": 1}}}),
        apply("b", spec={"free": {"m": {"z": 1}}, "half": {"o": {"q": "s"}}}),
        apply("b", spec={"free": {"m": {"y": [2]}}}),
        apply("b", force=True, spec={"free": {"m": {"x": {"now": "a map"}, "y": [2]}}}),
        apply("a", spec={"free": {"m": {"w": 1}}}), apply("b", spec={"free": "x"}), apply("b")]),
    ("gadget-update", "Gadget", [
        create("a", spec={"replicas": 1, "nested": {"a": "1"}}), merge("b", spec={"nested": {"b": {"c": 2}}, "replicas": 2}),
        put("c", {"spec": {"nested": None, "size": 3}}), merge("d", spec=None)]),
    ("gadget-status", "Gadget", [
        create("a", spec={"replicas": 1}, status={"ready": 9}), merge("s", sub="status", status={"ready": 1}),
        apply("t", sub="status", status={"note": "n", "ready": 1}), apply("t", sub="status", status={"ready": 2}),
        apply("t", sub="status", force=True, spec={"replicas": 7}, status={"ready": 2})]),
    ("gadget-errors", "Gadget", [
        apply("a", spec={"oops": 1}), apply("a", spec={"tags": ["a", "a"]}), apply("a", spec={"ports": [{"name": "x"}]}),
        apply("a", spec={"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}), apply("a", spec={"replicas": "x"}),
        apply("a", spec={"tags": [{"a": 1}]}), apply("a", spec={"tags": [None]}), apply("a", spec={"tags": [["a"]]})]),
    ("gadget-sets-by-others", "Gadget", [
        create("u", spec={"tags": ["a", "b", "c", "d"]}), apply("a", spec={"tags": ["d", "b"]}),
        apply("b", spec={"tags": ["c", "x", "a"]}), apply("a", spec={"tags": ["b"]}), put("u", {"spec": {"tags": ["x", "b"]}}),
        apply("b")]),
    ("gadget-reset", "Gadget", [
        create("a", spec={"replicas": 1}), patch("b", {"op": "replace", "path": "/metadata/managedFields", "value": [{}]}),
        apply("c", spec={"replicas": 2}), apply("c", force=True, spec={"replicas": 2})]),
    ("gadget-nulls", "Gadget", [
        apply("a", spec={"nested": {}, "tags": [], "labels": {"x": "1"}}), apply("a", spec={"nested": {"b": {}}, "labels": {}}),
        apply("a", spec={"nested": {"a": "1"}}), apply("a", spec={})]),
]


def some(rng, make, of, most=4):
    """Up to `most` of the choices, in any order, each made into an item."""
    return [make(choice) for choice in rng.sample(of, rng.randint(0, min(most, len(of))))]


def random_gadget(rng):
    port = lambda p: {"port": p[0], **({"protocol": p[1]} if p[1] else {}), **rng.choice([{}, {"name": rng.choice("xy")}])}
    ports = [(n, rng.choice([None, "TCP", "UDP"])) for n in (1, 2, 3)] + [(1, "SCTP")]
    flat = lambda: {key: rng.choice("12") for key in some(rng, str, "abc")}
    free = lambda: {key: rng.choice([1, "s", [1], [2], {}, {"x": 1}, {"y": [1]}, {"x": {"z": 1}}]) for key in some(rng, str, "mno")}
    parts = {
        "replicas": lambda: rng.randint(1, 2),
        "size": lambda: rng.choice([1, "10%"]),
        "tags": lambda: some(rng, str, "abcdef"),
        "args": lambda: [rng.choice("xy") for _ in range(rng.randint(0, 2))],
        "ports": lambda: some(rng, port, ports),
        "labels": flat,
        "opts": flat,
        "ref": lambda: rng.choice([{"name": "n"}, {"kind": "k"}, {"name": "m", "kind": "k"}]),
        "nested": lambda: rng.choice([{}, {"a": rng.choice("12")}, {"b": {"c": rng.randint(1, 2)}}, {"a": "1", "b": {}}]),
        "free": free,
        "half": lambda: {**rng.choice([{}, {"known": rng.choice("kl")}]), **free()},
    }
    body = {"spec": {key: parts[key]() for key in some(rng, str, list(parts), most=5)}}
    if rng.random() < 0.3:
        body["metadata"] = {"labels": flat()}
    return body


def random_deployment(rng):
    port = lambda p: {"containerPort": p[0], **({"protocol": p[1]} if p[1] else {})}
    ports = [(1, None), (1, "UDP"), (2, "TCP"), (3, None)]
    container = lambda name: {
        "name": name, "image": rng.choice(["i:1", "i:1", "i:2"]),
        **rng.choice([{}, {"env": some(rng, lambda n: {"name": n, "value": rng.choice("112")}, "ABCDE")}]),
        **rng.choice([{}, {"ports": some(rng, port, ports)}]),
        **rng.choice([{}, {"args": some(rng, str, "xy")}]),
        **rng.choice([{}, {"resources": {"requests": {key: "1" for key in some(rng, str, ["cpu", "memory"])}}}]),
    }
    pod = {"containers": some(rng, container, ["one", "two", "three"]) or [container("one")]}
    if rng.random() < 0.4:
        pod["nodeSelector"] = {key: rng.choice("12") for key in some(rng, str, "ab")}
    if rng.random() < 0.4:
        pod["tolerations"] = [{"key": rng.choice("ab"), "operator": "Exists"}]
    spec = deployment(**rng.choice([{}, {"replicas": rng.randint(1, 2)}]))
    spec["template"]["spec"] = pod
    if rng.random() < 0.3:
        spec["template"]["metadata"]["annotations"] = {key: rng.choice("12") for key in some(rng, str, "abc")}
    return {"spec": spec}


def random_steps(seed, make, writes, defaulted=()):
    """Writes by a few managers, so that they meet."""
    rng = random.Random(seed)
    first = apply(rng.choice("abc"), **make(rng)) if rng.random() < 0.5 else create("u", **make(rng))
    steps = [first]
    for _ in range(writes):
        turn = rng.random()
        if turn < 0.45:
            steps.append(apply(rng.choice("abc"), force=True, defaulted=defaulted, **make(rng)))
        elif turn < 0.7:
            steps.append(apply(rng.choice("abc"), defaulted=defaulted, **make(rng)))
        elif turn < 0.8:
            steps.append(apply(rng.choice("abc"), force=True, defaulted=defaulted))
        else:
            steps.append(merge(rng.choice("uv"), **make(rng)))
    return steps


def random_scenarios(count, first=0):
    for seed in range(first, first + count):
        yield (f"random-gadget-{seed:03}", "Gadget", random_steps(f"gadget {seed}", random_gadget, 11))
        yield (f"random-deployment-{seed:03}", "Deployment",
               random_steps(f"deployment {seed}", random_deployment, 9, defaulted=[".spec.replicas"]))


SCENARIOS += random_scenarios(8)
