"""What runs against a real server showed: checks that overlap, warnings, and what is read into an object."""
from .build import create, obj, pod, status, template, update, workload

NETWORK, BATCH, APPS = "networking.k8s.io/v1", "batch/v1", "apps/v1"
TAINTS = [{"key": "k", "value": "v", "effect": "NoExecute"}, {"key": "k", "effect": "NoExecute"}]


def node(**spec):
    return obj("v1", "Node", spec=spec)


def volume(**spec):
    base = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    return obj("v1", "PersistentVolume", spec={**base, **spec})


def claim(**spec):
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return obj("v1", "PersistentVolumeClaim", spec={**base, **spec})


def service(**spec):
    return obj("v1", "Service", spec={"ports": [{"port": 80}], "selector": {"a": "b"}, **spec})


def endpoints(kind, *addresses, **more):
    return obj("discovery.k8s.io/v1", "EndpointSlice", addressType=kind, endpoints=[{"addresses": list(addresses)}], **more)


def job(name="x", **spec):
    return obj(BATCH, "Job", name, spec={"template": {"spec": {"containers": [{"name": "a", "image": "i"}], "restartPolicy": "Never"}}, **spec})


def cron(name="x", **spec):
    return obj(BATCH, "CronJob", name, spec={"schedule": "* * * * *", "jobTemplate": {"spec": job()["spec"]}, **spec})


def metric(**more):
    target = {"apiVersion": APPS, "kind": "Deployment", "name": "d"}
    return obj("autoscaling/v2", "HorizontalPodAutoscaler", spec={"maxReplicas": 3, "scaleTargetRef": target, "metrics": [more]})


FAILURE = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}

CASES = [
    create("refused: taints twice", node(taints=TAINTS)),
    create("refused: taint value", node(taints=[{"key": "k", "value": "a b", "effect": "NoExecute"}])),
    create("refused: node network", node(podCIDR="x", taints=TAINTS)),
    create("node network", node(podCIDR="10.1.0.0/24")),
    create("refused: node networks of one family", node(podCIDRs=["10.1.0.0/24", "10.2.0.0/24"])),
    update("node found", node(), {"taint": {"spec": {"taints": [{"key": "k", "effect": "Other"}]}}, "taints": {"spec": {"taints": TAINTS}}}),
    create("refused: quota name", obj("v1", "ResourceQuota", spec={"hard": {"bad name": "1"}})),
    create("refused: quota unknown", obj("v1", "ResourceQuota", spec={"hard": {"unknown": "1"}})),
    status("quota found", obj("v1", "ResourceQuota", spec={"hard": {"cpu": "1"}}), {"name": {"status": {"hard": {"bad name": "1"}}}}),
    create("refused: zone unknown", cron(timeZone="Nowhere")),
    create("refused: zone spelling", cron(timeZone="europe/berlin")),
    create("zone", cron(timeZone="Europe/Berlin")),
    create("slice of names", endpoints("FQDN", "a.example.com")),
    create("refused: slice of short names", endpoints("FQDN", "x")),
    create("refused: slice of other family", endpoints("IPv6", "1.2.3.4")),
    create("refused: slice of loopback", endpoints("IPv4", "127.0.0.1")),
    create("refused: slice protocol", endpoints("IPv4", "1.2.3.4", ports=[{"port": 1, "appProtocol": "a b"}])),
    create("refused: metric type", metric(type="Other")),
    create("refused: family of address", service(ipFamilies=["IPv6"], clusterIP="1.2.3.4")),
    create("refused: source ranges", service(loadBalancerSourceRanges=["x"])),
    create("source ranges", service(type="LoadBalancer", loadBalancerSourceRanges=[" 10.0.0.0/8"])),
    create("service with a name", service(externalName="a_b")),
    create("headless service that keeps to clients", service(clusterIP="None", sessionAffinity="ClientIP")),
    create("service close by", service(trafficDistribution="PreferClose")),
    create("refused: ingress class controller", obj(NETWORK, "IngressClass", spec={"controller": "x"})),
    create("refused: ingress class host", obj(NETWORK, "IngressClass", spec={"controller": "A/b"})),
    update("ingress class found", obj(NETWORK, "IngressClass", spec={"controller": "a.b/c"}), {"controller": {"spec": {"controller": "x"}}}),
    update("runtime class found", obj("node.k8s.io/v1", "RuntimeClass", handler="h"), {"handler": {"handler": "H"}, "none": {"handler": ""}}),
    create("volume recycled", volume(persistentVolumeReclaimPolicy="Recycle")),
    update("volume found", volume(), {"modes": {"spec": {"accessModes": []}}, "capacity": {"spec": {"capacity": {"cpu": "1"}}}, "mode": {"spec": {"volumeMode": "Other"}}}),
    update("claim found", claim(), {"class": {"spec": {"storageClassName": ""}}, "class name": {"spec": {"storageClassName": "s"}}, "smaller": {"spec": {"resources": {"requests": {"storage": "1Mi"}}}}}),
    update("claim bound found", claim(), {"size": {"spec": {"resources": {"requests": None}}}}, steps=[("status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}})]),
    create("refused: dns none", pod(dnsPolicy="None")),
    create("refused: dns none without servers", pod(dnsPolicy="None", dnsConfig={"searches": ["a"]})),
    create("dns none", pod(dnsPolicy="None", dnsConfig={"nameservers": ["1.2.3.4"]})),
    create("refused: dns server", pod(dnsConfig={"nameservers": ["x"]})),
    status("pod address", pod(), {"old field": {"status": {"podIP": "1.2.3.4"}}, "new field": {"status": {"podIPs": [{"ip": "1.2.3.4"}]}}}),
    create("deployment name", workload("Deployment", name="a.b")),
    create("replica set name", workload("ReplicaSet", name="a.b")),
    create("job name", job("a.b")),
    create("cron job name", cron("a.b")),
    create("controller name", obj("v1", "ReplicationController", "a.b", spec={"selector": {"app": "x"}, "template": template()})),
    create("stateful set history", workload("StatefulSet", revisionHistoryLimit=-1)),
    update("job found", job(), {"failure policy": {"spec": {"podFailurePolicy": FAILURE}}, "restart": {"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}}),
    update("job without selector", job(), {"anew": lambda stored: {**job(), "metadata": stored["metadata"]}}),
    create("refused: job index", job(podFailurePolicy={"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}]})),
    create("refused: job replacement", job(podFailurePolicy=FAILURE, podReplacementPolicy="TerminatingOrFailed")),
    create("budget metadata", obj("policy/v1", "PodDisruptionBudget", metadata={"finalizers": ["x"]}, spec={"minAvailable": 1})),
    create("refused: event", obj("events.k8s.io/v1", "Event", eventTime="2020-01-02T03:04:05.000006Z", reportingController="x.y/z", reportingInstance="i", action="Do", reason="R", note="m", type="Normal")),
]

LABELS = {"metadata": {"labels": {"a b": "c"}, "finalizers": ["x", "a b"]}}
for api_version, kind, fields in [
    ("v1", "ConfigMap", {}), ("v1", "Secret", {}), ("v1", "ServiceAccount", {}), ("v1", "LimitRange", {"spec": {"limits": []}}),
    ("v1", "ResourceQuota", {}), ("v1", "Endpoints", {}), ("v1", "PersistentVolumeClaim", claim()), ("v1", "PersistentVolume", volume()),
    ("v1", "Pod", pod()), ("v1", "PodTemplate", {"template": template()}), ("v1", "Node", {}), ("v1", "Namespace", {}), ("v1", "Service", service()),
    ("v1", "ReplicationController", {"spec": {"selector": {"app": "x"}, "template": template()}}),
    (APPS, "Deployment", workload("Deployment")), (APPS, "ReplicaSet", workload("ReplicaSet")), (APPS, "DaemonSet", workload("DaemonSet")),
    (APPS, "StatefulSet", workload("StatefulSet")), (APPS, "ControllerRevision", {"data": {}, "revision": 1}), (BATCH, "Job", job()), (BATCH, "CronJob", cron()),
    ("coordination.k8s.io/v1", "Lease", {}), ("discovery.k8s.io/v1", "EndpointSlice", endpoints("IPv4", "1.2.3.4")), ("policy/v1", "PodDisruptionBudget", {}),
    (NETWORK, "NetworkPolicy", {"spec": {"podSelector": {}}}), (NETWORK, "IngressClass", {"spec": {"controller": "a.b/c"}}),
    (NETWORK, "Ingress", {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
    ("rbac.authorization.k8s.io/v1", "Role", {}), ("rbac.authorization.k8s.io/v1", "ClusterRole", {}),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}}),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}}),
    ("scheduling.k8s.io/v1", "PriorityClass", {"value": 1}), ("storage.k8s.io/v1", "StorageClass", {"provisioner": "a.b/c"}), ("storage.k8s.io/v1", "CSIDriver", {"spec": {}}),
    ("storage.k8s.io/v1", "CSINode", {"spec": {"drivers": []}}), ("node.k8s.io/v1", "RuntimeClass", {"handler": "h"}),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", {}), ("autoscaling/v2", "HorizontalPodAutoscaler", metric(type="Resource", resource={"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}})),
]:
    fields = {k: v for k, v in fields.items() if k not in ("apiVersion", "kind", "metadata")}
    CASES.append(update(f"metadata of {kind}", obj(api_version, kind, f"found-{kind.lower()}", **fields), {"faults": LABELS}))
