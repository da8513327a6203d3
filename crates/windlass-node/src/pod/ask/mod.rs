//! Asking a container something: what probes and hooks do.

mod exec;
mod grpc;
mod http;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass::Env;
use windlass_sandbox::Spec;

use super::probe::{Finding, timeout};
use super::runtime::Runtime;
use crate::serve::Connection;

/// A run of a container that can be asked.
#[derive(Clone)]
pub(crate) struct Asked {
    pub env: Env,
    pub runtime: Arc<dyn Runtime>,
    /// Its id below.
    pub id: String,
    pub net: String,
    /// The first address of its pod.
    pub ip: Option<String>,
    pub container: Arc<Container>,
    pub spec: Arc<Spec>,
}

impl Asked {
    /// Makes a probe.
    pub async fn probe(self, probe: Probe) -> Finding {
        let limit = timeout(&probe);
        if let Some(action) = &probe.exec {
            exec::probe(&self, action.command.as_deref().unwrap_or_default(), limit).await
        } else if let Some(action) = &probe.http_get {
            http::probe(&self, action, limit).await
        } else if let Some(action) = &probe.tcp_socket {
            let port = match self.port(&action.port) {
                Ok(port) => port,
                Err(error) => return Finding::Errored(error),
            };
            match self.dial(action.host.as_deref(), port, limit).await {
                Ok(_) => Finding::Success,
                Err(error) => Finding::Failure(error),
            }
        } else if let Some(action) = &probe.grpc {
            grpc::probe(&self, action, limit).await
        } else {
            Finding::Errored("missing probe handler".to_owned())
        }
    }

    /// Runs a hook.
    pub async fn hook(self, handler: LifecycleHandler, limit: Duration) -> Result<(), String> {
        if let Some(action) = &handler.exec {
            exec::hook(&self, action.command.as_deref().unwrap_or_default(), limit).await
        } else if let Some(action) = &handler.http_get {
            http::hook(&self, action, limit).await
        } else if let Some(action) = &handler.sleep {
            let time = Duration::from_secs(u64::try_from(action.seconds).unwrap_or(0));
            self.env.sleep(time.min(limit)).await;
            Ok(())
        } else {
            Err("invalid handler".to_owned())
        }
    }

    /// Connects to a port of the pod, or of another host that the pod can reach. The error is as Go says it.
    async fn dial(&self, host: Option<&str>, port: u16, limit: Duration) -> Result<Connection, String> {
        let host = host.filter(|host| !host.is_empty()).or(self.ip.as_deref()).unwrap_or_default();
        let text = join(host, port);
        let ip: IpAddr = match host {
            "localhost" => IpAddr::from([127, 0, 0, 1]),
            host => host.parse().map_err(|_| format!("dial tcp: lookup {host}: no such host"))?,
        };
        match self.env.within(limit, self.runtime.dial(&self.net, SocketAddr::new(ip, port))).await {
            None => Err(format!("dial tcp {text}: i/o timeout")),
            Some(Ok(connection)) => Ok(connection),
            Some(Err(error)) => Err(format!("dial tcp {text}: {}", reason(&error))),
        }
    }

    /// A port by its number, or by the name that the container gives it.
    fn port(&self, port: &IntOrString) -> Result<u16, String> {
        let number = match port {
            IntOrString::Int(number) => Some(*number),
            IntOrString::String(text) => {
                let mut ports = self.container.ports.iter().flatten();
                let named =
                    ports.find(|port| port.name.as_deref() == Some(text)).map(|port| port.container_port);
                Some(
                    named
                        .or_else(|| text.parse().ok())
                        .ok_or_else(|| format!("couldn't find port: {text}"))?,
                )
            }
        };
        let number = number.and_then(|number| u16::try_from(number).ok()).filter(|number| *number > 0);
        number.ok_or_else(|| "invalid port number".to_owned())
    }
}

fn join(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
        _ => error.to_string(),
    }
}
