//! What people are told when the cluster is there. Pure.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::Args;
use super::apply::Document;
use crate::common::quoted;

/// How to talk to the cluster, and to what was applied.
pub fn summary(documents: &[Document], kubeconfig: &Path, args: &Args) -> String {
    let mut lines = vec![("kubectl get pods,services -A".to_owned(), "what runs")];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = |object: &Value| {
        let namespace = match object["metadata"]["namespace"].as_str() {
            None | Some("default") => String::new(),
            Some(namespace) => format!(" -n {namespace}"),
        };
        (text(&object["kind"]).to_lowercase(), text(&object["metadata"]["name"]), namespace)
    };
    let first = |kind: &str, is: fn(&Value) -> bool| {
        documents.iter().map(|document| &document.object).find(|object| object["kind"] == kind && is(object))
    };
    if let Some(service) = first("Service", |service| service["spec"]["clusterIP"] != "None") {
        let (kind, name, namespace) = named(service);
        let port = &service["spec"]["ports"][0];
        lines.push(match (&port["port"], &port["nodePort"]) {
            (port, Value::Null) => (
                format!("kubectl port-forward{namespace} {kind}/{name} 8080:{port}"),
                "talk to it at 127.0.0.1:8080",
            ),
            (_, port) => (format!("curl http://127.0.0.1:{port}"), "talk to it"),
        });
    }
    match first("Deployment", |_| true).or_else(|| first("StatefulSet", |_| true)) {
        Some(workload) => {
            let (kind, name, namespace) = named(workload);
            let labels = workload["spec"]["selector"]["matchLabels"].as_object();
            let labels: Vec<_> =
                labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", text(value))).collect();
            let replicas = workload["spec"]["replicas"].as_u64().unwrap_or(1) + 2;
            lines.push((format!("kubectl scale{namespace} {kind}/{name} --replicas {replicas}"), "scale it"));
            lines.push((format!("kubectl delete pod{namespace} -l {}", labels.join(",")), "break it"));
            lines.push((format!("kubectl get pods{namespace} -w"), "watch it heal"));
        }
        None if args.nodes > 0 => {
            lines.push(("kubectl create deployment web --image nginx".to_owned(), "run something"));
        }
        None => {}
    }
    let width = lines.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    let lines: String =
        lines.iter().map(|(command, what)| format!("    {command:width$}   # {what}\n")).collect();
    let end = if args.detached {
        format!("`windlass down{}` ends it.", data_dir(args))
    } else {
        "Ctrl-C ends it.".to_owned()
    };
    format!("\n    export KUBECONFIG={}\n\n{lines}\n{end}", quoted(kubeconfig))
}

/// What the end of a cluster waits for: pods, each with its patience.
pub fn waiting(running: &[(String, Duration)]) -> Option<String> {
    let seconds = running.iter().map(|(_, patience)| patience.as_secs()).max()?;
    let count = match running.len() {
        1 => "1 pod".to_owned(),
        many => format!("{many} pods"),
    };
    let mut names: Vec<&str> = running.iter().take(NAMED).map(|(name, _)| name.as_str()).collect();
    if running.len() > NAMED {
        names.push("…");
    }
    Some(format!("waiting for {count} to end, at most {seconds} s: {}", names.join(", ")))
}

/// A line has room for so many names.
const NAMED: usize = 4;

fn data_dir(args: &Args) -> String {
    args.data_dir.as_ref().map(|path| format!(" --data-dir {}", quoted(path))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn people_are_told_what_the_end_waits_for() {
        let of = |pods: &[(&str, u64)]| {
            let pods: Vec<_> =
                pods.iter().map(|(name, time)| ((*name).to_owned(), Duration::from_secs(*time))).collect();
            waiting(&pods)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("a/b", 5)]).unwrap(), "waiting for 1 pod to end, at most 5 s: a/b");
        let five = [("a/a", 1), ("a/b", 30), ("a/c", 2), ("a/d", 3), ("a/e", 4)];
        assert_eq!(of(&five).unwrap(), "waiting for 5 pods to end, at most 30 s: a/a, a/b, a/c, a/d, …");
    }

    #[test]
    fn people_are_told_how_to_go_on() {
        let documents = super::super::apply::parse(
            "x",
            "
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 2, selector: {matchLabels: {app: web}}}
",
        )
        .unwrap();
        let args = Line::parse_from(["up"]).args;
        assert_eq!(
            summary(&documents, Path::new("/data/kube config"), &args),
            "
    export KUBECONFIG='/data/kube config'

    kubectl get pods,services -A                # what runs
    kubectl port-forward service/web 8080:80    # talk to it at 127.0.0.1:8080
    kubectl scale deployment/web --replicas 4   # scale it
    kubectl delete pod -l app=web               # break it
    kubectl get pods -w                         # watch it heal

Ctrl-C ends it."
        );
        let args = Line::parse_from(["up", "--nodes", "0", "--detached", "--data-dir", "d"]).args;
        let text = summary(&[], Path::new("/k"), &args);
        assert!(text.ends_with("# what runs\n\n`windlass down --data-dir d` ends it."), "{text}");
    }
}
