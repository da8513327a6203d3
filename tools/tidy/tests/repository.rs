//! The rules of the repository, checked on the repository.

use windlass_tidy::{arrows, assert_none, files, papers, purity, repository};

#[test]
fn arrows_between_crates_point_one_way() {
    assert_none(&arrows::check(&repository::cargo_metadata()).expect("cargo's answer can be read"));
}

#[test]
fn the_core_reaches_for_nothing() {
    let files = repository::text_files();
    assert!(purity::count(&files) >= 2, "the folders of the core are not where this test looks for them");
    assert_none(&purity::check(&files));
}

#[test]
fn no_file_holds_a_registry_host_name() {
    assert_none(&files::registry_hosts(&repository::text_files()));
}

#[test]
fn no_file_has_outgrown_its_concept() {
    assert_none(&files::too_long(&repository::text_files()));
}

/// Whoever changes a command in one language has to change it in the other.
#[test]
fn both_readmes_show_the_same_commands() {
    let commands = |name: &str| {
        let text = std::fs::read_to_string(repository::root().join(name)).expect("both READMEs are there");
        let blocks = papers::fenced_blocks(&text, "console");
        assert!(!blocks.is_empty(), "{name} shows no command");
        blocks
    };
    assert_eq!(commands("README.md"), commands("README.zh-CN.md"));
}
