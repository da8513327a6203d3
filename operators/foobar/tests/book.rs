//! The first chapter of the book shows this operator, and nothing but this operator.

use std::path::Path;

use foobar_operator::goal;
use windlass::{Env, Settings};
use windlass_testing::TestCluster;

#[test]
fn every_file_of_the_chapter_is_as_it_is_here() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let chapter = std::fs::read_to_string(here.join("../../docs/first-operator.md")).unwrap();
    let blocks = windlass_tidy::papers::fenced_blocks(&chapter, "rust");
    let shown: Vec<(&str, &str)> = blocks
        .iter()
        .filter_map(|block| block.strip_prefix("// operators/foobar/src/")?.split_once('\n'))
        .collect();
    for (name, text) in &shown {
        let file = std::fs::read_to_string(here.join("src").join(name)).unwrap();
        assert_eq!(*text, file, "the chapter's {name}");
    }
    let files = std::fs::read_dir(here.join("src")).unwrap().count();
    assert_eq!(shown.len(), files, "the chapter shows every file once");
}

#[test]
fn it_is_under_200_lines() {
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let lines = |path: &Path| std::fs::read_to_string(path).unwrap().lines().count();
    assert!(files.map(|file| lines(&file.unwrap().path())).sum::<usize>() < 200);
}

/// The test that the chapter shows.
#[tokio::test(start_paused = true)]
async fn a_child_follows_its_spec() {
    let cluster = TestCluster::new().await;
    let running = foobar_operator::operator()
        .start(cluster.client(), Settings::for_tests(Env::system()))
        .await
        .unwrap();
    cluster.apply_yaml(include_str!("../../../docs/walkthrough/foobar.yaml")).await.unwrap();
    cluster.wait_for("default", "one", "it is ready", goal::is_ready).await.unwrap();
    running.stop().await.unwrap();
}
