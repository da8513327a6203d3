"""Subresources that hold the object, and kinds that are decided through one."""
from .build import container, create, obj, pod, status, subresource, update

REQUEST = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQ1h6Q0NBVWNDQVFBd0dqRUxNQWtHQTFVRUF3d0NiV1V4Q3pBSkJnTlZCQW9NQW5Wek1JSUJJakFOQmdrcQpoa2lHOXcwQkFRRUZBQU9DQVE4QU1JSUJDZ0tDQVFFQXl2V1NDWnNTUTEzUnM4MkE1cVNWbHBncndzY3dBYktUCllpNjJsT3c2cHN3VDNMQjVGaGVxdDQvTkFoR3dBaUdVZkRUd0Y5Q05TSFI0a1dZcjBQVW1FUE9PcmN0MzE2MjQKaGpYYWkwZmhGd3pGaW1ORWlrUDllZ3lhb3d3TFJpL2xkN0h5ZU1xRWxpdDJTYzZQaTJ6NGFRNXRMSW1nQytXdAphNGpJeVNXMGtXRUtoZm8rRUNUbngycWRMNEdaNHJSMEZEMVpWU1o3VU5LaGsvS3FYQ1BNb3dsZjJvdjZCWk9MCm1yQ0REb0JsRDhPamtQTGJ6UHBGK2srdVFKVWdneHhGUENtVEp5YjR6eHZqYTVTeHpiajg4cGI3Z3I0S25NVC8KcTFKZVBUUkpLbi9IR1RwaG1BdGdVWXo4ZUM4K3pFaWhZY1RUZkJGaGZWMzJZTWFLUVgyK1ZRSURBUUFCb0FBdwpEUVlKS29aSWh2Y05BUUVMQlFBRGdnRUJBSm41ZjREMGN2cy91WnRpYnkrN3lYWXBCYnhxc0E0bmxtSGo3ckRGCnVJcDdER0lYR1BIN2lTWDl1TS9nYWQyRFkyWnBCYTcwQkU0ZlY1RHc5K1B6OTB2bDZWUzJFUkFHcHgrbjVqQnIKaStEWlFuSDNaSnVQY1RDdTJzOVp5NlI0MjBzbXFBdlhtQm9Jcm1qaXNnWHZVVitwbFBUcVFUdVdMRXhhdnhNWgprZGU3QW1BUml1L2xSQXJhVWkwSVNHL3FLcGlPUmZTNklRWXJUeGYrZVdIZDlLbXEvTC8xSEJDWVdFdTFuTVQ3CmtRNmlJTFRBMEhLenVPTGVubktKbHREL0hOVDJRdTJNUXVhS2dNemUyb1NPcWhmeERQTE95cGVDcGNQazhhRkgKYkhGWWhIVWh2MDl0eWQyODVsYlFRTThRK2gvbGxuc1VzT1pGRmJTcHowUEQxbTg9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo="


def change(function):
    def apply(stored):
        function(stored)
        return stored
    return apply


def signing(**spec):
    return obj("certificates.k8s.io/v1", "CertificateSigningRequest", spec={"request": REQUEST, "signerName": "a.b/c", "usages": ["client auth"], **spec})


def condition(kind, **more):
    return {"status": {"conditions": [{"type": kind, "status": "True", "reason": "R", "message": "M", **more}]}}


def resize(**resources):
    return change(lambda p: p["spec"]["containers"][0].update(resources=resources))


DEBUG = {"name": "debug", "image": "busybox"}

CASES = [
    subresource("pod", "ephemeralcontainers", pod(metadata={"labels": {"a": "b"}}), {
        "added": {"spec": {"ephemeralContainers": [DEBUG]}},
        "other changes are dropped": {"metadata": {"labels": {"c": "d"}}, "spec": {"nodeName": "n", "ephemeralContainers": [DEBUG]}},
        "nothing": {},
        "name taken": {"spec": {"ephemeralContainers": [{"name": "a", "image": "busybox"}]}},
        "without image": {"spec": {"ephemeralContainers": [{"name": "debug"}]}},
        "with ports": {"spec": {"ephemeralContainers": [{**DEBUG, "ports": [{"containerPort": 80}]}]}},
        "target": {"spec": {"ephemeralContainers": [{**DEBUG, "targetContainerName": "a"}]}},
        "target missing": {"spec": {"ephemeralContainers": [{**DEBUG, "targetContainerName": "z"}]}},
    }),
    subresource("pod with ephemeral", "ephemeralcontainers", pod(), {
        "removed": {"spec": {"ephemeralContainers": []}},
        "changed": {"spec": {"ephemeralContainers": [{**DEBUG, "image": "other"}]}},
        "second": change(lambda p: p["spec"]["ephemeralContainers"].append({"name": "more", "image": "busybox"})),
    }, steps=[("ephemeralcontainers", {"spec": {"ephemeralContainers": [DEBUG]}})]),
    update("pod with ephemeral", pod(), {
        "removed on the pod": {"spec": {"ephemeralContainers": []}},
        "labels": {"metadata": {"labels": {"a": "b"}}},
    }, steps=[("ephemeralcontainers", {"spec": {"ephemeralContainers": [DEBUG]}})]),
    subresource("pod", "resize", pod(container(resources={"requests": {"cpu": "1", "memory": "1Gi"}})), {
        "grows": resize(requests={"cpu": "2", "memory": "1Gi"}),
        "limits added": resize(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "3"}),
        "becomes guaranteed": resize(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"}),
        "request removed": resize(requests={"cpu": "1"}),
        "storage": resize(requests={"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}),
        "image is dropped": change(lambda p: p["spec"]["containers"][0].update(image="other")),
        "nothing": {},
    }),
    subresource("namespace", "finalize", obj("v1", "Namespace", "finalized"), {
        "emptied": {"spec": {"finalizers": []}},
        "other": {"spec": {"finalizers": ["a.b/c", "kubernetes"]}},
        "bad": {"spec": {"finalizers": ["mine"]}},
    }),
    status("namespace", obj("v1", "Namespace", "statused"), {
        "condition": {"status": {"phase": "Active", "conditions": [{"type": "T", "status": "True"}]}},
        "terminating": {"status": {"phase": "Terminating"}},
        "spec is ignored": {"spec": {"finalizers": []}},
    }),
    create("signing request", signing()),
    create("signing request user is ours", signing(username="someone", groups=["g"], uid="u", extra={"a": ["b"]})),
    create("refused: signing request without usages", signing(usages=[])),
    create("refused: signing request expiry", signing(expirationSeconds=5)),
    create("refused: signing request without signer", signing(signerName="")),
    create("refused: signing request signer", signing(signerName="abc")),
    create("refused: signing request usage", signing(usages=["fun"])),
    create("refused: signing request not PEM", signing(request="eA==")),
    update("signing request", signing(), {
        "spec is kept": {"spec": {"signerName": "x.y/z"}},
        "status is kept": condition("Approved"),
        "labels": {"metadata": {"labels": {"a": "b"}}},
    }),
    subresource("signing request", "approval", signing(), {
        "approved": condition("Approved"),
        "denied": condition("Denied"),
        "both": {"status": {"conditions": [{"type": "Approved", "status": "True"}, {"type": "Denied", "status": "True"}]}},
        "not true": condition("Approved", status="False"),
    }),
    status("signing request", signing(), {
        "failed": condition("Failed"),
        "approved": condition("Approved"),
    }),
    status("ingress", obj("networking.k8s.io/v1", "Ingress", spec={"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}), {
        "address": {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
        "spec is ignored": {"spec": {"ingressClassName": "x"}},
    }),
    status("job", obj("batch/v1", "Job", spec={"template": {"spec": {"restartPolicy": "Never", "containers": [container()]}}}), {
        "active": {"status": {"active": 1, "startTime": "2020-01-01T00:00:00Z", "ready": 0}},
        "negative": {"status": {"active": -1}},
    }),
    status("cron job", obj("batch/v1", "CronJob", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container()]}}}}}), {
        "last": {"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}},
    }),
    status("hpa", obj("autoscaling/v2", "HorizontalPodAutoscaler", spec={"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}), {
        "replicas": {"status": {"currentReplicas": 1, "desiredReplicas": 2}},
        "negative": {"status": {"currentReplicas": -1}},
    }),
    status("quota", obj("v1", "ResourceQuota", spec={"hard": {"pods": "10"}}), {
        "used": {"status": {"hard": {"pods": "10"}, "used": {"pods": "3"}}},
    }),
    status("controller", obj("v1", "ReplicationController", spec={"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}}), {
        "replicas": {"status": {"replicas": 2, "readyReplicas": 1}},
        "ready above replicas": {"status": {"replicas": 1, "readyReplicas": 2}},
    }),
]
