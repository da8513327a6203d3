"""Records how objects are printed: (group, kind, object, cells, time). Cells of all columns, those of `-o wide` included.

`tables.py early` records the kinds that are not yet served by default instead; it wants a server that was started with
`--runtime-config=api/all=true --feature-gates=AllAlpha=true,AllBeta=true`.
"""
import base64, datetime, subprocess, sys, tempfile, time

from server import NAMESPACE, collection, lean, must, prepare, remove, request, write

MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def ago(**span):
    """A time some while before the recording."""
    return (datetime.datetime.now(datetime.UTC) - datetime.timedelta(**span)).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro(**span):
    return ago(**span).replace("Z", ".123456Z")


def container(name, **more):
    return {"name": name, "image": f"registry.test/{name}:1", **more}


def template(**spec):
    return {"metadata": {"labels": {"app": "web", "b": "2"}}, "spec": {"containers": [container("app"), container("side")], **spec}}


def condition(kind, status="True", **more):
    return {"type": kind, "status": status, **more}


def state(name, ready=False, restarts=0, last=None, started=None, **state):
    status = {"name": name, "image": "i", "imageID": "i", "ready": ready, "restartCount": restarts, "state": state}
    if started is not None:
        status["started"] = started
    if last is not None:
        status["lastState"] = {"terminated": {"exitCode": 1, "finishedAt": last, "startedAt": last}}
    return status


RUNNING = {"running": {"startedAt": ago(hours=1)}}
SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [
    {"key": "b", "operator": "In", "values": ["3", "2"]}, {"key": "c", "operator": "DoesNotExist"}]}


def waiting(reason):
    return {"waiting": {"reason": reason}}


def terminated(code, reason="", signal=0):
    return {"terminated": {"exitCode": code, "reason": reason, "signal": signal}}


def pods():
    init = {"initContainers": [container("i1"), container("i2")]}
    sidecar = {"initContainers": [container("i1"), container("s1", restartPolicy="Always")]}
    yield {}, None
    yield {"nodeName": "n1"}, {"phase": "Running", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}], "conditions": [condition("Ready")],
                               "containerStatuses": [state("app", True, 0, **RUNNING), state("side", True, 3, ago(minutes=5), **RUNNING)]}
    yield {}, {"phase": "Pending", "containerStatuses": [state("app", **waiting("ContainerCreating")), state("side", **waiting("ImagePullBackOff"))]}
    yield {}, {"phase": "Running", "containerStatuses": [state("app", False, 7, ago(hours=30), **waiting("CrashLoopBackOff")), state("side", True, 1, ago(days=3, hours=2), **RUNNING)]}
    yield {}, {"phase": "Succeeded", "containerStatuses": [state("app", **terminated(0, "Completed")), state("side", **terminated(0, "Completed"))]}
    yield {}, {"phase": "Failed", "containerStatuses": [state("app", **terminated(1, "Error")), state("side", **terminated(137, "", 9))]}
    yield {}, {"phase": "Failed", "containerStatuses": [state("app", **terminated(3)), state("side", **terminated(137, "OOMKilled"))]}
    yield {}, {"phase": "Failed", "containerStatuses": [state("app", **terminated(137, "", 9))]}
    yield {}, {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}
    yield {}, {"phase": "Running", "containerStatuses": [state("app", **terminated(0, "Completed")), state("side", True, **RUNNING)], "conditions": [condition("Ready")]}
    yield {}, {"phase": "Running", "containerStatuses": [state("app", **terminated(0, "Completed")), state("side", True, **RUNNING)], "conditions": [condition("Ready", "False")]}
    yield {}, {"phase": "Running", "containerStatuses": [state("app", **terminated(0, "Completed")), state("side", **terminated(2, "Error"))]}
    yield init, {"phase": "Pending", "initContainerStatuses": [state("i1", **RUNNING), state("i2", **waiting("PodInitializing"))]}
    yield init, {"phase": "Pending", "initContainerStatuses": [state("i1", **terminated(0)), state("i2", **waiting("PodInitializing"))]}
    yield init, {"phase": "Pending", "initContainerStatuses": [state("i1", False, 2, ago(seconds=90), **terminated(1, "Error")), state("i2")]}
    yield init, {"phase": "Pending", "initContainerStatuses": [state("i1", **terminated(4)), state("i2")]}
    yield init, {"phase": "Pending", "initContainerStatuses": [state("i1", **terminated(4, "", 15)), state("i2")]}
    yield init, {"phase": "Pending", "initContainerStatuses": [state("i1", **waiting("CrashLoopBackOff"))]}
    yield init, {"phase": "Running", "initContainerStatuses": [state("i1", False, 4, ago(hours=4), **terminated(0)), state("i2", **terminated(0))],
                 "containerStatuses": [state("app", True, **RUNNING)], "conditions": [condition("Initialized"), condition("Ready")]}
    yield sidecar, {"phase": "Running", "initContainerStatuses": [state("i1", **terminated(0)), state("s1", True, 2, ago(minutes=12), True, **RUNNING)],
                    "containerStatuses": [state("app", True, 1, ago(minutes=11), **RUNNING)], "conditions": [condition("Initialized")]}
    yield sidecar, {"phase": "Pending", "initContainerStatuses": [state("i1", **terminated(0)), state("s1", False, 1, ago(days=800), False, **RUNNING)]}
    yield sidecar, {"phase": "Running", "initContainerStatuses": [state("i1", **terminated(1, "Error"))], "conditions": [condition("Initialized")],
                    "containerStatuses": [state("app", True, **RUNNING)]}
    yield {"schedulingGates": [{"name": "g"}]}, None
    yield {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}, {
        "phase": "Running", "nominatedNodeName": "n2", "conditions": [condition("a"), condition("b", "False")]}
    yield {"finalizers": True}, {"phase": "Running", "containerStatuses": [state("app", True, **RUNNING)]}
    yield {"finalizers": True}, {"phase": "Succeeded", "containerStatuses": [state("app", **terminated(0, "Completed"))]}
    yield {"finalizers": True}, {"phase": "Running", "reason": "NodeLost"}


ROWS = []


def cells(path):
    """Cells and time. Whole seconds are far when the server looks at its clock, so that it sees the age that we will."""
    if not 0.1 < time.time() % 1 < 0.7:
        time.sleep((1.15 - time.time() % 1) % 1)
    now = datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
    code, table = request("GET", path + "?includeObject=None", accept=TABLE)
    assert code == 200 and len(table["rows"]) == 1, table
    return table, now


def add(api, resource, kind, body, status=None, namespaced=True, deleted=False, subresource="status", read_as=None, scale=False):
    path = collection(api, resource, namespaced)
    body = {"apiVersion": api, "kind": kind, **body}
    body["metadata"] = {**body.get("metadata", {})}
    body["metadata"].setdefault("name", f"{kind.lower()}-{len(ROWS)}")
    item = f"{path}/{body['metadata']['name']}"
    if deleted:
        body["metadata"]["finalizers"] = ["record.windlass.test/keep"]
    code, answer = request("POST", path, body)
    if code >= 300:
        print(f"skipped {kind}: {answer.get('message')}")
        return
    try:
        if status is not None:
            must("PATCH", f"{item}/{subresource}", {"status": status}, MERGE)
        if deleted:
            request("DELETE", item)
        read(read_as or api, kind, item if read_as is None else item.replace(f"/{api}/", f"/{read_as}/"))
        if scale:
            read("autoscaling/v1", "Scale", item + "/scale")
    finally:
        remove(item)


def read(api, kind, item):
    table, now = cells(item)
    row = table["rows"][0]
    recorded = {"group": api.rpartition("/")[0], "kind": kind, "now": now, "object": lean(must("GET", item)), "cells": row["cells"]}
    if row.get("conditions"):
        recorded["conditions"] = row["conditions"]
    ROWS.append(recorded)


def workloads():
    for changes, status in pods():
        deleted = changes.pop("finalizers", False)
        add("v1", "pods", "Pod", {"spec": {"automountServiceAccountToken": False, "containers": [container("app"), container("side")], **changes}}, status, deleted=deleted)
    add("v1", "podtemplates", "PodTemplate", {"template": template()})
    add("v1", "replicationcontrollers", "ReplicationController", {"spec": {"replicas": 3, "selector": {"b": "2", "app": "web"}, "template": template()}},
        {"replicas": 2, "readyReplicas": 1})
    expressions = {"replicas": 3, "selector": SELECTOR, "template": template()}
    add("apps/v1", "replicasets", "ReplicaSet", {"spec": expressions}, {"replicas": 2, "readyReplicas": 1, "fullyLabeledReplicas": 1}, scale=True)
    add("apps/v1", "deployments", "Deployment", {"spec": expressions}, {"replicas": 3, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1, "unavailableReplicas": 2})
    add("apps/v1", "deployments", "Deployment", {"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template()}})
    add("apps/v1", "statefulsets", "StatefulSet", {"spec": {**expressions, "serviceName": "s"}}, {"replicas": 3, "readyReplicas": 1})
    add("apps/v1", "daemonsets", "DaemonSet", {"spec": {"selector": SELECTOR, "template": template(nodeSelector={"z": "1", "disk": "ssd"})}},
        {"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3, "updatedNumberScheduled": 2, "numberAvailable": 1, "numberMisscheduled": 0})
    add("apps/v1", "controllerrevisions", "ControllerRevision", {"revision": 7, "data": {"a": 1}})
    add("apps/v1", "controllerrevisions", "ControllerRevision", {"revision": 8, "data": {}, "metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "1"}, {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "2", "controller": True}]}})
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [container("app")]}}}
    add("batch/v1", "jobs", "Job", {"spec": job})
    add("batch/v1", "jobs", "Job", {"spec": {**job, "completions": 3, "parallelism": 2}}, {"startTime": ago(minutes=3), "succeeded": 1, "active": 2})
    add("batch/v1", "jobs", "Job", {"spec": {**job, "parallelism": 4}}, {"startTime": ago(hours=3, minutes=2), "succeeded": 2})
    done = {"startTime": ago(minutes=20), "completionTime": ago(minutes=16, seconds=20), "succeeded": 1, "conditions": [
        condition("SuccessCriteriaMet", lastTransitionTime=ago(minutes=1)), condition("Complete", lastTransitionTime=ago(minutes=1))]}
    add("batch/v1", "jobs", "Job", {"spec": job}, done)
    add("batch/v1", "jobs", "Job", {"spec": job}, {"startTime": ago(minutes=20), "failed": 1, "conditions": [
        condition("FailureTarget", lastTransitionTime=ago(minutes=1)), condition("Failed", lastTransitionTime=ago(minutes=1))]})
    add("batch/v1", "jobs", "Job", {"spec": job}, {"startTime": ago(minutes=20), "conditions": [condition("FailureTarget", lastTransitionTime=ago(minutes=1))]})
    add("batch/v1", "jobs", "Job", {"spec": {**job, "suspend": True}}, {"conditions": [condition("Suspended", lastTransitionTime=ago(minutes=1))]})
    add("batch/v1", "jobs", "Job", {"spec": job}, deleted=True)
    cron = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job}}
    add("batch/v1", "cronjobs", "CronJob", {"spec": cron})
    add("batch/v1", "cronjobs", "CronJob", {"spec": {**cron, "suspend": True, "timeZone": "Europe/Paris"}},
        {"lastScheduleTime": ago(days=9), "active": [{"name": "a"}, {"name": "b"}]})
    for budget in [{"minAvailable": 1}, {"maxUnavailable": "50%"}]:
        add("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", {"spec": {**budget, "selector": {}}},
            {"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3})
    autoscalers()


def autoscalers():
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 9}

    def target(kind, value):
        return {"type": {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}[kind], kind: value}
    metric = {"metric": {"name": "m"}}
    described = {"apiVersion": "v1", "kind": "Service", "name": "s"}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": target("averageUtilization", 80)}}
    memory = {"type": "Resource", "resource": {"name": "memory", "target": target("averageValue", "1Gi")}}
    rest = [{"type": "Pods", "pods": {**metric, "target": target("averageValue", "1500m")}},
            {"type": "Object", "object": {**metric, "describedObject": described, "target": target("value", "10")}},
            {"type": "Object", "object": {**metric, "describedObject": described, "target": target("averageValue", "11")}},
            {"type": "External", "external": {**metric, "target": target("value", "12")}},
            {"type": "External", "external": {**metric, "target": target("averageValue", "13")}},
            {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app", "target": target("averageUtilization", 60)}},
            {"type": "ContainerResource", "containerResource": {"name": "memory", "container": "app", "target": target("averageValue", "64Mi")}}]

    def now(key, **current):
        return {"type": key[0].upper() + key[1:], key: {**({"metric": {"name": "m"}} if key in ("pods", "object", "external") else {"name": "cpu"}),
                **({"describedObject": described} if key == "object" else {}), **({"container": "app"} if key == "containerResource" else {}), "current": current}}
    base = {"currentReplicas": 2, "desiredReplicas": 3}
    for metrics, current in [
            ([cpu], None), ([cpu], [now("resource", averageUtilization=42, averageValue="1")]), ([memory], [now("resource", averageValue="512Mi")]),
            ([cpu, memory], [now("resource", averageUtilization=1, averageValue="1"), now("resource", averageValue="2Gi")]), ([cpu, memory, *rest], []),
            (rest[:2], [now("pods", averageValue="700m"), now("object", value="5")]), (rest[2:4], [now("object", averageValue="6", value="1"), now("external", value="7")]),
            (rest[4:6], [now("external", averageValue="8"), now("containerResource", averageUtilization=9, averageValue="1")]), (rest[6:], [now("containerResource", averageValue="1Mi")])]:
        for version in ("v2", "v1"):
            add("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", {"spec": {**spec, "minReplicas": 2, "metrics": metrics}},
                base if current is None else {**base, "currentMetrics": current}, read_as=None if version == "v2" else "autoscaling/v1")
            if metrics != [cpu]:
                break


def network():
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}]
    add("v1", "services", "Service", {"spec": {"selector": {"b": "2", "a": "1"}, "ports": ports}})
    add("v1", "services", "Service", {"spec": {"clusterIP": "None", "externalIPs": ["192.0.2.1", "192.0.2.2"]}})
    add("v1", "services", "Service", {"spec": {"type": "NodePort", "ports": ports}})
    add("v1", "services", "Service", {"spec": {"type": "ExternalName", "externalName": "example.com"}})
    add("v1", "services", "Service", {"spec": {"type": "LoadBalancer", "ports": ports}})
    balanced = {"loadBalancer": {"ingress": [{"hostname": "very-long-name.of-a.load-balancer.example.com"}, {"ip": "192.0.2.9"}, {"ip": "192.0.2.10"}]}}
    add("v1", "services", "Service", {"spec": {"type": "LoadBalancer", "ports": ports}}, balanced)
    add("v1", "services", "Service", {"spec": {"type": "LoadBalancer", "ports": ports, "externalIPs": ["192.0.2.1"]}}, balanced)
    addresses = [{"ip": f"192.0.2.{n}"} for n in range(1, 5)]
    add("v1", "endpoints", "Endpoints", {})
    add("v1", "endpoints", "Endpoints", {"subsets": [{"addresses": addresses[:2], "ports": [{"port": 80}]}]})
    add("v1", "endpoints", "Endpoints", {"subsets": [{"addresses": addresses, "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]}]})
    add("v1", "endpoints", "Endpoints", {"subsets": [{"addresses": addresses[:1]}, {"addresses": [{"ip": "2001:db8::1"}], "ports": [{"port": 9}]}]})
    add("v1", "endpoints", "Endpoints", {"subsets": [{"notReadyAddresses": addresses, "ports": [{"port": 80}]}]})
    slices = ("discovery.k8s.io/v1", "endpointslices", "EndpointSlice")
    add(*slices, {"addressType": "IPv4", "endpoints": [], "ports": []})
    add(*slices, {"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 80, "name": "a"}, {"name": "b"}]})
    add(*slices, {"addressType": "IPv4", "endpoints": [{"addresses": [f"192.0.2.{n}"]} for n in range(1, 6)], "ports": [{"port": n, "name": f"p{n}"} for n in range(1, 6)]})
    ingresses = ("networking.k8s.io/v1", "ingresses", "Ingress")
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    add(*ingresses, {"spec": {"defaultBackend": backend}})
    rule = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    for count in (2, 3, 5):
        rules = [{**rule, "host": f"h{n}.example.com"} for n in range(count)]
        add(*ingresses, {"spec": {"ingressClassName": "nginx", "rules": rules + [rule], "tls": [{"hosts": ["a.example.com"]}] if count > 2 else []}}, balanced)
    classes = ("networking.k8s.io/v1", "ingressclasses", "IngressClass")
    add(*classes, {"spec": {"controller": "example.com/c"}}, namespaced=False)
    add(*classes, {"metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
                   "spec": {"controller": "example.com/c", "parameters": {"apiGroup": "example.com", "kind": "P", "name": "p", "scope": "Cluster"}}}, namespaced=False)
    add(*classes, {"spec": {"controller": "example.com/c", "parameters": {"kind": "P", "name": "p", "scope": "Cluster"}}}, namespaced=False)
    for selector in ({}, SELECTOR):
        add("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", {"spec": {"podSelector": selector}})
    add("networking.k8s.io/v1", "ipaddresses", "IPAddress", {"metadata": {"name": "192.0.2.77"}, "spec": {
        "parentRef": {"group": "", "resource": "services", "namespace": "n", "name": "s"}}}, namespaced=False)
    add("networking.k8s.io/v1", "ipaddresses", "IPAddress", {"metadata": {"name": "192.0.2.78"}, "spec": {
        "parentRef": {"group": "gateway.test", "resource": "gateways", "name": "g"}}}, namespaced=False)
    add("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR", {"metadata": {"name": "record"}, "spec": {"cidrs": ["10.99.0.0/24"]}}, namespaced=False)


def storage():
    volume = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadOnlyMany"], "hostPath": {"path": "/x"}}
    volumes = ("v1", "persistentvolumes", "PersistentVolume")
    add(*volumes, {"spec": volume}, namespaced=False)
    add(*volumes, {"spec": {**volume, "storageClassName": "fast", "claimRef": {"namespace": "n", "name": "c"}, "persistentVolumeReclaimPolicy": "Delete",
                            "volumeMode": "Block", "accessModes": ["ReadWriteOncePod"]}}, {"phase": "Failed", "reason": "Broken"}, namespaced=False)
    add(*volumes, {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}, "spec": volume}, {"phase": "Bound"}, namespaced=False, deleted=True)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = ("v1", "persistentvolumeclaims", "PersistentVolumeClaim")
    add(*claims, {"spec": claim})
    add(*claims, {"spec": {**claim, "storageClassName": "fast", "volumeName": "pv1", "volumeMode": "Block"}},
        {"phase": "Bound", "capacity": {"storage": "2048Mi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]})
    add(*claims, {"spec": {**claim, "volumeName": "pv1", "volumeAttributesClassName": "gold"}}, {"phase": "Lost"})
    add(*claims, {"spec": claim}, deleted=True)
    classes = ("storage.k8s.io/v1", "storageclasses", "StorageClass")
    add(*classes, {"provisioner": "example.com/p"}, namespaced=False)
    add(*classes, {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "example.com/p", "reclaimPolicy": "Retain",
                   "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": True}, namespaced=False)
    add("storage.k8s.io/v1", "csidrivers", "CSIDriver", {"spec": {}}, namespaced=False)
    add("storage.k8s.io/v1", "csidrivers", "CSIDriver", {"spec": {"attachRequired": False, "podInfoOnMount": True, "storageCapacity": True, "requiresRepublish": True,
        "tokenRequests": [{"audience": "a"}, {"audience": "b", "expirationSeconds": 3600}], "volumeLifecycleModes": ["Persistent", "Ephemeral"]}}, namespaced=False)
    add("storage.k8s.io/v1", "csinodes", "CSINode", {"spec": {"drivers": [{"name": "a", "nodeID": "n"}, {"name": "b", "nodeID": "n"}]}}, namespaced=False)
    add("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity", {"storageClassName": "c", "capacity": "1Gi"})
    for status in (None, {"attached": True}):
        add("storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "pv"}}}, status, namespaced=False)
    add("storage.k8s.io/v1", "volumeattributesclasses", "VolumeAttributesClass", {"driverName": "d", "parameters": {"a": "1"}}, namespaced=False)


def core():
    add("v1", "configmaps", "ConfigMap", {})
    add("v1", "configmaps", "ConfigMap", {"data": {"a": "1"}, "binaryData": {"b": "eA==", "c": "eA=="}})
    add("v1", "secrets", "Secret", {})
    add("v1", "secrets", "Secret", {"type": "kubernetes.io/basic-auth", "stringData": {"username": "u", "password": "p"}})
    add("v1", "serviceaccounts", "ServiceAccount", {"secrets": [{"name": "s"}]})
    add("v1", "limitranges", "LimitRange", {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}})
    hard = {"pods": "5", "requests.cpu": "1", "limits.cpu": "2", "limits.memory": "1Gi", "count/x.y": "3"}
    add("v1", "resourcequotas", "ResourceQuota", {"spec": {"hard": hard}})
    add("v1", "resourcequotas", "ResourceQuota", {"spec": {"hard": hard}}, {"hard": hard, "used": {"pods": "1", "limits.cpu": "500m"}})
    read("v1", "Namespace", f"/api/v1/namespaces/{NAMESPACE}")
    read("v1", "ComponentStatus", "/api/v1/componentstatuses/etcd-0")
    read("v1", "ComponentStatus", "/api/v1/componentstatuses/scheduler")
    nodes = ("v1", "nodes", "Node")
    add(*nodes, {}, namespaced=False)
    info = {"machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "6.1", "osImage": "Linux", "containerRuntimeVersion": "containerd://2", "kubeletVersion": "v1.36.0",
            "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64"}
    add(*nodes, {"metadata": {"labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "edge"}}, "spec": {"unschedulable": True}},
        {"conditions": [condition("MemoryPressure", "False"), condition("Ready")], "nodeInfo": info,
         "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "192.0.2.1"}]}, namespaced=False)
    add(*nodes, {}, {"conditions": [condition("Ready", "Unknown")], "nodeInfo": {**info, "architecture": "", "osImage": ""}}, namespaced=False)
    events()
    add("coordination.k8s.io/v1", "leases", "Lease", {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}})
    add("coordination.k8s.io/v1", "leases", "Lease", {})


def events():
    involved = {"kind": "Pod", "namespace": NAMESPACE, "name": "p", "fieldPath": "spec.containers{app}"}
    old = ("v1", "events", "Event")
    add(*old, {"involvedObject": involved, "reason": "Killing", "message": " Stopping it\n", "type": "Normal", "count": 3, "firstTimestamp": ago(hours=5, minutes=4),
               "lastTimestamp": ago(minutes=6), "source": {"component": "kubelet", "host": "n1"}})
    add(*old, {"involvedObject": {"kind": "Node", "namespace": NAMESPACE}, "reason": "R", "type": "Warning", "source": {"component": "c"}})
    new = {"metadata": {}, "eventTime": micro(days=2), "reportingComponent": "example.com/c", "reportingInstance": "i-1", "action": "Act", "reason": "R", "type": "Normal"}
    add(*old, {**new, "involvedObject": involved, "series": {"count": 8, "lastObservedTime": micro(minutes=2, seconds=30)}})
    add(*old, {**new, "involvedObject": involved}, read_as=None)
    for more in ({}, {"series": {"count": 8, "lastObservedTime": micro(minutes=2, seconds=30)}}):
        add("events.k8s.io/v1", "events", "Event", {**{k: v for k, v in new.items() if k != "reportingComponent"}, "reportingController": "example.com/c", "note": " text ", "regarding": involved, **more})


def cluster():
    subjects = [{"kind": "User", "name": "u1", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "User", "name": "u2", "apiGroup": "rbac.authorization.k8s.io"},
                {"kind": "Group", "name": "g", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]
    rbac = "rbac.authorization.k8s.io/v1"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    add(rbac, "rolebindings", "RoleBinding", {"roleRef": role, "subjects": subjects})
    add(rbac, "clusterrolebindings", "ClusterRoleBinding", {"roleRef": role, "subjects": subjects[:1]}, namespaced=False)
    add(rbac, "roles", "Role", {"rules": []})
    add(rbac, "clusterroles", "ClusterRole", {"rules": []}, namespaced=False)
    admission = "admissionregistration.k8s.io/v1"
    hook = {"name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    for kind in ("Validating", "Mutating"):
        add(admission, f"{kind.lower()}webhookconfigurations", f"{kind}WebhookConfiguration", {"webhooks": [hook, {**hook, "name": "b.example.com"}]}, namespaced=False)
    match = {"resourceRules": [{"apiGroups": ["record.windlass.test"], "apiVersions": ["v1"], "resources": ["x"], "operations": ["CREATE"]}]}
    for param in ({}, {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}):
        add(admission, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", {"spec": {"matchConstraints": match, "validations": [{"expression": "true"}], **param}}, namespaced=False)
        add(admission, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", {"spec": {"matchConstraints": match, "reinvocationPolicy": "Never", **param, "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}]}}, namespaced=False)
    for ref in ({}, {"name": "p"}, {"name": "p", "namespace": "n"}, {"selector": {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": SELECTOR["matchExpressions"]}}, {"selector": {}}):
        param = {"paramRef": {**ref, "parameterNotFoundAction": "Allow"}} if ref else {}
        add(admission, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", {"spec": {"policyName": "none", "validationActions": ["Deny"], **param}}, namespaced=False)
        add(admission, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", {"spec": {"policyName": "none", **param}}, namespaced=False)
    signing_requests()
    add("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", {"value": 1000}, namespaced=False)
    add("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", {"value": -5, "preemptionPolicy": "Never", "description": "d"}, namespaced=False)
    add("node.k8s.io/v1", "runtimeclasses", "RuntimeClass", {"handler": "runsc"}, namespaced=False)
    flow = "flowcontrol.apiserver.k8s.io/v1"
    for name in ("exempt", "catch-all", "system-nodes"):
        read(flow, "FlowSchema", f"/apis/{flow}/flowschemas/{name}")
    for name in ("exempt", "catch-all", "system"):
        read(flow, "PriorityLevelConfiguration", f"/apis/{flow}/prioritylevelconfigurations/{name}")
    services = ("apiregistration.k8s.io/v1", "apiservices", "APIService")
    read(services[0], services[2], "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps")
    remote = {"group": "record.windlass.test", "version": "v9", "service": {"namespace": "n", "name": "s"}, "groupPriorityMinimum": 1, "versionPriority": 1, "insecureSkipTLSVerify": True}
    add(*services, {"metadata": {"name": "v9.record.windlass.test"}, "spec": remote}, {"conditions": [condition("Available", "False", reason="Gone")]}, namespaced=False)
    devices()


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def signing_request(*form):
    """A request for a certificate, in base64."""
    with tempfile.TemporaryDirectory() as folder:
        openssl(folder, "req", "-new", "-newkey", "rsa:3072", "-nodes", "-subj", "/CN=record", "-keyout", "key", "-out", "csr", *form)
        return base64.b64encode(open(f"{folder}/csr", "rb").read()).decode()


def signing_requests():
    base = {"request": signing_request(), "signerName": "example.com/signer", "usages": ["client auth"]}
    for seconds, kinds in ((None, []), (3600, ["Approved"]), (86400 * 3, ["Denied"]), (600, ["Failed"])):
        path = ("certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest")
        spec = base if seconds is None else {**base, "expirationSeconds": seconds}
        conditions = [condition(kind, reason="R") for kind in kinds]
        add(*path, {"spec": spec}, {"conditions": conditions} if kinds else None, namespaced=False, subresource="status" if "Failed" in kinds else "approval")


def early():
    def since(kind, status="True", **span):
        return condition(kind, status, reason="Because", message="", lastTransitionTime=ago(**span))
    candidate = {"leaseName": "l", "pingTime": micro(minutes=1), "renewTime": micro(minutes=1), "binaryVersion": "1.36.0", "emulationVersion": "1.35.0", "strategy": "OldestEmulationVersion"}
    add("coordination.k8s.io/v1beta1", "leasecandidates", "LeaseCandidate", {"spec": candidate})
    with tempfile.TemporaryDirectory() as folder:
        openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=record", "-addext", "basicConstraints=critical,CA:TRUE", "-keyout", "key", "-out", "ca")
        bundle = open(f"{folder}/ca").read()
    trust = ("certificates.k8s.io/v1beta1", "clustertrustbundles", "ClusterTrustBundle")
    add(*trust, {"spec": {"trustBundle": bundle}}, namespaced=False)
    add(*trust, {"metadata": {"name": "example.com:signer:a"}, "spec": {"signerName": "example.com/signer", "trustBundle": bundle}}, namespaced=False)
    pod = {"signerName": "example.com/signer", "podName": "p", "podUID": "1", "serviceAccountName": "default", "serviceAccountUID": "2", "nodeName": "n", "nodeUID": "3",
           "stubPKCS10Request": signing_request("-outform", "DER"), "unverifiedUserAnnotations": {"example.com/b": "2", "example.com/a": "1"}}
    for conditions in ([], ["Denied"], ["Failed"]):
        add("certificates.k8s.io/v1beta1", "podcertificaterequests", "PodCertificateRequest", {"spec": pod}, {"conditions": [since(kind, minutes=1) for kind in conditions]} if conditions else None)
    versions = [{"apiServerID": f"s{n}", "encodingVersion": "v1", "decodableVersions": ["v1"], "servedVersions": ["v1"]} for n in range(4)]
    for count in (0, 2, 4):
        status = {"storageVersions": versions[:count], "commonEncodingVersion": "v1"} if count else None
        add("internal.apiserver.k8s.io/v1alpha1", "storageversions", "StorageVersion", {"metadata": {"name": f"record.x{count}"}, "spec": {}}, status, namespaced=False)
    migrations = ("storagemigration.k8s.io/v1beta1", "storageversionmigrations", "StorageVersionMigration")
    add(*migrations, {"spec": {"resource": {"group": "apps", "resource": "deployments"}}}, namespaced=False)
    for done in (["Running"], ["Succeeded"], ["Failed"]):
        add(*migrations, {"spec": {"resource": {"group": "", "resource": "pods"}}}, {"resourceVersion": "1", "conditions": [since(kind, minutes=1) for kind in done]}, namespaced=False)
    policies = {"gang": {"minCount": 3}}, {"basic": {}}
    workload = {"spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": policies[1]}]}}
    add("scheduling.k8s.io/v1alpha2", "workloads", "Workload", workload)
    referred = collection("scheduling.k8s.io/v1alpha2", "workloads")
    must("POST", referred, {"metadata": {"name": "w"}, **workload})
    groups = ("scheduling.k8s.io/v1alpha2", "podgroups", "PodGroup")
    for policy in policies:
        add(*groups, {"spec": {"schedulingPolicy": policy}})
    reference = {"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}}
    for conditions in ([since("PodGroupScheduled", minutes=1)], [since("PodGroupScheduled", "False", minutes=1)], [since("PodGroupScheduled", minutes=1), since("DisruptionTarget", minutes=1)]):
        add(*groups, {"spec": {"schedulingPolicy": policies[1], **reference}}, {"conditions": conditions})
        add(*groups, {"spec": {"schedulingPolicy": policies[1]}}, {"conditions": conditions})
    remove(f"{referred}/w")
    rules = ("resource.k8s.io/v1beta2", "devicetaintrules", "DeviceTaintRule")
    add(*rules, {"spec": {"taint": {"key": "example.com/k", "value": "v", "effect": "NoSchedule", "timeAdded": ago(hours=9)}}}, namespaced=False)
    add(*rules, {"spec": {"deviceSelector": {"driver": "d.example.com"}, "taint": {"key": "example.com/k", "effect": "NoExecute"}}}, namespaced=False)
    pools = [{"driver": "d.example.com", "poolName": f"p{n}", "generation": 1, "resourceSliceCount": 1, "totalDevices": 4, "allocatedDevices": n, "availableDevices": 3 - n, "unavailableDevices": 1} for n in range(2)]
    broken = {"driver": "d.example.com", "poolName": "p9", "generation": 1, "validationError": "odd"}
    requests = ("resource.k8s.io/v1alpha3", "resourcepoolstatusrequests", "ResourcePoolStatusRequest")
    for status in (None, {"poolCount": 2, "pools": pools, "conditions": [since("Complete", minutes=7)]}, {"poolCount": 5, "pools": pools + [broken], "conditions": [since("Complete", minutes=8)]},
                   {"poolCount": 0, "conditions": [since("Failed", minutes=9)]}):
        add(*requests, {"spec": {"driver": "d.example.com"}}, status, namespaced=False)


def devices():
    api = "resource.k8s.io/v1"
    add(api, "deviceclasses", "DeviceClass", {"spec": {}}, namespaced=False)
    requests = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    add(api, "resourceclaims", "ResourceClaim", {"spec": requests})
    allocation = {"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]}}
    add(api, "resourceclaims", "ResourceClaim", {"spec": requests}, {"allocation": allocation})
    add(api, "resourceclaims", "ResourceClaim", {"spec": requests}, {"allocation": allocation, "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}]})
    add(api, "resourceclaims", "ResourceClaim", {"spec": requests}, deleted=True)
    add(api, "resourceclaimtemplates", "ResourceClaimTemplate", {"spec": {"spec": requests}})
    slice_ = {"driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "x"}]}
    add(api, "resourceslices", "ResourceSlice", {"spec": {**slice_, "nodeName": "n"}}, namespaced=False)
    add(api, "resourceslices", "ResourceSlice", {"spec": {**slice_, "allNodes": True}}, namespaced=False)


COLUMNS = [("S", "string", ".spec.text"), ("I", "integer", ".spec.int"), ("F", "number", ".spec.float"), ("B", "boolean", ".spec.bool"), ("D", "date", ".spec.date"),
           ("SI", "string", ".spec.int"), ("SF", "string", ".spec.float"), ("SB", "string", ".spec.bool"), ("SL", "string", ".spec.list"), ("SM", "string", ".spec.map"),
           ("IF", "integer", ".spec.float"), ("NI", "number", ".spec.int"), ("IS", "integer", ".spec.text"), ("BS", "boolean", ".spec.text"), ("DS", "date", ".spec.text"),
           ("DI", "date", ".spec.int"), ("First", "string", ".spec.list[0]"), ("Last", "string", ".spec.list[-1]"), ("All", "string", ".spec.list[*]"), ("Out", "string", ".spec.list[9]"),
           ("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'), ("Single", "string", ".status.conditions[?(@.type=='Ready')].status"),
           ("Big", "string", ".status.conditions[?(@.n>3)].type"), ("Key", "string", r".metadata.labels['a\.b/c']"), ("Unescaped", "string", ".metadata.labels['a.b/c']"),
           ("Deep", "string", ".spec.deep.x.y"), ("Age", "date", ".metadata.creationTimestamp"), ("Nil", "string", ".spec.nil"), ("NilI", "integer", ".spec.nil")]


def custom():
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    name = "gadgets.record.windlass.test"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}

    def version(name, storage, columns):
        columns = [{"name": name, "type": kind, "jsonPath": path, **({"priority": 1, "description": "Words."} if name == "S" else {})} for name, kind, path in columns]
        return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": columns}
    must("POST", definitions, {"metadata": {"name": name}, "spec": {"group": "record.windlass.test", "scope": "Namespaced", "names": {
        "plural": "gadgets", "kind": "Gadget", "listKind": "GadgetList", "singular": "gadget"}, "versions": [version("v1", True, COLUMNS), version("v2", False, [])]}})
    rows = []
    try:
        path = collection("record.windlass.test/v1", "gadgets")
        while request("GET", path)[0] != 200:
            time.sleep(0.1)
        full = {"text": "a <b>", "int": 7, "float": 2.5, "bool": True, "date": ago(days=3, hours=4), "list": ["x", 1, {"b": "<", "a": 1.5}], "map": {"z": 1, "a": [True, None]}, "deep": {"x": {"y": "z"}}, "nil": None}
        odd = {"text": "", "int": 3.0, "float": 4, "bool": False, "date": "yesterday", "list": [], "map": {}, "deep": {"x": 1}}
        conditions = [{"type": "Ready", "status": "True", "n": 3}, {"type": "Done", "status": "False", "n": 4}]
        for i, (spec, conditions) in enumerate([(full, conditions), (odd, []), ({}, None), ({"float": 1e21, "int": 1e15, "date": ""}, conditions[1:])]):
            item = f"{path}/g{i}"
            must("POST", path, {"apiVersion": "record.windlass.test/v1", "kind": "Gadget", "metadata": {"name": f"g{i}", "labels": {"a.b/c": "l"}}, "spec": spec,
                                **({} if conditions is None else {"status": {"conditions": conditions}})})
            for place in (item, item.replace("/v1/", "/v2/")):
                table, now = cells(place)
                declared = [{"name": name, "type": kind, "jsonPath": path, **({"priority": 1, "description": "Words."} if name == "S" else {})} for name, kind, path in COLUMNS] if place == item else []
                rows.append({"declared": declared, "now": now, "object": lean(must("GET", place)), "definitions": table["columnDefinitions"], "cells": table["rows"][0]["cells"]})
            remove(item)
    finally:
        request("DELETE", f"{definitions}/{name}")
    write("print/custom.jsonl", rows)


prepare()
parts = (early,) if sys.argv[1:] == ["early"] else (workloads, network, storage, core, cluster)
if early not in parts:
    custom()
for part in parts:
    ROWS.clear()
    part()
    write(f"print/{part.__name__}.jsonl", ROWS)
