"""Pods: defaults of every part of a pod spec, what admission adds, what may change."""
from .build import container, create, obj, pod, pod_spec, status, update

PROBES = {"httpGet": {"port": 80}}, {"tcpSocket": {"port": "web"}}, {"exec": {"command": ["true"]}}, {"grpc": {"port": 1}}


def change_container(**fields):
    def apply(stored):
        stored["spec"]["containers"][0].update(fields)
        return stored
    return apply


def change(function):
    def apply(stored):
        function(stored)
        return stored
    return apply


def volume(name, **source):
    return create(f"volume {name}", pod(volumes=[{"name": "v", **source}]))


def bad(name, *containers, **spec):
    return create(f"refused: {name}", pod(*containers, **spec))


CASES = [
    create("minimal", pod()),
    create("given values stay", pod(
        container(imagePullPolicy="Never", terminationMessagePath="/x", terminationMessagePolicy="FallbackToLogsOnError"),
        restartPolicy="Never", dnsPolicy="Default", terminationGracePeriodSeconds=0, schedulerName="other",
        enableServiceLinks=False, securityContext={"runAsUser": 1}, serviceAccountName="sa")),
    *[create(f"image {image}", pod(container(image=image))) for image in (
        "nginx:latest", "nginx:1.27", "localhost:5000/nginx", "localhost:5000/nginx:1",
        "nginx@sha256:e4f0474a75c510f40b37b6b7dc2516241ffa8bde5a442bde3d372c9519c84d90",
        "nginx:latest@sha256:e4f0474a75c510f40b37b6b7dc2516241ffa8bde5a442bde3d372c9519c84d90")],
    create("ports", pod(container(ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}]))),
    create("host network", pod(container(ports=[{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]), hostNetwork=True)),
    *[create(f"probe {i}", pod(container(ports=[{"containerPort": 80, "name": "web"}], livenessProbe=p, readinessProbe=p, startupProbe=p)))
      for i, p in enumerate(PROBES)],
    create("probe with values", pod(container(livenessProbe={"httpGet": {"port": 80, "path": "/h", "scheme": "HTTPS"}, "periodSeconds": 5, "timeoutSeconds": 4, "failureThreshold": 9, "initialDelaySeconds": 7}))),
    create("lifecycle", pod(container(lifecycle={"postStart": {"httpGet": {"port": 80}}, "preStop": {"sleep": {"seconds": 3}}}))),
    create("env", pod(container(env=[
        {"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}},
        {"name": "E", "valueFrom": {"secretKeyRef": {"name": "c", "key": "k"}}}], envFrom=[{"configMapRef": {"name": "c"}, "prefix": "P"}]))),
    create("limits only", pod(container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}))),
    create("limits and some requests", pod(container(resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}))),
    create("requests only", pod(container(resources={"requests": {"cpu": "100m"}}))),
    create("guaranteed with init", pod(container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}), initContainers=[{"name": "i", "image": "b:1", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}])),
    create("quantities", pod(container(resources={"requests": {"cpu": "1000m", "memory": "1024Mi", "ephemeral-storage": "1e3"}}))),
    create("sidecar", pod(initContainers=[{"name": "s", "image": "b", "restartPolicy": "Always"}])),
    create("scheduling gates", pod(schedulingGates=[{"name": "a.b/c"}])),
    create("own tolerations", pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}])),
    create("tolerate all", pod(tolerations=[{"operator": "Exists"}])),
    create("status is dropped", {**pod(), "status": {"phase": "Running", "podIP": "1.2.3.4"}}),
    create("node name", pod(nodeName="n1", nodeSelector={"a": "b"})),
    create("affinity label keys", pod(metadata={"labels": {"app": "x", "v": "1"}}, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "z", "labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["v"]}]}})),
    create("topology spread", pod(metadata={"labels": {"app": "x", "v": "1"}}, topologySpreadConstraints=[
        {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["v"]}])),
    create("generateName", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "given", "generateName": "g-"}, "spec": pod_spec()}),
    create("system priority", pod(priorityClassName="system-node-critical")),
    create("priority class", pod(priorityClassName="high"), world=[obj("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000, preemptionPolicy="Never")]),
    create("default priority class", pod(), world=[obj("scheduling.k8s.io/v1", "PriorityClass", "normal", value=7, globalDefault=True)]),
    volume("nothing"),
    volume("empty dir", emptyDir={"medium": "Memory", "sizeLimit": "1Gi"}),
    volume("host path", hostPath={"path": "/x"}),
    volume("secret", secret={"secretName": "s", "items": [{"key": "k", "path": "p"}]}),
    volume("config map", configMap={"name": "c", "defaultMode": 256}),
    volume("downward", downwardAPI={"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}]}),
    volume("projected", projected={"sources": [{"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}, {"configMap": {"name": "c"}}]}),
    volume("claim", persistentVolumeClaim={"claimName": "c"}),
    volume("ephemeral", ephemeral={"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}),
    volume("iscsi", iscsi={"targetPortal": "1.2.3.4", "iqn": "iqn.2015-02.example.com:test", "lun": 0}),
    volume("rbd", rbd={"monitors": ["m"], "image": "i"}),
    volume("azure disk", azureDisk={"diskName": "d", "diskURI": "https://blob/u"}),
    volume("nfs", nfs={"server": "s", "path": "/p"}),
    volume("csi", csi={"driver": "d.io"}),
    volume("image", image={"reference": "r:1"}),
    create("refused: no containers", obj("v1", "Pod", spec={"containers": []})),
    bad("container without name", {"image": "a"}),
    bad("container name", {"name": "A_b", "image": "a"}),
    bad("container without image", {"name": "a"}),
    bad("image with space", container(image=" nginx")),
    bad("same container name twice", container(), container()),
    bad("restart policy", restartPolicy="Sometimes"),
    bad("dns policy", dnsPolicy="Mine"),
    bad("pull policy", container(imagePullPolicy="Maybe")),
    bad("termination message policy", container(terminationMessagePolicy="X")),
    bad("negative grace", terminationGracePeriodSeconds=-1),
    bad("port zero", container(ports=[{"containerPort": 0}])),
    bad("port too high", container(ports=[{"containerPort": 70000}])),
    bad("port protocol", container(ports=[{"containerPort": 80, "protocol": "XTP"}])),
    bad("port name", container(ports=[{"containerPort": 80, "name": "toolongtoolongtoolong"}])),
    bad("port name twice", container(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}])),
    bad("host port twice", container(ports=[{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}])),
    bad("env name empty", container(env=[{"name": ""}])),
    bad("env value and source", container(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])),
    bad("env empty source", container(env=[{"name": "A", "valueFrom": {}}])),
    bad("env field path", container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}])),
    bad("request above limit", container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}})),
    bad("unknown resource", container(resources={"requests": {"water": "2"}})),
    bad("negative request", container(resources={"requests": {"cpu": "-1"}})),
    bad("mount of nothing", container(volumeMounts=[{"name": "v", "mountPath": "/x"}])),
    bad("mount path empty", container(volumeMounts=[{"name": "v", "mountPath": ""}]), volumes=[{"name": "v"}]),
    bad("mount path twice", container(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]), volumes=[{"name": "v"}]),
    bad("volume twice", volumes=[{"name": "v"}, {"name": "v"}]),
    bad("volume name", volumes=[{"name": "V"}]),
    bad("volume without name", volumes=[{}]),
    bad("two sources", volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]),
    bad("secret volume without name", volumes=[{"name": "v", "secret": {}}]),
    bad("config map volume without name", volumes=[{"name": "v", "configMap": {}}]),
    bad("host path empty", volumes=[{"name": "v", "hostPath": {"path": ""}}]),
    bad("claim without name", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": ""}}]),
    bad("probe without handler", container(livenessProbe={"periodSeconds": 5})),
    bad("probe two handlers", container(livenessProbe={"httpGet": {"port": 80}, "tcpSocket": {"port": 80}})),
    bad("probe port", container(livenessProbe={"httpGet": {"port": 0}})),
    bad("probe success threshold", container(livenessProbe={"httpGet": {"port": 80}, "successThreshold": 2})),
    bad("probe negative", container(livenessProbe={"httpGet": {"port": 80}, "periodSeconds": -2})),
    bad("exec without command", container(livenessProbe={"exec": {}})),
    bad("node selector label", nodeSelector={"a b": "c"}),
    bad("toleration operator", tolerations=[{"key": "a", "operator": "Is"}]),
    bad("toleration without key", tolerations=[{"operator": "Equal", "value": "x"}]),
    bad("toleration effect", tolerations=[{"key": "a", "operator": "Exists", "effect": "Never"}]),
    bad("toleration exists with value", tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
    bad("host name", hostname="A.b"),
    bad("service account name", serviceAccountName="A_"),
    bad("priority given", priority=5),
    bad("priority class missing", priorityClassName="nobody"),
    bad("active deadline", activeDeadlineSeconds=0),
    bad("privileged and no escalation", container(securityContext={"privileged": True, "allowPrivilegeEscalation": False})),
    bad("run as user negative", securityContext={"runAsUser": -1}),
    bad("init container with probe", initContainers=[{"name": "i", "image": "b", "livenessProbe": {"httpGet": {"port": 80}}}]),
    bad("ephemeral containers at create", ephemeralContainers=[{"name": "e", "image": "b"}]),
    bad("topology skew", topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
    create("refused: name", pod(name="A_b")),
    create("refused: label value", pod(metadata={"labels": {"a": "b c"}})),
    create("refused: label key", pod(metadata={"labels": {"a b": "c"}})),
    update("pod", pod(container(resources={"requests": {"cpu": "1"}}), initContainers=[{"name": "i", "image": "b"}], metadata={"labels": {"a": "b"}}), {
        "nothing": {},
        "image": change_container(image="nginx:2"),
        "image empty": change_container(image=""),
        "init image": change(lambda p: p["spec"]["initContainers"][0].update(image="c")),
        "labels": {"metadata": {"labels": {"c": "d"}}},
        "command": change_container(command=["x"]),
        "resources": change_container(resources={"requests": {"cpu": "2"}}),
        "container added": change(lambda p: p["spec"]["containers"].append({"name": "b", "image": "b"})),
        "container removed": change(lambda p: p["spec"]["initContainers"].clear()),
        "active deadline": {"spec": {"activeDeadlineSeconds": 5}},
        "toleration added": change(lambda p: p["spec"]["tolerations"].append({"key": "a", "operator": "Exists"})),
        "toleration removed": {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}},
        "grace period": {"spec": {"terminationGracePeriodSeconds": 1}},
        "node name": {"spec": {"nodeName": "n"}},
        "restart policy": {"spec": {"restartPolicy": "Never"}},
        "priority left out": {"spec": {"priority": None, "preemptionPolicy": None}},
        "status": {"status": {"phase": "Running"}},
        "generation": {"metadata": {"generation": 7}},
        "service account": {"spec": {"serviceAccountName": "other"}},
        "node selector": {"spec": {"nodeSelector": {"a": "b"}}},
        "gate added": {"spec": {"schedulingGates": [{"name": "a/b"}]}},
    }),
    update("gated pod", pod(schedulingGates=[{"name": "a.b/c"}, {"name": "a.b/d"}], nodeSelector={"a": "b"}), {
        "gate removed": {"spec": {"schedulingGates": [{"name": "a.b/c"}]}},
        "node selector added": {"spec": {"nodeSelector": {"c": "d"}}},
        "node selector changed": {"spec": {"nodeSelector": {"a": "c"}}},
        "gate added": {"spec": {"schedulingGates": [{"name": "a.b/c"}, {"name": "a.b/d"}, {"name": "a.b/e"}]}},
    }),
    status("pod", pod(), {
        "phase": {"status": {"phase": "Running", "podIP": "10.1.1.1", "podIPs": [{"ip": "10.1.1.1"}]}},
        "without qos": {"status": {"phase": "Running", "qosClass": None}},
        "qos changed": {"status": {"qosClass": "Guaranteed"}},
        "spec is ignored": {"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}},
    }),
]
