//! What kubectl prints, against both servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use regex::Regex;

use crate::servers::{Server, cache};

/// The commands.
const COMMANDS: &str = include_str!("../kubectl.txt");

/// The files that the commands name.
const FILES: &[(&str, &str)] = &[
    (
        "pod.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: one\n  labels: {app: one}\nspec:\n  containers:\n  - name: c\n    image: busybox:1\n    ports:\n    - containerPort: 80\n",
    ),
    (
        "pod2.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: one\n  labels: {app: one}\nspec:\n  containers:\n  - name: c\n    image: busybox:2\n",
    ),
    (
        "deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: two\nspec:\n  selector:\n    matchLabels: {app: two}\n  template:\n    metadata:\n      labels: {app: two}\n    spec:\n      containers:\n      - name: c\n        image: busybox:1\n        env:\n        - {name: A, value: '1'}\n",
    ),
    (
        "deployment2.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: two\nspec:\n  replicas: 2\n  selector:\n    matchLabels: {app: two}\n  template:\n    metadata:\n      labels: {app: two}\n    spec:\n      containers:\n      - name: c\n        image: busybox:2\n",
    ),
    ("configmap.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata:\n  a: b\n"),
    ("configmap2.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata:\n  a: c\n"),
    (
        "configmap3.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata:\n  replaced: 'true'\n",
    ),
    ("node.yaml", "apiVersion: v1\nkind: Node\nmetadata:\n  name: NAMESPACE-node\n"),
];

/// A command whose output differs.
pub struct Different {
    /// The version of kubectl.
    pub version: &'static str,
    /// The command.
    pub command: String,
    /// Output, errors and exit code on the reference.
    pub reference: String,
    /// And on ours.
    pub ours: String,
}

/// Runs every command with both versions against both servers; says how many there were and which differ.
///
/// # Errors
/// When kubectl is missing or cannot be started.
pub fn compare(reference: &Server, ours: &Server, folder: &Path) -> Result<(usize, Vec<Different>)> {
    let mut count = 0;
    let mut different = Vec::new();
    for (version, program) in [("1.32", "kubectl-1.32/kubectl"), ("1.36", "kube/kubectl")] {
        let program = cache().join("real").join(program);
        if !program.exists() {
            bail!("{} is missing: run `tools/setup kubectl kubectl-1.32`", program.display());
        }
        let namespace = format!("k{}", version.replace('.', "-"));
        let reference =
            Shell::new(&program, reference, &folder.join(format!("{version}-reference")), &namespace)?;
        let ours = Shell::new(&program, ours, &folder.join(format!("{version}-ours")), &namespace)?;
        for command in COMMANDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let command = command.replace("{ns}", &namespace);
            // Both at once: half the time, and ages that are alike.
            let (a, b) = std::thread::scope(|scope| {
                let a = scope.spawn(|| reference.run(&command));
                let b = ours.run(&command);
                (a.join().expect("no panic"), b)
            });
            let (a, b) = (plain(&a?), plain(&b?));
            count += 1;
            if a != b {
                different.push(Different { version, command, reference: a, ours: b });
            }
        }
    }
    Ok((count, different))
}

struct Shell {
    program: PathBuf,
    folder: PathBuf,
    kubeconfig: PathBuf,
}

impl Shell {
    fn new(program: &Path, server: &Server, folder: &Path, namespace: &str) -> Result<Shell> {
        fs::create_dir_all(folder)?;
        for (name, content) in FILES {
            fs::write(folder.join(name), content.replace("NAMESPACE", namespace))?;
        }
        let kubeconfig = folder.join("kubeconfig");
        fs::copy(&server.kubeconfig, &kubeconfig).context("the kubeconfig of a server")?;
        Ok(Shell {
            program: program.into(),
            folder: fs::canonicalize(folder)?,
            kubeconfig: fs::canonicalize(kubeconfig)?,
        })
    }

    fn run(&self, command: &str) -> Result<String> {
        let output = Command::new(&self.program)
            .args(command.split(' '))
            .current_dir(&self.folder)
            // kubectl keeps what it discovered under HOME.
            .env("HOME", &self.folder)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBE_EDITOR", "sed -i s/a:.b$/a:.edited/")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{} {command}", self.program.display()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Ok(format!("{}{}exit {code}\n", text(&output.stdout), text(&output.stderr)))
    }
}

/// Output without what differs between any two servers: uids, versions, times, ages, ports, temporary files.
fn plain(output: &str) -> String {
    static PATTERNS: OnceLock<Vec<(Regex, &str)>> = OnceLock::new();
    let patterns = PATTERNS.get_or_init(|| {
        [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
            (r#"(resourceVersion"?: *)"\d+""#, "$1<version>"),
            (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( [+-]\d{4})?Z?", "<time>"),
            (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} [\d:]+ [+-]\d{4}", "<time>"),
            (r"\b\d+s\b", "<age>"),
            (r"\b(localhost|127\.0\.0\.1):\d+", "<server>"),
            (r"/tmp/[A-Za-z0-9/._-]+", "<file>"),
            (r"(Cluster|Context|User) .* set\.", "set."),
            (r#"Context "[^"]+" modified"#, "Context modified"),
            // Columns are as wide as their values.
            (r"[ \t]+", " "),
        ]
        .into_iter()
        .map(|(pattern, with)| (Regex::new(pattern).expect("a pattern"), with))
        .collect()
    });
    patterns
        .iter()
        .fold(output.to_owned(), |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_versions_go_but_values_stay() {
        assert_eq!(plain("NAME   AGE\nweb    12s\n"), plain("NAME AGE\nweb 9s\n"));
        assert_eq!(plain("resourceVersion: \"12\"\n"), plain("resourceVersion: \"345\"\n"));
        assert_ne!(plain("replicas: 1\n"), plain("replicas: 2\n"));
    }
}
