//! `weir gate`, as a build has it.

use std::path::Path;
use std::process::{Command, Output};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A link that loses by chance, so that seeds differ.
const LOSSY: &str = r#"
title = "lossy"
duration = "4 s"
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
loss = 0.05
[rtp.video]
controller = "$controller"
start_rate = "300 kbps"
"#;

/// The same without losses.
fn clean() -> String {
    LOSSY.replace("loss = 0.05\n", "")
}

fn folder(gate: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, text) in [("lossy.toml", LOSSY), ("clean.toml", &clean()), ("weir-gate.toml", gate)] {
        std::fs::write(dir.path().join(name), text).expect("written");
    }
    dir
}

fn weir(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(WEIR);
    command.current_dir(folder).args(args).env("NO_COLOR", "1").env("COLUMNS", "80").output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const GATE: &str = r#"controllers = ["fixed"]
[[suites]]
scenario = "clean.toml"
budgets = ["loss <= 0.01"]
[[suites]]
scenario = "lossy.toml"
budgets = [
    "loss <= 0.001",
]
"#;

#[test]
fn one_budget_passes_and_one_fails_in_every_form() {
    let dir = folder(GATE);
    let path = dir.path();
    let args = ["gate", "-q", "--junit", "gate.xml", "--markdown", "out.md", "--sarif", "gate.sarif", "--annotations"];
    let o = weir(path, &args);
    let shown = text(&o.stdout);
    assert_eq!(o.status.code(), Some(1), "{shown}{}", text(&o.stderr));
    assert!(
        text(&o.stderr).contains("the gate fails: 1 of 2 budgets pass, 1 fail, 0 are undecided"),
        "{}",
        text(&o.stderr)
    );
    let table: Vec<&str> = shown.lines().take_while(|l| !l.starts_with("::")).collect();
    assert!(table.iter().all(|l| l.chars().count() <= 80), "{shown}");
    let row = |verdict: &str| shown.lines().find(|l| l.starts_with(&format!("│ {verdict} "))).unwrap_or_default();
    assert!(row("passes").contains("clean.toml") && row("fails").contains("lossy.toml"), "{shown}");
    assert!(shown.contains("weir-gate.toml:8: lossy.toml, fixed: loss <= 0.001 fails: median 0.0"), "{shown}");
    let annotation = shown.lines().find(|l| l.starts_with("::")).unwrap_or_default();
    assert!(annotation.starts_with("::error file=weir-gate.toml,line=8,title=weir gate fails::lossy.toml"), "{shown}");
    let junit = std::fs::read_to_string(path.join("gate.xml")).expect("written");
    assert!(
        junit.contains("<testsuites name=\"weir-gate.toml\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\">")
    );
    let sarif = std::fs::read(path.join("gate.sarif")).expect("written");
    let sarif: serde_json::Value = serde_json::from_slice(&sarif).expect("JSON");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!((results.len(), &place["region"]["startLine"]), (1, &8.into()));
    assert_eq!(place["artifactLocation"]["uri"], "weir-gate.toml");
    let markdown = std::fs::read_to_string(path.join("out.md")).expect("written");
    assert!(markdown.contains("](<out-plot-1.svg>)") && path.join("out-plot-1.svg").is_file(), "{markdown}");
}

#[test]
fn the_same_file_has_the_same_bytes_at_any_number_of_jobs() {
    let dir = folder(GATE);
    let json = |jobs: &str| weir(dir.path(), &["gate", "--json", "-q", "--jobs", jobs]).stdout;
    let once = json("1");
    let value: serde_json::Value = serde_json::from_slice(&once).expect("JSON");
    assert_eq!((&value["schema"], &value["verdict"]), (&"weir:gate:1".into(), &"fails".into()));
    assert_eq!(once, json("1"));
    assert_eq!(once, json("2"));
}

#[test]
fn the_command_line_has_another_seed_than_the_file() {
    let dir = folder(&format!("seed = 7\n{GATE}"));
    let json = |words: &[&str]| weir(dir.path(), &[&["gate", "--json", "-q"], words].concat()).stdout;
    let own = json(&[]);
    assert_eq!(own, json(&["--seed", "7"]));
    assert_ne!(own, json(&["--seed", "8"]));
}

#[test]
fn undecided_is_a_warning_and_a_failure_where_the_gate_is_strict() {
    let gate = "controllers = [\"fixed\"]\n[[suites]]\nscenario = \"clean.toml\"\nbudgets = [\"loss <= 1\", \
                \"utilisation no worse than baseline by 10 %\"]\n";
    let dir = folder(gate);
    let o = weir(dir.path(), &["gate", "-q"]);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o.stderr));
    assert!(text(&o.stderr).contains("warning: the gate is undecided: 1 of 2"), "{}", text(&o.stderr));
    assert_eq!(weir(dir.path(), &["gate", "-q", "--strict"]).status.code(), Some(1));
    // A baseline decides it.
    let saved = weir(dir.path(), &["gate", "-q", "--save-baseline", "base.json"]);
    assert_eq!(saved.status.code(), Some(0), "{}", text(&saved.stderr));
    let o = weir(dir.path(), &["gate", "-q", "--strict", "--baseline", "base.json"]);
    assert_eq!(o.status.code(), Some(0), "{}{}", text(&o.stdout), text(&o.stderr));
}

#[cfg(unix)]
#[test]
fn a_program_starts_only_where_it_may_and_its_death_fails_its_suite_alone() {
    let dies = r#"exec:sh -c 'read l; echo \"{\\\"turn\\\":0,\\\"media_bps\\\":300000,\\\"about\\\":{\\\"version\\\":1,\\\"name\\\":\\\"short\\\"}}\"; exit 7'"#;
    let gate = format!(
        "controllers = [\"{dies}\", \"exec:{WEIR} estimator serve fixed\"]\n[[suites]]\nscenario = \"clean.toml\"\n\
         budgets = [\"loss <= 0.01\"]\n"
    );
    let dir = folder(&gate);
    let o = weir(dir.path(), &["gate", "-q"]);
    let said = text(&o.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!((o.status.code(), o.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.contains("weir-gate.toml:1:16") || said.contains("weir-gate.toml"), "{said}");
    assert!(said.contains("starts a program") && said.contains("--allow-exec"), "{said}");
    let o = weir(dir.path(), &["gate", "-q", "--json", "--allow-exec"]);
    assert_eq!(o.status.code(), Some(1), "{}", text(&o.stderr));
    let value: serde_json::Value = serde_json::from_slice(&o.stdout).expect("JSON");
    let checks = value["checks"].as_array().expect("checks");
    assert_eq!((&checks[0]["verdict"], &checks[1]["verdict"]), (&"fails".into(), &"passes".into()), "{value}");
    let broken = checks[0]["broken"].as_str().expect("a reason");
    assert!(broken.starts_with("seed 1: ") && broken.contains("exit status: 7"), "{broken}");
    assert!(checks[1].get("broken").is_none());
}

#[test]
fn wrong_input_has_exit_code_2_its_place_and_a_way_out() {
    for (gate, args, parts) in [
        ("", &["gate", "nothere.toml"][..], &["nothere.toml", "no such file", "docs/gate.md"][..]),
        (
            "controllers = [\"ncc\"]\n[[suites]]\nrows = [\"e\"]\n",
            &["gate"],
            &["weir-gate.toml:1:16", "`ncc`", "`gcc`"],
        ),
        (GATE, &["gate", "--baseline", "weir-gate.toml"], &["weir-gate.toml", "no baseline", "--save-baseline"]),
        (GATE, &["gate", "--junit", "nowhere/gate.xml"], &["--junit", "its folder is not there", "name a file"]),
        (GATE, &["gate", "--sarif", "nowhere/gate.sarif"], &["--sarif", "its folder is not there", "name a file"]),
        (GATE, &["gate", "--annotations", "--json"], &["--annotations", "--json", "cannot be used with"]),
        (GATE, &["gate", "--jobs", "0"], &["--jobs", "expected a whole number above zero"]),
    ] {
        let dir = folder(gate);
        let o = weir(dir.path(), args);
        let said = text(&o.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((o.status.code(), o.stdout.len()), (Some(2), 0), "{args:?}: {said}");
        let lacking: Vec<_> = parts.iter().filter(|p| !said.contains(**p)).collect();
        assert!(lacking.is_empty(), "{args:?}: lacks {lacking:?}: {said}");
    }
}

/// The example and the file in the documentation are read and planned; the example passes.
#[cfg(unix)]
#[test]
fn the_example_and_the_documentation_have_sound_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let o = weir(&root, &["gate", "examples/weir-gate.toml", "--allow-exec", "-q"]);
    assert_eq!(o.status.code(), Some(0), "{}{}", text(&o.stdout), text(&o.stderr));
    let page = std::fs::read_to_string(root.join("docs/gate.md")).expect("docs/gate.md");
    let file = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a file");
    let dir = folder(&file.replace("time = \"60 s\"", "time = \"1 s\""));
    std::fs::copy(dir.path().join("lossy.toml"), dir.path().join("my-link.toml")).expect("copied");
    let file = file.replace("exec:./build/my-estimator", &format!("exec:{WEIR} estimator serve gcc"));
    std::fs::write(dir.path().join("weir-gate.toml"), file.replace("time = \"60 s\"", "time = \"1 s\"")).expect("ok");
    let o = weir(dir.path(), &["gate", "--allow-exec", "-q", "--json"]);
    assert!(o.status.code().is_some_and(|c| c < 2), "{}", text(&o.stderr));
    let value: serde_json::Value = serde_json::from_slice(&o.stdout).expect("JSON");
    assert!(value["checks"].as_array().is_some_and(|c| c.len() > 10), "{value}");
}

/// A recorded call, fitted and saved by `weir whatif --save`, is a suite.
#[test]
fn a_recorded_call_is_a_suite() {
    let dir = folder(
        "controllers = [\"gcc\"]\n[[suites]]\nname = \"a call of ours\"\nscenario = \"call/scenario.toml\"\n\
         budgets = [\"video: one_way_delay_p95_ms <= 200\", \"utilisation >= 0.1\"]\n",
    );
    let path = dir.path();
    let call = clean().replace("4 s", "12 s");
    std::fs::write(path.join("clean.toml"), call).expect("written");
    for at in ["sender", "receiver"] {
        let file = format!("{at}.pcapng");
        let o = weir(path, &["run", "clean.toml", "--controller", "gcc", "-q", "--pcap-at", at, "--pcap", &file]);
        assert!(o.status.success(), "{}", text(&o.stderr));
    }
    let args = ["whatif", "sender.pcapng", "receiver.pcapng", "--controllers", "gcc", "--draws", "1", "--save", "call"];
    let o = weir(path, &args);
    assert!(o.status.success(), "{}", text(&o.stderr));
    let o = weir(path, &["gate", "-q"]);
    assert_eq!(o.status.code(), Some(0), "{}{}", text(&o.stdout), text(&o.stderr));
    assert!(text(&o.stdout).contains("2 of 2 budgets pass"), "{}", text(&o.stdout));
}
