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
    json["flows"].to_string().replace(&serde_json::json!(controller).to_string(), "\"it\"")
}

#[test]
fn a_controller_behind_the_protocol_is_the_controller_itself() {
    // gcc-remb has a half at the receiver.
    for name in ["gcc", "nada", "sluice", "gcc-remb"] {
        let known = flows(name);
        assert_eq!(flows(&format!("exec:{WEIR} estimator serve {name}")), known, "{name}");
        assert_eq!(flows(&format!("exec:{WEIR} estimator serve --binary {name}")), known, "{name}, binary");
    }
}

/// Datagrams of RTCP come as they are, before what Weir makes of them.
#[test]
fn raw_rtcp_says_what_the_feedback_after_it_says() {
    let script = r#"
import json, sys
rate, twcc = 300_000, {}
for line in sys.stdin:
    turn = json.loads(line)
    answer = {"turn": turn["turn"], "media_bps": rate}
    for e in turn["events"]:
        if e["type"] == "configure":
            events = ["rtcp", "feedback"]
            answer["about"] = {"version": 2, "name": "raw", "events": events, "answers": ["feedback"]}
        if e["type"] == "rtcp":
            rest = bytes.fromhex(e["bytes"])
            while rest:
                size = 4 * (int.from_bytes(rest[2:4], "big") + 1)
                if rest[1] == 205 and rest[0] & 31 == 15:
                    twcc[e["now_ns"]] = int.from_bytes(rest[12:14], "big")
                rest = rest[size:]
        if e["type"] == "feedback" and e["packets"]:
            # The first packet that is new may stand behind some that an earlier message had.
            assert 0 <= (e["packets"][0]["sequence"] - twcc[e["now_ns"]]) % 65536 < 1000, (e, twcc)
            rate += 1_000
    print(json.dumps(answer), flush=True)
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("raw.py");
    std::fs::write(&file, script).expect("written");
    let command = format!("python3 {}", file.display());
    let first = flows(&format!("exec:{command}"));
    assert!(first.contains("\"goodput_bps\""), "{first}");
    let o = weir(&["estimator", "check", &command]);
    assert!(o.status.success() && text(&o.stdout).contains("No faults found"), "{}", text(&o.stdout));
}

/// A process that repeats the target of a controller changes nothing; one that paces otherwise does.
#[test]
fn decisions_over_a_controller_are_the_only_change() {
    let script = r#"
import json, sys
rate, pacing = 0, float(sys.argv[1])
for line in sys.stdin:
    turn = json.loads(line)
    answer = {"turn": turn["turn"]}
    for e in turn["events"]:
        if e["type"] == "configure":
            rate = e["start_bps"]
            answer["about"] = {"version": 2, "name": "pacer", "over": "gcc", "events": ["target"]}
        if e["type"] == "target":
            rate = e["media_bps"]
    answer["media_bps"] = rate
    if pacing:
        answer["pacing_bps"] = rate * pacing
    print(json.dumps(answer), flush=True)
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pacer.py");
    std::fs::write(&file, script).expect("written");
    let over = |pacing: &str| flows(&format!("exec:python3 {} {pacing}", file.display()));
    assert_eq!(over("0"), flows("gcc"));
    assert_ne!(over("0.9"), flows("gcc"));
    let o = weir(&["estimator", "check", &format!("python3 {} 0.9", file.display())]);
    assert!(o.status.success() && text(&o.stdout).contains("No faults found"), "{}", text(&o.stdout));
}

/// The examples: one estimator in Python, and in C with both forms.
fn compiled(folder: &Path) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/estimators/aimd.c");
    let program = folder.join("aimd");
    let strict = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"];
    let o = Command::new("cc").args(strict).arg(&program).arg(source).output().expect("a C compiler");
    assert!(o.status.success(), "{}", text(&o.stderr));
    program.display().to_string()
}

#[test]
fn the_example_in_c_is_that_in_python_in_both_forms() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path());
    for (arguments, form) in [("", "in the binary form"), (" --json", "in JSON"), (" --all", "in the binary form")] {
        let o = weir(&["estimator", "check", &format!("{program}{arguments}")]);
        let said = text(&o.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            o.status.success() && said.contains(form) && said.contains("No faults found"),
            "{said}{}",
            text(&o.stderr)
        );
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/estimators/aimd.py");
    let python = flows(&format!("exec:python3 {}", script.display()));
    assert_eq!(flows(&format!("exec:{program}")), python);
    assert_eq!(flows(&format!("exec:{program} --json")), python);
}

/// Where the language is not installed there is nothing to test.
#[test]
fn the_examples_in_other_languages_are_that_in_python() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/estimators");
    let folder = tempfile::tempdir().expect("a folder");
    let script = |interpreter: &str, name: &str| format!("{interpreter} {}", examples.join(name).display());
    let runs = |words: &[&str]| Command::new(words[0]).args(&words[1..]).output().is_ok_and(|o| o.status.success());
    let mut commands = Vec::new();
    if runs(&["node", "--version"]) {
        commands.push(script("node", "aimd.js"));
    }
    if runs(&["go", "version"]) {
        let program = folder.path().join("aimd-go");
        let build = Command::new("go").args(["build", "-o"]).arg(&program).arg(examples.join("aimd.go")).output();
        let o = build.expect("starts");
        assert!(o.status.success(), "{}", text(&o.stderr));
        commands.push(program.display().to_string());
    }
    let python = flows(&format!("exec:{}", script("python3", "aimd.py")));
    for command in commands {
        let o = weir(&["estimator", "check", &command]);
        let said = text(&o.stdout);
        assert!(o.status.success() && said.contains("No faults found"), "{said}{}", text(&o.stderr));
        assert_eq!(flows(&format!("exec:{command}")), python, "{command}");
    }
}

#[test]
fn the_examples_keep_the_protocol_and_run() {
    for (name, end) in [("aimd.py", "at the sender, in JSON"), ("remb.py", "at the receiver, in JSON")] {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/estimators").join(name);
        let command = format!("python3 {}", script.display());
        let o = weir(&["estimator", "check", &command]);
        let said = text(&o.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(o.status.success(), "{said}{}", text(&o.stderr));
        assert!(said.contains(end) && said.contains("No faults found"), "{said}");
        let name = format!("exec:{command}");
        let once = flows(&name);
        assert_eq!(once, flows(&name));
        let flow: serde_json::Value = serde_json::from_str(&once).expect("JSON");
        let used = flow[0]["utilisation"].as_f64().expect("a number");
        assert!((0.5..=1.0).contains(&used), "{command}: {used}");
    }
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
