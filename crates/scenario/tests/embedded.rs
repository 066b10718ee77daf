//! Files embedded by the build.

#[path = "../build.rs"]
#[expect(dead_code, reason = "only the listing is tested")]
mod build;

use std::fs;
use std::path::Path;

#[test]
fn a_file_that_is_added_is_listed_without_a_word_about_it_elsewhere() {
    let dir = tempfile::tempdir().expect("a folder");
    let put = |path: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
        fs::write(path, "x").expect("written");
    };
    let listed = || {
        let source = build::listing(dir.path()).expect("reads");
        let names = source.lines().filter_map(|l| l.trim().strip_prefix("(\"")?.split('"').next().map(str::to_owned));
        names.collect::<Vec<_>>()
    };
    ["schema.json", "b/late.toml", "b/.hidden", "a/one.toml"].into_iter().for_each(put);
    assert_eq!(listed(), ["a/one.toml", "b/late.toml"]);
    ["a/deep/trace.csv", "c/new.toml"].into_iter().for_each(put);
    assert_eq!(listed(), ["a/deep/trace.csv", "a/one.toml", "b/late.toml", "c/new.toml"]);
}

/// Paths of the files of a folder of the project, except those directly in it.
fn on_disk(folder: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let (mut found, mut next) = (Vec::new(), vec![root.clone()]);
    while let Some(dir) = next.pop() {
        for path in fs::read_dir(&dir).expect("readable").flatten().map(|e| e.path()) {
            if path.is_dir() {
                next.push(path);
            } else if dir != root {
                found.push(path.strip_prefix(&root).expect("inside").to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_file_of_the_project_is_in_the_program() {
    use weir_scenario::embedded::{PAPERS, SCENARIOS, TWINS};
    for (folder, embedded, at_least) in [("scenarios", SCENARIOS, 40), ("papers", PAPERS, 20), ("twins", TWINS, 10)] {
        let files = on_disk(folder);
        assert!(files.len() >= at_least, "{folder}: {} files: the search has gone blind", files.len());
        assert_eq!(embedded.iter().map(|f| f.0).collect::<Vec<_>>(), files);
    }
}
