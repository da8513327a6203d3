//! Helm 3 and helm 4: a chart with a definition and hooks is installed, upgraded, rolled back and uninstalled on both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Context as _, Result, bail};
use regex::Regex;

use crate::kubectl::plain;
use crate::servers::{Server, program};

const SCRIPT: &str = include_str!("../../helm/script.txt");
const CHART: &str = "conformance/helm/chart";
const VERSIONS: [(&str, &str); 2] = [("3", "helm-3/helm"), ("4", "helm-4/helm")];

/// What lines can call: no controller runs, so somebody has to end the Job that a hook waits for.
const PRELUDE: &str = r#"
ends() {
  "$@" & helm=$!
  while kill -0 $helm 2>/dev/null; do
    $KUBECTL -n "$NAMESPACE" patch job demo-migrate --subresource=status --type=merge -p "$DONE" >/dev/null 2>&1
    sleep 0.2
  done
  wait $helm
}
"#;
/// The status of a Job that is done.
const DONE: &str = r#"{"status":{"startTime":"2024-01-01T00:00:00Z","completionTime":"2024-01-01T00:00:01Z","succeeded":1,"ready":0,"terminating":0,"uncountedTerminatedPods":{},"conditions":[{"type":"SuccessCriteriaMet","status":"True","reason":"CompletionsReached","message":"m","lastProbeTime":"2024-01-01T00:00:01Z","lastTransitionTime":"2024-01-01T00:00:01Z"},{"type":"Complete","status":"True","reason":"CompletionsReached","message":"m","lastProbeTime":"2024-01-01T00:00:01Z","lastTransitionTime":"2024-01-01T00:00:01Z"}]}}"#;

/// A server, as helm sees it.
struct Shell {
    helm: PathBuf,
    kubectl: PathBuf,
    folder: PathBuf,
}

impl Shell {
    fn new(helm: &str, server: &Server, folder: &Path) -> Result<Shell> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        fs::copy(&server.kubeconfig, folder.join("kubeconfig"))?;
        let chart = fs::canonicalize(CHART).context(CHART)?;
        std::os::unix::fs::symlink(chart, folder.join("chart"))?;
        Ok(Shell { helm: program(helm)?, kubectl: program("kube/kubectl")?, folder: folder.canonicalize()? })
    }

    /// What a line prints, and how it ends.
    fn run(&self, line: &str, namespace: &str) -> Result<String> {
        let output = Command::new("bash")
            .arg("-c")
            .arg(format!("{PRELUDE}\n{line}"))
            .current_dir(&self.folder)
            .env("HOME", &self.folder)
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("HELM", &self.helm)
            .env("KUBECTL", &self.kubectl)
            .env("DONE", DONE)
            .env("NAMESPACE", namespace)
            .stdin(Stdio::null())
            .output()
            .context("bash cannot be run")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Ok(format!("{}{}exit {code}\n", text(&output.stdout), text(&output.stderr)))
    }
}

/// Runs the script with both versions on both servers; how many lines there were, and what differs.
///
/// # Errors
/// A program is missing.
pub fn compare(reference: &Server, ours: &Server, output: &Path) -> Result<(usize, String)> {
    let (mut count, mut different) = (0, String::new());
    for (version, helm) in VERSIONS {
        let reference = Shell::new(helm, reference, &output.join(format!("helm-{version}-reference")))?;
        let ours = Shell::new(helm, ours, &output.join(format!("helm-{version}-ours")))?;
        for line in SCRIPT.lines().filter(|line| !line.starts_with('#')) {
            let line = match line.split_once(':') {
                Some((only, line)) if only.len() == 1 && only == version => line,
                Some((only, _)) if only.len() == 1 => continue,
                _ => line,
            };
            // One that goes stays for a while: no controller runs.
            let namespace = format!("demo-{version}");
            let line = &line.replace("{ns}", &namespace);
            let (a, b) = std::thread::scope(|scope| {
                let a = scope.spawn(|| reference.run(line, &namespace));
                (a.join().expect("no panic"), ours.run(line, &namespace))
            });
            let (a, b) = (told(&a?), told(&b?));
            count += 1;
            if line.contains("install demo chart") && line.starts_with("ends") && !a.ends_with("exit 0\n") {
                bail!("helm {version} cannot install its chart on kube-apiserver: {a}");
            }
            if a != b {
                different += &format!("## helm {version}: {line}\n--- reference\n{a}--- ours\n{b}\n");
            }
        }
    }
    Ok((count, different))
}

/// Without what differs between any two servers, the addresses of Services, which both draw at random, the one warning
/// that is explained in docs/api-differences.md, and what helm 4 says now and then of a watch that it ends itself.
fn told(output: &str) -> String {
    static PATTERNS: LazyLock<[(Regex, &str); 4]> = LazyLock::new(|| {
        [
            (r"\b10\.\d+\.\d+\.\d+\b", "<address>"),
            (r"\b\w{3} \w{3} +\d+ [\d:]{8} \d{4}\b", "<time>"),
            (r"(?m)^.*reflector.go.*context canceled.*\n", ""),
            (r"(?m)^.*v1beta1 CustomResourceDefinition is not served.*\n", ""),
        ]
        .map(|(pattern, with)| (Regex::new(pattern).expect("a pattern"), with))
    });
    let replace =
        |text: String, (pattern, with): &(Regex, &str)| pattern.replace_all(&text, *with).into_owned();
    PATTERNS.iter().fold(plain(output), replace)
}
