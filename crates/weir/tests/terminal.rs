//! Output on a terminal of 80 columns, and without a terminal.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const MIXED: &str = r#"
title = "A scenario of a call beside TCP whose title is so long that no terminal of eighty columns has room for it"
duration = "3 s"
compare = ["gcc-remb", "nada+fec"]
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
[rtp.a-video-with-a-long-name]
controller = "$controller"
start_rate = "500 kbps"
[tcp.a-transfer-with-a-long-name]
algorithm = "newreno"
start = "1 s"
"#;

fn weir(folder: &Path, columns: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(args).env("COLUMNS", columns).env("NO_COLOR", "1").output().expect("starts")
}

fn shown(folder: &Path, columns: &str, args: &[&str]) -> String {
    let o = weir(folder, columns, args);
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8(o.stdout).expect("UTF-8")
}

fn widest(text: &str) -> usize {
    text.lines().map(|l| l.chars().count()).max().unwrap_or(0)
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("mixed.toml"), MIXED).expect("written");
    folder
}

#[test]
fn no_table_is_wider_than_the_terminal() {
    let folder = folder();
    let path = folder.path();
    assert!(weir(path, "80", &["media", "clip", "sports", "--size", "64x48", "--frames", "3", "-q"]).status.success());
    let commands: [&[&str]; 17] = [
        &["compare", "--scenario", "mixed.toml", "--runs", "3", "-q"],
        &["run", "mixed.toml", "--controller", "nada+fec"],
        &["run", "calls/three-calls", "-q"],
        &["judge", "paper", "rmcat-comparison", "--table", "2", "--runs", "1", "-q"],
        &["judge", "pathologies", "--cases", "copies,layers", "--controllers", "sluice", "-q"],
        &["show", "controllers"],
        &["show", "controllers", "--all"],
        &["show", "controllers", "--params"],
        &["show", "scenarios"],
        &["show", "papers"],
        &["show", "codecs"],
        &["show", "disciplines"],
        &["show", "disciplines", "--params"],
        &["show", "schedulers"],
        &["media", "quality", "sports.y4m", "sports.y4m", "-q"],
        &["bench", "--scale", "0.001", "--ns3", "never", "-q"],
        &["show", "scenario", "--check", "mixed.toml"],
    ];
    for args in commands {
        for columns in ["80", "60"] {
            if columns == "60" && matches!(args[0], "bench" | "judge") {
                continue;
            }
            let text = shown(path, columns, args);
            let width = columns.parse().expect("a number");
            let wide = text.lines().find(|l| l.chars().count() > width);
            assert!(widest(&text) <= width, "{args:?} at {columns}: {wide:?}");
        }
    }
    #[cfg(target_os = "linux")]
    for args in [&["show", "ccids"][..], &["live", "call", "loopback", "--codec", "model", "--duration", "0.5", "-q"]] {
        assert!(widest(&shown(path, "80", args)) <= 80, "{args:?}");
    }
}

#[test]
fn a_wider_terminal_is_used() {
    let folder = folder();
    let path = folder.path();
    let args = ["compare", "--scenario", "mixed.toml", "--runs", "2", "-q"];
    let (narrow, wide) = (shown(path, "80", &args), shown(path, "200", &args));
    assert!(widest(&wide) > 100 && widest(&wide) <= 200);
    assert_eq!((wide.matches('┌').count(), narrow.matches('┌').count()), (1, 1), "{wide}\n{narrow}");
    // Columns left out are named, with the width that shows them.
    assert!(!wide.contains("Not shown:") && wide.contains("late"), "{wide}");
    let (_, below) = narrow.split_once("Not shown: ").expect("a line below the table");
    assert!(below.starts_with("sent kbit/s, "), "{below}");
    let (_, columns) = below.split_once("COLUMNS=").expect("a width");
    let columns = columns.split(',').next().expect("a number");
    let whole = shown(path, columns, &args);
    assert!(!whole.contains("Not shown:") && widest(&whole) <= columns.parse().expect("a number"), "{whole}");
    let list = ["show", "scenarios"];
    assert!(shown(path, "200", &list).lines().count() < shown(path, "80", &list).lines().count());
}

#[test]
fn a_legend_explains_the_numbers() {
    let folder = folder();
    let flat = |args: &[&str]| shown(folder.path(), "80", args).split_whitespace().collect::<Vec<_>>().join(" ");
    let several = flat(&["compare", "--scenario", "mixed.toml", "--runs", "2", "-q"]);
    for part in
        ["±: half-width of the 95 % confidence interval", "p95: its 95th percentile", "Above 100", "add up to 100"]
    {
        assert!(several.contains(part), "{part} in {several}");
    }
    let one = flat(&["run", "mixed.toml", "--controller", "gcc-remb", "-q"]);
    assert!(one.contains("mean one-way delay") && !one.contains('±'), "{one}");
}

#[test]
fn lists_are_json_too() {
    let folder = folder();
    let json = |what: &str| -> serde_json::Value {
        serde_json::from_str(&shown(folder.path(), "80", &["show", what, "--json"])).expect("JSON")
    };
    let names = |list: &serde_json::Value| -> Vec<String> {
        let all = list.as_array().expect("a list").iter();
        all.map(|e| e["name"].as_str().or(e["library"].as_str()).expect("a name").to_owned()).collect()
    };
    let controllers = json("controllers");
    assert!(names(&controllers["controllers"]).contains(&"nada".to_owned()));
    let nada = controllers["controllers"].as_array().expect("a list").iter().find(|c| c["name"] == "nada");
    let params = nada.expect("there")["params"].as_array().expect("parameters").clone();
    assert!(params.iter().any(|p| p["name"] == "xref" && p["max"].as_f64() > p["min"].as_f64()));
    assert!(names(&json("scenarios")["scenarios"]).contains(&"rmcat-comparison/responsiveness".to_owned()));
    assert!(names(&json("papers")["papers"]).contains(&"rmcat-comparison".to_owned()));
    assert!(names(&json("codecs")["codecs"]).contains(&"openh264".to_owned()));
    assert!(names(&json("disciplines")["disciplines"]).contains(&"codel".to_owned()));
    assert!(names(&json("schedulers")["schedulers"]).contains(&"earliest".to_owned()));
}

/// A program whose messages are read as they come.
fn messages(mut command: Command) -> (Child, impl Iterator<Item = String>) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    (child, lines)
}

// Both in one test, so that ten seconds pass once.
#[cfg(unix)]
#[test]
fn without_a_terminal_a_line_every_ten_seconds_says_how_far_it_is() {
    let folder = folder();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_weir"));
    bench.args(["bench", "--ns3", "never"]);
    let (mut bench, mut benched) = messages(bench);
    let mut compare = Command::new(env!("CARGO_BIN_EXE_weir"));
    let args = ["compare", "--scenario", "mixed.toml", "--runs", "100000", "--jobs", "1"];
    compare.current_dir(folder.path()).args(args);
    let (mut compare, mut compared) = messages(compare);

    let line = benched.find(|l| l.contains("10 s: ")).expect("a line after ten seconds");
    bench.kill().expect("it runs");
    bench.wait().expect("ends");
    assert!(line.contains(" %") && line.contains("; "), "{line}");

    let line = compared.next().expect("a line");
    let kill = Command::new("kill").args(["-INT", &compare.id().to_string()]).status().expect("kill");
    assert!(kill.success());
    compared.for_each(drop);
    compare.wait().expect("ends");
    for part in ["10 s: ", " %, about ", " left; mixed ", ", seed "] {
        assert!(line.contains(part), "{part} in {line}");
    }
}
