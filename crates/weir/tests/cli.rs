//! The command as a person meets it.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SMALL: &str = r#"
title = "Small"
duration = "3 s"
compare = ["fixed", "nada"]

[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"

[rtp.video]
controller = "$controller"
start_rate = "500 kbps"
"#;

fn weir(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(args).env("NO_COLOR", "1").output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Standard output of a call that must succeed.
fn good(args: &[&str]) -> String {
    let o = weir(args);
    assert!(o.status.success(), "{args:?}: {}", text(&o.stderr));
    text(&o.stdout)
}

/// Standard error of a call that must end with this code.
fn bad(args: &[&str], code: i32) -> String {
    let o = weir(args);
    let stderr = text(&o.stderr);
    assert_eq!(o.status.code(), Some(code), "{args:?}: {stderr}");
    assert!(o.stdout.is_empty(), "{args:?} printed {}", text(&o.stdout));
    stderr
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&good(args)).expect("one JSON object")
}

fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("small.toml");
    std::fs::write(&path, SMALL).expect("written");
    let path = path.display().to_string();
    (folder, path)
}

fn names(folder: &Path) -> Vec<String> {
    let mut all: Vec<String> = std::fs::read_dir(folder)
        .expect("folder")
        .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    all.sort();
    all
}

#[test]
fn the_version_states_target_and_features() {
    let long = good(&["--version"]);
    let line = |name: &str| {
        let found = long.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("{name} in {long}")).to_owned()
    };
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(long.lines().next(), Some(&*format!("weir {version}")));
    assert!(line("target").starts_with(std::env::consts::ARCH), "{long}");
    assert!(!line("commit").is_empty(), "{long}");
    let features: Vec<_> = line("features").split(", ").map(str::to_owned).collect();
    for (name, is_there) in [("opus", cfg!(feature = "opus")), ("rtc-gcc", cfg!(feature = "rtc-gcc"))] {
        assert_eq!(features.iter().any(|f| f == name), is_there, "{name} in {long}");
    }
    assert!(!features.iter().any(|f| f == "full" || f == "default"), "{long}");
    assert_eq!(good(&["-V"]).trim(), format!("weir {version}"));
}

#[test]
fn help_teaches_with_examples() {
    let help = good(&["--help"]);
    for part in ["weir run quick", "Exit codes", "compare", "judge", "overlay", "coverage", "NO_COLOR"] {
        assert!(help.contains(part), "{part}");
    }
    for command in ["run", "compare", "judge", "search", "live", "media", "show", "bench", "open", "overlay"] {
        let help = good(&[command, "--help"]);
        assert!(help.contains(&format!("  weir {command}")), "an example of {command}: {help}");
    }
}

#[test]
fn bench_measures_the_simulator_sessions_and_controllers() {
    let report = json(&["bench", "--scale", "0.01", "--ns3", "never", "--json", "--quiet"]);
    let rows = report["rows"].as_array().expect("rows");
    let named = |name: &str| rows.iter().find(|r| r["name"] == name).unwrap_or_else(|| panic!("no row {name}"));
    for name in ["udp", "udp-newreno", "gigabit"] {
        assert!(named(name)["packets_per_cpu_s"].as_f64().expect("a rate") > 0.0, "{name}");
        assert!(named(name)["ns3"].is_null(), "{name}");
    }
    assert!(named("udp")["goal"]["met"].is_null(), "nothing was measured beside ns-3");
    for controller in ["gcc", "nada", "scream"] {
        // 2,000 s and 500 s at full scale.
        assert_eq!(named(&format!("session-{controller}"))["simulated_s"], 20.0);
        assert_eq!(named(&format!("run-{controller}"))["simulated_s"], 5.0);
        let alone = named(&format!("controller-{controller}"));
        assert_eq!(alone["unit"], "ns_per_packet");
        let goal = &alone["goal"];
        let met = alone["speed"].as_f64().expect("speed") <= goal["value"].as_f64().expect("goal");
        assert_eq!(goal["met"], met, "{alone}");
    }
    for r in rows {
        for rate in ["speed", "cpu_s", "simulated_s_per_cpu_s"] {
            assert!(r[rate].as_f64().is_some_and(|x| x.is_finite() && x > 0.0), "{rate} of {r}");
        }
    }
}

#[test]
fn lists_everything() {
    let controllers = good(&["show", "controllers"]);
    assert!(["fixed", "gcc", "nada", "scream"].iter().all(|c| controllers.contains(c)), "{controllers}");
    assert!(good(&["show", "controllers", "--params"]).contains("xref"));
    let shelves = good(&["show", "controllers", "--all"]);
    let (general, papers) = shelves.split_once("For the results of one paper each").expect("two shelves");
    assert!(general.contains("scream2") && general.contains("sluice") && !general.contains("rtcp-aimd"), "{general}");
    assert!(papers.contains("rtcp-aimd") && !papers.contains("sluice"), "{papers}");
    assert!(!controllers.contains("rtcp-aimd") && controllers.contains("weir show controllers --all"), "{controllers}");
    let all = json(&["show", "controllers", "--json"]);
    let shelf = |name: &str| all["controllers"].as_array()?.iter().find(|c| c["name"] == name)?["shelf"].as_str();
    assert_eq!((shelf("gcc"), shelf("rtcp-aimd")), (Some("algorithms"), Some("papers")));
    assert!(good(&["show", "scenarios"]).contains("rmcat-comparison/responsiveness"));
    assert!(good(&["show", "papers"]).contains("rmcat-comparison"));
    let codecs = good(&["show", "codecs"]);
    assert!(codecs.contains("openh264") && codecs.contains("VP9"), "{codecs}");
}

#[test]
fn shows_and_checks_scenarios() {
    let (folder, path) = folder();
    assert_eq!(good(&["show", "scenario", &path]), SMALL);
    assert!(good(&["show", "scenario", "--check", &path, "quick"]).contains("2 runs (Small)"));
    assert!(good(&["show", "schema", "scenario"]).contains("\"$schema\""));
    let copy = folder.path().join("mine.toml");
    std::fs::write(&copy, good(&["show", "scenario", "quick"])).expect("written");
    assert!(good(&["show", "scenario", "--check", &copy.display().to_string()]).contains("good"));
}

#[test]
fn wrong_input_is_shown_with_its_place_and_a_way_out() {
    let (folder, path) = folder();
    std::fs::write(&path, SMALL.replace("rate = \"1 Mbps\"", "rate = \"1 Mbs\"")).expect("written");
    let e = bad(&["show", "scenario", "--check", &path], 2);
    for part in ["small.toml:7:8", "links.bottleneck.rate", "1 Mbs", "did you mean \"1 Mbps\"?"] {
        assert!(e.contains(part), "{part} is not in {e}");
    }
    assert!(!e.contains('\u{1b}'), "colours in spite of NO_COLOR");
    assert!(bad(&["run", "responsivenes"], 2).contains("did you mean `responsiveness`?"));
    assert!(bad(&["run", "quick", "--controller", "naba"], 2).contains("did you mean `nada`?"));
    assert!(bad(&["run", "random-loss", "--variant", "6%"], 2).contains("5%"));
    assert!(bad(&["live", "call", "loopback", "--controller", "omniscient"], 2).contains("gets no forecast"));
    assert!(bad(&["compare", "--scenario", "quick", "--controllers", "gc"], 2).contains("did you mean `gcc`?"));
    assert!(bad(&["judge", "paper", "rmcat-comparisn"], 2).contains("did you mean `rmcat-comparison`?"));
    assert!(bad(&["judge", "paper", "rmcat-comparison", "--table", "9"], 2).contains("no table 9"));
    assert!(bad(&["run", "nowhere.toml"], 2).contains("there is no such file"));
    assert!(bad(&["comprae"], 2).contains("compare"));
    assert!(bad(&["compare", "--runs", "0"], 2).contains("--runs"));
    let missing = folder.path().join("no/such/folder/x.pcapng").display().to_string();
    let e = bad(&["run", "quick", "--controller", "fixed", "--pcap", &missing], 2);
    assert!(e.contains("--pcap") && e.contains("x.pcapng: its folder is not there"), "{e}");
}

#[test]
fn one_run_as_a_table_and_as_json() {
    let (_folder, path) = folder();
    let table = good(&["run", &path, "--controller", "nada", "--quiet"]);
    assert!(table.contains("small nada, seed 1") && table.contains("goodput"), "{table}");
    let run = json(&["run", &path, "--controller", "nada", "--seed", "4", "--json"]);
    assert_eq!((run["controller"].as_str(), run["seed"].as_u64()), (Some("nada"), Some(4)));
    let flow = &run["flows"][0];
    assert_eq!((flow["name"].as_str(), flow["loss"].as_f64()), (Some("video"), Some(0.0)));
    let goodput = flow["rates"]["goodput_bps"].as_f64().expect("a rate");
    assert!((100e3..1e6).contains(&goodput), "{goodput}");
    assert!(flow["one_way_delay_ms"]["p95"].as_f64().is_some_and(|d| (20.0..400.0).contains(&d)));
    assert_eq!(json(&["run", &path, "--controller", "nada", "--seed", "4", "--json"]), run);
}

#[test]
fn series_are_parquet_and_csv() {
    let (folder, path) = folder();
    let out = folder.path().join("series");
    good(&["run", &path, "--controller", "nada", "--series", &out.display().to_string(), "-q"]);
    let stems: Vec<String> = names(&out);
    let expected = ["flows.csv", "flows.parquet", "links.csv", "links.parquet"].map(|e| format!("small-nada.{e}"));
    assert_eq!(stems, expected);
}

#[test]
fn compares_at_any_number_of_threads_alike() {
    let (folder, path) = folder();
    let out = folder.path().join("report").display().to_string();
    let args = |threads: &'static str| {
        vec!["--scenario", &path, "--runs", "2", "--out", &out, "--json", "--jobs", threads]
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let call = |a: Vec<String>| json(&a.iter().map(String::as_str).collect::<Vec<_>>());
    let one = call(args("1"));
    assert_eq!(one, call(args("2")));
    assert_eq!((one["runs"].as_array().map(Vec::len), one["aggregates"].as_array().map(Vec::len)), (Some(4), Some(2)));
    let html = std::fs::read_to_string(folder.path().join("report/report.html")).expect("a report");
    assert!(html.contains("Small"));
    assert_eq!(names(&folder.path().join("report")), ["report.html"]);
    let table = good(&["compare", "--scenario", &path, "--controllers", "fixed", "--runs", "1", "--out", &out]);
    assert!(table.contains("fixed") && !table.contains("nada"), "{table}");
}

#[test]
fn reproduces_a_table_of_a_paper() {
    let r = json(&["judge", "paper", "rmcat-comparison", "--table", "2", "--runs", "1", "--json", "--quiet"]);
    let cells = r["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 9);
    for c in cells {
        assert_eq!((c["paper"].as_str(), c["runs"].as_u64()), (Some("rmcat-comparison"), Some(1)));
        assert!(c["measured"].as_f64().is_some_and(|m| (1.0..110.0).contains(&m)), "{c}");
    }
    let fields = [
        "table",
        "scenario",
        "condition",
        "algorithm",
        "metric",
        "unit",
        "published",
        "published_sigma",
        "measured_sigma",
    ];
    assert!(fields.iter().all(|f| cells[0].get(f).is_some()), "{}", cells[0]);
}

#[test]
fn packets_go_into_a_capture() {
    let (folder, path) = folder();
    let out = folder.path().join("x.pcapng");
    let table = good(&["run", &path, "--controller", "nada", "--pcap", &out.display().to_string(), "-q"]);
    assert_eq!(table, good(&["run", &path, "--controller", "nada", "-q"]));
    let bytes = std::fs::read(&out).expect("a capture");
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert!(bytes.len() > 10_000, "{}", bytes.len());
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["show", "schema", "scenario"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("read");
    assert!(child.wait().expect("ends").success(), "{stderr}");
    assert!(stderr.is_empty(), "{stderr}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_long_run_and_leaves_no_half_file() {
    let (folder, path) = folder();
    std::fs::write(
        &path,
        SMALL.replace("\"3 s\"", "\"6000 min\"").replace("compare", "sample_interval = \"1 s\"\ncompare"),
    )
    .expect("written");
    let out = folder.path().join("x.pcapng").display().to_string();
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["run", &path, "--controller", "fixed", "--pcap", &out, "-q"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let begun = || names(folder.path()).iter().any(|n| n.contains(".part"));
    for _ in 0..600 {
        if begun() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(begun(), "the run has not begun");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
    assert_eq!(child.wait().expect("ends").code(), Some(130));
    assert_eq!(names(folder.path()), ["small.toml"]);
}

#[cfg(feature = "coverage")]
#[test]
fn rides_are_foretold_from_each_other_as_a_scenario() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: String| folder.path().join(name).display().to_string();
    // Four rides to the north at 10 m/s and more, with 200 kbit/s for a fifth of the way.
    let logs: Vec<String> = (0..4_u32).map(|ride| file(format!("ride {ride}.log"))).collect();
    for (log, ride) in logs.iter().zip(0_u32..) {
        let speed = f64::from(10 + ride);
        let line = |s: u32| {
            let way = speed * f64::from(s);
            let bytes = if (250.0..400.0).contains(&way) { 25_000 } else { 250_000 };
            format!(
                "{} {} {} 10.75 {bytes} 1000\n",
                1_300_000_000 + 86_400 * ride + s,
                1_000 * s,
                59.9 + way / 111_320.0
            )
        };
        std::fs::write(log, (0..60).map(line).collect::<String>()).expect("written");
    }
    let out = file("out".into());
    let mut args = vec!["coverage", "forecast", "--format", "norway", "--out", &out, "--quiet"];
    args.extend(logs.iter().map(String::as_str));
    let table = good(&args);
    assert!(table.contains("ride-0") && table.contains("100 %"), "{table}");
    let written = names(&folder.path().join("out"));
    assert_eq!(written.len(), 13, "three files a ride and the scenario: {written:?}");
    let scenario = file("out/rides.toml".into());
    let run = |controller: &str| {
        let args = ["run", &scenario, "--variant", "01-ride-0", "--controller", controller, "--json", "-q"];
        json(&args)["flows"][0]["loss"].as_f64().expect("a share")
    };
    let (alone, map) = (run("nada"), run("nada+map"));
    assert!(alone > 0.0 && map < alone, "lost {alone}, with the map {map}");
    // A map of three rides at a place needs four.
    assert!(bad(&args[..args.len() - 1], 2).contains("--anonymity"));
}
