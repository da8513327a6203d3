#!/usr/bin/env python3
"""Asks a real kube-apiserver what it answers to the cases of cases.py, and writes the answers down.

    KUBECONFIG=… tools/crd/record.py [case name …]

The server must be one that may be written to: definitions of the group `crdcases.example.com` are created and
deleted. The answers go to crates/windlass-apiserver/tests/data/crd, where a test replays them.
"""

import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import cases

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DATA = os.path.join(ROOT, "crates", "windlass-apiserver", "tests", "data", "crd")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Server:
    """The server that KUBECONFIG names; plain requests with its bearer token."""

    def __init__(self):
        kubectl = os.environ.get("KUBECTL", "kubectl")
        view = subprocess.run([kubectl, "config", "view", "--raw", "--minify", "-o", "json"], check=True, stdout=subprocess.PIPE)
        config = json.loads(view.stdout)
        self.url = config["clusters"][0]["cluster"]["server"]
        self.token = config["users"][0]["user"]["token"]
        self.tls = ssl._create_unverified_context()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.tls) as answer:
                warnings = [w.split('"', 1)[1].rsplit('"', 1)[0].replace('\\"', '"') for w in answer.headers.get_all("Warning") or []]
                return answer.status, json.load(answer), warnings
        except urllib.error.HTTPError as error:
            return error.code, json.load(error), []


def refusal(code, body):
    """The part of a Status that is compared."""
    causes = body.get("details", {}).get("causes", [])
    causes = [{k: c.get(k, "") for k in ("reason", "field", "message")} for c in causes]
    causes.sort(key=lambda c: (c["field"], c["reason"], c["message"]))
    return {"code": code, "reason": body.get("reason", ""), "causes": causes}


def definition_answer(server, crd, old=None):
    """What the server says to a definition, without keeping it."""
    code, body, warnings = server.call("POST", DEFINITIONS + "?dryRun=All", crd)
    if code != 201:
        return refusal(code, body)
    return {"code": code, "warnings": sorted(warnings), "spec": body["spec"], "status": body["status"]}


def record_definition(server, case):
    out = {"name": case["name"], "crd": case["crd"]}
    if "update" not in case:
        out["answer"] = definition_answer(server, case["crd"])
        return out
    path = DEFINITIONS + "/" + case["crd"]["metadata"]["name"]
    code, body, _ = server.call("POST", DEFINITIONS, case["crd"])
    assert code == 201, (case["name"], body)
    try:
        old = established(server, path)
        update = dict(case["update"], metadata=dict(old["metadata"], **case["update"].get("metadata", {})))
        code, body, _ = server.call("PUT", path + "?dryRun=All", update)
        out.update(old=strip(old), update=strip(update))
        out["answer"] = refusal(code, body) if code != 200 else {"code": code, "spec": body["spec"], "status": body["status"]}
    finally:
        server.call("DELETE", path)
    return out


def strip(crd):
    """A definition without what differs from run to run."""
    meta = {k: v for k, v in crd["metadata"].items() if k in ("name", "annotations", "generation")}
    return dict(crd, metadata=meta)


def established(server, path):
    for _ in range(200):
        _, body, _ = server.call("GET", path)
        conditions = body.get("status", {}).get("conditions") or []
        if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            return body
        time.sleep(0.05)
    raise SystemExit(f"{path} was not established")


def record_objects(server, case):
    crd = case["crd"]
    names, group = crd["spec"]["names"], crd["spec"]["group"]
    path = DEFINITIONS + "/" + crd["metadata"]["name"]
    code, body, _ = server.call("POST", DEFINITIONS, crd)
    if code != 201:
        print(case["name"], body["message"], file=sys.stderr)
        return None
    try:
        stored = established(server, path)
        resource = f"/apis/{group}/v1/namespaces/default/{names['plural']}"
        for _ in range(200):
            if server.call("GET", resource)[0] == 200:
                break
            time.sleep(0.05)
        steps = [record_step(server, resource, group, names["kind"], step) for step in case["steps"]]
        return {"name": case["name"], "crd": {"metadata": {"name": crd["metadata"]["name"]}, "spec": stored["spec"]}, "steps": steps}
    finally:
        server.call("DELETE", path)


def record_step(server, resource, group, kind, step):
    """Creates an object, or updates one that is created first from `old`."""
    obj = dict({"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "x"}}, **step["object"])
    out = {"object": obj}
    if "old" in step:
        old = dict({"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "x"}}, **step["old"])
        code, body, _ = server.call("POST", resource, old)
        assert code == 201, ("old", body)
        out["old"] = {k: v for k, v in body.items() if k != "metadata"}
        update = dict(obj, metadata={"name": "x", "resourceVersion": body["metadata"]["resourceVersion"]})
        suffix = "/status" if step.get("status") else ""
        out["status"] = bool(step.get("status"))
        code, body, warnings = server.call("PUT", f"{resource}/x{suffix}?fieldValidation=Warn", update)
        server.call("DELETE", resource + "/x")
    else:
        code, body, warnings = server.call("POST", resource + "?dryRun=All&fieldValidation=Warn", obj)
    if code >= 300:
        out["answer"] = refusal(code, body)
        if not out["answer"]["causes"]:
            out["answer"]["message"] = body.get("message", "")
    else:
        out["answer"] = {"code": code, "warnings": sorted(warnings), "object": {k: v for k, v in body.items() if k != "metadata"}}
    return out


def write(name, recorded):
    os.makedirs(DATA, exist_ok=True)
    with open(os.path.join(DATA, name), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(r, sort_keys=True) for r in recorded) + "\n]\n")


def main():
    server = Server()
    wanted = sys.argv[1:]
    pick = [c for c in cases.DEFINITIONS if not wanted or c["name"] in wanted]
    with ThreadPoolExecutor(8) as pool:
        definitions = list(pool.map(lambda c: record_definition(server, c), pick))
        pick = [c for c in cases.OBJECTS if not wanted or c["name"] in wanted]
        objects = list(pool.map(lambda c: record_objects(server, c), pick))
    if None in objects:
        raise SystemExit("some kinds were refused")
    if wanted:
        print(json.dumps({"definitions": definitions, "objects": objects}, indent=1))
        return
    write("definitions.json", definitions)
    write("objects.json", objects)
    steps = sum(len(o["steps"]) for o in objects)
    print(f"{len(definitions)} definitions, {len(objects)} kinds with {steps} objects")


main()
