//! Rules of layout and of comments.

use super::{FLOORS, root, sources};
use std::fs;
use std::path::{Path, PathBuf};

/// Every Rust file of a folder and those below.
fn files(dir: &Path) -> Vec<(PathBuf, String)> {
    let mut out = Vec::new();
    let mut next = vec![dir.to_path_buf()];
    while let Some(dir) = next.pop() {
        for path in fs::read_dir(dir).expect("readable").flatten().map(|e| e.path()) {
            // A link leads to files that are looked at elsewhere.
            if path.is_dir() && !path.is_symlink() {
                next.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push((path.clone(), fs::read_to_string(&path).expect("UTF-8")));
            }
        }
    }
    out
}

#[test]
fn a_module_with_children_is_a_file_beside_its_folder() {
    for (room, _) in FLOORS {
        for (path, _) in sources(room) {
            assert!(!path.ends_with("mod.rs"), "{}: the convention is foo.rs beside foo/", path.display());
        }
    }
}

/// The words of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim_start())
}

#[test]
fn comments_begin_with_a_verb_or_a_noun() {
    let questions = ["What", "Who", "Which", "Whose"];
    let mut found = Vec::new();
    for (room, _) in FLOORS {
        for (path, text) in files(&root().join("crates").join(room)) {
            for words in text.lines().filter_map(comment) {
                let first = words.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                if questions.contains(&first) {
                    found.push(format!("{}: {words}", path.display()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{} comments begin with a question: {found:#?}", found.len());
}

#[test]
fn a_comment_is_found_whichever_way_it_is_written() {
    let text = "/// What.\nfn f() {\n    // Whose it is.\n    g(); // Who\n}\n//! A\n////Which\n";
    let found: Vec<&str> = text.lines().filter_map(comment).collect();
    assert_eq!(found, ["What.", "Whose it is.", "A", "Which"]);
}

/// A file of `tests/` that is neither a module of `tests/all.rs` nor a program of its own would not be run.
#[test]
fn every_test_file_is_run() {
    let mut seen = 0;
    for (room, _) in FLOORS {
        let tests = root().join("crates").join(room).join("tests");
        let Ok(all) = fs::read_to_string(tests.join("all.rs")) else { continue };
        let manifest = super::manifest(room);
        assert_eq!(manifest["package"]["autotests"].as_bool(), Some(false), "{room}: each file would be run twice");
        let programs = manifest["test"].as_array().expect("programs");
        let programs: Vec<&str> = programs.iter().filter_map(|t| t["path"].as_str()).collect();
        for entry in fs::read_dir(&tests).expect("readable").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let (module, path) = match name.strip_suffix(".rs") {
                Some("all") => continue,
                Some(module) => (module, name.clone()),
                None if entry.path().join("main.rs").exists() => (name.as_str(), format!("{name}/main.rs")),
                None => continue,
            };
            let is_module = all.lines().any(|l| l == format!("mod {module};"));
            let is_program = programs.contains(&format!("tests/{path}").as_str());
            assert!(
                is_module != is_program,
                "{room}/tests/{path} is run as a module: {is_module}, as a program: {is_program}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 40, "only {seen} files found: the search has gone blind");
}
