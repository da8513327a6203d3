//! A world below for tests: programs that do what their name says, in the time of the test.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;
use windlass::Env;
use windlass_sandbox::{Exec, Exit, Spec};

use super::runtime::{Io, Network, PodNet, Program, RunError, Runtime};
use crate::serve::Connection;

/// Programs that do what their name says:
/// `sleep N` ends well after that time and hears no signal but the one nobody survives, `polite` ends well when it is asked
/// to, `exit N` ends with that code, `say TEXT` says it and ends, `panic` makes the one who starts it panic once.
pub(crate) struct FakeRuntime {
    env: Env,
    running: Arc<Mutex<BTreeMap<String, watch::Sender<Option<Exit>>>>>,
    /// What was started, and when.
    pub started: Mutex<Vec<(jiff::Timestamp, Vec<String>)>>,
    /// Where somebody listens.
    pub listening: Mutex<BTreeSet<SocketAddr>>,
    panicked: Mutex<bool>,
}

impl FakeRuntime {
    pub fn new(env: &Env) -> Arc<FakeRuntime> {
        Arc::new(FakeRuntime {
            env: env.clone(),
            running: Arc::default(),
            started: Mutex::default(),
            listening: Mutex::default(),
            panicked: Mutex::default(),
        })
    }

    /// How many programs run.
    pub fn count(&self) -> usize {
        self.running.lock().unwrap().len()
    }

    fn begin(&self, id: Option<&str>, argv: &[String]) -> Result<Program, RunError> {
        let number = |at: usize| argv.get(at).and_then(|text| text.parse().ok()).unwrap_or(0);
        let exit = |code: i32| Exit { code, signal: None, oom: false };
        let (ends, mut ended) = watch::channel(None);
        let (mut said, mut polite, mut after) = (String::new(), false, None);
        match argv[0].as_str() {
            "sleep" => after = Some(Duration::from_secs(u64::try_from(number(1)).unwrap_or(0))),
            "polite" => polite = true,
            "exit" => drop(ends.send_replace(Some(exit(number(1))))),
            "say" => {
                said = argv[1..].join(" ") + "\n";
                ends.send_replace(Some(exit(0)));
            }
            "panic" if !std::mem::replace(&mut *self.panicked.lock().unwrap(), true) => {
                panic!("as it was told")
            }
            "panic" => polite = true,
            other => {
                let why = format!("exec: \"{other}\": executable file not found in $PATH");
                return Err(RunError::Program(why));
            }
        }
        if let Some(id) = id {
            self.running.lock().unwrap().insert(id.to_owned(), ends.clone());
        }
        let (env, running, id) = (self.env.clone(), self.running.clone(), id.map(str::to_owned));
        let exits = async move {
            let by_itself = async {
                match after {
                    Some(time) => env.sleep(time).await,
                    None => std::future::pending().await,
                }
            };
            let exit = tokio::select! {
                biased;
                was = ended.wait_for(Option::is_some) => was.ok().and_then(|was| *was).unwrap_or(exit(137)),
                () = by_itself => exit(0),
            };
            if let Some(id) = id {
                running.lock().unwrap().remove(&id);
            }
            exit
        };
        let signal = Arc::new(move |number: i32| -> BoxFuture<'static, ()> {
            let code = if number == 9 { Some(137) } else { polite.then_some(0) };
            if let Some(code) = code {
                ends.send_if_modified(|exit| {
                    exit.is_none() && {
                        *exit = Some(Exit { code, signal: None, oom: false });
                        true
                    }
                });
            }
            Box::pin(std::future::ready(()))
        });
        Ok(Program {
            stdin: None,
            stdout: Some(Box::new(io::Cursor::new(said))),
            stderr: Some(Box::new(tokio::io::empty())),
            resize: None,
            exit: Box::pin(exits),
            signal,
        })
    }
}

impl Runtime for FakeRuntime {
    fn run<'a>(&'a self, id: &'a str, spec: Spec, _: Io) -> BoxFuture<'a, Result<Program, RunError>> {
        Box::pin(async move {
            self.started.lock().unwrap().push((self.env.now(), spec.argv.clone()));
            self.begin(Some(id), &spec.argv)
        })
    }

    fn exec<'a>(&'a self, _: &'a str, exec: Exec, _: Io) -> BoxFuture<'a, Result<Program, RunError>> {
        Box::pin(async move { self.begin(None, &exec.argv) })
    }

    fn dial<'a>(&'a self, _: &'a str, to: SocketAddr) -> BoxFuture<'a, io::Result<Connection>> {
        let listens = self.listening.lock().unwrap().contains(&to);
        let connection = || Box::new(tokio::io::duplex(64).0) as Connection;
        let answer = listens.then(connection).ok_or_else(|| io::ErrorKind::ConnectionRefused.into());
        Box::pin(std::future::ready(answer))
    }

    fn mount_memory<'a>(&'a self, _: &'a Path, _: Option<u64>) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn unmount_memory<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Every pod has the same address: nobody goes anywhere.
pub(crate) struct FakeNetwork;

impl Network for FakeNetwork {
    fn attach<'a>(&'a self, _: &'a Pod, _: &'a str) -> BoxFuture<'a, Result<PodNet, String>> {
        let net = PodNet { name: "pod".to_owned(), ips: vec!["10.244.0.2".to_owned()] };
        Box::pin(std::future::ready(Ok(net)))
    }

    fn detach<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn keep_only(&self, _: &BTreeSet<String>) {}

    fn resolv_conf(&self, _: &Pod) -> String {
        "nameserver 10.0.0.10\n".to_owned()
    }
}
