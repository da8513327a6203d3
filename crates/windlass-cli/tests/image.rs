//! `windlass image`, as a user runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn image(cache: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.arg("image").args(arguments).env("WINDLASS_CACHE", cache).output().unwrap()
}

fn cache(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("windlass-image-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_program_is_added_listed_and_removed() {
    let cache = cache("add");
    let program = env!("CARGO_BIN_EXE_windlass");
    let added = image(&cache, &["add", "example.com/team/tool:v1", "--program", program]);
    assert!(added.status.success(), "{added:?}");
    let listed = stdout(&image(&cache, &["list"]));
    let line = listed.lines().find(|line| line.starts_with("example.com/team/tool:v1 ")).unwrap();
    assert!(line.ends_with(&format!("the program {program}")), "{line}");
    assert!(listed.contains("docker.io/library/busybox:*"), "{listed}");
    assert!(image(&cache, &["remove", "example.com/team/tool:v1"]).status.success());
    assert!(!stdout(&image(&cache, &["list"])).contains("example.com"));
    let again = image(&cache, &["remove", "example.com/team/tool:v1"]);
    assert_eq!(again.status.code(), Some(1));
    fs::remove_dir_all(cache).unwrap();
}

#[test]
fn what_is_no_image_is_said_to_be_none() {
    let cache = cache("load");
    let archive = cache.join("not.tar");
    fs::write(&archive, [0; 1024]).unwrap();
    let refused = image(&cache, &["load", archive.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(
        words.contains("this is no image (docker save, podman save and skopeo copy make them)"),
        "{words}"
    );
    fs::remove_dir_all(cache).unwrap();
}
