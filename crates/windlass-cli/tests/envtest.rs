//! `windlass envtest assets`, and the programs in that folder as envtest starts them.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::json;
use support::{Folder, windlass};

/// A program that ends with its test.
struct Started(Child);

impl Started {
    fn terminate(mut self) -> Option<i32> {
        let sent = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        assert!(sent.unwrap().success());
        self.0.wait().unwrap().code()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn assets(folder: &Path) -> PathBuf {
    let made = windlass(&["envtest", "assets", "bin"], folder).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let assets = folder.join("bin");
    let said = String::from_utf8(made.stdout).unwrap();
    assert!(said.starts_with("export KUBEBUILDER_ASSETS=/"), "{said}");
    assert!(said.trim_end().ends_with("/bin"), "{said}");
    assets
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// What envtest writes before it starts a server, and the server that it starts. How an administrator and somebody else get
/// in.
fn server(assets: &Path, folder: &Path, controllers: &str) -> (Started, Kubeconfig, Kubeconfig) {
    let certs = folder.join("certs");
    fs::create_dir_all(&certs).unwrap();
    let write = |name: &str, text: &str| fs::write(certs.join(name), text).unwrap();
    let serving = authority("envtest-environment");
    let key = KeyPair::generate().unwrap();
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &serving).unwrap();
    write("apiserver.crt", &certificate.pem());
    write("apiserver.key", &key.serialize_pem());
    let clients = authority("clients");
    write("client-cert-auth-ca.crt", &clients.pem());
    write("sa-signer.key", &KeyPair::generate().unwrap().serialize_pem());

    let port = free_port();
    let flag = |name: &str, file: &str| format!("--{name}={}", certs.join(file).display());
    let mut command = Command::new(assets.join("kube-apiserver"));
    command
        .args(["--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1"])
        .arg(format!("--cert-dir={}", certs.display()))
        .arg(flag("client-ca-file", "client-cert-auth-ca.crt"))
        .args(["--disable-admission-plugins=ServiceAccount", "--etcd-servers=http://127.0.0.1:1"])
        .arg(format!("--secure-port={port}"))
        .arg(format!("--service-account-issuer=https://127.0.0.1:{port}/"))
        .arg(flag("service-account-key-file", "sa-signer.crt"))
        .arg(flag("service-account-signing-key-file", "sa-signer.key"))
        .args(["--service-cluster-ip-range=10.0.0.0/24", "--feature-gates=Whatever=true", "-v=4"])
        .env("WINDLASS_CONTROLLERS", controllers)
        .stdout(Stdio::null());
    let started = Started(command.spawn().unwrap());
    let config = |user: &str, group: &str| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        let certificate = params.signed_by(&key, &clients).unwrap();
        let path = |name: &str, text: &str| {
            let path = certs.join(format!("{user}-{name}"));
            fs::write(&path, text).unwrap();
            path
        };
        serde_json::from_value(json!({
            "clusters": [{"name": "it", "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority": path("ca.crt", &serving.pem()),
            }}],
            "users": [{"name": "who", "user": {
                "client-certificate": path("client.crt", &certificate.pem()),
                "client-key": path("client.key", &key.serialize_pem()),
            }}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "who"}}],
            "current-context": "it",
        }))
        .unwrap()
    };
    let (admin, stranger) = (config("admin", "system:masters"), config("stranger", "strangers"));
    (started, admin, stranger)
}

async fn client(config: Kubeconfig) -> kube::Client {
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

async fn healthy(client: &kube::Client) {
    let begun = Instant::now();
    let ask = || http::Request::get("/healthz").body(Vec::new()).unwrap();
    while client.request_text(ask()).await.ok().as_deref() != Some("ok") {
        assert!(begun.elapsed() < Duration::from_secs(20), "the server is not healthy");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn the_programs_explain_themselves() {
    let folder = Folder::new("envtest-help");
    let assets = assets(folder.path());
    for program in ["kube-apiserver", "etcd"] {
        let help = run(&assets.join(program), &["--help"]);
        let text = String::from_utf8(help.stdout).unwrap();
        assert!(help.status.success());
        assert!(text.contains("envtest"), "{text}");
        assert!(
            !text.lines().any(|line| line.trim().starts_with("--insecure-port")),
            "envtest would pass it"
        );
    }
    let version = run(&assets.join("kube-apiserver"), &["--version"]);
    assert!(String::from_utf8(version.stdout).unwrap().starts_with("Kubernetes v1."));
    let wrong = run(&assets.join("kube-apiserver"), &["--secure-port=many"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(String::from_utf8(wrong.stderr).unwrap(), "error: --secure-port=many: not a port\n");
    let deaf = run(&assets.join("kube-apiserver"), &["--authorization-mode=AlwaysDeny"]);
    assert_eq!(deaf.status.code(), Some(1), "it is not taken for another mode, which would allow more");
    let made = windlass(&["envtest", "assets", "bin"], folder.path()).output().unwrap();
    assert!(made.status.success(), "again, over what is there: {made:?}");
}

#[test]
fn etcd_says_that_it_is_well_and_ends_when_told() {
    let folder = Folder::new("envtest-etcd");
    let program = assets(folder.path()).join("etcd");
    let port = free_port();
    let url = format!("--listen-client-urls=http://127.0.0.1:{port}");
    let arguments = ["--data-dir=x", &url, "--listen-peer-urls=http://localhost:0", "--unsafe-no-fsync=true"];
    let etcd = Started(Command::new(program).args(arguments).spawn().unwrap());
    let answer = until("etcd answers", || {
        use std::io::{Read as _, Write as _};
        let mut socket = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
        socket.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).ok()?;
        Some(answer)
    });
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with(r#"{"health":"true","reason":""}"#)
    );
    assert_eq!(etcd.terminate(), Some(0));
}

#[tokio::test]
async fn the_server_knows_its_clients_by_the_files_and_runs_no_controller() {
    let folder = Folder::new("envtest-server");
    let (server, admin, stranger) = server(&assets(folder.path()), folder.path(), "");
    let (admin, stranger) = (client(admin).await, client(stranger).await);
    healthy(&admin).await;
    Api::<Namespace>::all(admin.clone()).get("default").await.unwrap();
    let maps = |client: &kube::Client| Api::<ConfigMap>::namespaced(client.clone(), "default");
    let map = |name: &str| serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    let owner = maps(&admin).create(&PostParams::default(), &map("owner")).await.unwrap();
    let refused = maps(&stranger).list(&Default::default()).await.unwrap_err();
    assert!(
        refused.to_string().contains("User \"stranger\" cannot list resource \"configmaps\""),
        "{refused}"
    );

    let owned = json!({"metadata": {"name": "owned", "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid},
    ]}});
    maps(&admin).create(&PostParams::default(), &serde_json::from_value(owned).unwrap()).await.unwrap();
    maps(&admin).delete("owner", &DeleteParams::background()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    maps(&admin).get("owned").await.expect("nobody collects what is left");
    assert_eq!(server.terminate(), Some(0));
}

#[tokio::test]
async fn controllers_are_switched_on_by_a_variable() {
    let folder = Folder::new("envtest-controllers");
    let (_server, admin, _) = server(&assets(folder.path()), folder.path(), "garbagecollector,namespace");
    let admin = client(admin).await;
    healthy(&admin).await;
    let spaces = Api::<Namespace>::all(admin);
    let space = serde_json::from_value(json!({"metadata": {"name": "short"}})).unwrap();
    spaces.create(&PostParams::default(), &space).await.unwrap();
    spaces.delete("short", &DeleteParams::default()).await.unwrap();
    let begun = Instant::now();
    while spaces.get_opt("short").await.unwrap().is_some() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the namespace stays");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn a_controller_that_does_not_exist_is_named() {
    let folder = Folder::new("envtest-unknown");
    let program = assets(folder.path()).join("kube-apiserver");
    let output = Command::new(program).env("WINDLASS_CONTROLLERS", "gc").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("there is no built-in controller \"gc\"; there are: "), "{said}");
    assert!(said.contains("garbagecollector"), "{said}");
}
