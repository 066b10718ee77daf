//! The tables of docs/fidelity.md are the program's.

use std::path::Path;
use std::process::Command;

const END: &str = "<!-- end -->";

fn weir(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(args).output().expect("starts")
}

/// The table after the mark `begin` in docs/fidelity.md is what the program prints.
fn documented(begin: &str, args: &[&str]) {
    let o = weir(args);
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    let table = String::from_utf8(o.stdout).expect("UTF-8");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fidelity.md");
    let text = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = text.split_once(begin).expect("where the table begins");
    let (there, after) = rest.split_once(END).expect("where it ends");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{table}{END}{after}")).expect("written");
        return;
    }
    assert!(there == table, "docs/fidelity.md: WEIR_BLESS=1 cargo test -p weir --test twins writes\n{table}");
}

#[test]
fn the_documentation_has_the_programs_tables() {
    documented("<!-- twins -->\n", &["judge", "twins", "--markdown", "-q"]);
    documented("<!-- scorecard -->\n", &["judge", "rfc", "--markdown", "-q"]);
}

#[test]
fn the_scorecard_fits_a_terminal_and_refuses_unknown_controllers() {
    let o = weir(&["judge", "rfc", "fixed", "-q"]);
    let text = String::from_utf8(o.stdout).expect("UTF-8");
    assert!(
        o.status.success() && text.contains("5.8-pause-resume") && text.lines().all(|l| l.chars().count() <= 80),
        "{text}"
    );
    let o = weir(&["judge", "rfc", "nothing", "-q"]);
    let error = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(!o.status.success() && error.contains("nothing"), "{error}");
}

#[test]
fn every_controller_of_the_recordings_is_near_on_most_of_its_links() {
    let o = weir(&["judge", "twins", "--json", "-q"]);
    let report: serde_json::Value = serde_json::from_slice(&o.stdout).expect("JSON");
    let scores = report["scores"].as_array().expect("scores");
    for controller in ["gcc", "nada", "scream", "scream2"] {
        let of: Vec<_> = scores.iter().filter(|s| s["controller"] == controller).collect();
        let near = of.iter().filter(|s| s["near"] == true).count();
        assert!(near * 2 > of.len(), "{controller}: {near} of {}", of.len());
    }
}

#[test]
fn twins_are_listed_and_unknown_ones_refused() {
    let list = String::from_utf8(weir(&["show", "twins"]).stdout).expect("UTF-8");
    assert!(list.contains("gcc/three") && list.lines().all(|l| l.chars().count() <= 80), "{list}");
    let o = weir(&["judge", "twins", "gcc/nothing"]);
    let error = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(!o.status.success() && error.contains("no twin has this name"), "{error}");
}
