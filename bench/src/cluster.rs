//! A server of ours inside of this process and behind TLS: for an operator it is as any other, and its audit can be read.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::runtime::Runtime;
use windlass_apiserver::api::audit::Record;
use windlass_apiserver::front::credentials::Credentials;
use windlass_apiserver::front::https::Https;
use windlass_apiserver::front::{kubeconfig, write_private};
use windlass_testing::TestCluster;

/// The user that the kubeconfig is for. Who asks from inside of this process has another name.
const BY_KUBECONFIG: &str = "kubernetes-admin";

/// A cluster of this process. It ends with this value.
pub struct Cluster {
    /// For those in this process.
    pub cluster: TestCluster,
    /// For the others.
    pub kubeconfig: PathBuf,
    /// Taken when it ends: what runs on it is not waited for.
    runtime: Option<Runtime>,
    counted: u64,
}

impl Cluster {
    /// A cluster with nothing in it.
    pub fn start(folder: &Path) -> Result<Cluster> {
        fs::create_dir_all(folder)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let address = IpAddr::from([127, 0, 0, 1]);
        let credentials = Credentials::generate(address)?;
        let (cluster, https) = runtime.block_on(async {
            let cluster = TestCluster::new().await;
            anyhow::Ok((cluster, Https::bind((address, 0).into()).await?))
        })?;
        let url = format!("https://{}", https.local_addr()?);
        let path = folder.join("kubeconfig");
        write_private(&path, kubeconfig(&url, &credentials).as_bytes())?;
        let server = cluster.server().clone();
        runtime
            .spawn(async move { https.serve(server, credentials.serving(), std::future::pending()).await });
        Ok(Cluster { cluster, kubeconfig: path, runtime: Some(runtime), counted: 0 })
    }

    /// What came from other processes since the last call.
    ///
    /// # Errors
    /// When there was more than the server remembers: call it more often.
    pub fn requests(&mut self) -> Result<Vec<Record>> {
        let (total, records) = self.cluster.server().inspect(|server| {
            let (audit, counted) = (server.audit(), self.counted);
            let new = usize::try_from(audit.total() - counted).unwrap_or(usize::MAX);
            let records = (new <= audit.records().len())
                .then(|| audit.records().rev().take(new).cloned().collect::<Vec<_>>());
            (audit.total(), records)
        });
        ensure!(records.is_some(), "of {} requests not all are remembered", total - self.counted);
        self.counted = total;
        let mut records = records.unwrap_or_default();
        records.retain(|record| record.user == BY_KUBECONFIG);
        Ok(records)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.cluster.server().close();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}
