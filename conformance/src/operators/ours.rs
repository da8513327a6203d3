//! Our server, in this process and behind TLS on loopback.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use tokio::runtime::Runtime;
use windlass_apiserver::api::audit::Record;
use windlass_apiserver::front::credentials::Credentials;
use windlass_apiserver::front::https::Https;
use windlass_apiserver::front::{ApiServer, Options, kubeconfig, write_private};

use super::calls::Call;
use super::kubectl::Kubectl;
use super::server::{self, RESTRICTED, Server};

/// A server of ours with no controllers beside it. It ends with this value.
pub struct Ours {
    folder: PathBuf,
    url: String,
    server: ApiServer,
    credentials: Arc<Credentials>,
    kubectl: Kubectl,
    /// Taken when the server ends: what runs on it may not be waited for.
    runtime: Option<Runtime>,
}

impl Ours {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no port, or the folder cannot be written to.
    pub fn start(folder: &Path) -> Result<Ours> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let address = IpAddr::from([127, 0, 0, 1]);
        let credentials = Arc::new(Credentials::generate(address)?);
        let server = ApiServer::start(Options::default());
        let https = runtime.block_on(Https::bind((address, 0).into()))?;
        let url = format!("https://{}", https.local_addr()?);
        let admin = folder.join("kubeconfig");
        write_private(&admin, kubeconfig(&url, &credentials).as_bytes())?;
        let serving = (server.clone(), credentials.clone());
        runtime.spawn(async move {
            let (server, credentials) = serving;
            https.serve(server, credentials.serving(), std::future::pending()).await;
        });
        let kubectl = Kubectl::new(&admin, "default", &folder.join("home"))?;
        server::grant(&kubectl)?;
        Ok(Ours { folder: folder.to_owned(), url, server, credentials, kubectl, runtime: Some(runtime) })
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.server.close();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

impl Server for Ours {
    fn name(&self) -> &'static str {
        "ours"
    }

    fn admin(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    fn user(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(format!("{}.kubeconfig", name.replace(':', "-")));
        let has_roles = name == RESTRICTED || name.starts_with("system:serviceaccount:");
        let groups: &[&str] = if has_roles { &[] } else { &["system:masters"] };
        let (certificate, key) = self.credentials.client(name, groups)?;
        let [authority, certificate, key] =
            [&self.credentials.authority, &certificate, &key].map(|pem| STANDARD.encode(pem));
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    server: {}\n    \
             certificate-authority-data: {authority}\nusers:\n- name: u\n  user:\n    \
             client-certificate-data: {certificate}\n    client-key-data: {key}\ncontexts:\n- name: c\n  \
             context:\n    cluster: c\n    user: u\ncurrent-context: c\n",
            self.url
        );
        write_private(&path, text.as_bytes())?;
        Ok(path)
    }

    fn calls(&self, since: Timestamp) -> Result<Vec<Call>> {
        let audit = self.server.inspect(|server| server.audit().clone());
        let remembered = audit.records().len() as u64;
        if audit.total() > remembered && audit.records().next().is_none_or(|first| first.time >= since) {
            bail!("of {} calls only the last {remembered} are remembered", audit.total());
        }
        let concerned = |record: &&Record| !record.resource.is_empty() && record.time >= since;
        Ok(audit.records().filter(concerned).map(call).collect())
    }

    fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }
}

fn call(record: &Record) -> Call {
    Call {
        time: record.time,
        user: record.user.clone(),
        verb: record.verb.to_owned(),
        resource: record.resource.to_string(),
        subresource: record.subresource.clone(),
        namespace: record.namespace.clone(),
        name: record.name.clone(),
        code: record.code,
    }
}
