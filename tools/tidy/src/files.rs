//! What holds for every file of the repository.

use crate::Finding;
use crate::repository::File;

/// Hosts of package registries and their proxies. Tools know their registry by themselves, and a mirror is the
/// business of a machine's settings: a host name in the repository would send everyone past it. The names are put
/// together here so that this file does not hold them either.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("proxy.", "golang.org"),
    concat!("sum.", "golang.org"),
    concat!("pypi", ".org"),
    concat!("files.", "pythonhosted.org"),
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("deb.", "debian.org"),
    concat!("archive.", "ubuntu.com"),
    concat!("arti", "factory"),
];

/// A file of code or prose that is longer has a second concept inside.
const LINES_MAX: usize = 700;

/// Files that may be longer, each with its reason.
const LONGER: &[(&str, &str)] = &[];

/// Registry host names, in any text file.
pub fn registry_hosts(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            for host in REGISTRY_HOSTS.iter().filter(|host| line.contains(*host)) {
                findings.push(Finding {
                    place: format!("{}:{}", file.path, number + 1),
                    rule: format!("holds the registry host name {host}"),
                    reason: "leave the registry to the tool's own default or to the settings of the machine"
                        .to_owned(),
                });
            }
        }
    }
    findings
}

/// Files of code or prose past 700 lines. Data (JSON, YAML, lock files, sums, snapshots) may be long.
pub fn too_long(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_written_by_hand(&file.path)) {
        let lines = file.text.lines().count();
        if lines > LINES_MAX && !LONGER.iter().any(|(path, _)| *path == file.path) {
            findings.push(Finding {
                place: file.path.clone(),
                rule: format!("has {lines} lines, more than {LINES_MAX}"),
                reason: "look for the second concept and split by topic, or give the reason in tools/tidy/src/files.rs"
                    .to_owned(),
            });
        }
    }
    findings
}

fn is_written_by_hand(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, extension)) => ["rs", "go", "py", "sh", "md"].contains(&extension),
        None => name == "Makefile" || path.starts_with("tools/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_host_name_is_found_wherever_it_stands() {
        let text = format!("one\nGOPROXY=https://{}\n", concat!("proxy.", "golang.org"));
        let found = registry_hosts(&[file("tools/x", &text)]);
        assert_eq!(found.iter().map(|finding| finding.place.as_str()).collect::<Vec<_>>(), ["tools/x:2"]);
    }

    #[test]
    fn module_paths_and_the_lock_file_are_fine() {
        let text = "golang.org/x/net v0.61.0 h1:abc\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
        assert_eq!(registry_hosts(&[file("Cargo.lock", text)]), []);
    }

    #[test]
    fn a_long_file_is_found_and_long_data_is_not() {
        let long = "x\n".repeat(LINES_MAX + 1);
        let just = "x\n".repeat(LINES_MAX);
        let found = too_long(&[
            file("a/b.rs", &long),
            file("c.rs", &just),
            file("data/d.json", &long),
            file("go.sum", &long),
        ]);
        assert_eq!(found.iter().map(|finding| finding.place.as_str()).collect::<Vec<_>>(), ["a/b.rs"]);
    }
}
