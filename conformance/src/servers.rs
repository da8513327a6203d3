//! The two servers: a real kube-apiserver on etcd, and ours, as processes on loopback.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tokio::time::{Instant, sleep};
use windlass_apiserver::codec::{self, Format};

use crate::client::{Endpoint as _, Https};

/// The token of the administrator of the reference.
const TOKEN: &str = "conformance";

/// A server that ends with this value.
pub struct Server {
    /// Where it listens.
    pub https: Https,
    /// A kubeconfig of its administrator.
    pub kubeconfig: PathBuf,
    processes: Vec<Child>,
    /// What its etcd keeps.
    data: Option<PathBuf>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // The API server before its etcd, or it complains until it is gone.
        for process in self.processes.iter_mut().rev() {
            if process.kill().is_ok() {
                let _ = process.wait();
            }
        }
        // Logs tell what happened; what an etcd allots to itself is only large, and there are hundreds of them.
        if let Some(data) = &self.data {
            let _ = fs::remove_dir_all(data);
        }
    }
}

/// Where `tools/setup` keeps the programs.
pub fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("WINDLASS_CACHE").unwrap_or_else(|| {
        let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
        base.unwrap_or_else(|| PathBuf::from(".cache")).join("windlass")
    })
}

/// What a real server has beside itself.
#[derive(Default)]
pub struct Extra {
    /// Users beside the administrator: the name, which is also the token, and the groups.
    pub users: Vec<(String, &'static str)>,
    /// Where to write who asked for what: one JSON object a line, as kube-apiserver writes its audit.
    pub audit: Option<PathBuf>,
    /// Whether there is a kube-controller-manager.
    pub controllers: bool,
    /// What kube-apiserver is told where nodes run pods. Else nobody is given a ServiceAccount, since none is ever made.
    pub beside_nodes: Option<Vec<String>>,
}

/// What it is told where there is no node.
const WITHOUT_NODES: [&str; 2] =
    ["--advertise-address=127.0.0.1", "--disable-admission-plugins=ServiceAccount"];

/// Starts kube-apiserver 1.36 and its etcd, with their data in `folder`.
///
/// # Errors
/// When a program is missing, or the server is not ready within a minute.
pub async fn reference(folder: &Path) -> Result<Server> {
    reference_with(folder, &Extra::default()).await
}

/// The same, with more beside it.
///
/// # Errors
/// When a program is missing, or the server is not ready within a minute.
pub async fn reference_with(folder: &Path, extra: &Extra) -> Result<Server> {
    fs::create_dir_all(folder)?;
    let (apiserver, etcd) = (program("kube/kube-apiserver")?, program("etcd-3.6/etcd")?);
    let [client, peer, port] = free_ports()?;
    let mut tokens = format!("{TOKEN},admin,admin,system:masters\n");
    for (user, groups) in &extra.users {
        tokens += &format!("{user},{user},{user},\"{groups}\"\n");
    }
    fs::write(folder.join("tokens"), tokens)?;
    let key = folder.join("sa.key");
    // Signs nothing that anybody trusts, but the server does not start without such a key.
    let pair = rcgen::KeyPair::generate()?;
    fs::write(&key, pair.serialize_pem())?;
    fs::write(folder.join("sa.pub"), pair.public_key_pem())?;
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    let data = folder.join("etcd");
    let mut processes = Vec::new();
    processes.push(spawn(
        Command::new(etcd)
            .args(["--unsafe-no-fsync", "--log-level=warn", "--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client, "--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer, "--initial-cluster", &format!("default={peer}")])
            .arg("--data-dir")
            .arg(&data),
        &folder.join("etcd.log"),
    )?);
    let path = |name: &str, path: &Path| format!("--{name}={}", path.display());
    let audit = match &extra.audit {
        None => Vec::new(),
        Some(log) => {
            let policy = folder.join("audit.yaml");
            fs::write(&policy, AUDIT_POLICY)?;
            vec![path("audit-policy-file", &policy), path("audit-log-path", log)]
        }
    };
    processes.push(spawn(
        Command::new(apiserver)
            .args(audit)
            .args([format!("--etcd-servers={client}"), format!("--secure-port={port}")])
            .args(extra.beside_nodes.clone().unwrap_or_else(|| WITHOUT_NODES.map(str::to_owned).into()))
            .args(["--bind-address=127.0.0.1", "--allow-privileged", "--authorization-mode=RBAC"])
            .args(["--service-cluster-ip-range=10.0.0.0/24"])
            .args(["--service-account-issuer=https://kubernetes.default.svc"])
            // Answers, not speed, are compared: nothing is to be turned away because two cores are busy.
            .args(["--max-requests-inflight=4000", "--max-mutating-requests-inflight=4000"])
            .arg(path("cert-dir", &folder.join("certificates")))
            .arg(path("token-auth-file", &folder.join("tokens")))
            .arg(path("service-account-key-file", &folder.join("sa.pub")))
            .arg(path("service-account-signing-key-file", &key)),
        &folder.join("kube-apiserver.log"),
    )?);
    let https = Https::new(&format!("127.0.0.1:{port}"), TOKEN);
    let kubeconfig = folder.join("kubeconfig");
    fs::write(&kubeconfig, kubeconfig_text(&format!("https://127.0.0.1:{port}"), TOKEN))?;
    let mut server = Server { https, kubeconfig, processes, data: Some(data) };
    server.ready(Duration::from_secs(90), &folder.join("kube-apiserver.log")).await?;
    if extra.controllers {
        server.controller_manager(folder, &[]).await?;
    }
    Ok(server)
}

/// Every request once: a watch when it begins, all others when they are answered.
const AUDIT_POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

/// One of the programs that `tools/setup` builds.
pub(crate) fn program(path: &str) -> Result<PathBuf> {
    let program = cache().join("real").join(path);
    if !program.exists() {
        let name = path.strip_prefix("kube/").or(path.split('/').next()).unwrap_or(path);
        bail!("{} is missing: run `tools/setup {name}`", program.display());
    }
    Ok(program)
}

/// Starts our server as a process.
///
/// # Errors
/// When the program is missing, or the server is not ready within ten seconds.
pub async fn ours(program: &Path, folder: &Path) -> Result<Server> {
    fs::create_dir_all(folder)?;
    let kubeconfig = folder.join("kubeconfig");
    let log = folder.join("windlass.log");
    let _ = fs::remove_file(&kubeconfig);
    if !program.exists() {
        bail!("{} is missing: build it with `cargo build --release -p windlass-cli`", program.display());
    }
    let process = spawn(
        Command::new(program).args(["apiserver", "--port", "0", "--kubeconfig"]).arg(&kubeconfig),
        &log,
    )?;
    let mut server = Server {
        https: Https::new("", ""),
        kubeconfig: kubeconfig.clone(),
        processes: vec![process],
        data: None,
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(https) = fs::read(&kubeconfig).ok().and_then(|text| from_kubeconfig(&text)) {
            server.https = https;
            break;
        }
        server.alive(&log)?;
        if Instant::now() > deadline {
            bail!("{} wrote no kubeconfig; see {}", program.display(), log.display());
        }
        sleep(Duration::from_millis(10)).await;
    }
    server.ready(Duration::from_secs(10), &log).await?;
    Ok(server)
}

/// Starts a program in the place of kube-apiserver, at a port that is free.
///
/// # Errors
/// It cannot be started, or is not ready within ten seconds.
pub(crate) async fn started(mut command: Command, folder: &Path) -> Result<Server> {
    let [port] = free_ports()?;
    let log = folder.join("server.log");
    let process = spawn(command.arg(format!("--secure-port={port}")), &log)?;
    let https = Https::new(&format!("127.0.0.1:{port}"), "");
    let mut server = Server { https, kubeconfig: PathBuf::new(), processes: vec![process], data: None };
    server.ready(Duration::from_secs(10), &log).await?;
    Ok(server)
}

impl Server {
    /// Starts kube-controller-manager beside a real server, with these arguments more, and waits until it is well.
    ///
    /// # Errors
    /// When the program is missing or does not come up.
    pub async fn controller_manager(&mut self, folder: &Path, args: &[String]) -> Result<()> {
        self.beside("kube-controller-manager", folder, args).await
    }

    /// The same with kube-scheduler.
    ///
    /// # Errors
    /// When the program is missing or does not come up.
    pub async fn scheduler(&mut self, folder: &Path) -> Result<()> {
        self.beside("kube-scheduler", folder, &[]).await
    }

    async fn beside(&mut self, name: &str, folder: &Path, args: &[String]) -> Result<()> {
        let [port] = free_ports()?;
        let log = folder.join(format!("{name}.log"));
        let mut command = Command::new(program(&format!("kube/{name}"))?);
        command
            .args([format!("--kubeconfig={}", self.kubeconfig.display()), format!("--secure-port={port}")])
            .args(["--bind-address=127.0.0.1", "--leader-elect=false"])
            .arg(format!("--cert-dir={}", folder.join("certificates").display()))
            .args(args);
        self.processes.push(spawn(&mut command, &log)?);
        let health = Https::new(&format!("127.0.0.1:{port}"), "");
        self.answers(&health, "/healthz", Duration::from_secs(60), &log).await
    }

    async fn ready(&mut self, patience: Duration, log: &Path) -> Result<()> {
        let https = self.https.clone();
        self.answers(&https, "/readyz", patience, log).await
    }

    async fn answers(&mut self, https: &Https, path: &str, patience: Duration, log: &Path) -> Result<()> {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            self.alive(log)?;
            let mut connection = https.open().await?;
            let request = Request::get(path).body(Full::new(Bytes::new()))?;
            if connection.send(request).await.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            sleep(Duration::from_millis(50)).await;
        }
        bail!("not ready after {patience:?}; see {}", log.display())
    }

    fn alive(&mut self, log: &Path) -> Result<()> {
        for process in &mut self.processes {
            if let Some(status) = process.try_wait()? {
                bail!("a server ended with {status}; see {}", log.display());
            }
        }
        Ok(())
    }

    /// The resident memory of the last process, in kilobytes.
    pub fn memory_kb(&self) -> Option<u64> {
        let id = self.processes.last()?.id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix(" kB")?.parse().ok()
    }
}

pub(crate) fn spawn(command: &mut Command, log: &Path) -> Result<Child> {
    let file = File::create(log)?;
    let program = command.get_program().to_owned();
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    command.spawn().with_context(|| format!("start {}", program.display()))
}

pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N]> {
    // All are held until all are known, so that none is given twice.
    let sockets: Vec<_> = (0..N).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let mut ports = [0; N];
    for (port, socket) in ports.iter_mut().zip(&sockets) {
        *port = socket.local_addr()?.port();
    }
    Ok(ports)
}

/// A kubeconfig for a server on loopback.
pub fn kubeconfig_text(url: &str, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: {url}\n    \
         insecure-skip-tls-verify: true\nusers:\n- name: u\n  user:\n    token: {token}\ncontexts:\n- name: c\n  \
         context:\n    cluster: c\n    user: u\ncurrent-context: c\n"
    )
}

fn from_kubeconfig(text: &[u8]) -> Option<Https> {
    let config = codec::parse(text, Format::Yaml).ok()?.value;
    let address = config["clusters"][0]["cluster"]["server"].as_str()?.strip_prefix("https://")?;
    let token = config["users"].as_array()?.iter().find_map(|user| user["user"]["token"].as_str())?;
    Some(Https::new(address.trim_end_matches('/'), token))
}
