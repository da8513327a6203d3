//! The two servers as processes: ours, and the real kube-apiserver with its etcd.

use std::env;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use rcgen::KeyPair;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::client::Connector;
use crate::objects::Requests;
use crate::process::{Process, cpu_seconds, resident_bytes};

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// `windlass apiserver`.
    Ours,
    /// kube-apiserver and etcd.
    Reference,
}

/// Where the programs lie, and where the servers may write.
pub struct Programs {
    /// `windlass`.
    pub windlass: PathBuf,
    /// `foobar-operator`.
    pub foobar_operator: PathBuf,
    /// `kube-apiserver`.
    pub kube_apiserver: PathBuf,
    /// `etcd`.
    pub etcd: PathBuf,
    /// A folder for what the servers write.
    pub scratch: PathBuf,
}

impl Programs {
    /// Our programs beside this one, the reference where `tools/setup` puts it.
    pub fn find(scratch: PathBuf) -> Result<Programs> {
        let this = env::current_exe()?;
        let cache = env::var_os("WINDLASS_CACHE").map(PathBuf::from).or_else(|| {
            let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            Some(base.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))?.join("windlass"))
        });
        let real = cache.context("neither WINDLASS_CACHE nor HOME is set")?.join("real");
        Ok(Programs {
            windlass: this.with_file_name("windlass"),
            foobar_operator: this.with_file_name("foobar-operator"),
            kube_apiserver: real.join("kube/kube-apiserver"),
            etcd: real.join("etcd-3.6/etcd"),
            scratch,
        })
    }

    /// Fails where a program is missing, with the command that brings it.
    pub fn check(&self, reference: bool) -> Result<()> {
        for (program, package) in
            [(&self.windlass, "windlass-cli"), (&self.foobar_operator, "foobar-operator")]
        {
            ensure!(program.exists(), "{} is missing: cargo build --release -p {package}", program.display());
        }
        for program in [&self.kube_apiserver, &self.etcd] {
            ensure!(
                !reference || program.exists(),
                "{} is missing: tools/setup kube-apiserver etcd-3.6",
                program.display()
            );
        }
        Ok(())
    }

    /// Starts a server, waits until it is ready, and becomes one of its ordinary users.
    pub fn start(&self, which: Which) -> Result<Server> {
        let mut server = self.start_idle(which)?;
        server.become_ordinary()?;
        Ok(server)
    }

    /// Starts a server and waits until it is ready. It has been asked for nothing else.
    pub fn start_idle(&self, which: Which) -> Result<Server> {
        let folder = self.scratch.join(match which {
            Which::Ours => "ours",
            Which::Reference => "reference",
        });
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let connector = Connector::new(address)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let started = Instant::now();
        let mut processes = match which {
            Which::Ours => vec![self.spawn_ours(&folder, address.port())?],
            Which::Reference => self.spawn_reference(&folder, address.port())?,
        };
        let host = address.to_string();
        wait_ready(&runtime, &connector, &host, &mut processes)
            .with_context(|| format!("its log is in {}", folder.display()))?;
        let ready = started.elapsed();
        let token = match which {
            Which::Ours => token_of(&fs::read_to_string(folder.join("kubeconfig"))?)?,
            Which::Reference => TOKEN.to_owned(),
        };
        Ok(Server { processes, connector, requests: Requests { host, token }, ready, runtime })
    }

    fn spawn_ours(&self, folder: &Path, port: u16) -> Result<Process> {
        let mut command = Command::new(&self.windlass);
        command
            .args(["apiserver", "--port", &port.to_string(), "--kubeconfig"])
            .arg(folder.join("kubeconfig"));
        spawn(command, folder, "windlass")
    }

    /// etcd without fsync, and kube-apiserver as it is by default. Pods need a service account, which a controller
    /// would make: the admission plugin that asks for it is off, as in every such test set-up.
    fn spawn_reference(&self, folder: &Path, port: u16) -> Result<Vec<Process>> {
        let clients = format!("http://127.0.0.1:{}", free_port()?);
        let peers = format!("http://127.0.0.1:{}", free_port()?);
        let mut etcd = Command::new(&self.etcd);
        etcd.arg("--unsafe-no-fsync")
            .arg(format!("--data-dir={}", folder.join("etcd").display()))
            .arg(format!("--listen-client-urls={clients}"))
            .arg(format!("--advertise-client-urls={clients}"))
            .arg(format!("--listen-peer-urls={peers}"))
            .arg(format!("--initial-advertise-peer-urls={peers}"))
            .arg(format!("--initial-cluster=default={peers}"))
            // Enough for 200,000 pods and their history.
            .arg("--quota-backend-bytes=8589934592");
        let key = KeyPair::generate()?;
        let (private, public) = (folder.join("sa.key"), folder.join("sa.pub"));
        fs::write(&private, key.serialize_pem())?;
        fs::write(&public, key.public_key_pem())?;
        let tokens = folder.join("tokens");
        fs::write(&tokens, format!("{TOKEN},admin,admin,system:masters\n"))?;
        let mut api = Command::new(&self.kube_apiserver);
        api.arg(format!("--etcd-servers={clients}"))
            .arg(format!("--secure-port={port}"))
            .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
            .arg(format!("--cert-dir={}", folder.join("certs").display()))
            .arg(format!("--token-auth-file={}", tokens.display()))
            .args(["--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24"])
            .args(["--service-account-issuer=https://kubernetes.default.svc"])
            .arg(format!("--service-account-key-file={}", public.display()))
            .arg(format!("--service-account-signing-key-file={}", private.display()))
            .arg("--disable-admission-plugins=ServiceAccount");
        Ok(vec![spawn(etcd, folder, "etcd")?, spawn(api, folder, "kube-apiserver")?])
    }
}

/// The reference's token: its server listens at the loopback and lives for a minute.
const TOKEN: &str = "bench";

/// A server that answers.
pub struct Server {
    /// Opens connections to it.
    pub connector: Connector,
    /// Requests to it.
    pub requests: Requests,
    /// From the start of its first process to the first 200 at `/readyz`.
    pub ready: Duration,
    processes: Vec<Process>,
    runtime: Runtime,
}

impl Server {
    /// Goes on as a service account that may what roles allow it: an administrator is asked for nothing but his name.
    fn become_ordinary(&mut self) -> Result<()> {
        let account = json!({"metadata": {"name": "bench"}});
        self.made("/api/v1/namespaces/default/serviceaccounts", &account)?;
        let rule = json!({"apiGroups": ["", "admissionregistration.k8s.io"], "resources": ["configmaps", "pods", "namespaces", "validatingwebhookconfigurations"], "verbs": ["*"]});
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        self.made(roles, &json!({"metadata": {"name": "bench"}, "rules": [rule]}))?;
        let binding = json!({
            "metadata": {"name": "bench"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bench"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "bench"}],
        });
        self.made("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding)?;
        let path = "/api/v1/namespaces/default/serviceaccounts/bench/token";
        let told = self.made(path, &json!({"spec": {"expirationSeconds": 7200}}))?;
        self.requests.token = told["status"]["token"].as_str().context("a token")?.to_owned();
        // kube-apiserver hears of roles by a watch.
        let mut request = Vec::new();
        self.requests.get("/api/v1/namespaces/default/pods", "application/json", &mut request);
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.runtime.block_on(async { self.connector.open().await?.exchange(&request).await })?.0 != 200
        {
            ensure!(Instant::now() < deadline, "the role of the service account does not count");
        }
        Ok(())
    }

    /// Creates something, and gives back what the server says of it.
    pub fn made(&self, path: &str, body: &Value) -> Result<Value> {
        let (mut request, mut answer) = (Vec::new(), Vec::new());
        self.requests.post(path, &body.to_string(), &mut request);
        let status = self.runtime.block_on(async {
            self.connector
                .open()
                .await?
                .exchange_with(&request, |piece| answer.extend_from_slice(piece))
                .await
        })?;
        ensure!(status == 201, "{path} was answered with {status}: {}", String::from_utf8_lossy(&answer));
        Ok(serde_json::from_slice(&answer)?)
    }

    /// Resident memory in bytes, of all its processes.
    pub fn resident_bytes(&self) -> Result<u64> {
        self.processes.iter().map(|process| resident_bytes(process.id())).sum()
    }

    /// Processor time in seconds, of all its processes.
    pub fn cpu_seconds(&self) -> Result<f64> {
        self.processes.iter().map(|process| cpu_seconds(process.id())).sum()
    }

    /// Creates a namespace.
    pub fn create_namespace(&self, name: &str) -> Result<()> {
        let mut request = Vec::new();
        let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        self.requests.post("/api/v1/namespaces", &body, &mut request);
        let status = self.runtime.block_on(async {
            let mut connection = self.connector.open().await?;
            connection.exchange(&request).await
        })?;
        ensure!(status.0 == 201, "namespace {name}: {}", status.0);
        Ok(())
    }

    /// Reads an answer, and says how long it took and how large it was.
    pub fn time(&self, path: &str, accept: &str) -> Result<(Duration, usize)> {
        let mut request = Vec::new();
        self.requests.get(path, accept, &mut request);
        self.runtime.block_on(async {
            let mut connection = self.connector.open().await?;
            let started = Instant::now();
            let (status, size) = connection.exchange(&request).await?;
            ensure!(status == 200, "{path}: {status}");
            Ok((started.elapsed(), size))
        })
    }

    /// How long a watch takes until its stream has held this text.
    pub fn time_until(&self, path: &str, text: &str) -> Result<Duration> {
        let mut request = Vec::new();
        self.requests.get(path, "application/json", &mut request);
        self.runtime.block_on(async {
            let connection = self.connector.open().await?;
            let started = Instant::now();
            let mut stream = connection.stream(&request).await?;
            let finder = memchr::memmem::Finder::new(text);
            // The end of what came before: the text may lie across two pieces.
            let mut tail: Vec<u8> = Vec::new();
            let mut found = false;
            while !found {
                let going = stream
                    .next(|piece| {
                        let edge = piece.len().min(text.len());
                        tail.extend_from_slice(&piece[..edge]);
                        found |= finder.find(&tail).is_some() || finder.find(piece).is_some();
                        tail.clear();
                        tail.extend_from_slice(&piece[piece.len() - edge..]);
                    })
                    .await?;
                ensure!(going || found, "the watch ended early");
            }
            Ok(started.elapsed())
        })
    }
}

fn spawn(mut command: Command, folder: &Path, name: &str) -> Result<Process> {
    let log = File::create(folder.join(format!("{name}.log")))?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let child = command.spawn().with_context(|| format!("{name} does not start"))?;
    Ok(Process::new(child))
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Asks `/readyz` every half millisecond until it says 200.
fn wait_ready(runtime: &Runtime, connector: &Connector, host: &str, processes: &mut [Process]) -> Result<()> {
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {host}\r\n\r\n");
    let deadline = Instant::now() + Duration::from_secs(120);
    runtime.block_on(async {
        loop {
            let asked = async { connector.open().await?.exchange(request.as_bytes()).await };
            if matches!(asked.await, Ok((200, _))) {
                return Ok(());
            }
            if Instant::now() > deadline || !processes.iter_mut().all(Process::is_alive) {
                bail!("the server did not get ready");
            }
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
    })
}

fn token_of(kubeconfig: &str) -> Result<String> {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("token: "));
    Ok(line.context("the kubeconfig has no token")?.to_owned())
}
