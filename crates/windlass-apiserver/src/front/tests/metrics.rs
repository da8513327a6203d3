//! What is counted. The labels are those of kube-apiserver 1.36 after the same requests.

use super::*;

pub(super) async fn lines(server: &ApiServer) -> Vec<String> {
    let response = open(server, "GET", "/metrics", "").await;
    assert_eq!(response.status(), 200);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn requests_and_watches_are_counted_under_their_labels() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, &config_map("a")).await;
    ask(&server, "POST", &format!("{CONFIG_MAPS}?dryRun=All"), &config_map("b")).await;
    ask(&server, "GET", &format!("{CONFIG_MAPS}/a"), "").await;
    ask(&server, "GET", &format!("{CONFIG_MAPS}/nosuch"), "").await;
    ask(&server, "GET", CONFIG_MAPS, "").await;
    ask(&server, "GET", "/api/v1/nodes", "").await;
    let mut watch = Box::pin(open(&server, "GET", &format!("{CONFIG_MAPS}?watch=1"), "").await.into_body());
    let first = tokio::time::timeout(Duration::from_secs(10), watch.frame());
    first.await.expect("an event").unwrap().unwrap();
    let found = lines(&server).await;
    let of = |labels: &str| format!("component=\"apiserver\",{labels},version=\"v1\"}} 1");
    let maps = "group=\"\",resource=\"configmaps\"";
    for line in [
        format!(
            "apiserver_request_total{{code=\"201\",{}",
            of(&format!("dry_run=\"\",{maps},scope=\"resource\",subresource=\"\",verb=\"POST\""))
        ),
        format!(
            "apiserver_request_total{{code=\"201\",{}",
            of(&format!("dry_run=\"All\",{maps},scope=\"resource\",subresource=\"\",verb=\"POST\""))
        ),
        format!(
            "apiserver_request_total{{code=\"404\",{}",
            of(&format!("dry_run=\"\",{maps},scope=\"resource\",subresource=\"\",verb=\"GET\""))
        ),
        format!(
            "apiserver_request_total{{code=\"200\",{}",
            of(&format!("dry_run=\"\",{maps},scope=\"namespace\",subresource=\"\",verb=\"LIST\""))
        ),
        format!(
            "apiserver_request_total{{code=\"200\",{}",
            of("dry_run=\"\",group=\"\",resource=\"nodes\",scope=\"cluster\",subresource=\"\",verb=\"LIST\"")
        ),
        format!(
            "apiserver_longrunning_requests{{{}",
            of(&format!("{maps},scope=\"namespace\",subresource=\"\",verb=\"WATCH\""))
        ),
        format!("apiserver_watch_events_total{{{maps},version=\"v1\"}} 1"),
    ] {
        assert!(found.contains(&line), "{line}\n{}", found.join("\n"));
    }
    assert!(!found.iter().any(|line| line.contains("code=\"200\"") && line.contains("WATCH")), "it goes on");
    let objects = format!("apiserver_resource_objects{{{maps}}} ");
    assert!(found.iter().any(|line| line.starts_with(&objects)), "{objects}");
    drop(watch);
    let found = lines(&server).await;
    assert!(found.iter().any(|line| line.contains("code=\"200\"") && line.contains("WATCH")), "it has ended");
    let longrunning = found.iter().find(|line| line.starts_with("apiserver_longrunning_requests{")).unwrap();
    assert!(longrunning.ends_with(" 0"), "{longrunning}");
    // Every line is one that Prometheus reads: a comment, or a name, labels and a number.
    for line in found.iter().filter(|line| !line.starts_with("# ")) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok() && name.is_ascii(), "{line}");
    }
}

/// As `code verb resource/subresource scope dry-run`, each as often as it was counted.
async fn counted(server: &ApiServer) -> Vec<String> {
    let lines = lines(server).await;
    let lines = lines.iter().filter(|line| line.starts_with("apiserver_request_total{"));
    let label = |line: &str, name: &str| {
        let rest = line.split_once(&format!("{name}=\"")).unwrap().1;
        rest.split('"').next().unwrap().to_owned()
    };
    let told = lines.map(|line| {
        let [code, verb, resource] = ["code", "verb", "resource"].map(|name| label(line, name));
        let [subresource, scope, dry_run] = ["subresource", "scope", "dry_run"].map(|name| label(line, name));
        let count = line.rsplit(' ').next().unwrap();
        format!("{code} {verb} {resource}/{subresource} {scope} {dry_run} {count}")
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    told
}

#[tokio::test]
async fn what_has_reached_a_route_is_counted_as_kube_apiserver_does() {
    let server = server();
    let pod = "/api/v1/namespaces/default/pods/missing";
    for (method, path) in [
        ("GET", format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Da")),
        ("GET", format!("{CONFIG_MAPS}/missing?watch=1")),
        ("DELETE", CONFIG_MAPS.to_owned()),
        ("POST", format!("{CONFIG_MAPS}?dryRun=Some")),
        ("PUT", CONFIG_MAPS.to_owned()),
        ("PATCH", format!("{CONFIG_MAPS}/missing")),
        ("GET", format!("{pod}/proxy/some/path")),
        ("GET", format!("{pod}/log")),
        ("POST", "/healthz".to_owned()),
        ("GET", "/healthz/ping".to_owned()),
        ("GET", "/version".to_owned()),
        ("GET", "/openapi/v3/apis/apps/v1".to_owned()),
    ] {
        ask(&server, method, &path, "").await;
    }
    assert_eq!(
        counted(&server).await,
        [
            "200 DELETE configmaps/ namespace  1",
            "200 GET /openapi/v3/   1",
            "200 LIST configmaps/ namespace  1",
            "200 POST //healthz   1",
            "404 CONNECT pods/log resource  1",
            "404 CONNECT pods/proxy resource  1",
            "404 WATCH configmaps/ resource  1",
            "422 POST configmaps/ resource invalid 1",
        ]
    );
}
