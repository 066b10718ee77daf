//! The invariants at the top of ARCHITECTURE.md that source text can prove.

mod circles;
mod licences;
mod registry;
mod source;
mod style;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms by floor; a room may depend only on rooms of lower floors.
const FLOORS: [(&str, u32); 33] = [
    ("units", 0),
    ("files", 0),
    ("admission", 1),
    ("cc", 1),
    ("wire", 1),
    ("fec", 1),
    ("path", 1),
    ("media", 2),
    ("sim", 2),
    ("dccp", 2),
    ("onnx", 2),
    ("session", 3),
    ("timeline", 3),
    ("codecs", 3),
    ("live", 4),
    ("coverage", 4),
    ("scenario", 4),
    ("adapters", 4),
    ("estimator", 4),
    ("lab", 5),
    ("report", 6),
    ("fit", 6),
    ("judge", 7),
    ("peer", 7),
    ("testbed", 7),
    ("bench", 7),
    ("cli", 8),
    ("python", 8),
    ("capi", 8),
    ("gst", 8),
    ("web", 8),
    ("weir-rtc", 8),
    ("weir", 9),
];
/// The floor of the faces: programs and bindings.
const FACES: u32 = 8;
/// Rooms without access to a clock, a socket, a thread or the operating system's randomness.
const SANS_IO: [&str; 11] =
    ["units", "admission", "cc", "wire", "fec", "path", "media", "sim", "dccp", "session", "timeline"];
/// Lines before the tests of a file. A few more than the house's 400 are accepted; beyond that a file has to be split.
const MAX_LINES: usize = 480;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

fn sources(room: &str) -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, out: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(dir).expect("readable").flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push((path.clone(), fs::read_to_string(&path).expect("UTF-8")));
            }
        }
    }
    let mut out = Vec::new();
    walk(&root().join("crates").join(room).join("src"), &mut out);
    assert!(!out.is_empty(), "{room} has sources");
    out
}

/// The code of a file before its tests, without comment lines.
fn code(text: &str) -> Vec<&str> {
    text.lines().take_while(|l| !l.starts_with("#[cfg(test)]")).filter(|l| !l.trim_start().starts_with("//")).collect()
}

/// Workspace packages that a manifest names under `kind` ("dependencies", "dev-dependencies", "build-dependencies"), for
/// every target, whichever way the dependency is written.
fn rooms_of(manifest: &toml::Table, kind: &str) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(|t| t.as_table()).into_iter().flat_map(|t| t.values());
    let tables = [manifest.get(kind)].into_iter().chain(targets.map(|t| t.get(kind)));
    let mut rooms = BTreeSet::new();
    for (name, value) in tables.flatten().filter_map(|t| t.as_table()).flatten() {
        // A renamed dependency states its package.
        let package = value.get("package").and_then(|p| p.as_str()).unwrap_or(name);
        rooms.extend(package.strip_prefix("weir-").map(str::to_owned));
    }
    rooms
}

/// The manifest of a room; a dependency that is taken from the workspace is named there as in the room.
fn manifest(room: &str) -> toml::Table {
    let path = root().join("crates").join(room).join("Cargo.toml");
    fs::read_to_string(path).expect("manifest").parse().expect("TOML")
}

fn floor(room: &str) -> u32 {
    // `weir-rtc` is a package whose folder has its whole name.
    let is = |name: &str| name == room || name.strip_prefix("weir-") == Some(room);
    FLOORS.iter().find(|(name, _)| is(name)).unwrap_or_else(|| panic!("{room} is not among the floors")).1
}

#[test]
fn rooms_import_only_lower_floors() {
    let mut seen = 0;
    for (room, at) in FLOORS {
        let manifest = manifest(room);
        for kind in ["dependencies", "build-dependencies"] {
            for other in rooms_of(&manifest, kind) {
                let below = floor(&other);
                assert!(below < at, "{room} (floor {at}) imports {other} (floor {below})");
                seen += 1;
            }
        }
        for other in rooms_of(&manifest, "dev-dependencies") {
            // Tests may look from the lab, and at an equal, but no room is tested by a face.
            assert!(floor(&other) < FACES, "the tests of {room} import {other}, a face");
        }
    }
    assert!(seen >= 100, "only {seen} imports found: the search has gone blind");
}

#[test]
fn an_import_is_found_whichever_way_it_is_written() {
    let manifest: toml::Table = r#"
        [dependencies]
        weir-a.workspace = true
        weir-b = { workspace = true, optional = true }
        c = { package = "weir-c", path = "../c" }
        other = "1"
        [dependencies.weir-d]
        workspace = true
        [target.'cfg(target_os = "linux")'.dependencies]
        weir-e = { workspace = true, features = ["x"] }
        [dev-dependencies]
        weir-f = { workspace = true }
        [target.'cfg(unix)'.build-dependencies]
        weir-g.workspace = true
    "#
    .parse()
    .expect("TOML");
    let of = |kind| rooms_of(&manifest, kind).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(
        (of("dependencies"), of("dev-dependencies"), of("build-dependencies")),
        ("a b c d e".into(), "f".into(), "g".into())
    );
}

/// A room without a floor would not be checked.
#[test]
fn every_room_has_a_floor() {
    let rooms = fs::read_dir(root().join("crates")).expect("readable").flatten();
    let mut rooms: Vec<String> = rooms
        .filter(|e| e.path().join("Cargo.toml").exists())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    let mut floors: Vec<&str> = FLOORS.iter().map(|(room, _)| *room).collect();
    rooms.sort_unstable();
    floors.sort_unstable();
    assert_eq!(rooms, floors);
}

#[test]
fn unsafe_code_is_in_kernels_and_foreign_calls_alone() {
    for (room, _) in FLOORS {
        for (path, text) in sources(room) {
            let unsafe_line = code(&text).iter().any(|l| l.contains("unsafe ") && !l.contains("unsafe_code"));
            // Kernels for the current processor, calls of foreign libraries, and pointers of C programs.
            let within = |part: &str| path.with_extension("").components().any(|c| c.as_os_str() == part);
            let allowed =
                room == "codecs" || (room == "fec" && within("kernel")) || (room == "capi" && within("border"));
            assert!(!unsafe_line || allowed, "{} holds unsafe code", path.display());
        }
    }
}

#[test]
fn rooms_below_the_lab_touch_no_clock_socket_thread_or_system_randomness() {
    let banned = [
        "Instant::now",
        "SystemTime",
        "std::net",
        "std::thread",
        "thread::spawn",
        "std::fs",
        "std::env",
        "rand::rng(",
        "thread_rng",
        "OsRng",
        "getrandom",
        "HashMap",
        "HashSet",
    ];
    for room in SANS_IO {
        for (path, text) in sources(room) {
            for line in code(&text) {
                let hit = banned.iter().find(|b| line.contains(*b));
                assert!(hit.is_none(), "{} uses {}: {line}", path.display(), hit.expect("found"));
            }
        }
    }
}

#[test]
fn the_coverage_map_reads_clocks_and_sockets_in_its_service_and_client_alone() {
    let banned =
        ["Instant", "SystemTime", "std::net", "std::thread", "std::fs", "tokio", "getrandom", "HashMap", "HashSet"];
    let mut seen = 0;
    for (path, text) in sources("coverage") {
        let inside =
            path.strip_prefix(root().join("crates/coverage/src")).expect("below").to_string_lossy().into_owned();
        if ["server", "client", "load"].iter().any(|part| inside.starts_with(part)) {
            continue;
        }
        seen += 1;
        for line in code(&text) {
            let hit = banned.iter().find(|b| line.contains(*b));
            assert!(hit.is_none(), "{inside} uses {}: {line}", hit.expect("found"));
        }
    }
    assert!(seen >= 15, "{seen}");
}

#[test]
fn only_live_the_lab_and_the_command_line_use_threads() {
    for room in FLOORS.iter().filter(|(_, floor)| *floor < 4).map(|(room, _)| room) {
        for (path, text) in sources(room) {
            assert!(!code(&text).iter().any(|l| l.contains("thread::")), "{} uses threads", path.display());
        }
    }
}

#[test]
fn files_stay_short_enough_to_read() {
    for (room, _) in FLOORS {
        for (path, text) in sources(room) {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if name.contains("test") {
                continue;
            }
            let lines = text.lines().take_while(|l| !l.starts_with("#[cfg(test)]")).count();
            assert!(lines <= MAX_LINES, "{} has {lines} lines before its tests", path.display());
        }
    }
}

/// The quoted paths of a text that go upwards.
fn upward_paths(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').filter(|q| q.starts_with("../") || q.starts_with("/../"))
}

/// Whether `path`, resolved from `dir` as text only, stays in `root`.
fn stays_inside(root: &Path, dir: &Path, path: &str) -> bool {
    let mut at = dir.to_path_buf();
    path.split('/').filter(|part| !part.is_empty()).all(|part| {
        if part == ".." {
            at.pop();
        } else {
            at.push(part);
        }
        at.starts_with(root)
    })
}

#[test]
fn nothing_that_is_built_in_lies_outside_the_project() {
    let root = root();
    let mut seen = 0;
    for (room, _) in FLOORS {
        let manifest_dir = root.join("crates").join(room);
        for (path, text) in sources(room) {
            for quoted in upward_paths(&text) {
                // A leading slash follows CARGO_MANIFEST_DIR.
                let from = if quoted.starts_with('/') { &manifest_dir } else { path.parent().expect("in a folder") };
                assert!(stays_inside(&root, from, quoted), "{} reaches for {quoted}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 8, "only {seen} paths found: the search has gone blind");
    assert!(!stays_inside(&root, &root.join("crates/lab"), "/../../../elsewhere/data.csv"));
}

/// Every limit of docs/security.md has a test that exists, or says that there is none.
#[test]
fn limits_name_their_tests() {
    let text = fs::read_to_string(root().join("docs/security.md")).expect("docs/security.md");
    let (_, table) = text.split_once("## Limits").expect("the limits");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip_while(|l| !l.starts_with("|---"))
        .skip(1)
        .take_while(|l| l.starts_with('|'))
        .map(|l| l.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 12, "{rows:?}");
    for row in rows {
        let (what, tests) = (row[0], row[row.len() - 1]);
        let mut named = 0;
        for name in tests.split('`').skip(1).step_by(2) {
            let path = if name.ends_with(".rs") { format!("crates/{name}") } else { format!("fuzz/targets/{name}.rs") };
            assert!(root().join(&path).exists(), "{what}: there is no {path}");
            named += 1;
        }
        assert!(named > 0 || tests == "the same" || tests.starts_with("none: "), "{what}: {tests}");
    }
}
