//! The program of an operator.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{CommandFactory as _, FromArgMatches as _};
use tokio::signal::unix::{SignalKind, signal};

use super::args::{Command, CommandLine, Manifests, Plan, Run};
use super::{Operator, Settings, preview};
use crate::client::{self, Server};
use crate::{Env, Error, election, log};

/// Something failed; what, was printed.
const FAILED: u8 = 1;

impl Operator {
    /// The whole program: reads the command line and does what it says. See `--help`.
    ///
    /// Exit codes: 0 for success, and for an operator that was told to stop; 1 for a failure, whose reason is printed; 2
    /// for a command line that makes no sense.
    pub fn main(self) -> ExitCode {
        let command = CommandLine::command().name(self.name).version(self.version);
        let line = CommandLine::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit());
        let done = match line.command {
            None => self.run_main(line.run),
            Some(Command::Run(run)) => self.run_main(run),
            Some(Command::Plan(plan)) => self.plan_main(plan),
            Some(Command::Manifests(manifests)) => self.manifests_main(&manifests),
            Some(Command::Version) => print(&format!("{} {}\n", self.name, self.version)),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(FAILED)
            }
        }
    }

    fn run_main(self, run: Run) -> Result<(), Error> {
        log::init(&log::Settings {
            format: run.logging.log_format.into(),
            filter: run.logging.log_level.clone(),
        })?;
        runtime()?.block_on(async {
            let server = Server::from(client::config(run.connection.kubeconfig.as_deref()).await?);
            let settings = self.settings(run, &server, mortal(Env::system())?);
            let running = self.start(server, settings).await?;
            let shutdown = running.shutdown();
            let (mut terminate, mut interrupt) =
                (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
            let mut ended = std::pin::pin!(running.wait());
            tokio::select! {
                biased;
                ended = &mut ended => return Ok(ended?),
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::info!("told to stop");
            shutdown.cancel();
            tokio::select! {
                biased;
                ended = ended => Ok(ended?),
                // Asked twice, it waits for nothing.
                _ = interrupt.recv() => Err(Error::retry("interrupted again: ended at once")),
            }
        })
    }

    fn settings(&self, run: Run, server: &Server, env: Env) -> Settings {
        let namespaces = run.namespaces();
        let election = run.election.leader_elect.then(|| {
            let namespace = run.election.leader_election_namespace;
            let namespace = namespace.unwrap_or_else(|| server.default_namespace().to_owned());
            election::Settings {
                lease_duration: run.election.leader_elect_lease_duration,
                renew_deadline: run.election.leader_elect_renew_deadline,
                retry_period: run.election.leader_elect_retry_period,
                ..election::Settings::new(
                    namespace,
                    run.election.leader_election_id.unwrap_or_else(|| self.name.to_owned()),
                    election::identity(&env),
                )
            }
        });
        Settings {
            env,
            namespaces,
            install_crds: run.install_crds,
            metrics_address: run.metrics_bind_address,
            health_address: run.health_probe_bind_address,
            shutdown_timeout: run.graceful_shutdown_timeout,
            election,
            only_declared_calls: false,
        }
    }

    fn manifests_main(&self, args: &Manifests) -> Result<(), Error> {
        let image = args.image.clone().unwrap_or_else(|| format!("{}:{}", self.name, self.version));
        let mut documents = self.manifests(&args.namespace, args.namespaced, &image, args.replicas);
        if args.monitoring {
            documents.extend(self.monitoring.iter().map(|document| document(&args.namespace)));
        }
        let documents: Result<Vec<String>, _> = documents.iter().map(serde_saphyr::to_string).collect();
        print(&documents?.iter().map(|document| format!("---\n{document}")).collect::<String>())
    }

    fn plan_main(self, args: Plan) -> Result<(), Error> {
        runtime()?.block_on(async {
            let server = Server::from(client::config(args.connection.kubeconfig.as_deref()).await?);
            print(
                &preview::preview(
                    self,
                    server,
                    &args.object,
                    args.namespace.as_deref(),
                    args.kind.as_deref(),
                )
                .await?,
            )
        })
    }
}

/// For tests of what a crash leaves behind: with `WINDLASS_CRASH_AT=3` in its environment, the process is killed right
/// after its third write, as the kernel would kill it.
fn mortal(env: Env) -> Result<Env, Error> {
    let Ok(at) = std::env::var("WINDLASS_CRASH_AT") else { return Ok(env) };
    let at: u64 =
        at.parse().map_err(|_| Error::retry(format!("WINDLASS_CRASH_AT={at} is no number of writes")))?;
    let writes = AtomicU64::new(0);
    Ok(env.with_crash_points(move |name| {
        if writes.fetch_add(1, Ordering::SeqCst) + 1 == at {
            tracing::warn!(name, at, "killed by WINDLASS_CRASH_AT");
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            // The first process of a container cannot kill itself. This neither tidies up nor waits for anybody either.
            std::process::abort();
        }
    }))
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

/// Prints to the standard output. A reader that goes away early wanted no more.
fn print(text: &str) -> Result<(), Error> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
