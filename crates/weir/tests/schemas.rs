//! Output of `--json` follows the schemas in `crates/cli/schemas`, which have no field that is not printed anywhere.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// Commands whose output has a schema.
const COMMANDS: [&str; 26] = [
    "compare",
    "run",
    "reproduce",
    "quality",
    "list",
    "twin",
    "bench",
    "emulate",
    "testbed",
    "call",
    "dccp",
    "open",
    "fit",
    "whatif",
    "fits",
    "estimator",
    "gate",
    "causes",
    "cues",
    "pathologies",
    "overlay",
    "layers",
    "scoreboard",
    "explain",
    "tune",
    "calls",
];

const MIXED: &str = r#"
title = "A call that is marked, beside TCP"
duration = "10 s"
compare = ["fixed", "nada"]
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
loss = 0.01
queue = { discipline = "codel", ecn = true }
[rtp.video]
controller = "$controller"
start_rate = "1200 kbps"
ecn = true
[tcp.transfer]
algorithm = "newreno"
start = "2 s"
[[windows]]
name = "0-5s"
from = "0 s"
to = "5 s"
"#;

/// Budgets of which one compares, and one is not known to fail or pass.
const GATE: &str = r#"
controllers = ["nada"]
runs = 7
[[suites]]
scenario = "mixed.toml"
budgets = ["loss <= 0.5", "video: loss no worse than fixed by 900 %", "loss no worse than baseline by 1 %"]
"#;

fn printed(folder: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let o = command.current_dir(folder).args(args).arg("--json").output().expect("starts");
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    serde_json::from_slice(&o.stdout).expect("JSON")
}

fn schema(of: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../cli/schemas/{of}.json"));
    serde_json::from_slice(&std::fs::read(path).expect("a schema")).expect("JSON")
}

fn follows(of: &str, value: &Value) {
    let schema = schema(of);
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> =
        validator.iter_errors(value).take(5).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{of}: {errors:#?}");
    assert_eq!(value["schema"], schema["$id"], "{of} says which schema it follows");
}

#[test]
fn what_is_printed_follows_its_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("mixed.toml"), MIXED).expect("written");
    std::fs::write(path.join("weir-gate.toml"), GATE).expect("written");
    std::fs::write(path.join("targets.log"), "1747225741356, 100000\n1747225741456, 200000\n").expect("written");
    let clip = ["media", "clip", "sports", "--size", "64x48", "--frames", "3", "-q"];
    let made = Command::new(env!("CARGO_BIN_EXE_weir")).current_dir(path).args(clip).status().expect("starts");
    assert!(made.success());
    for (at, file) in [("sender", "left.pcapng"), ("receiver", "right.pcapng")] {
        let args = ["run", "mixed.toml", "--controller", "nada", "-q", "--pcap-at", at, "--pcap", file];
        let made = Command::new(env!("CARGO_BIN_EXE_weir")).current_dir(path).args(args).output().expect("starts");
        assert!(made.status.success());
        std::fs::create_dir_all(path.join("recorded")).expect("a folder");
        std::fs::copy(path.join(file), path.join("recorded").join(file)).expect("copied");
    }
    for (of, args) in [
        ("run", &["run", "mixed.toml", "-q"][..]),
        ("run", &["run", "calls/three-calls", "-q"]),
        ("run", &["run", "queue-disciplines", "-q"]),
        ("compare", &["compare", "--scenario", "mixed.toml", "--runs", "2", "-q"]),
        ("reproduce", &["judge", "paper", "rmcat-comparison", "--table", "2", "--runs", "1", "-q"]),
        ("quality", &["media", "quality", "sports.y4m", "sports.y4m", "-q"]),
        ("list", &["show", "controllers"]),
        ("list", &["show", "scenarios"]),
        ("list", &["show", "papers"]),
        ("list", &["show", "codecs"]),
        ("list", &["show", "disciplines"]),
        ("list", &["show", "schedulers"]),
        ("twin", &["judge", "twins", "nada/single", "nada/steps-100ms", "-q"]),
        ("open", &["open", "targets.log"]),
        ("fit", &["fit", "left.pcapng", "right.pcapng", "--controller", "nada", "-q"]),
        ("whatif", &["whatif", "left.pcapng", "right.pcapng", "--controllers", "gcc,nada", "--draws", "2", "-q"]),
        (
            "whatif",
            &[
                "whatif",
                "left.pcapng",
                "right.pcapng",
                "--controllers",
                "nada",
                "--controller",
                "nada",
                "--set",
                "fps=15",
                "--draws",
                "2",
                "-q",
            ],
        ),
        (
            "calls",
            &["search", "calls", "recorded", "--controllers", "nada", "--controller", "nada", "--draws", "2", "-q"],
        ),
        ("fits", &["judge", "fits", "--links", "2", "--draws", "1", "--controllers", "nada,gcc", "-q"]),
        ("estimator", &["estimator", "check", concat!(env!("CARGO_BIN_EXE_weir"), " estimator serve gcc")]),
        ("gate", &["gate", "-q"]),
        ("causes", &["judge", "causes", "--calls", "1", "--controllers", "gcc", "--cause", "outage,healthy", "-q"]),
        ("cues", &["judge", "cues", "--generated", "1", "--recorded", "0", "--runs", "1", "-q"]),
        (
            "pathologies",
            &[
                "judge",
                "pathologies",
                "--cases",
                "at-the-ceiling,copies",
                "--controllers",
                "sluice",
                "-q",
                "--out",
                "pages",
            ],
        ),
        ("overlay", &["overlay", "--nodes", "20", "--trees", "3", "--duration", "4s", "--leave-at", "2s", "-q"]),
        ("layers", &["layers", "--receivers", "20", "--sites", "10", "--duration", "20s", "-q"]),
        ("scoreboard", &["judge", "rows", "--rows", "j1", "--controllers", "fixed", "--runs", "1", "-q"]),
        ("explain", &["run", "mixed.toml", "--explain", "-q"]),
        (
            "tune",
            &["search", "tune", "sluice", "--parameters", "growth", "--generated", "1", "--evaluations", "2", "-q"],
        ),
        ("bench", &["bench", "--scale", "0.001", "--ns3", "never", "-q"]),
    ] {
        follows(of, &printed(path, args));
    }
    let emulate = ["live", "emulate", "--rate", "1mbps", "--duration", "0.3s", "-q", "--json"];
    let o = Command::new(env!("CARGO_BIN_EXE_weir")).args(emulate).output().expect("starts");
    match serde_json::from_slice(&o.stdout) {
        Ok(value) => follows("emulate", &value),
        Err(_) => println!("skipped: {}", String::from_utf8_lossy(&o.stderr)),
    }
}

#[test]
fn calls_in_one_process_follow_their_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let call = |more: &[&str]| {
        let args = [&["live", "call", "loopback", "--duration", "1", "-q"], more].concat();
        let value = printed(folder.path(), &args);
        follows("call", &value);
        value
    };
    let small = ["--size", "160x120", "--quality"];
    let picture = call(&small);
    assert!(picture["video"]["received"]["psnr_y_db"].is_number(), "{picture}");
    let model = call(&["--codec", "model"]);
    assert!(model["video"].is_null() && model["sender"]["ended"]["why"] == "duration", "{model}");
    let dccp = call(&["--codec", "model", "--transport", "dccp", "--ccid", "3"]);
    assert_eq!(dccp["sender"]["dccp"]["ccid"], 3, "{dccp}");
    let streams = call(&["--streams", "audio,camera", "--size", "160x120"]);
    assert_eq!(streams["streams"].as_array().map(Vec::len), Some(2), "{streams}");
}

#[test]
fn calls_between_processes_follow_their_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    for streams in [&[][..], &["--streams", "audio,camera"]] {
        let args = |verb, signal| {
            let common = ["live", "call", verb, "--signal", signal, "--size", "160x120", "--json"];
            [&common[..], streams].concat()
        };
        let listener = Listening::start(folder.path(), &args("listen", "tcp:127.0.0.1:0"), "waiting at ");
        let signal = format!("tcp:{}", listener.address);
        let args = [&args("connect", &signal)[..], &["-q", "--duration", "1"]].concat();
        let caller = weir(folder.path(), &args).output().expect("starts");
        for end in [caller, listener.end()] {
            assert!(end.status.success(), "{}", String::from_utf8_lossy(&end.stderr));
            let value: Value = serde_json::from_slice(&end.stdout).expect("JSON");
            follows("call", &value);
            let received = &value["end"]["received"]["rtcp_packets"];
            assert!(received.as_u64().is_some_and(|n| n > 0), "{value}");
        }
    }
}

#[test]
fn transfers_by_dccp_follow_their_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    follows("dccp", &printed(folder.path(), &["show", "ccids"]));
    let serve = ["live", "dccp", "serve", "--listen", "127.0.0.1:0", "--once", "--json"];
    let server = Listening::start(folder.path(), &serve, "receiving at ");
    let sent = printed(folder.path(), &["live", "dccp", "send", &server.address, "--size", "100kB", "-q"]);
    let received: Value = serde_json::from_slice(&server.end().stdout).expect("JSON");
    follows("dccp", &sent);
    follows("dccp", &received);
    assert_eq!(sent["bytes"], received["connections"][0]["bytes"], "{sent} {received}");
}

fn weir(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A process that listens at a port that the system chose.
struct Listening {
    child: Child,
    address: String,
    errors: BufReader<ChildStderr>,
}

impl Listening {
    /// Waits for the line of standard error that gives the address, after `prefix`.
    fn start(folder: &Path, args: &[&str], prefix: &str) -> Self {
        let mut child = weir(folder, args).spawn().expect("starts");
        let mut errors = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        errors.read_line(&mut line).expect("a line");
        let address = line.strip_prefix(prefix).and_then(|l| l.split([',', '\n']).next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address, errors }
    }

    fn end(mut self) -> Output {
        let mut stderr = Vec::new();
        self.errors.read_to_end(&mut stderr).expect("read");
        Output { stderr, ..self.child.wait_with_output().expect("ends") }
    }
}

#[test]
fn a_schema_refuses_what_is_not_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("mixed.toml"), MIXED).expect("written");
    let run = printed(path, &["run", "mixed.toml", "-q"]);
    let schema = schema("run");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    assert!(validator.is_valid(&run));
    let mut more = run.clone();
    more["flows"][0]["goodput"] = 1.0.into();
    assert!(!validator.is_valid(&more), "a field that no schema has");
    let mut less = run.clone();
    less["flows"][0].as_object_mut().expect("a flow").remove("loss");
    assert!(!validator.is_valid(&less), "a field that is missing");
    let mut other = run;
    other["schema"] = "weir:run:99".into();
    assert!(!validator.is_valid(&other), "another version");
}

#[test]
fn marks_are_counted_where_they_were_made_and_where_they_arrived() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("mixed.toml"), MIXED).expect("written");
    let run = printed(path, &["run", "mixed.toml", "--controller", "fixed", "-q"]);
    let packets = &run["flows"][0]["packets"];
    let (marked, arrived) = (packets["marked"].as_u64().unwrap_or(0), packets["ce_received"].as_u64().unwrap_or(0));
    assert!(marked > 0 && arrived > 0 && arrived <= marked, "{packets}");
    // Where nothing marks, there is no such field.
    std::fs::write(path.join("plain.toml"), MIXED.replace("ecn = true }", "ecn = false }")).expect("written");
    let packets = printed(path, &["run", "plain.toml", "-q"])["flows"][0]["packets"].clone();
    assert!(packets.get("marked").is_none() && packets.get("ce_received").is_none(), "{packets}");
}

fn printed_text(args: &[&str]) -> String {
    let o = Command::new(env!("CARGO_BIN_EXE_weir")).args(args).output().expect("starts");
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8(o.stdout).expect("UTF-8")
}

#[test]
fn the_program_prints_the_files() {
    for of in COMMANDS {
        let printed = serde_json::from_str::<Value>(&printed_text(&["show", "schema", of])).expect("JSON");
        assert_eq!(printed, schema(of), "{of}");
    }
}
