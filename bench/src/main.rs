//! `make bench`: figures of the API server beside the real kube-apiserver and etcd, on one machine in one run; and of an
//! operator with many objects.
//!
//! ```text
//! server (starts both as processes) ─┐
//! client ← load (32 connections) ────┼─ figures/* (numbers by key) ─ rows (keys → names, goals) ─ report
//! cluster ← operator (a process) ────┤
//! process (/proc), machine ──────────┘
//! ```
//!
//! Machines are shared and noisy, so what counts is the ratio of two numbers taken the same way; where the client
//! itself is the limit, the processor time that the server spent on a request says more than the rate.

mod ceiling;
mod client;
mod cluster;
mod figures;
mod hook;
mod load;
mod machine;
mod objects;
mod operator;
mod process;
mod report;
mod rows;
mod server;
mod tls;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand, ValueEnum};

use crate::report::render;
use crate::server::{Programs, Which};

/// Measure the API server beside kube-apiserver and etcd.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Measure only these
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,

    /// Leave the reference out
    #[arg(long)]
    alone: bool,

    /// Connections that send requests
    #[arg(long, default_value_t = 32)]
    connections: usize,

    /// Connections that watch
    #[arg(long, default_value_t = 50)]
    watchers: usize,

    /// Pods that are listed
    #[arg(long, default_value_t = 80_000)]
    pods: usize,

    /// Pods that the reference lists, where that many take too long to create
    #[arg(long)]
    reference_pods: Option<usize>,

    /// Objects at the large end of "cost per request is flat"
    #[arg(long, default_value_t = 100_000)]
    objects: usize,

    /// FooBars that the operator has
    #[arg(long, default_value_t = 10_000)]
    foobars: usize,

    /// Seconds that each rate is taken over
    #[arg(long, default_value_t = 5)]
    seconds: u64,

    /// Our program [default: `windlass` beside this one]
    #[arg(long, value_name = "FILE")]
    windlass: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Times servers inside of this process, and prints what it took in nanoseconds
    #[command(hide = true)]
    InProcess,
    /// Answers every request over TLS with the same bytes: what the client can do at most
    #[command(hide = true)]
    Ceiling,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Time to ready, idle memory
    Start,
    /// Creates and reads per second
    Rates,
    /// Writes that a webhook allows
    Hooked,
    /// Reads while writes wait for a webhook that hangs
    Hung,
    /// Deliveries to watchers
    Watch,
    /// Many pods: lists, memory
    Pods,
    /// The same cost at any size
    Flat,
    /// An operator with many objects: its start, its memory, who waits
    Operator,
    /// Three etcd members: what the operator takes, and a hand-written script
    Etcd,
}

/// How much of everything.
struct Settings {
    connections: usize,
    watchers: usize,
    pods: usize,
    objects: usize,
    foobars: usize,
    time: Duration,
}

/// What was measured of one server, by key.
type Numbers = BTreeMap<&'static str, f64>;

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    match args.command {
        Some(Command::InProcess) => figures::in_process::child()?,
        Some(Command::Ceiling) => ceiling::child()?,
        None => return measure(&args),
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &Args) -> Result<ExitCode> {
    let folder = target_folder().join("bench");
    let mut programs = Programs::find(folder.join("scratch"))?;
    if let Some(windlass) = &args.windlass {
        programs.windlass.clone_from(windlass);
    }
    programs.check(!args.alone)?;
    let facts = machine::facts();
    let settings = |which| Settings {
        connections: args.connections,
        watchers: args.watchers,
        pods: if which == Which::Reference { args.reference_pods.unwrap_or(args.pods) } else { args.pods },
        objects: args.objects,
        foobars: args.foobars,
        time: Duration::from_secs(args.seconds),
    };
    let wanted = |part| args.only.is_empty() || args.only.contains(&part);

    let mut notes = notes(args, &programs);
    let mut ours = Numbers::new();
    let mut reference = Numbers::new();
    let mut sides = vec![(Which::Ours, &mut ours)];
    if !args.alone {
        sides.push((Which::Reference, &mut reference));
    }
    for part in [Part::Start, Part::Rates, Part::Hooked, Part::Hung, Part::Watch, Part::Pods] {
        if !wanted(part) {
            continue;
        }
        let measure = |which| {
            let settings = settings(which);
            match part {
                Part::Start => figures::start::measure(&programs, which),
                Part::Rates => figures::rates::measure(&programs.start(which)?, &settings),
                Part::Hooked => figures::hooked::measure(&programs.start(which)?, &settings),
                Part::Hung => figures::hung::measure(&programs.start(which)?, &settings),
                Part::Watch => figures::watch::measure(&programs.start(which)?, &settings),
                _ => figures::pods::measure(&programs.start(which)?, &settings),
            }
        };
        attempt(&format!("{part:?}"), &mut notes, || figures::in_turns(&mut sides, measure));
    }
    if wanted(Part::Start) {
        attempt("in-process", &mut notes, || figures::in_process::measure(&mut ours));
    }
    if wanted(Part::Flat) {
        let settings = settings(Which::Ours);
        attempt("flat", &mut notes, || figures::flat::measure(&programs, &settings, &mut ours));
    }
    if wanted(Part::Operator) {
        let settings = settings(Which::Ours);
        attempt("operator", &mut notes, || figures::operator::measure(&programs, &settings, &mut ours));
        notes.push(format!("FooBars: {}, each with a ConfigMap", args.foobars));
    }
    if wanted(Part::Etcd) {
        attempt("etcd by the operator", &mut notes, || figures::etcd::operator(&programs, &mut ours));
    }
    if wanted(Part::Etcd) && !args.alone {
        attempt("etcd by a script", &mut notes, || figures::etcd::script(&mut reference));
        notes.push(
            "three etcd members: the reference is a hand-written script, and waits for the disk".to_owned(),
        );
    }
    if wanted(Part::Rates) {
        let note = ceiling::note(&settings(Which::Ours))?;
        notes.push(note);
    }

    let figures = rows::figures(&ours, &reference);
    let report = render(&facts, &notes, &figures);
    println!("{report}");
    let path = folder.join("report.md");
    write(&path, &report)?;
    println!("written to {}", path.display());
    // A figure that is missed is for the reader to judge: on a busy machine it may be the machine.
    Ok(ExitCode::SUCCESS)
}

/// Measures one part and says so: it may be minutes. What fails is noted, and costs only its own figures.
fn attempt(name: &str, notes: &mut Vec<String>, measure: impl FnOnce() -> Result<()>) {
    let started = Instant::now();
    let outcome = measure();
    eprintln!("{name}: {:.0} s", started.elapsed().as_secs_f64());
    if let Err(error) = outcome {
        notes.push(format!("**not measured**: {name}: {error:#}"));
    }
}

fn notes(args: &Args, programs: &Programs) -> Vec<String> {
    let mut notes = vec![format!(
        "load: {} connections, HTTP/1.1 over TLS 1.3, one request at a time on each, {} s per rate; {} watchers",
        args.connections, args.seconds, args.watchers
    )];
    if !args.alone {
        let api = machine::said_by(&programs.kube_apiserver.to_string_lossy(), &["--version"]);
        let etcd = machine::said_by(&programs.etcd.to_string_lossy(), &["--version"]);
        notes.push(format!(
            "reference: {api}, {etcd}, without fsync; its memory and time are of both processes"
        ));
        let pods = args.reference_pods.unwrap_or(args.pods);
        if pods != args.pods {
            notes.push(format!(
                "pods: {} for us, {pods} for the reference, whose list times are scaled up to {}",
                args.pods, args.pods
            ));
        }
    }
    notes.push(format!("pods: {}", args.pods));
    notes
}

fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file in a folder")?)?;
    Ok(fs::write(path, text)?)
}
