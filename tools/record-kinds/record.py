#!/usr/bin/env python3
"""Records what a real kube-apiserver makes of the manifests in cases/.

    record.py KUBECONFIG OUT_DIR [GROUP...]

Creates go with dryRun=All, but for those of a case marked real, where a dry run is known to check less. Updates need a stored object, which is created for real in a namespace of its own
and removed afterwards; the update itself is a dry run again. What differs from run to run (uids, times, revisions,
allocated addresses) is replaced by constants, so that recording twice gives the same files.
"""
import copy, importlib, json, pathlib, re, ssl, sys, time, urllib.error, urllib.request

UID, NOW = "00000000-0000-0000-0000-000000000001", "2026-01-01T00:00:00Z"
NAMESPACE = "record-kinds"


def merge(target, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    out = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge(out.get(key), value)
    return out


class Server:
    def __init__(self, kubeconfig):
        text = pathlib.Path(kubeconfig).read_text()
        self.base = re.search(r'server: "?(https://[^"},\s]+)', text).group(1)
        self.token = re.search(r"token: ([^}\s]+)", text).group(1)
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self.kinds = {}
        for path in ["/api/v1"] + ["/apis/" + v["groupVersion"] for g in self.get("/apis")["groups"] for v in g["versions"]]:
            for r in self.get(path)["resources"]:
                if "/" not in r["name"]:
                    self.kinds[(path.split("/", 2)[2] if path != "/api/v1" else "v1", r["kind"])] = (path, r["name"], r["namespaced"])

    def send(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method, headers={
            "Authorization": "Bearer " + self.token, "Content-Type": "application/json", "User-Agent": "record-kinds"})
        try:
            with urllib.request.urlopen(request, context=self.tls) as answer:
                return answer.status, json.load(answer), answer.headers.get_all("Warning") or []
        except urllib.error.HTTPError as error:
            return error.code, json.load(error), error.headers.get_all("Warning") or []

    def get(self, path):
        return self.send("GET", path)[1]

    def path(self, manifest):
        path, plural, namespaced = self.kinds[(manifest["apiVersion"], manifest["kind"])]
        return f"{path}/namespaces/{NAMESPACE}/{plural}" if namespaced else f"{path}/{plural}"

    def create(self, manifest):
        code, answer, _ = self.send("POST", self.path(manifest), manifest)
        if code != 201:
            raise SystemExit(f"cannot create the base {manifest['kind']}: {answer['message']}")
        return answer

    def remove(self, stored):
        path = self.path(stored) + "/" + stored["metadata"]["name"]
        self.send("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
        code, left, _ = self.send("GET", path)
        if code == 200:
            left["metadata"].pop("finalizers", None)
            self.send("PUT", path, left)
            if left["kind"] == "Namespace":
                left["spec"] = {}
                self.send("PUT", path + "/finalize", left)


def squeeze(value):
    """Writes a long run of one character as @repeat:character:times."""
    if isinstance(value, dict):
        return {k: squeeze(v) for k, v in value.items()}
    if isinstance(value, list):
        return [squeeze(v) for v in value]
    if isinstance(value, str) and len(value) > 10000 and len(set(value)) == 1:
        return f"@repeat:{value[0]}:{len(value)}"
    return value


def tidy(value):
    """Replaces what differs from run to run."""
    text = json.dumps(value)
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", UID, text)
    text = re.sub(r'"20[23]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"', lambda m: m.group(0) if "2020" in m.group(0) else f'"{NOW}"', text)
    value = json.loads(text)
    metadata = value.get("metadata", {})
    if "resourceVersion" in metadata:
        metadata["resourceVersion"] = "1"
    metadata.pop("managedFields", None)
    return value


def tidy_service(answer, given, old):
    """The real server allocates at random, ours in order; what was asked for or held before stays."""
    spec, asked, next_port = answer.get("spec", {}), merge((old or {}).get("spec"), given.get("spec", {})), 30000
    if spec.get("clusterIP") not in (None, "", "None") and not asked.get("clusterIP"):
        spec["clusterIP"], spec["clusterIPs"] = "10.0.0.1", ["10.0.0.1"]
    shared = {}
    for i, port in enumerate(spec.get("ports", [])):
        before = asked.get("ports", []) if given.get("spec", {}).get("ports", [{}])[i].get("nodePort") or not old else old["spec"]["ports"]
        if port.get("nodePort") and not (i < len(before) and before[i].get("nodePort")):
            if port["nodePort"] not in shared:
                shared[port["nodePort"]] = next_port
                next_port += 1
            port["nodePort"] = shared[port["nodePort"]]
    if spec.get("healthCheckNodePort") and not asked.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = next_port
    return answer


def record(server, case):
    world = [server.create(o) for o in case.get("world", [])]
    if world:
        time.sleep(1.0)  # admission reads through caches
    lines = []
    verb = case["verb"]

    def note(name, request, code, answer, warnings, old=None, subresource=""):
        answer = tidy(answer)
        if answer.get("kind") == "Service":
            answer = tidy_service(answer, tidy(request), old)
        line = {"case": name, "verb": verb if not subresource else subresource}
        if world:
            line["world"] = [tidy(o) for o in world]
        if old is not None:
            line["old"] = tidy(old)
        line["request"] = tidy(request)
        line["code"] = code
        if warnings:
            line["warnings"] = warnings
        line["answer"] = answer
        lines.append(line)

    if verb == "create":
        request = case["object"]
        path = case.get("path") or server.path(request)
        if case.get("real"):
            code, answer, warnings = server.send("POST", path, request)
            if code == 201:
                server.remove(answer)
        else:
            code, answer, warnings = server.send("POST", path + "?dryRun=All", request)
        note(case["name"], request, code, answer, warnings)
    else:
        stored = server.create(case["object"])
        for step in case.get("steps", []):  # real writes that bring the base into its state
            sub, patch = step
            path = server.path(stored) + "/" + stored["metadata"]["name"] + ("/" + sub if sub else "")
            code, answer, _ = server.send("PUT", path, merge(stored, patch))
            if code != 200:
                raise SystemExit(f"cannot prepare {case['name']}: {answer['message']}")
            stored = answer
        for name, patch in case["patches"].items():
            sub = "" if verb == "update" else verb
            path = server.path(stored) + "/" + stored["metadata"]["name"] + ("/" + sub if sub else "")
            request = patch(copy.deepcopy(stored)) if callable(patch) else merge(stored, patch)
            note(f"{case['name']}: {name}", request, *server.send("PUT", path + "?dryRun=All", request), old=stored, subresource=sub)
        server.remove(stored)
    for o in world:
        server.remove(o)
    return lines


def main():
    server, out = Server(sys.argv[1]), pathlib.Path(sys.argv[2])
    here = pathlib.Path(__file__).parent
    sys.path.insert(0, str(here))
    groups = sys.argv[3:] or sorted(p.stem for p in (here / "cases").glob("*.py") if p.stem not in ("__init__", "build"))
    server.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    version = server.get("/version")["gitVersion"]
    for group in groups:
        cases = importlib.import_module("cases." + group).CASES
        names = [(c["verb"], c["name"]) for c in cases]
        assert len(names) == len(set(names)), f"{group}: a name twice"
        lines = [line for case in cases for line in record(server, case)]
        with open(out / (group + ".jsonl"), "w") as file:
            file.write(json.dumps({"server": version, "cases": len(lines)}) + "\n")
            for line in lines:
                file.write(json.dumps(squeeze(line), ensure_ascii=False, separators=(",", ":")) + "\n")
        print(f"{group}: {len(lines)} cases, {sum(l['code'] >= 400 for l in lines)} of them refusals")


if __name__ == "__main__":
    main()
