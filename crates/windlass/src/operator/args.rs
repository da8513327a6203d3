//! The command line of an operator.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::log::Format;

/// A Kubernetes operator
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct CommandLine {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Without a command, it runs.
    #[command(flatten)]
    pub run: Run,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the operator (what it does without a command)
    Run(Run),
    /// Print what the operator would do, and do nothing
    ///
    /// Takes a manifest, or the name of an object in the cluster as NAMESPACE/NAME or NAME.
    Plan(Plan),
    /// Print what installs the operator: CRDs, RBAC, Deployment, Service
    Manifests(Manifests),
    /// Print the version
    Version,
}

/// How to reach the cluster.
#[derive(Clone, Debug, Args)]
pub(super) struct Connection {
    /// The kubeconfig to use. By default that of KUBECONFIG, else the pod's ServiceAccount, else ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// How to log.
#[derive(Clone, Debug, Args)]
pub(super) struct Logging {
    /// What to log: error, warn, info, debug or trace, or directives such as `info,windlass=debug`. By default what RUST_LOG
    /// says, or info
    #[arg(long, alias = "zap-log-level", env = "LOG_LEVEL", value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// How to log
    #[arg(long, alias = "zap-encoder", env = "LOG_FORMAT", value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// Lines for people
    #[value(alias = "console")]
    Text,
    /// One JSON object a line
    Json,
}

impl From<LogFormat> for Format {
    fn from(format: LogFormat) -> Format {
        match format {
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    pub connection: Connection,
    #[command(flatten)]
    pub logging: Logging,
    /// Watch these namespaces only, separated by commas. By default all of them
    #[arg(long, env = "WATCH_NAMESPACE", value_delimiter = ',', value_name = "NAMESPACES")]
    pub watch_namespaces: Vec<String>,
    /// Apply the operator's CRDs at the start, and wait until they are served
    #[arg(long)]
    pub install_crds: bool,
    /// Where to serve /metrics; 0 turns it off
    #[arg(
        long,
        alias = "metrics-addr",
        env = "METRICS_BIND_ADDRESS",
        default_value = "0",
        value_name = "ADDRESS"
    )]
    pub metrics_bind_address: String,
    /// Where to serve /healthz and /readyz; 0 turns it off
    #[arg(
        long,
        alias = "health-probe-addr",
        env = "HEALTH_PROBE_BIND_ADDRESS",
        default_value = ":8081",
        value_name = "ADDRESS"
    )]
    pub health_probe_bind_address: String,
    /// How long running reconciles may take to end when the operator is told to stop
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "DURATION")]
    pub graceful_shutdown_timeout: Duration,
    #[command(flatten)]
    pub election: Election,
}

impl Run {
    /// The namespaces to watch; none for all of them, which installers also write as an empty text.
    pub fn namespaces(&self) -> Vec<String> {
        let names = self.watch_namespaces.iter().map(|name| name.trim());
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

#[derive(Clone, Debug, Args)]
pub(super) struct Election {
    /// Let replicas elect a leader: one works, the others stand by
    #[arg(
        long,
        alias = "enable-leader-election",
        env = "LEADER_ELECT",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        value_name = "BOOL"
    )]
    pub leader_elect: bool,
    /// The name of the lease. By default the operator's
    #[arg(long, value_name = "NAME")]
    pub leader_election_id: Option<String>,
    /// The namespace of the lease. By default the operator's own, or that of the kubeconfig's context
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    pub leader_election_namespace: Option<String>,
    /// How long others wait for a leader that is not heard of
    #[arg(long, default_value = "15s", value_parser = duration, value_name = "DURATION")]
    pub leader_elect_lease_duration: Duration,
    /// How long the leader tries to renew its lease before it gives up and ends
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "DURATION")]
    pub leader_elect_renew_deadline: Duration,
    /// How long to wait between two tries
    #[arg(long, default_value = "2s", value_parser = duration, value_name = "DURATION")]
    pub leader_elect_retry_period: Duration,
}

#[derive(Clone, Debug, Args)]
pub(super) struct Plan {
    /// A manifest (`-` for the standard input), or NAMESPACE/NAME of an object in the cluster
    #[arg(value_name = "FILE|NAME")]
    pub object: String,
    /// The namespace of an object that is given by its name alone
    #[arg(long, short, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// The kind, where the operator has several and the object is given by its name
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    #[command(flatten)]
    pub connection: Connection,
}

#[derive(Clone, Debug, Args)]
pub(super) struct Manifests {
    /// Where the operator will run. The namespace has to exist
    #[arg(long, short, default_value = "default", value_name = "NAMESPACE")]
    pub namespace: String,
    /// Watch only the namespace that it runs in, with a Role instead of a ClusterRole
    #[arg(long)]
    pub namespaced: bool,
    /// The image of the operator. By default its name and version
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// How many replicas
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    pub replicas: u32,
    /// Print alert rules and dashboards, too. Their kinds have to be there
    #[arg(long)]
    pub monitoring: bool,
}

/// A duration as Go and Kubernetes write it: `15s`, `1m30s`, `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let span: jiff::SignedDuration =
        text.parse().map_err(|_| "expected a duration such as 15s or 1m30s".to_owned())?;
    Duration::try_from(span).map_err(|_| "a duration here cannot be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(args: &[&str]) -> Run {
        let line = CommandLine::try_parse_from(std::iter::once(&"operator").chain(args)).unwrap();
        match line.command {
            Some(Command::Run(run)) => run,
            None => line.run,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_spellings_of_kubebuilder_work_old_and_new() {
        let new =
            run(&["--leader-elect", "--metrics-bind-address=:8080", "--health-probe-bind-address", ":9"]);
        assert!(new.election.leader_elect);
        assert_eq!(
            (new.metrics_bind_address.as_str(), new.health_probe_bind_address.as_str()),
            (":8080", ":9")
        );
        let old =
            run(&["run", "--enable-leader-election=false", "--metrics-addr", ":8443", "--kubeconfig", "/k"]);
        assert!(!old.election.leader_elect);
        assert_eq!(old.metrics_bind_address, ":8443");
        assert_eq!(old.connection.kubeconfig, Some(PathBuf::from("/k")));
    }

    #[test]
    fn durations_are_written_as_in_go() {
        assert_eq!(
            run(&["--leader-elect-lease-duration=1m30s"]).election.leader_elect_lease_duration.as_secs(),
            90
        );
        let error = CommandLine::try_parse_from(["operator", "--graceful-shutdown-timeout=-1s"]).unwrap_err();
        assert!(error.to_string().contains("cannot be negative"), "{error}");
    }

    #[test]
    fn namespaces_are_separated_by_commas() {
        assert_eq!(run(&["--watch-namespaces=a,b"]).namespaces(), ["a", "b"]);
        assert_eq!(run(&["--watch-namespaces=a, b,"]).namespaces(), ["a", "b"]);
        assert_eq!(run(&["--watch-namespaces="]).namespaces(), [""; 0], "all of them");
    }
}
