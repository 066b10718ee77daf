//! `weir live emulate` and `weir live testbed` as users run them. They need Linux, namespaces and /dev/net/tun; if those or a
//! program are missing, the tests say so and are skipped.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn weir(args: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_weir"));
    c.args(args).env("NO_COLOR", "1").stdin(Stdio::null());
    c
}

/// Whether a command failed for lack of privilege, device or program, which is printed.
fn lacks(out: &Output) -> bool {
    let text = String::from_utf8_lossy(&out.stderr);
    let wants = ["not permitted", "/dev/net/tun", "Debian package"];
    let lacks = !out.status.success() && wants.iter().any(|w| text.contains(w));
    if lacks {
        println!("skipped: {}", text.trim());
    }
    lacks
}

#[test]
fn programs_see_the_emulated_link() {
    let script = "cat /proc/net/dev; echo $WEIR_HERE $WEIR_PEER";
    let out =
        weir(&["live", "emulate", "--rate", "2mbps", "--delay", "10ms", "--loss", "0.5%", "--json", "--left", script])
            .output()
            .expect("weir runs");
    if lacks(&out) {
        return;
    }
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    assert!(said.contains("weir0:") && said.contains("10.0.0.1 10.1.0.1"), "{said}");
    assert!(said.contains("nsenter --net=/proc/"), "{said}");
    let report: Value = serde_json::from_slice(&out.stdout).expect("JSON alone");
    assert_eq!(report["links"][0]["name"], "link");
    assert_eq!(report["links"].as_array().map(Vec::len), Some(2));
}

#[test]
fn errors_on_the_command_line_are_reported() {
    let error_of = |args: &[&str]| {
        let out = weir(args).output().expect("weir runs");
        assert!(!out.status.success());
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    assert!(error_of(&["live", "emulate", "--rate", "2 furlongs"]).contains("expected a rate"));
    assert!(error_of(&["live", "emulate", "--loss", "200%"]).contains("--loss"));
    assert!(error_of(&["live", "emulate", "quick", "--link", "none"]).contains("`quick` has no link `none`"));
    assert!(error_of(&["live", "testbed", "no-such-scenario"]).contains("neither a built-in scenario nor a file"));
}

#[test]
fn the_program_s_failure_is_weir_s() {
    let out = weir(&["live", "emulate", "--quiet", "--", "sh", "-c", "exit 3"]).output().expect("weir runs");
    if lacks(&out) {
        return;
    }
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code() == Some(1) && said.contains("exit status: 3"), "{said}");
}

/// The network namespaces of a process's threads, other than this process's own.
fn namespaces(pid: u32) -> BTreeSet<PathBuf> {
    let own = fs::read_link("/proc/self/ns/net").ok();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|t| fs::read_link(t.path().join("ns/net")).ok()).filter(|n| Some(n) != own.as_ref()).collect()
}

/// Names of the processes in some network namespaces.
fn inhabitants(of: &BTreeSet<PathBuf>) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let inside = processes.filter(|p| fs::read_link(p.path().join("ns/net")).is_ok_and(|n| of.contains(&n)));
    inside.filter_map(|p| fs::read_to_string(p.path().join("comm")).ok()).map(|n| n.trim().to_owned()).collect()
}

/// Waits for a condition for up to 20 s.
fn wait_for(mut it: impl FnMut() -> bool) -> bool {
    (0..400).any(|_| {
        let there = it();
        if !there {
            std::thread::sleep(Duration::from_millis(50));
        }
        there
    })
}

const SCENARIO: &str = r#"
    title = "Small"
    duration = "60 s"
    [links.bottleneck]
    rate = "1 Mbps"
    delay = "20 ms"
    [rtp.video]
    controller = "fixed"
    start_rate = "400 kbps"
    [tcp.bulk]
    algorithm = "newreno"
"#;

/// A running testbed, with its namespaces; `None` if it is not possible.
fn under_way(folder: &std::path::Path) -> Option<(Child, BTreeSet<PathBuf>)> {
    let file = folder.join("small.toml");
    fs::write(&file, SCENARIO).expect("written");
    let mut command = weir(&["live", "testbed", file.to_str().expect("UTF-8"), "--quiet"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("weir starts");
    let mut all = BTreeSet::new();
    // A server and a client.
    let running = wait_for(|| {
        all = namespaces(child.id());
        let names = inhabitants(&all);
        child.try_wait().expect("a child").is_some() || names.iter().filter(|n| *n == "iperf3").count() >= 2
    });
    if child.try_wait().expect("a child").is_some() {
        let out = child.wait_with_output().expect("ended");
        assert!(lacks(&out), "{}", String::from_utf8_lossy(&out.stderr));
        return None;
    }
    assert!(running, "two iperf3 run: {:?}", inhabitants(&all));
    Some((child, all))
}

fn nothing_is_left(namespaces: &BTreeSet<PathBuf>) {
    assert!(wait_for(|| inhabitants(namespaces).is_empty()), "left: {:?}", inhabitants(namespaces));
    assert!(!fs::exists("/sys/class/net/weir0").expect("readable"));
    // A namespace with a name would be a file here.
    let named = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    assert!(!named.filter_map(|e| e.file_name().into_string().ok()).any(|n| n.contains("weir")));
}

#[test]
fn sigkill_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a folder");
    let Some((mut child, all)) = under_way(dir.path()) else { return };
    assert!(all.len() == 2, "{all:?}");
    child.kill().expect("SIGKILL");
    child.wait().expect("ended");
    nothing_is_left(&all);
}

#[test]
fn an_interrupt_cleans_up_and_says_so() {
    let dir = tempfile::tempdir().expect("a folder");
    let Some((child, all)) = under_way(dir.path()) else { return };
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(kill.success());
    let out = child.wait_with_output().expect("ended");
    assert_eq!(out.status.code(), Some(130), "{}", String::from_utf8_lossy(&out.stderr));
    nothing_is_left(&all);
}

#[test]
fn a_testbed_that_is_stopped_compares_equal_numbers_of_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("short.toml");
    let text = "title = \"Short\"\nduration = \"1 s\"\ncompare = [\"fixed\", \"nada\"]\n[links.bottleneck]\n\
                rate = \"1 Mbps\"\ndelay = \"5 ms\"\n[rtp.video]\ncontroller = \"$controller\"\nstart_rate = \"300 kbps\"\n";
    fs::write(&file, text).expect("written");
    let args = [
        "live",
        "testbed",
        file.to_str().expect("UTF-8"),
        "--controller",
        "fixed,nada",
        "--runs",
        "5",
        "--compare",
        "--json",
    ];
    let mut child = weir(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let (mut begun, mut said) = (0, String::new());
    while begun < 4
        && let Some(line) = lines.next()
    {
        begun += u32::from(line.ends_with("s in real time"));
        said += &line;
        said.push('\n');
    }
    if begun < 4 {
        let out = Output { stderr: said.into_bytes(), ..child.wait_with_output().expect("ended") };
        assert!(lacks(&out), "{}", String::from_utf8_lossy(&out.stderr));
        return;
    }
    // The fourth run is the second of the second set.
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    let reader = std::thread::spawn(move || lines.collect::<Vec<_>>());
    let out = child.wait_with_output().expect("ended");
    let rest = reader.join().expect("no panic");
    assert!(kill.success() && out.status.code() == Some(130), "{rest:?}");
    let json: Value = serde_json::from_slice(&out.stdout).expect("JSON alone");
    let counts = ["finished", "planned", "sets", "used"].map(|name| json["stopped"][name].as_u64());
    assert_eq!(counts, [Some(3), Some(10), Some(1), Some(2)], "{rest:?}");
    for list in ["runs", "accuracy", "differences", "simulated", "aggregates"] {
        assert_eq!(json[list].as_array().map(Vec::len), Some(2), "{list}");
    }
}
