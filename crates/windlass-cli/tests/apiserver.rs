//! `windlass apiserver` as its users meet it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};

#[path = "support/server.rs"]
mod server;
mod support;

use server::Server;
use support::{Folder, windlass};

async fn client(kubeconfig: &Path, context: &str) -> kube::Client {
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

/// Runs the command to its end.
fn run(arguments: &[&str], folder: &Folder) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = windlass(arguments, folder.path()).output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[tokio::test]
async fn its_kubeconfig_opens_it_by_certificate_and_by_token() {
    let folder = Folder::new("opens");
    let server = Server::start(&["--kubeconfig", "kc"], folder.path());
    let kubeconfig = folder.path().join("kc");
    assert_eq!(std::fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
    let path = std::fs::canonicalize(&kubeconfig).unwrap();
    assert!(
        server.announced.contains(&format!("export KUBECONFIG={}\n", path.display())),
        "{}",
        server.announced
    );
    for context in ["windlass", "windlass-token"] {
        let client = client(&kubeconfig, context).await;
        assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1.36.4");
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        api.create(&PostParams::default(), &config_map(context)).await.unwrap();
    }
    assert_eq!(server.end("-INT").code(), Some(0));
    assert!(kubeconfig.exists(), "a kubeconfig that was asked for is kept");
}

#[tokio::test]
async fn a_data_folder_outlives_the_server() {
    let folder = Folder::new("outlives");
    let kubeconfig = folder.path().join("data/kubeconfig");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    let arguments = ["--data-dir", "data", "--port", &port];
    let server = Server::start(&arguments, folder.path());
    let first = client(&kubeconfig, "windlass").await;
    let api: Api<ConfigMap> = Api::default_namespaced(first.clone());
    let made = api.create(&PostParams::default(), &config_map("kept")).await.unwrap();
    assert_eq!(server.end("-TERM").code(), Some(0));

    let server = Server::start(&arguments, folder.path());
    let api: Api<ConfigMap> = Api::default_namespaced(client(&kubeconfig, "windlass").await);
    assert_eq!(api.get("kept").await.unwrap(), made);
    let api: Api<ConfigMap> = Api::default_namespaced(first);
    assert_eq!(api.get("kept").await.unwrap(), made, "what opened the first server opens the second");

    let (code, error) = run(&["apiserver", "--port", "0", "--data-dir", "data"], &folder);
    assert_eq!((code, error.contains("in use by another process")), (Some(5), true), "{error}");
    drop(server);
}

#[test]
fn a_temporary_kubeconfig_goes_with_the_server() {
    let folder = Folder::new("temporary");
    let server = Server::start(&[], folder.path());
    let path =
        server.announced.lines().find_map(|line| line.trim().strip_prefix("export KUBECONFIG=")).unwrap();
    let path = PathBuf::from(path);
    assert!(path.exists());
    assert_eq!(server.end("-TERM").code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn each_way_of_not_starting_has_its_exit_code() {
    let folder = Folder::new("fails");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let (code, error) = run(&["apiserver", "--port", &port], &folder);
    assert_eq!(code, Some(3), "{error}");
    assert!(
        error.starts_with(&format!("error: cannot listen at 127.0.0.1:{port} (--port 0 takes any")),
        "{error}"
    );

    let (code, error) = run(&["apiserver", "--port", "0", "--kubeconfig", "no/such/folder/kc"], &folder);
    assert_eq!(code, Some(4), "{error}");
    assert!(error.starts_with("error: cannot write the kubeconfig no/such/folder/kc: "), "{error}");

    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("00000000000000000001.log"), "this is no log, whatever its name is").unwrap();
    let (code, error) = run(&["apiserver", "--port", "0", "--data-dir", "data"], &folder);
    assert_eq!(code, Some(5), "{error}");
    assert!(error.starts_with("error: cannot use the data folder data: "), "{error}");
    assert!(error.contains("00000000000000000001.log"), "{error}");

    for arguments in [&["apiserver", "--port", "x"][..], &["apiserver", "--log", "a=b=c"], &["no-such"], &[]]
    {
        assert_eq!(run(arguments, &folder).0, Some(2), "{arguments:?}");
    }
}

#[test]
fn it_says_its_version() {
    let folder = Folder::new("version");
    let output = windlass(&["--version"], folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, format!("windlass {}\n", env!("CARGO_PKG_VERSION")));
}
