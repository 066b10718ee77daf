//! Metadata of the crates that a registry takes, and of those that programs depend on.

use super::{FLOORS, manifest, root};
use std::fs;
use toml::{Table, Value};

/// Crates that programs name as dependencies: each has a README of its own, whose example is run as a test.
const ENTRANCES: [&str; 9] = ["units", "cc", "wire", "fec", "path", "media", "dccp", "session", "weir-rtc"];

fn is_published(manifest: &Table) -> bool {
    manifest["package"].get("publish").and_then(Value::as_bool) != Some(false)
}

fn list<'a>(package: &'a Table, name: &str, workspace: &'a Table) -> Vec<&'a str> {
    let own = package.get(name).expect("stated");
    let all = own.as_array().or_else(|| workspace["workspace"]["package"][name].as_array()).expect("a list");
    all.iter().filter_map(Value::as_str).collect()
}

/// Dependencies of a table that a registry would refuse: of a path alone, or on a package that is not published.
fn refused(of: &Table, workspace: &Table) -> Vec<String> {
    let shared = workspace["workspace"]["dependencies"].as_table().expect("dependencies");
    let mut found = Vec::new();
    for (name, value) in of {
        let is_shared = value.get("workspace").and_then(Value::as_bool) == Some(true);
        let stated = if is_shared { &shared[name] } else { value };
        let of_path_alone = stated.get("path").is_some() && stated.get("version").is_none();
        let room = name.strip_prefix("weir-").unwrap_or_default();
        let room = FLOORS.iter().map(|f| f.0).find(|f| *f == room || *f == name);
        if of_path_alone || room.is_some_and(|room| !is_published(&manifest(room))) {
            found.push(name.clone());
        }
    }
    found
}

#[test]
fn published_crates_have_metadata_and_no_dependency_that_is_not_published() {
    let workspace: Table = fs::read_to_string(root().join("Cargo.toml")).expect("a file").parse().expect("TOML");
    let mut seen = 0;
    for (room, _) in FLOORS {
        let manifest = manifest(room);
        if !is_published(&manifest) {
            continue;
        }
        seen += 1;
        let package = manifest["package"].as_table().expect("a table");
        let description = package["description"].as_str().unwrap_or_default();
        assert!(description.len() > 20 && description.len() < 200, "{room}: {description}");
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(root().join("crates").join(room).join(name).exists(), "{room} lacks {name}");
        }
        // Limits of crates.io.
        let (keywords, categories) = (list(package, "keywords", &workspace), list(package, "categories", &workspace));
        assert!(!keywords.is_empty() && keywords.len() <= 5 && keywords.iter().all(|k| k.len() <= 20), "{keywords:?}");
        assert!(!categories.is_empty() && categories.len() <= 5, "{categories:?}");
        // Those of tests may be of a path alone: a registry leaves them out.
        let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(|t| t.values());
        for table in [Some(&manifest)].into_iter().chain(targets.map(Value::as_table)).flatten() {
            for kind in ["dependencies", "build-dependencies"] {
                let Some(of) = table.get(kind).and_then(Value::as_table) else { continue };
                assert_eq!(refused(of, &workspace), Vec::<String>::new(), "{room}: {kind}");
            }
        }
    }
    assert!(seen >= 20, "only {seen} crates are published: the search has gone blind");
}

#[test]
fn crates_that_programs_depend_on_have_a_readme_whose_example_is_a_test() {
    for room in ENTRANCES {
        let (manifest, folder) = (manifest(room), root().join("crates").join(room));
        assert_eq!(manifest["package"]["readme"].as_str(), Some("README.md"), "{room}");
        assert!(manifest["package"].get("metadata").is_some_and(|m| m["docs"].get("rs").is_some()), "{room}: docs.rs");
        let readme = fs::read_to_string(folder.join("README.md")).expect("a README");
        let (_, example) = readme.split_once("```rust\n").unwrap_or_else(|| panic!("{room}: an example"));
        let crate_name = manifest["package"]["name"].as_str().expect("a name").replace('-', "_");
        assert!(example.contains(&format!("use {crate_name}::")), "{room}: the example uses another crate");
        let library = fs::read_to_string(folder.join("src/lib.rs")).expect("a library");
        assert!(library.contains("#[cfg(doctest)]\n#[doc = include_str!(\"../README.md\")]"), "{room}");
        match manifest.get("features").and_then(Value::as_table) {
            None => assert!(readme.contains("no features"), "{room}: it says nothing of features"),
            Some(all) => all.keys().for_each(|f| assert!(readme.contains(&format!("`{f}`")), "{room}: {f}")),
        }
    }
}

#[test]
fn dependencies_that_a_registry_refuses_are_found() {
    let workspace: Table = "[workspace.dependencies]\nweir-cc = { version = \"0.1.0\", path = \"crates/cc\" }\n\
         weir-web = { path = \"crates/web\" }\nlibm = \"0.2\"\n"
        .parse()
        .expect("TOML");
    let of: Table = "weir-cc.workspace = true\nweir-web.workspace = true\nlibm.workspace = true\n\
         weir-bench = \"0.1\"\nother = { path = \"../other\" }\n"
        .parse()
        .expect("TOML");
    let mut found = refused(&of, &workspace);
    found.sort();
    assert_eq!(found, ["other", "weir-bench", "weir-web"]);
}
