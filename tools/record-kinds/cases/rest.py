"""All groups besides core, apps and batch."""
from .build import SELECTOR, create, obj, status, template, update

PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
RBAC = "rbac.authorization.k8s.io/v1"
NET = "networking.k8s.io/v1"
STORE = "storage.k8s.io/v1"
ADMIT = "admissionregistration.k8s.io/v1"
FLOW = "flowcontrol.apiserver.k8s.io/v1"


def role(kind="Role", **fields):
    return obj(RBAC, kind, **{"rules": [PODS], **fields})


def binding(kind="RoleBinding", **fields):
    return obj(RBAC, kind, **{"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}], **fields})


def budget(**spec):
    return obj("policy/v1", "PodDisruptionBudget", spec={"selector": SELECTOR, **spec})


def hpa(version="v2", **spec):
    return obj(f"autoscaling/{version}", "HorizontalPodAutoscaler", spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 5, **spec})


def ingress(**spec):
    return obj(NET, "Ingress", spec=spec)


BACKEND = {"service": {"name": "s", "port": {"number": 80}}}


def rule(**path):
    return {"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND, **path}]}}


def policy(**spec):
    return obj(NET, "NetworkPolicy", spec={"podSelector": {}, **spec})


def slice_(**fields):
    return obj("discovery.k8s.io/v1", "EndpointSlice", **{"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80}], **fields})


def webhook(kind="ValidatingWebhookConfiguration", **fields):
    hook = {"name": "a.b.c", "clientConfig": {"service": {"namespace": "n", "name": "s"}}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}], **fields}
    return obj(ADMIT, kind, webhooks=[{k: v for k, v in hook.items() if v is not None}])


def admission_policy(**spec):
    return obj(ADMIT, "ValidatingAdmissionPolicy", spec={"matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}]},
        "validations": [{"expression": "object.spec.replicas <= 5"}], **spec})


def event(**fields):
    return obj("events.k8s.io/v1", "Event", **{"eventTime": "2020-01-01T00:00:00.000000Z", "reportingController": "a.b/c", "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "record-kinds"}, **fields})


CASES = [
    # policy
    create("budget", budget(minAvailable=1)),
    create("budget percent", budget(maxUnavailable="50%", unhealthyPodEvictionPolicy="AlwaysAllow")),
    create("refused: budget both", budget(minAvailable=1, maxUnavailable=1)),
    create("refused: budget negative", budget(minAvailable=-1)),
    create("refused: budget percent", budget(minAvailable="101%")),
    create("refused: budget policy", budget(unhealthyPodEvictionPolicy="Maybe")),
    create("refused: budget selector", budget(selector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]})),
    update("budget", budget(minAvailable=1), {"min": {"spec": {"minAvailable": 2}}, "status": {"status": {"currentHealthy": 3}}, "labels": {"metadata": {"labels": {"a": "b"}}}}),
    status("budget", budget(minAvailable=1), {"numbers": {"status": {"currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3, "disruptionsAllowed": 2}}, "negative": {"status": {"currentHealthy": -3}}}),
    # coordination
    create("lease", obj("coordination.k8s.io/v1", "Lease")),
    create("lease values", obj("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0})),
    create("refused: lease duration", obj("coordination.k8s.io/v1", "Lease", spec={"leaseDurationSeconds": 0})),
    create("refused: lease transitions", obj("coordination.k8s.io/v1", "Lease", spec={"leaseTransitions": -1})),
    update("lease", obj("coordination.k8s.io/v1", "Lease", spec={"holderIdentity": "a"}), {"holder": {"spec": {"holderIdentity": "b"}}}),
    # discovery
    create("slice", slice_()),
    create("slice ports", slice_(ports=[{"name": "a", "port": 80, "protocol": "UDP"}, {"port": 81}])),
    create("refused: slice type", slice_(addressType="Post")),
    create("refused: slice without type", slice_(addressType="")),
    create("refused: slice address", slice_(endpoints=[{"addresses": ["x"]}])),
    create("refused: slice without addresses", slice_(endpoints=[{"addresses": []}])),
    create("refused: slice port twice", slice_(ports=[{"port": 80}, {"port": 81}])),
    update("slice", slice_(), {"type": {"addressType": "IPv6", "endpoints": []}, "endpoints": {"endpoints": []}, "labels": {"metadata": {"labels": {"a": "b"}}}, "annotations": {"metadata": {"annotations": {"a": "b"}}}}),
    # rbac
    create("role", role()),
    create("role name", obj(RBAC, "Role", "system:a:B", rules=[PODS])),
    create("cluster role", role("ClusterRole", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}])),
    create("cluster role aggregation", obj(RBAC, "ClusterRole", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})),
    create("refused: role name", obj(RBAC, "Role", "a/b", rules=[PODS])),
    create("refused: role without verbs", role(rules=[{"apiGroups": [""], "resources": ["pods"]}])),
    create("refused: role without groups", role(rules=[{"resources": ["pods"], "verbs": ["get"]}])),
    create("refused: role without resources", role(rules=[{"apiGroups": [""], "verbs": ["get"]}])),
    create("refused: role urls", role(rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}])),
    create("binding", binding()),
    create("binding subjects", binding(subjects=[{"kind": "ServiceAccount", "name": "sa", "namespace": "n"}, {"kind": "Group", "name": "g"}])),
    create("cluster binding", binding("ClusterRoleBinding")),
    create("refused: binding service account", binding(subjects=[{"kind": "ServiceAccount", "name": "sa"}], kind="ClusterRoleBinding")),
    create("refused: binding subject kind", binding(subjects=[{"kind": "Robot", "name": "sa"}])),
    create("refused: binding subject name", binding(subjects=[{"kind": "User", "name": ""}])),
    create("refused: binding subject group", binding(subjects=[{"kind": "User", "name": "u", "apiGroup": "x"}])),
    create("refused: binding role kind", binding(roleRef={"kind": "Thing", "name": "r"})),
    create("refused: binding role group", binding(roleRef={"kind": "Role", "name": "r", "apiGroup": "x"})),
    create("refused: binding role name", binding(roleRef={"kind": "Role", "name": ""})),
    create("refused: cluster binding to role", binding("ClusterRoleBinding", roleRef={"kind": "Role", "name": "r"})),
    update("binding", binding(roleRef={"kind": "ClusterRole", "name": "view"}), {"role": {"roleRef": {"name": "edit"}}, "subjects": {"subjects": [{"kind": "User", "name": "v"}]}}),
    update("cluster binding", binding("ClusterRoleBinding", roleRef={"kind": "ClusterRole", "name": "view"}), {"role": {"roleRef": {"name": "edit"}}}),
    # networking
    create("ingress backend", ingress(defaultBackend=BACKEND)),
    create("ingress rules", ingress(rules=[rule()], tls=[{"hosts": ["a.b"], "secretName": "s"}], ingressClassName="c")),
    create("ingress status is dropped", {**ingress(defaultBackend=BACKEND), "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
    create("ingress default class", ingress(defaultBackend=BACKEND), world=[obj(NET, "IngressClass", "std", metadata={"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}, spec={"controller": "a.b/c"})]),
    create("refused: ingress empty", ingress()),
    create("refused: ingress path type", ingress(rules=[rule(pathType="Fuzzy")])),
    create("refused: ingress without path type", ingress(rules=[rule(pathType=None)])),
    create("refused: ingress path", ingress(rules=[rule(path="x")])),
    create("refused: ingress host", ingress(rules=[{"host": "A b"}])),
    create("refused: ingress backend name", ingress(defaultBackend={"service": {"name": "", "port": {"number": 80}}})),
    create("refused: ingress backend port", ingress(defaultBackend={"service": {"name": "s"}})),
    create("refused: ingress no paths", ingress(rules=[{"http": {"paths": []}}])),
    create("refused: ingress class name", ingress(defaultBackend=BACKEND, ingressClassName="A")),
    update("ingress", ingress(defaultBackend=BACKEND), {"backend": {"spec": {"defaultBackend": {"service": {"name": "t"}}}}, "labels": {"metadata": {"labels": {"a": "b"}}}, "status": {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}}),
    create("ingress class", obj(NET, "IngressClass", spec={"controller": "a.b/c", "parameters": {"kind": "K", "name": "n", "apiGroup": "g"}})),
    create("refused: ingress class controller", obj(NET, "IngressClass", spec={"controller": ""})),
    create("refused: ingress class scope", obj(NET, "IngressClass", spec={"controller": "a.b/c", "parameters": {"kind": "K", "name": "n", "scope": "World"}})),
    update("ingress class", obj(NET, "IngressClass", spec={"controller": "a.b/c"}), {"controller": {"spec": {"controller": "a.b/d"}}, "parameters": {"spec": {"parameters": {"kind": "K", "name": "n"}}}}),
    create("network policy", policy()),
    create("network policy egress", policy(egress=[{"ports": [{"port": 80}]}], ingress=[{"from": [{"podSelector": {}}], "ports": [{"protocol": "UDP", "port": "dns"}]}])),
    create("refused: network policy protocol", policy(ingress=[{"ports": [{"protocol": "X"}]}])),
    create("refused: network policy port", policy(ingress=[{"ports": [{"port": 0}]}])),
    create("refused: network policy type", policy(policyTypes=["Sideways"])),
    create("refused: network policy cidr", policy(ingress=[{"from": [{"ipBlock": {"cidr": "x"}}]}])),
    create("refused: network policy except", policy(ingress=[{"from": [{"ipBlock": {"cidr": "10.0.0.0/24", "except": ["10.1.0.0/24"]}}]}])),
    create("refused: network policy peer", policy(ingress=[{"from": [{}]}])),
    create("refused: network policy peer both", policy(ingress=[{"from": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/24"}}]}])),
    update("network policy", policy(), {"egress": {"spec": {"policyTypes": ["Egress"]}}, "labels": {"metadata": {"labels": {"a": "b"}}}}),
    # storage
    create("storage class", obj(STORE, "StorageClass", provisioner="p")),
    create("storage class values", obj(STORE, "StorageClass", provisioner="p", reclaimPolicy="Retain", volumeBindingMode="WaitForFirstConsumer", parameters={"a": "b"}, allowVolumeExpansion=True)),
    create("refused: storage class provisioner", obj(STORE, "StorageClass", provisioner="")),
    create("refused: storage class reclaim", obj(STORE, "StorageClass", provisioner="p", reclaimPolicy="Burn")),
    create("refused: storage class mode", obj(STORE, "StorageClass", provisioner="p", volumeBindingMode="Later")),
    update("storage class", obj(STORE, "StorageClass", provisioner="p", parameters={"a": "b"}), {
        "provisioner": {"provisioner": "q"}, "parameters": {"parameters": {"a": "c"}}, "reclaim": {"reclaimPolicy": "Retain"}, "mode": {"volumeBindingMode": "WaitForFirstConsumer"}, "expansion": {"allowVolumeExpansion": True}}),
    create("csi driver", obj(STORE, "CSIDriver", "a.b", spec={})),
    create("csi driver values", obj(STORE, "CSIDriver", "a.b", spec={"attachRequired": False, "podInfoOnMount": True, "volumeLifecycleModes": ["Ephemeral"], "fsGroupPolicy": "File"})),
    create("refused: csi driver mode", obj(STORE, "CSIDriver", "a.b", spec={"volumeLifecycleModes": ["Short"]})),
    create("refused: csi driver policy", obj(STORE, "CSIDriver", "a.b", spec={"fsGroupPolicy": "Maybe"})),
    update("csi driver", obj(STORE, "CSIDriver", "a.b", spec={}), {"pod info": {"spec": {"podInfoOnMount": True}}, "attach": {"spec": {"attachRequired": False}}, "modes": {"spec": {"volumeLifecycleModes": ["Ephemeral"]}}}),
    create("csi node", obj(STORE, "CSINode", spec={"drivers": [{"name": "d", "nodeID": "n"}]})),
    create("refused: csi node", obj(STORE, "CSINode", spec={"drivers": [{"name": "d", "nodeID": ""}]})),
    update("csi node", obj(STORE, "CSINode", spec={"drivers": [{"name": "d", "nodeID": "n"}]}), {"driver changed": {"spec": {"drivers": [{"name": "d", "nodeID": "m"}]}}, "driver added": {"spec": {"drivers": [{"name": "d", "nodeID": "n"}, {"name": "e", "nodeID": "n"}]}}}),
    create("attachment", obj(STORE, "VolumeAttachment", spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}})),
    create("refused: attachment", obj(STORE, "VolumeAttachment", spec={"attacher": "", "nodeName": "", "source": {}})),
    update("attachment", obj(STORE, "VolumeAttachment", spec={"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}), {"node": {"spec": {"nodeName": "m"}}, "status": {"status": {"attached": True}}}),
    create("capacity", obj(STORE, "CSIStorageCapacity", storageClassName="s", capacity="1Gi", nodeTopology={"matchLabels": {"a": "b"}})),
    update("capacity", obj(STORE, "CSIStorageCapacity", storageClassName="s"), {"class": {"storageClassName": "t"}, "capacity": {"capacity": "2Gi"}}),
    create("attributes class", obj(STORE, "VolumeAttributesClass", driverName="d", parameters={"a": "b"})),
    update("attributes class", obj(STORE, "VolumeAttributesClass", driverName="d", parameters={"a": "b"}), {"driver": {"driverName": "e"}, "parameters": {"parameters": {"a": "c"}}}),
    # events
    create("new event", event()),
    create("refused: new event without action", event(action="")),
    create("refused: new event controller", event(reportingController="")),
    create("refused: new event type", event(type="Odd")),
    create("refused: new event without time", event(eventTime=None)),
    update("new event", event(), {"reason": {"reason": "S"}, "series": {"series": {"count": 2, "lastObservedTime": "2020-01-01T00:00:00.000000Z"}}}),
    # scheduling
    create("priority class", obj("scheduling.k8s.io/v1", "PriorityClass", value=5)),
    create("refused: priority class value", obj("scheduling.k8s.io/v1", "PriorityClass", value=2000000000)),
    create("refused: priority class system", obj("scheduling.k8s.io/v1", "PriorityClass", "system-x", value=5)),
    create("refused: priority class policy", obj("scheduling.k8s.io/v1", "PriorityClass", value=5, preemptionPolicy="Maybe")),
    create("refused: priority class second default", obj("scheduling.k8s.io/v1", "PriorityClass", value=5, globalDefault=True), world=[obj("scheduling.k8s.io/v1", "PriorityClass", "first", value=7, globalDefault=True)]),
    update("priority class", obj("scheduling.k8s.io/v1", "PriorityClass", value=5), {"value": {"value": 6}, "policy": {"preemptionPolicy": "Never"}, "description": {"description": "d"}}),
    # autoscaling
    create("hpa", hpa()),
    create("hpa v1", hpa("v1")),
    create("hpa v1 target", hpa("v1", targetCPUUtilizationPercentage=50)),
    create("hpa metric", hpa(metrics=[{"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1024Mi"}}}])),
    create("hpa behavior", hpa(behavior={"scaleDown": {"stabilizationWindowSeconds": 60}})),
    create("hpa behavior up", hpa(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}], "selectPolicy": "Min"}})),
    create("refused: hpa max", hpa(maxReplicas=0)),
    create("refused: hpa min", hpa(minReplicas=0)),
    create("refused: hpa max below min", hpa(minReplicas=6)),
    create("refused: hpa target kind", hpa(scaleTargetRef={"kind": "", "name": "d"})),
    create("refused: hpa target name", hpa(scaleTargetRef={"kind": "D", "name": ""})),
    create("refused: hpa metric type", hpa(metrics=[{"type": "Guess"}])),
    create("refused: hpa metric without source", hpa(metrics=[{"type": "Resource"}])),
    create("refused: hpa metric target", hpa(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}])),
    create("refused: hpa behavior", hpa(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 5}]}})),
    update("hpa", hpa(), {"max": {"spec": {"maxReplicas": 9}}, "status": {"status": {"currentReplicas": 3}}, "bad max": {"spec": {"maxReplicas": 0}}}),
    # admission
    create("validating webhook", webhook()),
    create("mutating webhook", webhook("MutatingWebhookConfiguration")),
    create("webhook url", webhook(clientConfig={"url": "https://a.b/c"}, failurePolicy="Ignore", matchPolicy="Exact", timeoutSeconds=3)),
    create("refused: webhook name", webhook(name="short")),
    create("refused: webhook timeout", webhook(timeoutSeconds=31)),
    create("refused: webhook side effects", webhook(sideEffects="Some")),
    create("refused: webhook without side effects", webhook(sideEffects=None)),
    create("refused: webhook url", webhook(clientConfig={"url": "http://a.b/c"})),
    create("refused: webhook both", webhook(clientConfig={"url": "https://a.b/c", "service": {"namespace": "n", "name": "s"}})),
    create("refused: webhook neither", webhook(clientConfig={})),
    create("refused: webhook policy", webhook(failurePolicy="Shrug")),
    create("refused: webhook versions", webhook(admissionReviewVersions=["v9"])),
    create("refused: webhook operation", webhook(rules=[{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["THINK"]}])),
    update("webhook", webhook(), {"labels": {"metadata": {"labels": {"a": "b"}}}, "timeout": lambda o: (o["webhooks"][0].update(timeoutSeconds=3), o)[1]}),
    create("admission policy", admission_policy()),
    create("admission policy binding", obj(ADMIT, "ValidatingAdmissionPolicyBinding", spec={"policyName": "p", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}})),
    create("refused: admission policy binding", obj(ADMIT, "ValidatingAdmissionPolicyBinding", spec={"policyName": "", "validationActions": []})),
    create("refused: admission policy failure policy", admission_policy(failurePolicy="Maybe")),
    update("admission policy", admission_policy(), {"policy": {"spec": {"failurePolicy": "Ignore"}}, "status": {"status": {"observedGeneration": 3}}}),
    # node, flow control, registration, certificates
    create("runtime class", obj("node.k8s.io/v1", "RuntimeClass", handler="h")),
    create("refused: runtime class handler", obj("node.k8s.io/v1", "RuntimeClass", handler="A_")),
    update("runtime class", obj("node.k8s.io/v1", "RuntimeClass", handler="h"), {"handler": {"handler": "i"}}),
    create("flow schema", obj(FLOW, "FlowSchema", spec={"priorityLevelConfiguration": {"name": "p"}})),
    create("refused: flow schema level", obj(FLOW, "FlowSchema", spec={"priorityLevelConfiguration": {"name": ""}})),
    create("priority level", obj(FLOW, "PriorityLevelConfiguration", spec={"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}})),
    create("priority level reject", obj(FLOW, "PriorityLevelConfiguration", spec={"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}})),
    create("refused: priority level type", obj(FLOW, "PriorityLevelConfiguration", spec={"type": "Odd"})),
    update("priority level", obj(FLOW, "PriorityLevelConfiguration", spec={"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}), {"shares": {"spec": {"limited": {"nominalConcurrencyShares": 5}}}}),
    create("api service", obj("apiregistration.k8s.io/v1", "APIService", "v1.a.b", spec={"group": "a.b", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, "insecureSkipTLSVerify": True, "service": {"namespace": "n", "name": "s"}})),
    create("refused: api service name", obj("apiregistration.k8s.io/v1", "APIService", "x", spec={"group": "a.b", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10})),
    create("refused: api service priority", obj("apiregistration.k8s.io/v1", "APIService", "v1.a.b", spec={"group": "a.b", "version": "v1"})),
]
