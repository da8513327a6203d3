//! What watches clusters: alert rules, the scraping of members, a dashboard. `manifests --monitoring` prints it.

use serde_json::{Value, json};

use crate::api::CLUSTER_LABEL;

/// An alert: its name, its expression, for how long, how bad, and what to do.
type Alert = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// Alerts about what the operator sees.
const OPERATOR: &[Alert] = &[
    (
        "etcdQuorumAtRisk",
        "etcdop_cluster_quorum_margin == 0 and etcdop_cluster_desired > 1",
        "10m",
        "warning",
        "One more failure of {{ $labels.namespace }}/{{ $labels.cluster }} stops writes. See kubectl describe etcd.",
    ),
    (
        "etcdQuorumLost",
        "etcdop_cluster_has_leader == 0",
        "2m",
        "critical",
        "{{ $labels.namespace }}/{{ $labels.cluster }} answers no linearizable read. See its condition Available.",
    ),
    (
        "etcdOperatorBlocked",
        "etcdop_cluster_blocked{reason!~\"Bootstrapping|CatchingUp|Settling|Recovering|OneLearner\"} == 1",
        "15m",
        "warning",
        "The operator can do nothing for {{ $labels.namespace }}/{{ $labels.cluster }}: {{ $labels.reason }}.",
    ),
    (
        "etcdMemberReplaceLoop",
        "etcdop_cluster_replacements >= 3",
        "1m",
        "warning",
        "Members of {{ $labels.namespace }}/{{ $labels.cluster }} are replaced over and over.",
    ),
    (
        "etcdLearnerStuck",
        "etcdop_cluster_learners > 0",
        "30m",
        "warning",
        "A new member of {{ $labels.namespace }}/{{ $labels.cluster }} does not catch up.",
    ),
    (
        "etcdNoSpace",
        "etcdop_cluster_no_space == 1",
        "1m",
        "critical",
        "A database of {{ $labels.namespace }}/{{ $labels.cluster }} is full and writes are refused.",
    ),
];

/// Alerts about what members say of themselves: those of etcd's own mixin.
const MEMBERS: &[Alert] = &[
    (
        "etcdNoLeader",
        "etcd_server_has_leader == 0",
        "1m",
        "critical",
        "Member {{ $labels.pod }} has no leader.",
    ),
    (
        "etcdHighNumberOfLeaderChanges",
        "increase(etcd_server_leader_changes_seen_total[15m]) >= 4",
        "5m",
        "warning",
        "{{ $value }} leader changes within 15 minutes: look at the disks and the network.",
    ),
    (
        "etcdMemberCommunicationSlow",
        "histogram_quantile(0.99, rate(etcd_network_peer_round_trip_time_seconds_bucket[5m])) > 0.15",
        "10m",
        "warning",
        "Member {{ $labels.pod }} takes {{ $value }} s to reach {{ $labels.To }}.",
    ),
    (
        "etcdHighNumberOfFailedProposals",
        "rate(etcd_server_proposals_failed_total[15m]) > 5",
        "15m",
        "warning",
        "{{ $value }} proposals a second fail on {{ $labels.pod }}.",
    ),
    (
        "etcdHighFsyncDurations",
        "histogram_quantile(0.99, rate(etcd_disk_wal_fsync_duration_seconds_bucket[5m])) > 0.5",
        "10m",
        "warning",
        "The disk of {{ $labels.pod }} takes {{ $value }} s to keep a write.",
    ),
    (
        "etcdHighCommitDurations",
        "histogram_quantile(0.99, rate(etcd_disk_backend_commit_duration_seconds_bucket[5m])) > 0.25",
        "10m",
        "warning",
        "The database of {{ $labels.pod }} takes {{ $value }} s to commit.",
    ),
    (
        "etcdDatabaseQuotaLowSpace",
        "etcd_mvcc_db_total_size_in_bytes / etcd_server_quota_backend_bytes > 0.95",
        "10m",
        "critical",
        "The database of {{ $labels.pod }} is nearly full: defragment, or raise spec.options.quota.",
    ),
    (
        "etcdExcessiveDatabaseGrowth",
        "predict_linear(etcd_mvcc_db_total_size_in_bytes[4h], 4*60*60) > etcd_server_quota_backend_bytes",
        "10m",
        "warning",
        "The database of {{ $labels.pod }} will be full within four hours.",
    ),
    (
        "etcdDatabaseHighFragmentationRatio",
        "etcd_mvcc_db_total_size_in_use_in_bytes / etcd_mvcc_db_total_size_in_bytes < 0.5 and etcd_mvcc_db_total_size_in_use_in_bytes > 104857600",
        "10m",
        "warning",
        "Half of the database of {{ $labels.pod }} is free space: defragment it.",
    ),
];

/// The alert rules.
pub fn rules(namespace: &str) -> Value {
    let group = |name: &str, alerts: &[Alert]| {
        let rule = |(alert, expr, wait, severity, text): &Alert| {
            json!({
                "alert": alert,
                "expr": expr,
                "for": wait,
                "labels": {"severity": severity},
                "annotations": {"summary": text},
            })
        };
        json!({"name": name, "rules": alerts.iter().map(rule).collect::<Vec<_>>()})
    };
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "etcd-operator", "namespace": namespace},
        "spec": {"groups": [group("etcd-operator", OPERATOR), group("etcd-members", MEMBERS)]},
    })
}

/// How Prometheus finds the members of all clusters.
pub fn pod_monitor(namespace: &str) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": "etcd-members", "namespace": namespace},
        "spec": {
            "namespaceSelector": {"any": true},
            "selector": {"matchExpressions": [{"key": CLUSTER_LABEL, "operator": "Exists"}]},
            "podTargetLabels": [CLUSTER_LABEL],
            "podMetricsEndpoints": [{"port": "metrics"}],
        },
    })
}

/// The dashboard, as Grafana's side-car finds it.
pub fn dashboard(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "etcd-operator-dashboard",
            "namespace": namespace,
            "labels": {"grafana_dashboard": "1"},
        },
        "data": {"etcd-operator.json": serde_json::to_string_pretty(&board()).unwrap_or_default()},
    })
}

/// Rows of panels: a title, a unit, and queries with their legends.
type Panel = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const PANELS: &[Panel] = &[
    (
        "Voters",
        "short",
        &[
            (
                "etcdop_cluster_desired{namespace=~\"$namespace\",cluster=~\"$cluster\"}",
                "{{cluster}} asked for",
            ),
            ("etcdop_cluster_voters{namespace=~\"$namespace\",cluster=~\"$cluster\"}", "{{cluster}} voters"),
            (
                "etcdop_cluster_healthy{namespace=~\"$namespace\",cluster=~\"$cluster\"}",
                "{{cluster}} healthy",
            ),
        ],
    ),
    (
        "Quorum margin",
        "short",
        &[("etcdop_cluster_quorum_margin{namespace=~\"$namespace\",cluster=~\"$cluster\"}", "{{cluster}}")],
    ),
    (
        "Why nothing is done",
        "short",
        &[(
            "etcdop_cluster_blocked{namespace=~\"$namespace\",cluster=~\"$cluster\"}",
            "{{cluster}}: {{reason}}",
        )],
    ),
    (
        "Steps of the operator",
        "ops",
        &[("sum by (action, result) (rate(etcdop_action_total[5m]))", "{{action}} {{result}}")],
    ),
    (
        "Writes behind the leader",
        "short",
        &[("etcdop_member_applied_lag{namespace=~\"$namespace\",cluster=~\"$cluster\"}", "{{member}}")],
    ),
    (
        "Database",
        "bytes",
        &[
            ("etcd_mvcc_db_total_size_in_bytes{namespace=~\"$namespace\"}", "{{pod}} on disk"),
            ("etcd_mvcc_db_total_size_in_use_in_bytes{namespace=~\"$namespace\"}", "{{pod}} in use"),
            ("etcd_server_quota_backend_bytes{namespace=~\"$namespace\"}", "{{pod}} quota"),
        ],
    ),
    (
        "Disk: time to keep a write, p99",
        "s",
        &[(
            "histogram_quantile(0.99, rate(etcd_disk_wal_fsync_duration_seconds_bucket{namespace=~\"$namespace\"}[5m]))",
            "{{pod}}",
        )],
    ),
    (
        "Network: round trip between members, p99",
        "s",
        &[(
            "histogram_quantile(0.99, rate(etcd_network_peer_round_trip_time_seconds_bucket{namespace=~\"$namespace\"}[5m]))",
            "{{pod}}",
        )],
    ),
    (
        "Requests",
        "reqps",
        &[(
            "sum by (grpc_method) (rate(grpc_server_handled_total{namespace=~\"$namespace\",grpc_type=\"unary\"}[5m]))",
            "{{grpc_method}}",
        )],
    ),
    (
        "Leader changes",
        "short",
        &[("changes(etcd_server_leader_changes_seen_total{namespace=~\"$namespace\"}[1h])", "{{pod}}")],
    ),
];

fn board() -> Value {
    let panel = |(at, (title, unit, queries)): (usize, &Panel)| {
        let target = |(expr, legend): &(&str, &str)| json!({"expr": expr, "legendFormat": legend});
        json!({
            "id": at + 1,
            "title": title,
            "type": "timeseries",
            "gridPos": {"h": 8, "w": 12, "x": (at % 2) * 12, "y": (at / 2) * 8},
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
            "targets": queries.iter().map(target).collect::<Vec<_>>(),
        })
    };
    let variable = |name: &str, query: &str| {
        json!({
            "name": name,
            "type": "query",
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "query": query,
            "refresh": 2,
            "multi": true,
            "includeAll": true,
        })
    };
    json!({
        "title": "etcd clusters",
        "uid": "windlass-etcd",
        "schemaVersion": 39,
        "timezone": "utc",
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus"},
            variable("namespace", "label_values(etcdop_cluster_desired, namespace)"),
            variable("cluster", "label_values(etcdop_cluster_desired{namespace=~\"$namespace\"}, cluster)"),
        ]},
        "panels": PANELS.iter().enumerate().map(panel).collect::<Vec<_>>(),
    })
}
