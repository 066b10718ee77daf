//! No circle among sibling modules inside a room: read from the paths that begin with `crate::`, `super::` and
//! `self::`.
//!
//! A module and its descendants count as one when compared with its siblings. Sharing with the parent is no circle. A
//! path that names a re-export leads to where the item is written.

use super::source::{Module, read};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Known circles: a module and those of its children that reach each other. This list may only become shorter.
const KNOWN: &[(&str, &str)] = &[];

/// Path of a module from the room's root.
type ModulePath = Vec<String>;

/// A room's modules.
#[derive(Debug, Default)]
struct Room {
    modules: BTreeMap<ModulePath, Module>,
}

impl Room {
    fn open(src: &Path) -> Self {
        let mut room = Self::default();
        room.walk(src, &mut Vec::new());
        let tests: Vec<ModulePath> = (room.modules.iter())
            .flat_map(|(path, m)| m.test_children.iter().map(|c| [path.as_slice(), std::slice::from_ref(c)].concat()))
            .collect();
        let named_tests = |path: &ModulePath| path.iter().any(|p| p == "tests" || p.ends_with("_tests"));
        room.modules.retain(|path, _| !named_tests(path) && !tests.iter().any(|t| path.starts_with(t)));
        room
    }

    fn walk(&mut self, dir: &Path, at: &mut ModulePath) {
        let Ok(entries) = fs::read_dir(dir) else { return };
        for path in entries.flatten().map(|e| e.path()) {
            let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
            if path.is_dir() {
                at.push(stem);
                self.walk(&path, at);
                at.pop();
            } else if path.extension().is_some_and(|e| e == "rs") && !(stem == "main" && at.is_empty()) {
                let mut module = at.clone();
                if stem != "mod" && !(stem == "lib" && at.is_empty()) {
                    module.push(stem);
                }
                let text = fs::read_to_string(&path).expect("UTF-8");
                self.modules.insert(module, read(&path, &text));
            }
        }
    }

    fn is_module(&self, path: &[String]) -> bool {
        self.modules.contains_key(path)
    }

    /// The module that contains the item named by `path`, written in `from`.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        if depth > 16 {
            return None;
        }
        let mut at = from.to_vec();
        for (i, part) in path.iter().enumerate() {
            match part.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => {
                    at.pop()?;
                }
                name => {
                    at.push(name.to_owned());
                    if self.is_module(&at) {
                        continue;
                    }
                    at.pop();
                    let module = self.modules.get(&at)?;
                    if module.defined.contains(name) {
                        return Some(at);
                    }
                    let rest = &path[i + 1..];
                    let through = |import: &Vec<String>| {
                        let on: Vec<String> = import.iter().chain(rest).cloned().collect();
                        self.resolve(&at, &on, depth + 1)
                    };
                    if let Some(import) = module.imports.get(name) {
                        // A name of another crate is an item of the module that imports it.
                        let inside = self.begins_inside(&at, &import[0]);
                        return if inside && *import != path[..=i] { through(import) } else { Some(at) };
                    }
                    for glob in module.globs.iter().filter(|g| self.begins_inside(&at, &g[0])) {
                        let on: Vec<String> = glob.iter().chain([part]).cloned().collect();
                        let held = self.resolve(&at, &on, depth + 1);
                        if held.as_ref().is_some_and(|h| self.modules[h].defined.contains(name)) {
                            return held;
                        }
                    }
                    return Some(at);
                }
            }
        }
        Some(at)
    }

    fn begins_inside(&self, at: &[String], first: &String) -> bool {
        let child = [at, std::slice::from_ref(first)].concat();
        matches!(first.as_str(), "crate" | "super" | "self") || self.is_module(&child)
    }

    /// By parent: which child reaches which other, and by which path.
    fn edges(&self) -> BTreeMap<ModulePath, BTreeMap<(String, String), String>> {
        let mut all: BTreeMap<ModulePath, BTreeMap<(String, String), String>> = BTreeMap::new();
        for (from, module) in &self.modules {
            for (path, line) in &module.paths {
                let Some(to) = self.resolve(from, path, 0) else { continue };
                let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                    let place = format!("{}:{line} {}", module.file.display(), path.join("::"));
                    let edges = all.entry(from[..shared].to_vec()).or_default();
                    edges.entry((a.clone(), b.clone())).or_insert(place);
                }
            }
        }
        all
    }
}

/// Groups of nodes that reach each other.
fn circles(edges: &BTreeMap<(String, String), String>) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(at) = next.pop() {
            for (a, b) in edges.keys() {
                if *a == at && seen.insert(b.clone()) {
                    next.push(b.clone());
                }
            }
        }
        seen
    };
    let all: BTreeSet<String> = edges.keys().map(|e| e.0.clone()).collect();
    let reached: BTreeMap<&String, BTreeSet<String>> = all.iter().map(|n| (n, reach(n))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (node, seen) in &reached {
        let group: BTreeSet<String> =
            seen.iter().filter(|b| reached.get(b).is_some_and(|back| back.contains(*node))).cloned().collect();
        if group.len() > 1 && !found.contains(&group) {
            found.push(group);
        }
    }
    found
}

/// Circles of all rooms under `crates`: the module's name, its children, and the paths that make the circle.
fn circles_of_rooms(crates: &Path) -> Vec<(String, BTreeSet<String>, String)> {
    let mut rooms: Vec<PathBuf> = fs::read_dir(crates).expect("readable").flatten().map(|e| e.path()).collect();
    rooms.sort();
    let mut found = Vec::new();
    for dir in rooms.iter().filter(|d| d.join("src").is_dir()) {
        let name = dir.file_name().expect("a folder").to_string_lossy().into_owned();
        for (parent, edges) in Room::open(&dir.join("src")).edges() {
            let place = std::iter::once(&name).chain(&parent).cloned().collect::<Vec<_>>().join("::");
            for group in circles(&edges) {
                let mut why = String::new();
                for ((a, b), at) in edges.iter().filter(|((a, b), _)| group.contains(a) && group.contains(b)) {
                    writeln!(why, "    {a} -> {b}: {at}").expect("memory");
                }
                found.push((place.clone(), group, why));
            }
        }
    }
    found
}

#[test]
fn modules_of_a_room_make_no_circles() {
    let found = circles_of_rooms(&super::root().join("crates"));
    let is = |known: &(&str, &str), (place, group, _): &(String, BTreeSet<String>, String)| {
        known.0 == place && known.1.split(' ').eq(group)
    };
    let mut wrong = String::new();
    for circle @ (place, group, why) in &found {
        if !KNOWN.iter().any(|known| is(known, circle)) {
            let group: Vec<&str> = group.iter().map(String::as_str).collect();
            writeln!(wrong, "{place}: a circle of {}:\n{why}", group.join(" ")).expect("memory");
        }
    }
    for known in KNOWN {
        if !found.iter().any(|circle| is(known, circle)) {
            writeln!(wrong, "{}: no circle of {} any more: shorten the list", known.0, known.1).expect("memory");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A room made of these files, and its circles.
fn circles_in(files: &[(&str, &str)]) -> Vec<(String, BTreeSet<String>, String)> {
    let dir = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        let path = dir.path().join("room/src").join(path);
        fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    circles_of_rooms(dir.path())
}

#[test]
fn a_circle_is_found_whichever_way_it_is_written() {
    let group = |found: &[(String, BTreeSet<String>, String)]| {
        found.iter().map(|f| (f.0.clone(), f.1.iter().cloned().collect::<Vec<_>>().join(" "))).collect::<Vec<_>>()
    };
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::Made;\n");
    // By a re-export at the root in one direction, by a path in a function in the other.
    let found = circles_in(&[
        lib,
        ("a.rs", "use crate::{Made, c};\nstruct A;\n"),
        ("b.rs", "pub struct Made;\nfn f() { super::a::go('\"', \"\\\"\"); }\n"),
        ("c.rs", "struct C;\n"),
    ]);
    assert_eq!(group(&found), [("room".to_owned(), "a b".to_owned())]);
    assert!(found[0].2.contains("a -> b") && found[0].2.contains("a.rs:1 crate::Made"), "{}", found[0].2);
    // Three in a ring, from folders, one by a glob.
    let found = circles_in(&[
        lib,
        ("a/mod.rs", "mod deep;"),
        ("a/deep.rs", "use super::super::b::*;"),
        ("b.rs", "use crate::c::{self, x as y};"),
        ("c.rs", "use super::{\n    a::deep::Z,\n};"),
    ]);
    assert_eq!(group(&found), [("room".to_owned(), "a b c".to_owned())]);
    // Below the root, through a name imported by the parent.
    let found = circles_in(&[
        ("lib.rs", "mod p;"),
        ("p/mod.rs", "mod a;\nmod b;\nuse a::A;"),
        ("p/a.rs", "pub struct A;\nuse super::b::B;"),
        ("p/b.rs", "use super::A;\npub struct B;"),
    ]);
    assert_eq!(group(&found), [("room::p".to_owned(), "a b".to_owned())]);
}

#[test]
fn non_circles_are_not_found() {
    let found = circles_in(&[
        ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod tests;\npub struct Root;\n"),
        // Its parent, itself, comments, text and tests.
        ("a.rs", "use crate::Root;\nuse super::b::B;\npub struct A;\n"),
        (
            "b.rs",
            "use crate::Root; // crate::a::A\n/* super::a::A */\npub struct B;\nconst T: &str = \"crate::a::A\";\n\
             const R: &str = r#\"crate::a::\"A\"#;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n\
             #[cfg(test)]\nuse crate::a::A;\n",
        ),
        ("tests.rs", "use crate::a::A; use crate::b::B;"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}
