//! From a container of a pod to a program in a place of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, Pod};
use windlass_sandbox::{DEFAULT_PATH, Limits, Mount, Root as SandboxRoot, Spec};

use super::downward::Facts;
use super::library::Library;
use super::volume::{self, Volumes};
use super::{env, quantity, security};
use crate::image::{Image, Root};

/// Where a pod's containers run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// The pod's folder.
    pub folder: PathBuf,
    /// The network.
    pub net: String,
    pub hostname: String,
    pub facts: Facts,
    pub volumes: Volumes,
}

impl Place {
    /// Where one run of a container keeps what is its own.
    pub fn run_folder(&self, container: &str, attempt: i32) -> PathBuf {
        self.folder.join("containers").join(container).join(attempt.to_string())
    }

    /// The log of one run of a container.
    pub fn log(&self, container: &str, attempt: i32) -> PathBuf {
        self.folder.join("logs").join(container).join(format!("{attempt}.log"))
    }

    /// A file that every container of the pod has in its `/etc`.
    pub fn etc(&self, name: &str) -> PathBuf {
        self.folder.join("etc").join(name)
    }
}

/// The program that a container is.
///
/// # Errors
/// When something is missing that it is configured from, in kubelet's words.
pub(crate) fn spec(
    pod: &Pod,
    container: &Container,
    attempt: i32,
    image: &Image,
    place: &Place,
    library: &dyn Library,
) -> Result<Spec, String> {
    let variables = env::variables(pod, container, library, &place.facts)?;
    let user = security::user(pod, container, image)?;
    let mut mounts: Vec<Mount> =
        image.binds.iter().map(|bind| Mount::read_only(&bind.source, &bind.target)).collect();
    for name in ["hosts", "hostname", "resolv.conf"] {
        mounts.push(Mount::new(place.etc(name), Path::new("/etc").join(name)));
    }
    for seen in volume::seen(container, &place.volumes, &variables)? {
        let target = seen.target;
        mounts.retain(|mount| mount.target != target);
        mounts.push(Mount { source: seen.source, target, read_only: seen.read_only });
    }
    let run = place.run_folder(&container.name, attempt);
    mounts.push(Mount::new(run.join("termination-log"), message_path(container)));

    let context = container.security_context.as_ref();
    let argv = env::command(container, &image.entrypoint, &image.cmd, &variables);
    if argv.is_empty() {
        return Err("no command specified".to_owned());
    }
    let cwd = container.working_dir.as_deref().filter(|cwd| !cwd.is_empty()).unwrap_or(&image.cwd);
    Ok(Spec {
        root: match &image.root {
            Root::Host => SandboxRoot::Host,
            Root::Folder(folder) => SandboxRoot::Folder(folder.clone()),
        },
        layers: Vec::new(),
        scratch: Some(run.join("root")),
        read_only_root: context.is_some_and(|context| context.read_only_root_filesystem == Some(true)),
        mounts,
        net: place.net.clone(),
        processes_of: None,
        argv,
        env: environment(image, &place.hostname, variables),
        cwd: PathBuf::from(cwd),
        user,
        capabilities: security::capabilities(container),
        no_new_privileges: context.is_some_and(|context| context.allow_privilege_escalation == Some(false)),
        limits: limits(container),
    })
}

/// Where a container leaves what it has to say when it ends.
pub(crate) fn message_path(container: &Container) -> PathBuf {
    let path = container.termination_message_path.as_deref().unwrap_or("/dev/termination-log");
    Path::new("/").join(path)
}

/// The image's variables, changed by the pod's.
fn environment(image: &Image, hostname: &str, variables: BTreeMap<String, String>) -> Vec<(String, String)> {
    let mut all: BTreeMap<String, String> = image.env.iter().cloned().collect();
    all.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_PATH.to_owned());
    all.insert("HOSTNAME".to_owned(), hostname.to_owned());
    all.extend(variables);
    all.into_iter().collect()
}

fn limits(container: &Container) -> Limits {
    let resources = container.resources.as_ref();
    let limit = |name: &str| resources.and_then(|resources| resources.limits.as_ref()?.get(name));
    let request = |name: &str| resources.and_then(|resources| resources.requests.as_ref()?.get(name));
    let positive = |amount: i128| u64::try_from(amount).ok().filter(|amount| *amount > 0);
    Limits {
        memory: limit("memory").and_then(quantity::whole).and_then(positive),
        cpu_millis: limit("cpu").and_then(quantity::millis).and_then(positive),
        cpu_request_millis: request("cpu").and_then(quantity::millis).and_then(positive),
        pids: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::library::tests::Shelf;
    use super::*;
    use crate::image::Images;
    use serde_json::json;

    #[test]
    fn a_container_becomes_a_program() {
        let image = Images::open("/nonexistent").resolve("busybox").unwrap();
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": []},
        }))
        .unwrap();
        let container: Container = serde_json::from_value(json!({
            "name": "web", "command": ["echo", "$(GREETING)"], "workingDir": "/tmp",
            "env": [{"name": "GREETING", "value": "hello"}, {"name": "PATH", "value": "/bin"}],
            "resources": {"limits": {"memory": "64Mi", "cpu": "500m"}, "requests": {"cpu": "100m"}},
            "securityContext": {"runAsUser": 7, "readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false,
                "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}},
        }))
        .unwrap();
        let place = Place { folder: "/pods/u1".into(), hostname: "web".to_owned(), ..Place::default() };
        let spec = spec(&pod, &container, 2, &image, &place, &Shelf::default()).unwrap();
        assert_eq!(spec.argv, ["echo", "hello"]);
        assert_eq!(spec.cwd, Path::new("/tmp"));
        let of = |pair: (&str, &str)| (pair.0.to_owned(), pair.1.to_owned());
        assert_eq!(spec.env, [("GREETING", "hello"), ("HOSTNAME", "web"), ("PATH", "/bin")].map(of));
        assert_eq!((spec.user.uid, spec.read_only_root, spec.no_new_privileges), (7, true, true));
        assert_eq!(spec.limits.memory, Some(64 << 20));
        assert_eq!((spec.limits.cpu_millis, spec.limits.cpu_request_millis), (Some(500), Some(100)));
        assert_eq!(spec.capabilities.drop, ["ALL"]);
        let targets: Vec<_> = spec.mounts.iter().map(|mount| mount.target.display().to_string()).collect();
        assert_eq!(targets, ["/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log"]);
        assert_eq!(spec.scratch.as_deref(), Some(Path::new("/pods/u1/containers/web/2/root")));
    }
}
