"""Small builders for manifests and cases."""
import copy


def create(name, obj, **more):
    return {"name": name, "verb": "create", "object": obj, **more}


def update(name, obj, patches, **more):
    return {"name": name, "verb": "update", "object": obj, "patches": patches, **more}


def status(name, obj, patches, **more):
    return {"name": name, "verb": "status", "object": obj, "patches": patches, **more}


def subresource(name, sub, obj, patches, **more):
    return {"name": name, "verb": sub, "object": obj, "patches": patches, **more}


def obj(api_version, kind, name="x", metadata=None, **fields):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **(metadata or {})}, **fields}


def container(**more):
    return {"name": "a", "image": "nginx", **more}


def pod_spec(*containers, **more):
    return {"containers": list(containers) or [container()], **more}


def pod(*containers, metadata=None, name="x", **spec):
    return obj("v1", "Pod", name, metadata, spec=pod_spec(*containers, **spec))


def template(*containers, labels=None, **spec):
    return {"metadata": {"labels": labels or {"app": "x"}}, "spec": pod_spec(*containers, **spec)}


SELECTOR = {"matchLabels": {"app": "x"}}


def workload(kind, api_version="apps/v1", name="x", **spec):
    return obj(api_version, kind, name, spec={"selector": copy.deepcopy(SELECTOR), "template": template(), **spec})
