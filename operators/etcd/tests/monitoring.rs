//! What `manifests --monitoring` adds: alerts and a dashboard that Prometheus can read, about metrics that there are.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use etcd_operator::api::{EtcdCluster, EtcdClusterSpec};
use etcd_operator::metrics::Meters;
use etcd_operator::observe::{Member, Observed, Report, Volume};
use etcd_operator::plan::{Memory, decide};
use promql_parser::parser::{Expr, parse};
use promql_parser::util::{ExprVisitor, walk_expr};
use serde_json::Value;
use windlass::jiff::Timestamp;
use windlass::metrics::Registry;
use windlass::metrics::prometheus_client::encoding::text::encode;
use windlass_etcd::testing::{Cluster, Release};

/// The rules, what finds members, and the dashboard.
fn documents() -> [Value; 3] {
    let run = |args: &[&str]| {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_etcd-operator")).args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = run(&["manifests", "--namespace", "etcd-system"]);
    assert!(!plain.contains("PrometheusRule"), "their kinds may not be there");
    let watched = run(&["manifests", "--namespace", "etcd-system", "--monitoring"]);
    let added = watched.strip_prefix(plain.as_str()).expect("it comes last");
    let texts = added.split("---\n").filter(|text| !text.trim().is_empty());
    let documents: Vec<Value> = texts.map(|text| serde_saphyr::from_str(text).unwrap()).collect();
    let kinds: Vec<&str> = documents.iter().filter_map(|one| one["kind"].as_str()).collect();
    assert_eq!(kinds, ["PrometheusRule", "PodMonitor", "ConfigMap"]);
    documents.try_into().unwrap()
}

fn alerts(rules: &Value) -> Vec<&Value> {
    let groups = rules["spec"]["groups"].as_array().unwrap();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect()
}

fn dashboard(map: &Value) -> Value {
    serde_json::from_str(map["data"]["etcd-operator.json"].as_str().unwrap()).unwrap()
}

#[test]
fn every_alert_says_how_bad_it_is_and_what_to_do() {
    let [rules, _, _] = documents();
    let chapter = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/etcd.md");
    let chapter = std::fs::read_to_string(chapter).unwrap();
    assert_eq!(alerts(&rules).len(), 15);
    for alert in alerts(&rules) {
        assert!(matches!(alert["labels"]["severity"].as_str(), Some("warning" | "critical")), "{alert}");
        assert!(alert["annotations"]["summary"].as_str().is_some_and(|text| text.ends_with('.')), "{alert}");
        let name = alert["alert"].as_str().unwrap();
        assert!(chapter.contains(&format!("`{name}`")), "the chapter does not tell of {name}");
    }
}

#[tokio::test]
async fn every_query_can_be_read_and_asks_for_what_there_is() {
    let [rules, _, map] = documents();
    let (alerts, board) = (alerts(&rules), dashboard(&map));
    let panels = board["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut queries: Vec<&str> =
        alerts.into_iter().chain(targets).map(|one| one["expr"].as_str().unwrap()).collect();
    let variables = board["templating"]["list"].as_array().unwrap();
    queries.extend(
        variables
            .iter()
            .filter_map(|one| one["query"].as_str()?.strip_prefix("label_values(")?.rsplit_once(','))
            .map(|(query, _)| query),
    );
    assert!(queries.len() >= 30, "{} queries", queries.len());

    let there = [of_the_operator(), of_members().await].concat();
    for query in queries {
        let asked = names(query);
        assert!(!asked.is_empty(), "{query} asks for nothing");
        for name in asked {
            assert!(there.contains(&name), "{query}: there is no {name}");
        }
    }
}

/// The metrics that a query asks for.
fn names(query: &str) -> BTreeSet<String> {
    struct Names(BTreeSet<String>);
    impl ExprVisitor for Names {
        type Error = std::convert::Infallible;

        fn pre_visit(&mut self, expression: &Expr) -> Result<bool, Self::Error> {
            let selector = match expression {
                Expr::VectorSelector(selector) => Some(selector),
                Expr::MatrixSelector(matrix) => Some(&matrix.vs),
                _ => None,
            };
            self.0.extend(selector.and_then(|selector| selector.name.clone()));
            Ok(true)
        }
    }
    let mut names = Names(BTreeSet::new());
    let expression = parse(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let Ok(_) = walk_expr(&mut names, &expression);
    names.0
}

/// What the operator's `/metrics` has, of a cluster with one member for which nothing can be done.
fn of_the_operator() -> Vec<String> {
    let meters = Meters::default();
    let cluster = EtcdCluster::new("db", EtcdClusterSpec { paused: true, ..EtcdClusterSpec::default() });
    let report = Report {
        id: 1,
        cluster_id: 1,
        leader: 1,
        learner: false,
        term: 1,
        index: 1,
        applied: 1,
        db_size: 1,
        version: "3.7.3".into(),
    };
    let member = Member {
        name: "db-0laye".into(),
        object: None,
        pod: None,
        volume: Volume::Present,
        report: Some(report),
    };
    let seen = Observed { members: vec![member], list: None, local: None };
    let decision = decide(&cluster.spec, &Memory::default(), &seen, Timestamp::UNIX_EPOCH);
    meters.saw(&cluster, &seen, &decision);
    meters.acted("AddLearner", true, Duration::from_millis(7));
    let mut registry = Registry::default();
    meters.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    samples(&text)
}

/// What `/metrics` of an etcd has that others follow.
async fn of_members() -> Vec<String> {
    let cluster = Cluster::of(&Release::required("3.7"), 3).await.unwrap();
    let leader = cluster.leader_at().await.unwrap();
    let address = cluster[leader].client_url();
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    samples(&text)
}

/// The names of what is measured.
fn samples(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(['{', ' ']).next().map(str::to_owned)).collect()
}
