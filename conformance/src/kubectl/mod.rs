//! What kubectl prints, and what it asks, against both servers.
//!
//! The scripts of `kubectl.txt` are run and their output is compared ([`compare`]); what they ask of the real server is
//! recorded as sequences ([`record`]), which then run like any others.

mod files;
mod proxy;
mod record;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use regex::Regex;

use crate::servers::{Server, cache};
pub use record::record;

/// The scripts.
const SCRIPTS: &str = include_str!("../../kubectl.txt");
/// Where each version of kubectl lies.
const VERSIONS: &[(&str, &str)] = &[("1.32", "kubectl-1.32/kubectl"), ("1.36", "kube/kubectl")];
/// How long a command that watches gets to begin, and to print what it sees at the end.
const SETTLE: Duration = Duration::from_millis(800);

/// Commands in order, in a namespace of their own.
struct Script {
    name: &'static str,
    commands: Vec<&'static str>,
}

fn scripts() -> Vec<Script> {
    let mut out: Vec<Script> = Vec::new();
    for line in SCRIPTS.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix("## ") {
            out.push(Script { name, commands: Vec::new() });
        } else if let (false, Some(script)) = (line.starts_with('#'), out.last_mut()) {
            script.commands.push(line);
        }
    }
    out
}

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

/// Runs every command with both versions against both servers, of the scripts whose name contains `only`; says how many
/// there were and which differ.
///
/// # Errors
/// When kubectl is missing or cannot be started.
pub fn compare(
    reference: &Server,
    ours: &Server,
    folder: &Path,
    only: &str,
) -> Result<(usize, Vec<Different>)> {
    let mut count = 0;
    let mut different = Vec::new();
    for &(version, program) in VERSIONS {
        let reference =
            Shell::new(program, &reference.kubeconfig, &folder.join(format!("{version}-reference")))?;
        let ours = Shell::new(program, &ours.kubeconfig, &folder.join(format!("{version}-ours")))?;
        let scripts = scripts().into_iter().enumerate();
        for (index, script) in scripts.filter(|(_, script)| script.name.contains(only)) {
            let namespace = format!("k{}-{index}", version.replace('.', "-"));
            reference.enter(&namespace)?;
            ours.enter(&namespace)?;
            for command in script.commands {
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
    }
    Ok((count, different))
}

/// A folder in which kubectl runs against one server.
struct Shell {
    program: PathBuf,
    folder: PathBuf,
}

impl Shell {
    fn new(program: &str, kubeconfig: &Path, folder: &Path) -> Result<Shell> {
        let program = cache().join("real").join(program);
        if !program.exists() {
            bail!("{} is missing: run `tools/setup kubectl kubectl-1.32`", program.display());
        }
        // What an earlier run discovered would not be asked for again.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        fs::copy(kubeconfig, folder.join("kubeconfig")).context("the kubeconfig of a server")?;
        Ok(Shell { program, folder: fs::canonicalize(folder)? })
    }

    /// Makes a namespace and goes there, with the files.
    fn enter(&self, namespace: &str) -> Result<()> {
        for (name, content) in files::FILES {
            fs::write(self.folder.join(name), content.replace("NAMESPACE", namespace))?;
        }
        let create = format!("create namespace {namespace}");
        for command in [create, format!("config set-context --current --namespace={namespace}")] {
            let output = self.run(&command)?;
            if !output.ends_with("exit 0\n") {
                bail!("kubectl {command}: {output}");
            }
        }
        Ok(())
    }

    /// What a line of a script prints: output, errors and exit code.
    fn run(&self, line: &str) -> Result<String> {
        let Some((watching, command)) = line.split_once(" & ") else {
            let output = self.command(line).output().with_context(|| self.program.display().to_string())?;
            let code = output.status.code().unwrap_or(-1);
            return Ok(format!("{}{}exit {code}\n", text(&output.stdout), text(&output.stderr)));
        };
        let mut child = self.command(watching).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        sleep(SETTLE);
        let printed = self.run(command);
        sleep(SETTLE);
        child.kill()?;
        let output = child.wait_with_output()?;
        Ok(format!("{}{}{}", text(&output.stdout), text(&output.stderr), printed?))
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(line.split(' '))
            .current_dir(&self.folder)
            // kubectl keeps what it discovered under HOME.
            .env("HOME", &self.folder)
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("KUBE_EDITOR", "sed -i s/a:.b$/a:.edited/")
            .stdin(Stdio::null());
        command
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Output without what differs between any two servers: uids, versions, times, ages, ports, temporary files,
/// process ids,
/// builds.
pub(crate) fn plain(output: &str) -> String {
    static PATTERNS: OnceLock<Vec<(Regex, &str)>> = OnceLock::new();
    let patterns = PATTERNS.get_or_init(|| {
        [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
            (r#"(resourceVersion"?: *)"\d+""#, "$1<version>"),
            (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( [+-]\d{4})?Z?", "<time>"),
            (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} [\d:]+ [+-]\d{4}", "<time>"),
            (r"\b(\d+m)?\d+s\b", "<age>"),
            (r"(?m)^([IWE])\d{4} [\d:.]+ +\d+ ", "$1 "),
            (r"\b(localhost|127\.0\.0\.1):\d+", "<server>"),
            (r"/tmp/[A-Za-z0-9/._-]+", "<file>"),
            (r"(Cluster|Context|User) .* set\.", "set."),
            (r#"Context "[^"]+" modified"#, "Context modified"),
            // What it was built by, and of what.
            (r#""(gitCommit|goVersion|compiler)": "[^"]*""#, "\"$1\": <build>"),
            // What tells of kube-apiserver's own process.
            (r#" *"/(flagz|statusz|metrics/slis)",\n"#, ""),
            // What is in it is compared by rules of its own.
            (r#"(?s)("swagger": *"2\.0".*?"paths":).*(exit \d+)"#, "$1 <paths> $2"),
            // kubectl 1.36 falls over its own `auth reconcile`, on every server.
            (r"(?s)goroutine 1 \[running\]:.*(exit \d+)", "<stack> $1"),
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
    fn scripts_have_names_and_commands() {
        let scripts = scripts();
        assert!(scripts.len() > 20, "{}", scripts.len());
        for script in scripts {
            assert!(!script.commands.is_empty(), "{}", script.name);
        }
    }

    #[test]
    fn ages_and_versions_go_but_values_stay() {
        assert_eq!(plain("NAME   AGE\nweb    12s\n"), plain("NAME AGE\nweb 9s\n"));
        assert_eq!(plain("resourceVersion: \"12\"\n"), plain("resourceVersion: \"345\"\n"));
        assert_eq!(plain("W1115 14:58:03.18 6746 a.go:7] b"), plain("W1116 09:00:00.01   12 a.go:7] b"));
        assert_ne!(plain("replicas: 1\n"), plain("replicas: 2\n"));
    }
}
