//! What the core may not reach for.
//!
//! `windlass-core` and the API server outside of `front/` are functions of their arguments: the simulator runs them a
//! thousand times a second from a seed, and the same seed has to give the same answers in the same order. It cannot be
//! added later, so it is checked from the first day.

use crate::Finding;
use crate::repository::File;
use crate::source::{code_of, imports_of, line_of, test_modules_of};
use std::collections::BTreeSet;
use std::path::Path;

/// The folders that are pure, and the one room in them that is not.
const PURE: &[&str] = &["crates/windlass-core/src/", "crates/windlass-apiserver/src/"];
const SHELL: &[&str] = &["crates/windlass-apiserver/src/front/", "crates/windlass-apiserver/src/front.rs"];

/// What is forbidden as a group, and what to do instead.
struct Ban {
    what: &'static str,
    instead: &'static str,
    /// Paths or words, searched as whole words in code and as prefixes of what `use` brings in.
    names: &'static [&'static str],
}

const BANS: &[Ban] = &[
    Ban {
        what: "a clock",
        instead: "the time comes in as an argument",
        names: &[
            "SystemTime",
            "Instant",
            "UNIX_EPOCH",
            "Timestamp::now",
            "Zoned::now",
            "Utc::now",
            "Local::now",
            "chrono",
        ],
    },
    Ban {
        what: "a socket",
        instead: "requests and answers are values, front/ moves the bytes",
        // Not `std::net` as a whole: addresses are values.
        names: &[
            "std::os",
            "TcpListener",
            "TcpStream",
            "UdpSocket",
            "UnixListener",
            "UnixStream",
            "UnixDatagram",
            "ToSocketAddrs",
            "hyper",
            "rustls",
            "socket2",
            "mio",
        ],
    },
    Ban {
        what: "a thread or a runtime",
        instead: "the core starts nothing and waits for nothing: it returns what to do, front/ does it",
        names: &[
            "std::thread",
            "thread::spawn",
            "thread::sleep",
            "thread::scope",
            "thread_local",
            "tokio",
            "async",
            "await",
            "rayon",
            "crossbeam",
            "futures",
        ],
    },
    Ban {
        what: "randomness",
        instead: "ids and seeds come in as arguments",
        names: &["rand", "getrandom", "fastrand", "RandomState", "Uuid::new_v4", "Uuid::now_v7"],
    },
    Ban {
        what: "files, the environment or the terminal",
        instead: "bytes and settings come in as arguments; logging goes through tracing",
        names: &[
            "std::fs",
            "fs::read",
            "fs::write",
            "File::open",
            "File::create",
            "std::env",
            "env::var",
            "std::process",
            "stdin",
            "stdout",
            "stderr",
            "print!",
            "println!",
            "eprint!",
            "eprintln!",
            "dbg!",
        ],
    },
];

/// Checks the files that lie in the pure folders; all others are passed over.
pub fn check(files: &[File]) -> Vec<Finding> {
    let tests = test_files(files);
    files
        .iter()
        .filter(|file| is_pure(&file.path) && !tests.iter().any(|test| under(&file.path, test)))
        .flat_map(check_file)
        .collect()
}

/// How many of the files are in the pure folders: so that a test sees that it looked at something.
pub fn count(files: &[File]) -> usize {
    files.iter().filter(|file| is_pure(&file.path)).count()
}

fn is_pure(path: &str) -> bool {
    path.ends_with(".rs")
        && PURE.iter().any(|folder| path.starts_with(folder))
        && !SHELL.iter().any(|shell| path.starts_with(shell))
}

fn check_file(file: &File) -> Vec<Finding> {
    let code = code_of(&file.text);
    let mut hits = BTreeSet::new();
    for (at, ban) in BANS.iter().enumerate() {
        for name in ban.names {
            hits.extend(words(&code, name).map(|offset| (line_of(&code, offset), at, *name)));
        }
    }
    for (line, import) in imports_of(&code) {
        for (at, ban) in BANS.iter().enumerate() {
            let name = ban.names.iter().find(|name| words(&import, name).next().is_some());
            hits.extend(name.map(|name| (line, at, *name)));
        }
    }
    hits.into_iter()
        .map(|(line, at, name)| Finding {
            place: format!("{}:{line}", file.path),
            rule: format!("the core reaches for {}: {name}", BANS[at].what),
            reason: BANS[at].instead.to_owned(),
        })
        .collect()
}

/// Where a name stands in the code as whole words: `rand` is not in `operand`, nor `await` in `awaited`.
fn words<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).map(|(offset, _)| offset).filter(move |offset| {
        let before = code[..*offset].chars().next_back();
        let after = code[offset + name.len()..].chars().next();
        !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
    })
}

/// Files and folders that hold modules declared under `#[cfg(test)]`.
fn test_files(files: &[File]) -> Vec<String> {
    let mut tests = Vec::new();
    for file in files.iter().filter(|file| is_pure(&file.path)) {
        let path = Path::new(&file.path);
        let folder = match path.file_name().and_then(|name| name.to_str()) {
            Some("lib.rs" | "main.rs" | "mod.rs") => path.with_file_name(""),
            _ => path.with_extension(""),
        };
        tests.extend(test_modules_of(&file.text).iter().map(|name| folder.join(name).display().to_string()));
    }
    tests
}

/// Whether a path is the file `module.rs` or lies in the folder `module/`.
fn under(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn places(files: &[File]) -> Vec<String> {
        check(files).into_iter().map(|finding| finding.place).collect()
    }

    /// How often code in the server's core is found to breach a rule.
    fn hits(code: &str) -> usize {
        check(&[file("crates/windlass-apiserver/src/store.rs", code)]).len()
    }

    #[test]
    fn each_ban_is_found() {
        for code in [
            "let t = SystemTime::now();",
            "let t = std::time::Instant::now();",
            "let t = jiff::Timestamp::now();",
            "use std::time::{Duration, Instant as I};",
            "let l = std::net::TcpListener::bind(a)?;",
            "use std::{collections::BTreeMap, net::{IpAddr, UdpSocket}};",
            "fn f(at: impl std::net::ToSocketAddrs) {}",
            "std::thread::spawn(f);",
            "use tokio::sync::mpsc;",
            "async fn f() {}",
            "let id = rand::random();",
            "use std::hash::RandomState;",
            "let s = std::fs::read_to_string(p)?;",
            "use std::{\n    fs,\n    fmt,\n};",
            "let v = std::env::var(name);",
            "println!(x);",
        ] {
            assert!(hits(code) > 0, "not found: {code}");
        }
    }

    #[test]
    fn what_only_looks_like_a_ban_is_fine() {
        for code in [
            "let operand = random_looking_name; let brand = 1;",
            "// tokio would be wrong here\n/* SystemTime */ let s = \"std::fs and async\";",
            "use std::net::{IpAddr, Ipv4Addr};",
            "use std::time::Duration;",
            "fn print(row: &Row) {} print(row); awaited(); asynchronous();",
            "use std::io::Read;",
            "let x = env!(NAME);",
            "use serde::{Deserialize, Serialize}; use std::collections::{BTreeMap, HashMap};",
        ] {
            assert_eq!(hits(code), 0, "wrongly found: {code}");
        }
    }

    #[test]
    fn a_finding_names_file_line_rule_and_reason() {
        let found = check(&[file("crates/windlass-core/src/queue.rs", "fn f() {\n    Instant::now();\n}\n")]);
        assert_eq!(
            found[0].to_string(),
            "crates/windlass-core/src/queue.rs:2: the core reaches for a clock: Instant\n    \
             the time comes in as an argument"
        );
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn the_front_and_other_crates_may() {
        let code = "use tokio::net::TcpListener;";
        assert_eq!(hits(code), 2);
        assert_eq!(
            places(&[file("crates/windlass-apiserver/src/front/https.rs", code)]),
            Vec::<String>::new()
        );
        assert_eq!(places(&[file("crates/windlass-cli/src/main.rs", code)]), Vec::<String>::new());
        assert_eq!(places(&[file("crates/windlass-apiserver/tests/wire.rs", code)]), Vec::<String>::new());
        // Only the folder is the front: a name that starts alike is not.
        assert_eq!(places(&[file("crates/windlass-apiserver/src/frontier.rs", code)]).len(), 2);
    }

    #[test]
    fn tests_may_and_code_after_them_may_not() {
        let store = "#[cfg(test)]\nmod tests {\n    use std::thread;\n}\nfn f() { std::thread::spawn(g); }\n";
        let found = places(&[
            file("crates/windlass-core/src/store.rs", store),
            file("crates/windlass-core/src/lib.rs", "#[cfg(test)]\nmod slow;\nmod store;\n"),
            file("crates/windlass-core/src/slow.rs", "use std::fs;"),
            file("crates/windlass-core/src/slow/more.rs", "use std::fs;"),
            file("crates/windlass-core/src/slower.rs", "use std::fs;"),
        ]);
        let expected = ["crates/windlass-core/src/store.rs:5", "crates/windlass-core/src/store.rs:5"];
        assert_eq!(found, [expected[0], expected[1], "crates/windlass-core/src/slower.rs:1"]);
    }
}
