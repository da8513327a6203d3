"""A client for one kube-apiserver, as the recorders need it."""
import json, os, pathlib, re, ssl, urllib.error, urllib.request

NAMESPACE = "windlass-record"
DATA = pathlib.Path(__file__).resolve().parents[2] / "crates/windlass-apiserver/tests/data"

_config = open(os.environ["KUBECONFIG"]).read()
_address = re.search(r'server:\s*"?([^\s",}]+)', _config).group(1)
_token = re.search(r'token:\s*"?([^\s",}]+)', _config).group(1)
_tls = ssl._create_unverified_context()


def request(method, path, body=None, content="application/json", accept="application/json"):
    """The status code and the body, read as JSON. Text is sent as it is, anything else as JSON."""
    data = body if isinstance(body, str) or body is None else json.dumps(body)
    call = urllib.request.Request(_address + path, method=method, data=data and data.encode())
    call.add_header("Authorization", "Bearer " + _token)
    call.add_header("Content-Type", content)
    call.add_header("Accept", accept)
    try:
        with urllib.request.urlopen(call, context=_tls) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        return error.code, json.loads(text) if text.startswith("{") else {"message": text}


def must(method, path, body=None, content="application/json"):
    code, answer = request(method, path, body, content)
    if code >= 300:
        raise SystemExit(f"{method} {path}: {code} {answer.get('message')}")
    return answer


def collection(api, resource, namespaced=True):
    """The path of a resource's collection; `api` is `v1` or `group/version`."""
    root = "/api/" if "/" not in api else "/apis/"
    return f"{root}{api}/namespaces/{NAMESPACE}/{resource}" if namespaced else f"{root}{api}/{resource}"


def prepare():
    """The namespace, and the account that pods run as."""
    request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    request("POST", collection("v1", "serviceaccounts"), {"metadata": {"name": "default"}})


def remove(path):
    """Deletes an object for good: nobody is there to take its finalizers away."""
    request("DELETE", path + "?gracePeriodSeconds=0&propagationPolicy=Background")
    request("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")


def lean(value):
    """Without managedFields, which are most of an object and matter to neither test."""
    if isinstance(value, dict):
        value.get("metadata", {}).pop("managedFields", None)
    return value


def write(name, rows):
    path = DATA / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    print(f"{len(rows):4} {path}")
