//! `make conformance`.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use jiff::Timestamp;
use windlass_conformance::client::Endpoint;
use windlass_conformance::controllers::run::Choice;
use windlass_conformance::hook::Hook;
use windlass_conformance::operators::{self, Check, Ours, Real, Times, foobar};
use windlass_conformance::sequence::Sequence;
use windlass_conformance::servers::Server;
use windlass_conformance::suite::Outcome;
use windlass_conformance::{
    certificates, controllers, envtest, explained, generate, kubectl, kubelet, metrics, node, published,
    recorded, report, rules, servers, streams, suite,
};
use windlass_testing::up::Cluster;

/// Sends the same requests to our API server and to a real kube-apiserver 1.36, and compares the answers.
#[derive(Parser)]
struct Args {
    /// What to do.
    #[arg(value_enum, default_value = "compare")]
    mode: Mode,
    /// Repeats the generated sequences of an earlier run.
    #[arg(long)]
    seed: Option<u64>,
    /// Compares the real server with a second real server, which must not differ: a check of this program.
    #[arg(long = "self")]
    self_check: bool,
    /// Only sequences whose `rule/name` contains this; when recording, only rules that contain this; of operators, only
    /// checks whose name contains this; of kubectl, only scripts.
    #[arg(long, default_value = "")]
    only: String,
    /// How many generated sequences, in percent of the usual number.
    #[arg(long, default_value_t = 100)]
    generated: usize,
    /// Prints the messages that say the same in other words.
    #[arg(long)]
    messages: bool,
    /// Our server [default: the program beside this one]
    #[arg(long)]
    program: Option<PathBuf>,
    /// The folder of the operators' programs [default: that of this program]
    #[arg(long)]
    operators: Option<PathBuf>,
    /// Only on this server: `ours` or `real`. Of operators and controllers.
    #[arg(long)]
    on: Option<String>,
    /// Only these controllers, such as `deployment,job`. Of controllers.
    #[arg(long, value_delimiter = ',')]
    controller: Vec<String>,
    /// With our nodes in place of the puppet, on both sides, live. Of controllers.
    #[arg(long)]
    with_node: bool,
    /// The cluster with a node [default: a `windlass up` of its own]. Of kubelet.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Where reports and the servers' data go [default: `conformance` in the target folder of this program]
    #[arg(long)]
    output: Option<PathBuf>,
}

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Send sequences to both servers and compare.
    Compare,
    /// Record what the real server answers into `conformance/recorded`, for `cargo test`.
    Record,
    /// Run kubectl 1.32 and 1.36 against both servers and compare what they print.
    Kubectl,
    /// Record what kubectl 1.32 and 1.36 ask of the real server into `conformance/sequences`.
    RecordKubectl,
    /// Run the checks of operators on both servers, the real one with its kube-controller-manager.
    Operators,
    /// Play scenarios to kube-controller-manager and to our controllers, both on real servers, and compare what is there
    /// at the end; with `--on`, only one of them, against what is recorded.
    Controllers,
    /// Record what kube-controller-manager leaves at the end of the scenarios, for `cargo test`.
    RecordControllers,
    /// Play manifests to a cluster that has a node, and compare what becomes of the pods with what a real kubelet made of
    /// them.
    Kubelet,
    /// Record what a real kubelet makes of them.
    RecordKubelet,
    /// Run the suites of a project in Go, written for envtest, with the real programs and with ours.
    Envtest,
    /// Show client certificates that are drawn at random to both servers.
    Certificates,
    /// Ask both servers the same, and compare what their metrics count.
    Metrics,
    /// Run helm 3 and 4, and the definitions and samples of cert-manager and of the operator of Prometheus, on both servers.
    Published,
    /// Run a program in Go, and kubectl, that use streams into pods, on our cluster and, as root, on a real node.
    Streams,
    /// Record what they print on the real node.
    RecordStreams,
    /// Our node and our controllers on a real kube-apiserver: the same manifests, and what people do with kubectl.
    Node,
}

fn main() -> ExitCode {
    // This program is also the stages of the sandbox of our node.
    if let Some(code) = windlass_sandbox::entry() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.context("no runtime").and_then(|runtime| runtime.block_on(run(Args::parse()))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<bool> {
    let started = Instant::now();
    let this = std::env::current_exe().context("cannot tell where this program is")?;
    let program = args.program.clone().unwrap_or_else(|| this.with_file_name("windlass"));
    let target = this.ancestors().nth(2).context("this program is in a folder of a target folder")?;
    let output = args.output.clone().unwrap_or_else(|| target.join("conformance"));
    if args.mode == Mode::Operators {
        let folder = args.operators.clone().or(this.parent().map(Path::to_owned)).context("a folder")?;
        let work = move || operators_mode(&folder, &output.join("operators"), &args.only, args.on.as_deref());
        return tokio::task::spawn_blocking(work).await?;
    }
    if matches!(args.mode, Mode::Controllers | Mode::RecordControllers) {
        let record = args.mode == Mode::RecordControllers;
        let with_node = args.with_node;
        if with_node && (record || args.on.is_some()) {
            bail!("with --with-node both sides are live: there is nothing recorded, and --on has no meaning");
        }
        let choice = Choice { groups: args.controller, only: args.only, on: args.on, record, with_node };
        let output = output.join(if with_node { "controllers-with-node" } else { "controllers" });
        return controllers::run::run(&choice, &output).await;
    }
    if matches!(args.mode, Mode::Kubelet | Mode::RecordKubelet) {
        return kubelet_mode(args, &program, &output.join("kubelet")).await;
    }
    if args.mode == Mode::Envtest {
        let output = output.join("envtest");
        return tokio::task::spawn_blocking(move || envtest::run(&program, &output)).await?;
    }
    if args.mode == Mode::Certificates {
        let seed = args.seed.unwrap_or_else(drawn);
        return certificates::run(&program, &output.join("certificates"), seed).await;
    }
    if matches!(args.mode, Mode::Streams | Mode::RecordStreams) {
        let (output, record) = (output.join("streams"), args.mode == Mode::RecordStreams);
        return tokio::task::spawn_blocking(move || streams::run(&program, &output, record)).await?;
    }
    if args.mode == Mode::Node {
        return node::run(&args.only, &output.join("node")).await;
    }
    if matches!(args.mode, Mode::Record | Mode::RecordKubectl) {
        let folder = output.join("servers/recorded");
        let _ = std::fs::remove_dir_all(&folder);
        let reference = servers::reference(&folder).await?;
        if args.mode == Mode::RecordKubectl {
            let count = kubectl::record(endpoint(&reference), &output.join("kubectl")).await?;
            println!("{count} sequences, from {}", recorded::REFERENCE);
            return Ok(true);
        }
        let (count, size) = recorded::record(endpoint(&reference), &args.only, Timestamp::now()).await?;
        println!("{count} sequences, {} kB, from {}", size / 1000, recorded::REFERENCE);
        return Ok(true);
    }
    let seed = args.seed.unwrap_or_else(drawn);
    println!("seed {seed} (repeat with --seed {seed})");
    let mut sequences: Vec<Sequence> = rules::hand_written()?;
    sequences.extend(generate::all(seed, args.generated));
    // Those that others would see come after the others.
    sequences.sort_by_key(Sequence::defines_kinds);
    sequences.retain(|sequence| format!("{}/{}", sequence.rule, sequence.name).contains(&args.only));
    let hook = Hook::start().await?;
    hook.fill(&mut sequences)?;
    let document = std::fs::read_to_string("docs/api-differences.md").context("docs/api-differences.md")?;
    let entries = explained::read(&document)?;

    let folder = output.join("servers");
    let _ = std::fs::remove_dir_all(&folder);
    let reference = folder.join("reference");
    let (reference, ours) =
        tokio::try_join!(servers::reference(&reference), second(&program, &folder, args.self_check))?;
    println!("both servers are ready after {:.1} s", started.elapsed().as_secs_f64());
    if args.mode == Mode::Metrics {
        return metrics::run(&reference, &ours, &hook).await;
    }
    if args.mode == Mode::Published {
        return published_mode(&reference, &ours, &output.join("published"), &entries, seed).await;
    }
    if args.mode == Mode::Kubectl {
        return kubectl_mode(&reference, &ours, &output, &args.only);
    }
    let outcomes = suite::run_all(endpoint(&reference), endpoint(&ours), sequences, "c").await?;
    let summary = report::report(&outcomes, &entries, &output.join("differences"), args.messages)?;
    let mut slow: Vec<_> = outcomes.iter().collect();
    slow.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    for outcome in slow.iter().take(3) {
        println!(
            "slow: {:.1} s {}/{}",
            outcome.took.as_secs_f64(),
            outcome.sequence.rule,
            outcome.sequence.name
        );
    }
    for Outcome { sequence, before, .. } in
        outcomes.iter().filter(|one| one.comparison.differences.is_empty())
    {
        if let Some(first) = before.first() {
            println!(
                "equal only when it was tried again: {}/{}, before: {first}",
                sequence.rule, sequence.name
            );
        }
    }
    println!(
        "{} sequences ({} from seed {seed}) in {:.0} s, {} different: see {}",
        summary.run,
        summary.generated,
        started.elapsed().as_secs_f64(),
        summary.different,
        output.join("differences").display()
    );
    if args.only.is_empty() && !summary.thin.is_empty() {
        println!("rules with fewer than {} sequences: {}", rules::LEAST, summary.thin.join(", "));
    }
    Ok(if args.only.is_empty() { summary.good() } else { summary.different == 0 })
}

/// On a cluster of its own, unless one is named.
async fn kubelet_mode(args: Args, program: &Path, output: &Path) -> Result<bool> {
    if args.mode == Mode::RecordKubelet {
        let kubeconfig = args.kubeconfig.context("--kubeconfig says which cluster has the real kubelet")?;
        return kubelet::record(&kubelet::Choice { kubeconfig, only: args.only }).await;
    }
    let report = output.join("differences.txt");
    let (ours, kubeconfig) = match args.kubeconfig {
        Some(kubeconfig) => (None, kubeconfig),
        None => {
            let folder = output.join("cluster");
            std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
            let program = program.canonicalize().with_context(|| program.display().to_string())?;
            (Some(Cluster::up(&program, &["--fresh"], &folder)), folder.join("data/kubeconfig"))
        }
    };
    let equal = kubelet::compare(&kubelet::Choice { kubeconfig, only: args.only }, &report).await;
    drop(ours);
    equal
}

fn kubectl_mode(reference: &Server, ours: &Server, output: &Path, only: &str) -> Result<bool> {
    let (count, different) = kubectl::compare(reference, ours, &output.join("kubectl"), only)?;
    let mut text = String::new();
    for one in &different {
        text += &format!(
            "## kubectl {} {}\n--- reference\n{}--- ours\n{}\n",
            one.version, one.command, one.reference, one.ours
        );
        println!("different: kubectl {} {}", one.version, one.command);
    }
    let file = output.join("kubectl-differences.txt");
    std::fs::write(&file, text)?;
    println!("{count} commands, {} different: see {}", different.len(), file.display());
    Ok(different.is_empty())
}

async fn published_mode(
    reference: &Server,
    ours: &Server,
    output: &Path,
    entries: &[explained::Entry],
    seed: u64,
) -> Result<bool> {
    let sources = published::sources()?;
    // The definitions come first: objects of all of them are made at once.
    let mut outcomes =
        suite::run_all(endpoint(reference), endpoint(ours), sources.definitions(), "d").await?;
    let objects = published::objects(&sources, seed);
    outcomes.extend(suite::run_all(endpoint(reference), endpoint(ours), objects, "o").await?);
    let summary = report::report(&outcomes, entries, &output.join("differences"), false)?;
    println!(
        "{} sequences about published definitions, {} different: see {}",
        summary.run,
        summary.different,
        output.join("differences").display()
    );
    let (count, different) = published::compare_helm(reference, ours, output)?;
    let file = output.join("helm-differences.txt");
    std::fs::write(&file, &different)?;
    let lines = different.lines().filter(|line| line.starts_with("## "));
    println!("helm 3 and 4: {count} lines, {} different: see {}", lines.count(), file.display());
    let controllers = published::compare_kube_rs(reference, ours, &output.join("kube-rs"))?;
    let verdict = if controllers.is_empty() { "the same" } else { "different" };
    println!("controllers on kube-rs: {verdict}\n{controllers}");
    Ok(summary.different == 0 && different.is_empty() && controllers.is_empty())
}

/// The one random number of a run: the hasher of the standard library is seeded by the machine.
fn drawn() -> u64 {
    RandomState::new().build_hasher().finish() % 1_000_000_000
}

/// On both servers at once: most of the time is spent waiting.
fn operators_mode(programs: &Path, output: &Path, only: &str, on: Option<&str>) -> Result<bool> {
    let started = Instant::now();
    let program = programs.join("foobar-operator");
    if !program.exists() {
        bail!("{} is missing: build it with `cargo build --release -p foobar-operator`", program.display());
    }
    let checks: Vec<&Check> = foobar::CHECKS.iter().filter(|check| check.name.contains(only)).collect();
    let times = Times::of_users();
    let run = |server: &dyn operators::Server| {
        let folder = output.join(server.name()).join("checks");
        operators::run_all(&checks, server, &program, &times, &folder)
    };
    let (ours, real) = std::thread::scope(|scope| {
        let wanted = |name: &str| on.is_none_or(|on| on == name);
        let ours = wanted("ours").then(|| scope.spawn(|| Ok(run(&Ours::start(&output.join("ours"))?))));
        let real = wanted("real")
            .then(|| scope.spawn(|| Ok(run(&Real::start(&output.join("real"), foobar::users())?))));
        let join = |thread: Option<ScopedJoinHandle<'_, Result<bool>>>| {
            thread.map_or(Ok(true), |thread| thread.join().expect("no panic"))
        };
        (join(ours), join(real))
    });
    println!("{} checks in {:.0} s: see {}", checks.len(), started.elapsed().as_secs_f64(), output.display());
    // Both have run, whatever became of the other.
    Ok(ours? & real?)
}

async fn second(program: &Path, folder: &Path, real: bool) -> Result<Server> {
    match real {
        true => servers::reference(&folder.join("second")).await,
        false => servers::ours(program, &folder.join("ours")).await,
    }
}

fn endpoint(server: &Server) -> Arc<dyn Endpoint> {
    Arc::new(server.https.clone())
}
