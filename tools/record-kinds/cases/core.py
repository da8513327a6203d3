"""The core group without pods."""
from .build import create, obj, pod, status, template, update


def service(name="x", **spec):
    return obj("v1", "Service", name, spec={"ports": [{"port": 80}], "selector": {"a": "b"}, **spec})


def claim(name="x", **spec):
    return obj("v1", "PersistentVolumeClaim", name, spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec})


def volume(name="x", **spec):
    return obj("v1", "PersistentVolume", name, spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **spec})


def config(**fields):
    return obj("v1", "ConfigMap", **fields)


def secret(**fields):
    return obj("v1", "Secret", **fields)


def controller(**spec):
    return obj("v1", "ReplicationController", spec={"template": template(), **spec})


def event(**fields):
    return obj("v1", "Event", involvedObject={"kind": "Pod", "name": "p", "namespace": "record-kinds"}, **fields)


def quota(**spec):
    return obj("v1", "ResourceQuota", spec=spec)


def limits(*items):
    return obj("v1", "LimitRange", spec={"limits": list(items)})


CASES = [
    # Services
    create("service", service()),
    create("service headless", service(clusterIP="None")),
    create("service headless without selector", obj("v1", "Service", spec={"clusterIP": "None", "ports": [{"port": 80}]})),
    create("service node port", service(type="NodePort")),
    create("service node port asked", service(type="NodePort", ports=[{"port": 80, "nodePort": 31000}])),
    create("service node port shared", service(type="NodePort", ports=[{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"}])),
    create("service load balancer", service(type="LoadBalancer")),
    create("service load balancer local", service(type="LoadBalancer", externalTrafficPolicy="Local")),
    create("service load balancer without ports", service(type="LoadBalancer", allocateLoadBalancerNodePorts=False)),
    create("service external name", obj("v1", "Service", spec={"type": "ExternalName", "externalName": "a.b"})),
    create("service affinity", service(sessionAffinity="ClientIP")),
    create("service affinity none with config", service(sessionAffinity="None", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 5}})),
    create("service external ips", service(externalIPs=["1.2.3.4"])),
    create("service target port", service(ports=[{"port": 80, "targetPort": "web"}])),
    create("service asked ip", service(clusterIP="10.0.0.77")),
    create("service status is dropped", {**service(), "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
    create("service prefer dual", service(ipFamilyPolicy="PreferDualStack")),
    create("refused: service without ports", service(ports=[])),
    create("refused: service port 0", service(ports=[{"port": 0}])),
    create("refused: service port too high", service(ports=[{"port": 70000}])),
    create("refused: service two ports without names", service(ports=[{"port": 80}, {"port": 81}])),
    create("refused: service port name twice", service(ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "a"}])),
    create("refused: service port twice", service(ports=[{"port": 80, "name": "a"}, {"port": 80, "name": "b"}])),
    create("refused: service protocol", service(ports=[{"port": 80, "protocol": "X"}])),
    create("refused: service target port", service(ports=[{"port": 80, "targetPort": "a_b"}])),
    create("refused: service target port range", service(ports=[{"port": 80, "targetPort": 70000}])),
    create("refused: service type", service(type="Magic")),
    create("refused: service affinity", service(sessionAffinity="Sticky")),
    create("service name starts with a digit", service(name="1x")),
    create("refused: service name", service(name="a.b")),
    create("refused: service selector", service(selector={"a": "b c"})),
    create("refused: service cluster ip", service(clusterIP="abc")),
    create("refused: service cluster ip range", service(clusterIP="10.1.0.1"), real=True),
    create("refused: service node port range", service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]), real=True),
    create("refused: service node port on cluster ip", service(ports=[{"port": 80, "nodePort": 31000}])),
    create("refused: service external name missing", obj("v1", "Service", spec={"type": "ExternalName"})),
    create("refused: service dual stack", service(ipFamilyPolicy="RequireDualStack")),
    create("refused: service ipv6", service(ipFamilies=["IPv6"])),
    create("refused: service external policy on cluster ip", service(externalTrafficPolicy="Local")),
    create("refused: service headless node port", service(clusterIP="None", type="NodePort")),
    create("refused: service cluster ip taken", service(clusterIP="10.0.0.99"), world=[service(name="other", clusterIP="10.0.0.99")], real=True),
    create("refused: service node port taken", service(type="NodePort", ports=[{"port": 80, "nodePort": 31999}]), world=[service(name="other", type="NodePort", clusterIP="10.0.0.98", ports=[{"port": 80, "nodePort": 31999}])]),
    update("service", service(clusterIP="10.0.0.80"), {
        "nothing": {},
        "port": {"spec": {"ports": [{"port": 81}]}},
        "cluster ip left out": {"spec": {"clusterIP": None, "clusterIPs": None}},
        "cluster ip": {"spec": {"clusterIP": "10.0.0.81", "clusterIPs": ["10.0.0.81"]}},
        "cluster ip only singular": {"spec": {"clusterIP": "10.0.0.81"}},
        "cluster ip none": {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}},
        "to node port": {"spec": {"type": "NodePort"}},
        "to external name": {"spec": {"type": "ExternalName", "externalName": "a.b"}},
        "to load balancer": {"spec": {"type": "LoadBalancer"}},
        "status": {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
        "selector": {"spec": {"selector": {"c": "d"}}},
    }),
    update("service node port", service(type="NodePort", clusterIP="10.0.0.82", ports=[{"port": 80, "nodePort": 31100}]), {
        "to cluster ip": {"spec": {"type": "ClusterIP"}},
        "port left out": {"spec": {"ports": [{"port": 80}]}},
    }),
    update("service load balancer", service(type="LoadBalancer", clusterIP="10.0.0.83", loadBalancerClass="a/b", ports=[{"port": 80, "nodePort": 31101}]), {
        "to cluster ip": {"spec": {"type": "ClusterIP"}},
        "class": {"spec": {"loadBalancerClass": "a/c"}},
    }),
    status("service", service(type="LoadBalancer", clusterIP="10.0.0.84", ports=[{"port": 80, "nodePort": 31102}]), {
        "ingress": {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
    }),
    # Endpoints
    create("endpoints", obj("v1", "Endpoints", subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}])),
    create("refused: endpoints ip", obj("v1", "Endpoints", subsets=[{"addresses": [{"ip": "x"}], "ports": [{"port": 80}]}])),
    create("refused: endpoints port", obj("v1", "Endpoints", subsets=[{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 0}]}])),
    # Namespaces
    create("namespace", obj("v1", "Namespace", "other")),
    create("namespace finalizers", obj("v1", "Namespace", "other", spec={"finalizers": ["a.b/c"]}, status={"phase": "Terminating"})),
    create("namespace label", obj("v1", "Namespace", "other", metadata={"labels": {"kubernetes.io/metadata.name": "wrong", "z": "1", "a": "2"}})),
    create("refused: namespace name", obj("v1", "Namespace", "a.b")),
    update("namespace", obj("v1", "Namespace", "other2"), {
        "labels": {"metadata": {"labels": {"a": "b"}}},
        "label removed": {"metadata": {"labels": None}},
        "finalizers": {"spec": {"finalizers": []}},
        "phase": {"status": {"phase": "Terminating"}},
    }),
    # Config maps and secrets
    create("config map", config()),
    create("config map data", config(data={"b": "1", "a": "2"}, binaryData={"c": "AAA="})),
    create("config map generation", config(metadata={"generation": 4})),
    create("refused: config map key", config(data={"a b": "1"})),
    create("refused: config map key dots", config(data={"..": "1"})),
    create("refused: config map key in both", config(data={"a": "1"}, binaryData={"a": "AAA="})),
    create("refused: config map too big", config(data={"a": "x" * (1 << 20), "b": "y"})),
    create("refused: config map name", obj("v1", "ConfigMap", "A")),
    create("refused: annotation key", config(metadata={"annotations": {"a b": "c"}})),
    create("refused: annotations too big", config(metadata={"annotations": {"a": "x" * (1 << 18), "b": "c"}})),
    create("refused: finalizer", config(metadata={"finalizers": ["a b"]})),
    create("refused: finalizer without domain", config(metadata={"finalizers": ["mine"]})),
    create("refused: orphan and foreground", config(metadata={"finalizers": ["orphan", "foregroundDeletion"]})),
    create("refused: owner without fields", config(metadata={"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]})),
    create("refused: two controllers", config(metadata={"ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": True}, {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "2", "controller": True}]})),
    create("refused: event as owner", config(metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "1"}]})),
    create("owner", config(metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": True, "blockOwnerDeletion": True}]})),
    create("owner twice", config(metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}, {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}]})),
    create("refused: label key prefix", config(metadata={"labels": {"A_/b": "c"}})),
    create("refused: label key empty name", config(metadata={"labels": {"a.b/": "c"}})),
    create("refused: label key parts", config(metadata={"labels": {"a/b/c": "c"}})),
    create("refused: label key long", config(metadata={"labels": {"a" * 64: "c"}})),
    create("refused: label value long", config(metadata={"labels": {"a": "a" * 64}})),
    create("refused: name long", obj("v1", "ConfigMap", "a" * 254)),
    create("refused: name and generateName", obj("v1", "ConfigMap", "A", metadata={"generateName": "B_"})),
    create("refused: negative generation", config(metadata={"generation": -1})),
    update("config map", config(data={"a": "1"}), {
        "data": {"data": {"b": "2"}},
        "to immutable": {"immutable": True},
        "labels": {"metadata": {"labels": {"a b": "c"}}},
        "annotation": {"metadata": {"annotations": {"a b": "c"}}},
        "generation": {"metadata": {"generation": 5}},
        "creation time": {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}},
        "deletion time": {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}},
        "finalizer": {"metadata": {"finalizers": ["a.b/c"]}},
        "bad finalizer": {"metadata": {"finalizers": ["a b"]}},
        "owner": {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": ""}]}},
        "key": {"data": {"a b": "c"}},
    }),
    update("immutable config map", config(immutable=True, data={"a": "1"}), {
        "data": {"data": {"a": "2"}},
        "binary data": {"binaryData": {"b": "AAA="}},
        "to mutable": {"immutable": None},
        "to false": {"immutable": False},
        "labels": {"metadata": {"labels": {"a": "b"}}},
        "data and mutable": {"data": {"a": "2"}, "immutable": None},
    }),
    create("secret", secret()),
    create("secret string data", secret(stringData={"b": "two", "a": "ä"}, data={"b": "b25l"})),
    create("secret type", secret(type="a.b/c", data={"x": "eA=="})),
    create("secret tls", secret(type="kubernetes.io/tls", data={"tls.crt": "eA==", "tls.key": "eA=="})),
    create("secret docker", secret(type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "{}"})),
    create("secret basic", secret(type="kubernetes.io/basic-auth", stringData={"username": "u"})),
    create("secret token", secret(type="kubernetes.io/service-account-token", metadata={"annotations": {"kubernetes.io/service-account.name": "sa"}})),
    create("refused: secret tls", secret(type="kubernetes.io/tls")),
    create("refused: secret docker", secret(type="kubernetes.io/dockerconfigjson")),
    create("refused: secret docker not json", secret(type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "x"})),
    create("refused: secret dockercfg", secret(type="kubernetes.io/dockercfg")),
    create("refused: secret basic", secret(type="kubernetes.io/basic-auth")),
    create("refused: secret ssh", secret(type="kubernetes.io/ssh-auth")),
    create("refused: secret token", secret(type="kubernetes.io/service-account-token")),
    create("refused: secret key", secret(stringData={"a b": "c"})),
    create("refused: secret too big", secret(stringData={"a": "x" * (1 << 20), "b": "y"})),
    update("secret", secret(stringData={"a": "b"}), {
        "data": {"data": {"a": "Yw=="}},
        "string data": {"stringData": {"a": "c", "z": "d"}},
        "type": {"type": "a.b/c"},
        "type left out": {"type": None},
        "to immutable": {"immutable": True},
    }),
    update("immutable secret", secret(immutable=True, stringData={"a": "b"}), {
        "data": {"data": {"a": "Yw=="}},
        "to mutable": {"immutable": None},
        "labels": {"metadata": {"labels": {"a": "b"}}},
    }),
    # Service accounts
    create("service account", obj("v1", "ServiceAccount")),
    create("service account references", obj("v1", "ServiceAccount", secrets=[{"name": "s", "kind": "Secret", "namespace": "n"}], imagePullSecrets=[{"name": "p"}], automountServiceAccountToken=False)),
    # Storage
    create("claim", claim()),
    create("claim class", claim(storageClassName="", volumeName="v", volumeMode="Block")),
    create("claim source", claim(dataSource={"kind": "PersistentVolumeClaim", "name": "o"})),
    create("claim source ref", claim(dataSourceRef={"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "o"})),
    create("claim default class", claim(), world=[obj("storage.k8s.io/v1", "StorageClass", "standard", metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, provisioner="p")]),
    create("claim status is dropped", {**claim(), "status": {"phase": "Bound"}}),
    create("refused: claim without modes", claim(accessModes=[])),
    create("refused: claim mode", claim(accessModes=["ReadSometimes"])),
    create("refused: claim without storage", claim(resources={})),
    create("refused: claim zero storage", claim(resources={"requests": {"storage": "0"}})),
    create("refused: claim volume mode", claim(volumeMode="Tape")),
    create("refused: claim once pod and many", claim(accessModes=["ReadWriteOncePod", "ReadWriteMany"])),
    create("refused: claim selector", claim(selector={"matchExpressions": [{"key": "a", "operator": "Is"}]})),
    update("claim", claim(storageClassName="s"), {
        "labels": {"metadata": {"labels": {"a": "b"}}},
        "modes": {"spec": {"accessModes": ["ReadWriteMany"]}},
        "storage grows": {"spec": {"resources": {"requests": {"storage": "2Gi"}}}},
        "storage shrinks": {"spec": {"resources": {"requests": {"storage": "1Mi"}}}},
        "class": {"spec": {"storageClassName": "t"}},
        "volume name": {"spec": {"volumeName": "v"}},
        "volume mode": {"spec": {"volumeMode": "Block"}},
        "status": {"status": {"phase": "Bound"}},
    }),
    update("bound claim", claim(storageClassName="s", volumeName="v"), {
        "storage grows": {"spec": {"resources": {"requests": {"storage": "2Gi"}}}},
        "storage shrinks": {"spec": {"resources": {"requests": {"storage": "1Mi"}}}},
        "volume name": {"spec": {"volumeName": "w"}},
    }, steps=[("status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}})],
       world=[obj("storage.k8s.io/v1", "StorageClass", "s", provisioner="p", allowVolumeExpansion=True)]),
    status("claim", claim(), {"phase": {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}}),
    create("volume", volume()),
    create("volume values", volume(persistentVolumeReclaimPolicy="Delete", volumeMode="Block", storageClassName="s", claimRef={"namespace": "a", "name": "b"})),
    create("volume nfs", obj("v1", "PersistentVolume", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "nfs": {"server": "s", "path": "/p"}, "mountOptions": ["a"]})),
    create("refused: volume without source", obj("v1", "PersistentVolume", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]})),
    create("refused: volume two sources", volume(nfs={"server": "s", "path": "/p"})),
    create("refused: volume without capacity", obj("v1", "PersistentVolume", spec={"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}})),
    create("refused: volume without modes", volume(accessModes=[])),
    create("refused: volume policy", volume(persistentVolumeReclaimPolicy="Burn")),
    create("refused: volume host path root recycle", volume(persistentVolumeReclaimPolicy="Recycle", hostPath={"path": "/"})),
    update("volume", volume(), {
        "capacity": {"spec": {"capacity": {"storage": "2Gi"}}},
        "source": {"spec": {"hostPath": {"path": "/y"}}},
        "policy": {"spec": {"persistentVolumeReclaimPolicy": "Delete"}},
        "volume mode": {"spec": {"volumeMode": "Block"}},
        "claim": {"spec": {"claimRef": {"namespace": "a", "name": "b"}}},
        "node affinity": {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}},
        "status": {"status": {"phase": "Bound"}},
    }),
    status("volume", volume(), {"phase": {"status": {"phase": "Available"}}, "same phase": {"status": {"phase": "Pending", "lastPhaseTransitionTime": None}}}),
    # Nodes
    create("node", obj("v1", "Node")),
    create("node status", obj("v1", "Node", spec={"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"], "taints": [{"key": "a", "effect": "NoSchedule"}]}, status={"capacity": {"cpu": "4", "memory": "8Gi"}, "conditions": [{"type": "Ready", "status": "True"}]})),
    create("refused: node taint", obj("v1", "Node", spec={"taints": [{"key": "a", "effect": "Sometimes"}]})),
    update("node", obj("v1", "Node", spec={"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"], "providerID": "a://b"}), {
        "unschedulable": {"spec": {"unschedulable": True}},
        "taints": {"spec": {"taints": None}},
        "provider": {"spec": {"providerID": "a://c"}},
        "pod cidr": {"spec": {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}},
        "status": {"status": {"capacity": {"cpu": "4"}}},
    }),
    status("node", obj("v1", "Node"), {"capacity": {"status": {"capacity": {"cpu": "4"}}}}),
    # Events
    create("event", event(reason="R", message="M", type="Normal", source={"component": "c"}, count=1)),
    create("event bare", event()),
    create("refused: event namespace", obj("v1", "Event", involvedObject={"kind": "Pod", "name": "p", "namespace": "other"})),
    create("refused: event without namespace", obj("v1", "Event", involvedObject={"kind": "Pod", "name": "p"})),
    # Limits and quotas
    create("limit range", limits({"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m", "memory": "1Mi"}})),
    create("limit range default", limits({"type": "Container", "default": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "2"}})),
    create("refused: limit range min above max", limits({"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}})),
    create("refused: limit range type twice", limits({"type": "Pod", "max": {"cpu": "1"}}, {"type": "Pod", "max": {"cpu": "2"}})),
    create("refused: limit range pod default", limits({"type": "Pod", "default": {"cpu": "1"}})),
    create("refused: limit range claim", limits({"type": "PersistentVolumeClaim"})),
    create("quota", quota(hard={"pods": "10", "cpu": "2", "requests.memory": "1024Mi"})),
    create("quota scopes", quota(hard={"pods": "10"}, scopes=["BestEffort"])),
    create("refused: quota scope", quota(hard={"pods": "10"}, scopes=["Any"])),
    create("refused: quota resource", quota(hard={"water": "10"})),
    create("refused: quota negative", quota(hard={"pods": "-1"})),
    create("refused: quota scope for resource", quota(hard={"cpu": "10"}, scopes=["BestEffort"])),
    create("refused: quota fraction", quota(hard={"pods": "1500m"})),
    update("quota", quota(hard={"pods": "10"}), {"hard": {"spec": {"hard": {"pods": "5"}}}, "scopes": {"spec": {"scopes": ["BestEffort"]}}, "status": {"status": {"hard": {"pods": "1"}}}}),
    # Controllers and templates
    create("replication controller", controller()),
    create("replication controller values", controller(replicas=0, selector={"app": "x"}, minReadySeconds=3)),
    create("refused: replication controller selector", controller(selector={"app": "y"})),
    create("refused: replication controller without template", obj("v1", "ReplicationController", spec={"selector": {"a": "b"}})),
    create("refused: replication controller replicas", controller(replicas=-1)),
    create("refused: replication controller restart policy", controller(template=template(restartPolicy="Never"))),
    update("replication controller", controller(), {"replicas": {"spec": {"replicas": 3}}, "labels": {"metadata": {"labels": {"a": "b"}}}}),
    create("pod template", obj("v1", "PodTemplate", template=template())),
    update("pod template", obj("v1", "PodTemplate", template=template()), {"labels": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
]
