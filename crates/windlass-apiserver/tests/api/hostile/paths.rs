//! Paths and methods that lead nowhere.

use super::{Asked, JSON, MAPS};

const NOT_FOUND: (u16, &str) = (404, "NotFound");
const NO_PAGE: (u16, &str) = (404, "text");
const BAD: (u16, &str) = (400, "BadRequest");

#[test]
fn odd_paths() {
    let mut asked = Asked::new();
    for (path, want) in [
        ("//", NO_PAGE),
        ("/nope", NO_PAGE),
        ("/api//v1", NOT_FOUND),
        ("/api/v2", NOT_FOUND),
        ("/api/v1/nope", NOT_FOUND),
        ("/api/v1/", (200, "APIResourceList")),
        ("/api/", (200, "APIVersions")),
        ("/apis/", (200, "APIGroupList")),
        ("/apis/apps/", (200, "APIGroup")),
        ("/apis/apps/v1/", (200, "APIResourceList")),
        ("/apis/../api/v1", NO_PAGE),
        ("/apis/nope/v1/x", NO_PAGE),
        ("/apis/apps/v1beta9/deployments", NOT_FOUND),
        ("/api/v1/namespaces//configmaps", (200, "ConfigMapList")),
        ("//api/v1/namespaces/default/configmaps", NO_PAGE),
        ("/api/v1/namespaces/%2e%2e/configmaps", (500, "Status")),
        ("/api/v1/watch/nope", NOT_FOUND),
        ("/api/v1/proxy/x", NOT_FOUND),
        ("/openapi/v3/../x", NO_PAGE),
        ("/openapi/v3/apis/nope", NO_PAGE),
        ("/openapi/v4", NO_PAGE),
        ("/healthz/nope", NO_PAGE),
        ("/livez/ping", (200, "text")),
        ("/version/x", NOT_FOUND),
    ] {
        asked.ask("GET", path, "", "", want);
    }
    asked.finish();
}

#[test]
fn odd_names() {
    let mut asked = Asked::new();
    let long = "x".repeat(5000);
    for (name, want) in [
        ("", (200, "ConfigMapList")),
        ("/a", NOT_FOUND),
        ("a/", (200, "ConfigMap")),
        ("a//", (200, "ConfigMap")),
        ("%00", NOT_FOUND),
        ("a%00", NOT_FOUND),
        ("%ff", NOT_FOUND),
        ("%C3%A9", NOT_FOUND),
        ("A", NOT_FOUND),
        ("..", BAD),
        ("%2e%2e", BAD),
        (".", BAD),
        ("../configmaps/a", NOT_FOUND),
        ("a%2Fb", NOT_FOUND),
        ("a/status", NOT_FOUND),
        ("a/nope", NOT_FOUND),
        ("a/status/x", NOT_FOUND),
        (&long, NOT_FOUND),
        // Go's HTTP server refuses this in words of its own before kube-apiserver sees it.
        ("%zz", BAD),
    ] {
        asked.ask("GET", &format!("{MAPS}/{name}"), "", "", want);
    }
    asked.ask("GET", &format!("/api/v1/namespaces/{long}/configmaps"), "", "", (200, "ConfigMapList"));
    asked.ask("GET", &format!("/{}", "x/".repeat(2000)), "", "", NO_PAGE);
    asked.finish();
}

#[test]
fn odd_methods() {
    let mut asked = Asked::new();
    let refused = (405, "MethodNotAllowed");
    let one = format!("{MAPS}/a");
    for (method, path, want) in [
        ("PATCH", MAPS, refused),
        ("PUT", MAPS, refused),
        ("POST", &one, refused),
        ("TRACE", MAPS, refused),
        ("OPTIONS", MAPS, refused),
        ("FOO", &one, refused),
        ("DELETE", "/api", refused),
        ("PUT", "/version", refused),
        ("POST", "/nope", NO_PAGE),
        ("DELETE", "/api/v1/services/x", NOT_FOUND),
    ] {
        asked.ask(method, path, JSON, "", want);
    }
    asked.finish();
}
