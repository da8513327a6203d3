//! Which crate may depend on which: the arrows of ARCHITECTURE.md as one table.
//!
//! core ← apiserver; core ← windlass ← operators, cluster, node; sandbox ← node; etcd ← operators; testing and sim stand
//! on all of these, and only tests depend on them; the command is on top of all. A crate that wants an arrow the other way is
//! telling you that something is in the wrong room.

use crate::Finding;
use serde::Deserialize;

/// A room: the crates it holds, and the rooms its shipped code may depend on.
struct Room {
    /// A package name, or a folder with a trailing `/` whose packages all count.
    crates: &'static str,
    may_use: &'static [&'static str],
}

const CORE: &str = "windlass-core";
const SERVER: &str = "windlass-apiserver";
const CLUSTER: &str = "windlass-cluster";
const NODE: &str = "windlass-node";
const SANDBOX: &str = "windlass-sandbox";
const FRAMEWORK: &str = "windlass";
const TESTING: &str = "windlass-testing";
const SIM: &str = "windlass-sim";
const ETCD: &str = "windlass-etcd";
const TOOLS: &str = "tools/";
const OPERATORS: &str = "operators/";
const CONFORMANCE: &str = "conformance/";

const ROOMS: &[Room] = &[
    Room { crates: CORE, may_use: &[] },
    Room { crates: SERVER, may_use: &[CORE] },
    // Built-in controllers and the node are clients like everyone: what they share with operators is the cache and the
    // clock of the framework, and they know no server.
    Room { crates: CLUSTER, may_use: &[CORE, FRAMEWORK] },
    Room { crates: SANDBOX, may_use: &[] },
    Room { crates: NODE, may_use: &[CORE, FRAMEWORK, SANDBOX] },
    Room { crates: FRAMEWORK, may_use: &[CORE] },
    // The client of a system that operators run: it knows nothing of Kubernetes.
    Room { crates: ETCD, may_use: &[] },
    // A test of an operator that is a program, too: it runs for hours, or on a cluster that is there already.
    Room { crates: "operators/etcd/e2e/", may_use: &[TESTING] },
    Room { crates: OPERATORS, may_use: &[CORE, FRAMEWORK, ETCD] },
    Room { crates: TESTING, may_use: &[CORE, SERVER, CLUSTER, FRAMEWORK] },
    Room { crates: SIM, may_use: &[CORE, SERVER, CLUSTER, FRAMEWORK, TESTING] },
    Room {
        crates: "windlass-cli",
        may_use: &[CORE, SERVER, CLUSTER, NODE, SANDBOX, FRAMEWORK, TESTING, SIM],
    },
    Room {
        crates: CONFORMANCE,
        may_use: &[CORE, SERVER, CLUSTER, NODE, SANDBOX, FRAMEWORK, TESTING, SIM, ETCD, OPERATORS],
    },
    Room {
        crates: "bench/",
        may_use: &[CORE, SERVER, CLUSTER, NODE, SANDBOX, FRAMEWORK, TESTING, SIM, ETCD, OPERATORS],
    },
    Room {
        crates: "soak/",
        may_use: &[CORE, SERVER, CLUSTER, NODE, SANDBOX, FRAMEWORK, TESTING, SIM, ETCD, OPERATORS],
    },
    Room { crates: TOOLS, may_use: &[CORE, SERVER, CLUSTER, NODE, SANDBOX, FRAMEWORK, TESTING, SIM] },
];

/// What the tests of any crate may use beyond what its shipped code may.
const FOR_TESTS: &[&str] = &[TESTING, SIM, TOOLS];

/// What the tests of one room may use beyond that, with the reason.
const FOR_TESTS_OF: &[(&str, &str)] = &[
    // The checks of an operator as a process are run twice: by its own tests on our server, and by the program on a real
    // one. The program runs the operator and does not depend on it, so the arrow makes no circle.
    (OPERATORS, CONFORMANCE),
    // What puts load on the product of an operator and checks it lies beside the operator, as a package of its own.
    (OPERATORS, OPERATORS),
];

/// Libraries that would bring IO, a runtime or randomness into core, whatever the code then does with them.
const NOT_IN_CORE: &[&str] = &[
    "async-std",
    "axum",
    "fastrand",
    "getrandom",
    "hyper",
    "hyper-util",
    "kube",
    "kube-client",
    "mio",
    "rand",
    "rayon",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "tokio",
    "tokio-util",
    "tower",
    "ureq",
    "uuid",
];

/// The part of `cargo metadata --no-deps` that matters here.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: String,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `dev`, `build`, or nothing for shipped code.
    kind: Option<String>,
}

/// Checks the answer of `cargo metadata --no-deps`.
///
/// # Errors
/// When the text is not such an answer.
pub fn check(metadata: &str) -> Result<Vec<Finding>, serde_json::Error> {
    let metadata: Metadata = serde_json::from_str(metadata)?;
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let manifest = manifest_of(package, &metadata.workspace_root);
        let Some(room) = room_of(package, &metadata.workspace_root) else {
            findings.push(Finding {
                place: manifest,
                rule: format!("{} is in no room", package.name),
                reason: "say in tools/tidy/src/arrows.rs what it may depend on".to_owned(),
            });
            continue;
        };
        for dependency in &package.dependencies {
            let shipped = dependency.kind.as_deref() != Some("dev");
            if let Some((rule, reason)) = breach(room, package, dependency, shipped, &metadata) {
                findings.push(Finding { place: manifest.clone(), rule, reason: reason.to_owned() });
            }
        }
    }
    Ok(findings)
}

fn breach(
    room: &Room,
    package: &Package,
    dependency: &Dependency,
    shipped: bool,
    metadata: &Metadata,
) -> Option<(String, &'static str)> {
    let Some(target) = metadata.packages.iter().find(|package| package.name == dependency.name) else {
        let banned = room.crates == CORE && shipped && NOT_IN_CORE.contains(&dependency.name.as_str());
        return banned.then(|| {
            let rule = format!("{} depends on {}", package.name, dependency.name);
            (rule, "core has no runtime, no HTTP, no client and no randomness: it is a function of its arguments")
        });
    };
    let target_room = room_of(target, &metadata.workspace_root).map_or("", |room| room.crates);
    let for_tests = FOR_TESTS.contains(&target_room) || FOR_TESTS_OF.contains(&(room.crates, target_room));
    // The tests of a crate turn on features of its own by depending on it.
    let itself = !shipped && target.name == package.name;
    if itself || room.may_use.contains(&target_room) || !shipped && for_tests {
        return None;
    }
    let rule = format!("{} depends on {}", package.name, target.name);
    let reason = if for_tests {
        "only tests depend on it (dev-dependencies): what we ship carries no test server and no simulator"
    } else {
        "that arrow is not in the design (ARCHITECTURE.md, Code map): something is in the wrong room"
    };
    Some((rule, reason))
}

fn room_of(package: &Package, workspace_root: &str) -> Option<&'static Room> {
    let manifest = manifest_of(package, workspace_root);
    ROOMS.iter().find(|room| match room.crates.ends_with('/') {
        true => manifest.starts_with(room.crates),
        false => package.name == room.crates,
    })
}

fn manifest_of(package: &Package, workspace_root: &str) -> String {
    package
        .manifest_path
        .strip_prefix(workspace_root)
        .unwrap_or(&package.manifest_path)
        .trim_start_matches('/')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate: its name, its folder, and its dependencies with their kind.
    type Sample<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

    /// The rules that a workspace of these crates breaches.
    fn rules(crates: &[Sample<'_>]) -> Vec<String> {
        let packages: Vec<_> = crates
            .iter()
            .map(|(name, folder, dependencies)| {
                let dependencies: Vec<_> = dependencies
                    .iter()
                    .map(|(name, kind)| {
                        let kind = if kind.is_empty() { None } else { Some(kind) };
                        serde_json::json!({ "name": name, "kind": kind })
                    })
                    .collect();
                serde_json::json!({
                    "name": name,
                    "manifest_path": format!("/r/{folder}/Cargo.toml"),
                    "dependencies": dependencies,
                })
            })
            .collect();
        let metadata = serde_json::json!({ "packages": packages, "workspace_root": "/r" });
        check(&metadata.to_string()).unwrap().into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn arrows_of_the_design_are_fine() {
        let found = rules(&[
            ("windlass-core", "crates/windlass-core", &[("serde", ""), ("windlass-testing", "dev")]),
            ("windlass-apiserver", "crates/windlass-apiserver", &[("windlass-core", ""), ("tokio", "")]),
            ("windlass-cluster", "crates/windlass-cluster", &[("windlass", "")]),
            ("windlass-sandbox", "crates/windlass-sandbox", &[("nix", "")]),
            ("windlass-node", "crates/windlass-node", &[("windlass", ""), ("windlass-sandbox", "")]),
            ("windlass", "crates/windlass", &[("windlass-core", ""), ("windlass-sim", "dev")]),
            ("windlass-testing", "crates/windlass-testing", &[("windlass-apiserver", ""), ("windlass", "")]),
            ("windlass-sim", "crates/windlass-sim", &[("windlass-cluster", ""), ("windlass-testing", "")]),
            ("windlass-cli", "crates/windlass-cli", &[("windlass-cluster", ""), ("windlass-tidy", "dev")]),
            ("windlass-tidy", "tools/tidy", &[]),
            (
                "myapp",
                "operators/myapp",
                &[("windlass", ""), ("windlass-sim", "dev"), ("windlass-conformance", "dev")],
            ),
            ("windlass-conformance", "conformance", &[("windlass-apiserver", "")]),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn an_arrow_backwards_is_found() {
        let found = rules(&[
            ("windlass-core", "crates/windlass-core", &[("windlass-apiserver", "")]),
            ("windlass-apiserver", "crates/windlass-apiserver", &[("windlass", "")]),
            ("windlass", "crates/windlass", &[("windlass-apiserver", "dev")]),
        ]);
        assert_eq!(
            found,
            [
                "windlass-core depends on windlass-apiserver",
                "windlass-apiserver depends on windlass",
                "windlass depends on windlass-apiserver",
            ]
        );
    }

    #[test]
    fn the_test_crates_are_for_tests_only() {
        let found = rules(&[
            ("windlass-testing", "crates/windlass-testing", &[]),
            ("windlass-sim", "crates/windlass-sim", &[]),
            ("windlass", "crates/windlass", &[("windlass-testing", "")]),
            ("myapp", "operators/myapp", &[("windlass-sim", "build"), ("windlass-conformance", "")]),
            ("windlass-conformance", "conformance", &[]),
            ("windlass-tidy", "tools/tidy", &[]),
            ("windlass-cli", "crates/windlass-cli", &[("windlass-tidy", "")]),
        ]);
        let expected = [
            "windlass depends on windlass-testing",
            "myapp depends on windlass-sim",
            "myapp depends on windlass-conformance",
            "windlass-cli depends on windlass-tidy",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_depends_on_what_is_on_top() {
        let found = rules(&[
            ("windlass-cli", "crates/windlass-cli", &[]),
            ("windlass-conformance", "conformance", &[("windlass-cli", "")]),
            ("windlass-bench", "bench", &[("windlass-conformance", "dev")]),
            ("windlass-soak", "soak", &[("windlass-cli", "dev")]),
        ]);
        assert_eq!(
            found,
            [
                "windlass-conformance depends on windlass-cli",
                "windlass-bench depends on windlass-conformance",
                "windlass-soak depends on windlass-cli"
            ]
        );
    }

    #[test]
    fn core_gains_no_runtime_but_its_tests_may_have_one() {
        let found = rules(&[("windlass-core", "crates/windlass-core", &[("tokio", ""), ("rand", "dev")])]);
        assert_eq!(found, ["windlass-core depends on tokio"]);
    }

    #[test]
    fn a_crate_that_nobody_placed_is_found() {
        assert_eq!(
            rules(&[("windlass-extra", "crates/windlass-extra", &[])]),
            ["windlass-extra is in no room"]
        );
    }
}
