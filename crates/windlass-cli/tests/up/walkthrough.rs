//! The walk-throughs of the README and of the book are true: their commands are run, and their output compared.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use windlass_testing::up::program;

use crate::shown::{Shown, is_as_shown, shown};
use crate::support::Folder;

#[test]
fn the_walk_through_of_the_readme_is_true() {
    program("etcd-operator", "etcd-operator");
    let repository = repository();
    let samples = repository.join("samples");
    let (samples, operators) = (samples.display().to_string(), samples.join("operators"));
    let operators = operators.display().to_string();
    walk("README.md", &["--operators", "etcd", "--apply", &samples, &operators]);
}

#[test]
fn the_chapter_for_those_who_run_etcd_is_true() {
    program("etcd-operator", "etcd-operator");
    walk("docs/etcd.md", &[]);
}

#[test]
fn the_manifests_that_the_chapter_shows_are_those_that_it_applies() {
    let text = std::fs::read_to_string(repository().join("docs/etcd.md")).unwrap();
    let blocks = windlass_tidy::papers::fenced_blocks(&text, "yaml");
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let (name, shown) =
            block.strip_prefix("# ").and_then(|rest| rest.split_once('\n')).expect("its file");
        assert_eq!(shown, std::fs::read_to_string(repository().join(name)).unwrap(), "{name}");
    }
}

/// Runs the commands of a page, one after the other, in one shell and on a cluster of their own.
fn walk(page: &str, arguments: &[&str]) {
    let repository = repository();
    let text = std::fs::read_to_string(repository.join(page)).unwrap();
    let folder = Folder::new(&format!("walk-{}", page.replace('/', "-")));
    // A folder like the repository after `make up`, and a home whose cluster is that of this test.
    for name in ["target", ".local/share"] {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    let programs = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap();
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
    link(&repository.join("docs"), "docs");
    link(&repository.join("tools"), "tools");
    link(programs, "target/up");
    link(&folder.path().join("data"), ".local/share/windlass");
    let cluster = crate::up(arguments, folder.path());

    let mut shell = Shell::start(folder.path());
    let all = shown(&text);
    assert!(all.len() > 10, "{page} has a walk-through of {} commands", all.len());
    for Shown { command, output } in all {
        let printed = shell.run(&command);
        assert!(is_as_shown(&printed, &output), "{page}: $ {command}\n{printed}\nis not as shown:\n{output}");
    }
    assert_eq!(cluster.end("-INT").code(), Some(0), "Ctrl-C ends it");
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A shell that knows what the commands before have set.
struct Shell {
    child: Child,
    commands: ChildStdin,
    printed: BufReader<ChildStdout>,
}

/// What follows what a command has printed.
const END: &str = "=== the command has ended ===";

impl Shell {
    fn start(folder: &Path) -> Shell {
        let mut command = Command::new("bash");
        command.current_dir(folder).env("HOME", folder).env("WINDLASS_CACHE", cache());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("bash runs");
        let commands = child.stdin.take().expect("it is piped");
        let printed = BufReader::new(child.stdout.take().expect("it is piped"));
        Shell { child, commands, printed }
    }

    /// Runs a command; all that it printed.
    fn run(&mut self, command: &str) -> String {
        let script = format!("{{ {command}\n}} 2>&1 </dev/null; echo '{END}'\n");
        self.commands.write_all(script.as_bytes()).expect("bash listens");
        let mut printed = String::new();
        while !printed.ends_with(&format!("{END}\n")) {
            let read = self.printed.read_line(&mut printed).expect("what is printed is text");
            assert!(read > 0, "the shell has ended: $ {command}\n{printed}");
        }
        printed.truncate(printed.len() - END.len() - 1);
        printed
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where set-up puts things, as it would be without the home of this test.
fn cache() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    named("WINDLASS_CACHE").unwrap_or_else(|| {
        let cache = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
        cache.expect("a home").join("windlass")
    })
}
