"""What the admission plugins that are on by default do, and kinds that the other files leave out."""
from .build import container, create, obj, pod, update


def limits(*items):
    return obj("v1", "LimitRange", "limits", spec={"limits": list(items)})


def claim(size):
    return obj("v1", "PersistentVolumeClaim", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}})


def runtime(**fields):
    return obj("node.k8s.io/v1", "RuntimeClass", "r", handler="h", **fields)


BOTH = limits({"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}})
BOUNDS = limits({"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "2"}})
POD = limits({"type": "Pod", "min": {"cpu": "500m"}, "max": {"cpu": "2", "memory": "2Gi"}})
CLAIM = limits({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}})
ADMIT = "admissionregistration.k8s.io/v1"
MATCH = {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]}


def cpu(requests=None, limits=None):
    resources = {}
    if requests:
        resources["requests"] = {"cpu": requests}
    if limits:
        resources["limits"] = {"cpu": limits}
    return container(resources=resources)


CASES = [
    create("limits fill a pod", pod(), world=[BOTH]),
    create("limits fill the rest of a pod", pod(cpu("200m"), initContainers=[{"name": "i", "image": "b"}]), world=[BOTH]),
    create("limits leave a full pod", pod(container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})), world=[BOTH]),
    create("within bounds", pod(cpu("500m", "1")), world=[BOUNDS]),
    create("refused: below minimum", pod(cpu("50m", "100m")), world=[BOUNDS]),
    create("refused: above maximum", pod(cpu("1", "2")), world=[BOUNDS]),
    create("refused: ratio", pod(cpu("100m", "1")), world=[BOUNDS]),
    create("refused: pod below minimum", pod(cpu("100m", "100m")), world=[POD]),
    create("refused: pod above maximum", pod(container(resources={"limits": {"cpu": "3", "memory": "3Gi"}})), world=[POD]),
    create("pod within", pod(container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})), world=[POD]),
    create("claim within", claim("2Gi"), world=[CLAIM]),
    create("refused: claim too small", claim("1Mi"), world=[CLAIM]),
    create("refused: claim too big", claim("6Gi"), world=[CLAIM]),
    create("runtime class", pod(runtimeClassName="r"), world=[runtime()]),
    create("runtime class overhead", pod(runtimeClassName="r"), world=[runtime(overhead={"podFixed": {"cpu": "100m"}}, scheduling={"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]})]),
    create("refused: runtime class missing", pod(runtimeClassName="nobody")),
    create("refused: overhead without class", pod(overhead={"cpu": "1"})),
    create("refused: overhead differs", pod(runtimeClassName="r", overhead={"cpu": "1"}), world=[runtime(overhead={"podFixed": {"cpu": "100m"}})]),
    create("refused: node selector differs", pod(runtimeClassName="r", nodeSelector={"a": "c"}), world=[runtime(scheduling={"nodeSelector": {"a": "b"}})]),
    create("newest default class wins", claim("1Gi"), world=[
        obj("storage.k8s.io/v1", "StorageClass", "b", metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, provisioner="p"),
        obj("storage.k8s.io/v1", "StorageClass", "a", metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, provisioner="p")]),
    create("service cidr", obj("networking.k8s.io/v1", "ServiceCIDR", "cidr", spec={"cidrs": ["10.9.0.0/24"]})),
    create("refused: service cidr", obj("networking.k8s.io/v1", "ServiceCIDR", "cidr", spec={"cidrs": ["x"]})),
    create("refused: service cidr empty", obj("networking.k8s.io/v1", "ServiceCIDR", "cidr", spec={"cidrs": []})),
    create("ip address", obj("networking.k8s.io/v1", "IPAddress", "10.9.0.5", spec={"parentRef": {"resource": "services", "namespace": "n", "name": "s"}})),
    create("refused: ip address name", obj("networking.k8s.io/v1", "IPAddress", "x", spec={"parentRef": {"resource": "services", "name": "s"}})),
    create("refused: ip address parent", obj("networking.k8s.io/v1", "IPAddress", "10.9.0.5", spec={})),
    create("mutating policy", obj(ADMIT, "MutatingAdmissionPolicy", spec={"matchConstraints": MATCH, "reinvocationPolicy": "Never", "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{spec: Object.spec{replicas: 1}}"}}]})),
    create("mutating policy binding", obj(ADMIT, "MutatingAdmissionPolicyBinding", spec={"policyName": "p"})),
    create("device class", obj("resource.k8s.io/v1", "DeviceClass", spec={"selectors": [{"cel": {"expression": "true"}}]})),
    create("resource claim", obj("resource.k8s.io/v1", "ResourceClaim", spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}})),
    create("resource claim first available", obj("resource.k8s.io/v1", "ResourceClaim", spec={"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]}]}})),
    create("resource claim template", obj("resource.k8s.io/v1", "ResourceClaimTemplate", spec={"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "All"}}]}}})),
    update("resource claim", obj("resource.k8s.io/v1", "ResourceClaim", spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}), {
        "labels": {"metadata": {"labels": {"a": "b"}}},
        "spec": {"spec": {"devices": {"requests": [{"name": "q", "exactly": {"deviceClassName": "c"}}]}}},
    }),
    create("resource slice", obj("resource.k8s.io/v1", "ResourceSlice", spec={"driver": "d.io", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "dev"}]})),
]
