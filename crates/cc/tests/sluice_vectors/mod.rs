//! Test vectors of sluice (`docs/sluice-spec.md`, section 16): each file is replayed against the controller.
//! `WEIR_BLESS=1 cargo test -p weir-cc --test all sluice_vectors` makes the files again, by the links of `cases.rs`.

mod cases;
mod file;
mod link;
mod player;
mod world;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Once;

/// Greatest relative difference of an internal value, which files have with seven digits. Rates and times are compared exactly.
const NEAR: f64 = 1e-6;
/// Most bytes of all files.
const MOST: usize = 2_000_000;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/sluice")
}

fn names() -> BTreeSet<String> {
    let entries = fs::read_dir(folder()).expect("a folder of vectors").flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

/// Makes the files where that is asked for.
fn bless() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if std::env::var_os("WEIR_BLESS").is_some() {
            make();
        }
    });
}

fn make() {
    for name in names() {
        fs::remove_file(folder().join(name)).expect("removable");
    }
    for case in cases::all() {
        fs::write(folder().join(format!("{}.json", case.name)), world::text(&case)).expect("writable");
    }
}

#[test]
fn every_file_replays() {
    bless();
    let cases: BTreeSet<String> = cases::all().iter().map(|c| format!("{}.json", c.name)).collect();
    assert_eq!(names(), cases, "one file a case");
    let mut bytes = 0;
    for name in names() {
        let text = fs::read_to_string(folder().join(&name)).expect("readable");
        bytes += text.len();
        let vector = file::Vector::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let decided = player::replay(&vector, NEAR).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(decided >= 20, "{name}: {decided} events with outputs");
    }
    assert!((100_000..MOST).contains(&bytes), "{bytes} bytes");
}

#[test]
fn a_difference_is_found() {
    bless();
    let text = fs::read_to_string(folder().join("core-steady-link.json")).expect("readable");
    let mut vector = file::Vector::parse(&text).expect("sound");
    vector.setup.params.push(("drain_time".into(), 123.0));
    let found = player::replay(&vector, NEAR).expect_err("another controller");
    assert!(found.contains("_bps"), "{found}");
}
