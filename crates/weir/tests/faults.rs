//! Files that are not what they should be, disks that are full, programs that are missing: the right words and exit code.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Output};

const SMALL: &str = r#"
title = "Small"
duration = "3 s"
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
[rtp.video]
controller = "nada"
"#;

fn weir(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(args).env("NO_COLOR", "1").output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('│', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Standard error of a call that ends with this code.
fn bad(folder: &Path, args: &[&str], code: i32) -> String {
    let o = weir(folder, args);
    let said = text(&o.stderr);
    assert_eq!(o.status.code(), Some(code), "{args:?}: {said}");
    said
}

#[test]
fn videos_that_hold_no_picture_or_stop_being_one_fail() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    assert!(weir(path, &["media", "clip", "sports", "--size", "64x48", "--frames", "10", "-q"]).status.success());
    let whole = std::fs::read(path.join("sports.y4m")).expect("written");
    let header = whole.iter().position(|b| *b == b'\n').expect("a line") + 1;
    let write = |name: &str, bytes: &[u8]| std::fs::write(path.join(name), bytes).expect("written");
    write("none.y4m", &whole[..header]);
    write("empty.y4m", b"");
    write("secret.y4m", b"a secret line of another kind of file\n");
    write("first.y4m", &whole[..header + 100]);
    let mut corrupt = whole.clone();
    corrupt[header + 4 * (64 * 72 + 6)..][..5].copy_from_slice(b"GARBA");
    write("corrupt.y4m", &corrupt);
    let call =
        |clip: &str, code| bad(path, &["live", "call", "loopback", "-q", "--duration", "2", "--clip", clip], code);
    assert!(call("none.y4m", 2).contains("none.y4m: number of pictures is 0"));
    assert!(call("empty.y4m", 2).contains("empty.y4m: file is empty"));
    assert!(call("first.y4m", 2).contains("cut short"));
    let said = call("secret.y4m", 2);
    assert!(said.contains("first line is something else") && !said.contains("secret line"), "{said}");
    let said = call("corrupt.y4m", 2);
    assert!(said.contains("picture 4") && said.contains("FRAME"), "{said}");
    assert!(bad(path, &["media", "quality", "none.y4m", "sports.y4m"], 2).contains("not one picture"));
}

#[test]
fn a_full_disk_is_no_success() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("small.toml"), SMALL).expect("written");
    let said = bad(path, &["live", "call", "loopback", "-q", "--duration", "1", "--record", "/dev/full"], 1);
    assert!(said.contains("/dev/full") && said.contains("No space left"), "{said}");
    let said = bad(path, &["run", "small.toml", "-q", "--pcap", "/dev/full"], 1);
    assert!(said.contains("/dev/full: No space left") && !said.contains("reading bytes"), "{said}");
    let said = bad(path, &["media", "clip", "sports", "-q", "--frames", "3", "--out", "/dev/full"], 1);
    assert!(said.contains("/dev/full: No space left"), "{said}");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux");
    let help = Command::new(env!("CARGO_BIN_EXE_weir")).args(["run", "--help"]).stdout(full).output().expect("starts");
    assert_eq!(help.status.code(), Some(1));
    assert!(text(&help.stderr).contains("help cannot be written: No space left"), "{}", text(&help.stderr));
    // A file system with a limit on the size of files, as a full one.
    let limited = |args: &[&str]| {
        let mut command = Command::new("bash");
        command.current_dir(path).args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "bash"]);
        command.arg(env!("CARGO_BIN_EXE_weir")).args(args).output().expect("bash starts")
    };
    let o = limited(&["run", "small.toml", "-q", "--pcap", "small.pcapng"]);
    let said = text(&o.stderr);
    assert_eq!(o.status.code(), Some(1), "{said}");
    assert!(said.contains("small.pcapng: File too large") && !said.contains("reading bytes"), "{said}");
    assert!(!path.join("small.pcapng").exists());
}

#[test]
fn a_trace_that_is_none_is_refused_without_repeating_what_it_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let scenario = |name: &str, rate: &str| {
        std::fs::write(path.join(name), SMALL.replace("\"1 Mbps\"", rate)).expect("written");
    };
    std::fs::write(path.join("secrets"), "root:x:0:0:secret one\nuser:y:1:1:secret two\n").expect("written");
    for format in ["", ", format = \"csv\"", ", format = \"seconds-mbps\"", ", format = \"norway-raw\""] {
        scenario("leak.toml", &format!("{{ trace = \"secrets\"{format} }}"));
        let said = bad(path, &["run", "leak.toml"], 2);
        assert!(said.contains("secrets:1") && said.contains("expected"), "{said}");
        assert!(!said.contains("root") && !said.contains("secret one") && !said.contains("user:y"), "{said}");
    }
    scenario("json.toml", "{ trace = \"secrets\", format = \"belgium-4g\" }");
    assert!(!bad(path, &["run", "json.toml"], 2).contains("root"));
    let frames = format!("{SMALL}source = {{ model = \"trace\", file = \"secrets\" }}\n");
    std::fs::write(path.join("frames.toml"), frames).expect("written");
    let said = bad(path, &["run", "frames.toml"], 2);
    assert!(said.contains("secrets:1") && !said.contains("root"), "{said}");
    // Messages may repeat a number.
    std::fs::write(path.join("wrong.csv"), "time_s,rate_bps\n0,1000\n0,-5\n").expect("written");
    scenario("wrong.toml", "{ trace = \"wrong.csv\" }");
    let said = bad(path, &["run", "wrong.toml"], 2);
    assert!(said.contains("wrong.csv:3"), "{said}");
}

#[test]
fn a_capacity_of_zero_gives_no_delay_of_centuries() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("zeros.csv"), "time_s,rate_bps\n0,0\n1,0\n").expect("written");
    std::fs::write(path.join("zeros.toml"), SMALL.replace("\"1 Mbps\"", "{ trace = \"zeros.csv\" }")).expect("written");
    let said = bad(path, &["run", "zeros.toml"], 2);
    assert!(said.contains("zeros.csv") && said.contains("all rates are zero"), "{said}");
    // A link that goes out for good: packets that wait have no delay.
    let steps = "{ steps = [{ at = \"0 s\", rate = \"1 Mbps\" }, { at = \"1 s\", rate = \"0 bps\" }] }";
    std::fs::write(path.join("out.toml"), SMALL.replace("\"1 Mbps\"", steps)).expect("written");
    let o = weir(path, &["run", "out.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&o.stdout).expect("JSON");
    let delay = &json["queue"]["delay_ms"];
    for part in ["mean", "p95", "max"] {
        assert!(delay[part].as_f64().is_some_and(|ms| (0.0..60_000.0).contains(&ms)), "{part}: {delay}");
    }
    assert!(!text(&weir(path, &["run", "out.toml"]).stdout).contains("9223372036"));
}

#[test]
fn a_path_without_programs_is_named_rather_than_a_capability() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    // A program of the right name that may not be executed.
    std::fs::create_dir(path.join("bin")).expect("made");
    for name in ["setpriv", "unshare", "true"] {
        std::fs::write(path.join("bin").join(name), "").expect("written");
    }
    for places in ["/nonexistent".to_owned(), path.join("bin").display().to_string()] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        let args = ["live", "emulate", "--rate", "1mbps", "--duration", "1s", "-q", "--", "true"];
        let o = command.current_dir(path).args(args).env("PATH", &places).output().expect("starts");
        let said = text(&o.stderr);
        assert_eq!(o.status.code(), Some(1), "{said}");
        if !said.contains("/dev/net/tun") {
            assert!(said.contains("PATH") && said.contains(&places) && !said.contains("CAP_SYS_ADMIN"), "{said}");
        }
    }
}
