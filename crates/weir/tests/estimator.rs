//! `exec:COMMAND` and `weir estimator`, as a user has them.

use std::path::Path;
use std::process::{Command, Output};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn weir(args: &[&str]) -> Output {
    Command::new(WEIR).args(args).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The flows of a run, without the name of the controller.
fn flows(controller: &str) -> String {
    let o = weir(&["run", "quick", "--controller", controller, "--json", "-q"]);
    assert!(o.status.success(), "{controller}: {}", text(&o.stderr));
    let mut json: serde_json::Value = serde_json::from_slice(&o.stdout).expect("JSON");
    // Internal values stay in the other process.
    for flow in json["flows"].as_array_mut().expect("flows") {
        flow.as_object_mut().expect("an object").remove("internals");
    }
    json["flows"].to_string().replace(controller, "it")
}

#[test]
fn a_controller_behind_the_protocol_is_the_controller_itself() {
    for name in ["gcc", "nada", "sluice"] {
        assert_eq!(flows(&format!("exec:{WEIR} estimator serve {name}")), flows(name), "{name}");
    }
}

#[test]
fn the_example_keeps_the_protocol_and_runs() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/estimators/aimd.py");
    let command = format!("python3 {}", script.display());
    let o = weir(&["estimator", "check", &command]);
    assert!(
        o.status.success() && text(&o.stdout).contains("No faults found"),
        "{}{}",
        text(&o.stdout),
        text(&o.stderr)
    );
    let name = format!("exec:{command}");
    assert_eq!(flows(&name), flows(&name));
}

#[test]
fn a_failure_is_named_and_the_run_is_whole() {
    let script =
        r#"read l; echo "{\"turn\":0,\"media_bps\":300000,\"about\":{\"version\":1,\"name\":\"short\"}}"; exit 7"#;
    let name = format!("exec:sh -c '{script}'");
    let o = weir(&["run", "quick", "--controller", &name, "--json", "-q"]);
    assert_eq!(o.status.code(), Some(1), "{}", text(&o.stderr));
    assert!(text(&o.stderr).contains("exit status: 7") && text(&o.stderr).contains("its floor"), "{}", text(&o.stderr));
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).expect("the whole result");
    assert_eq!(json["duration_s"], 30.0);
}

#[test]
fn a_scenario_cannot_start_a_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("theirs.toml");
    let made = folder.path().join("made");
    let text_of = format!(
        "title = \"theirs\"\nduration = \"1 s\"\n[links.l]\nrate = \"1 Mbps\"\ndelay = \"20 ms\"\n[rtp.video]\ncontroller = \"exec:touch {}\"\n",
        made.display()
    );
    std::fs::write(&file, text_of).expect("writes");
    let o = weir(&["run", file.to_str().expect("UTF-8"), "-q"]);
    assert_eq!(o.status.code(), Some(2), "{}", text(&o.stderr));
    assert!(text(&o.stderr).contains("a program that you have not named") && !made.exists(), "{}", text(&o.stderr));
}
