//! `weir media quality` and `weir media clip` as a person meets them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn weir(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(args).env("NO_COLOR", "1").output().expect("starts")
}

fn good(folder: &Path, args: &[&str]) -> String {
    let o = weir(folder, args);
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8_lossy(&o.stdout).into_owned()
}

fn bad(folder: &Path, args: &[&str]) -> String {
    let o = weir(folder, args);
    let said = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(2), "{args:?}: {said}");
    assert!(o.stdout.is_empty());
    said
}

/// A folder with clip.y4m, 8 pictures of 64 x 48, and worse.y4m, all of whose samples are off by one.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    good(path, &["media", "clip", "sports", "--size", "64x48", "--frames", "8", "--out", "clip.y4m", "--quiet"]);
    let bytes = std::fs::read(path.join("clip.y4m")).expect("written");
    let each = 64 * 48 * 3 / 2 + 6;
    let header = bytes.len() - 8 * each;
    let at = |i: usize| i >= header && (i - header) % each >= 6;
    let worse: Vec<u8> = bytes.iter().enumerate().map(|(i, &v)| if at(i) { v ^ 1 } else { v }).collect();
    std::fs::write(path.join("worse.y4m"), worse).expect("written");
    folder
}

#[test]
fn a_clip_is_written_the_same_every_time_and_to_standard_output() {
    let folder = folder();
    let path = folder.path();
    let written = std::fs::read(path.join("clip.y4m")).expect("there");
    assert!(written.starts_with(b"YUV4MPEG2 W64 H48 F30:1 "));
    let o = weir(path, &["media", "clip", "sports:64x48@30", "--frames", "8", "--out", "-"]);
    assert!(o.status.success() && o.stdout == written);
    good(path, &["media", "clip", "talking-head", "--size", "32x32", "--fps", "29.97", "--frames", "1"]);
    assert!(
        std::fs::read(path.join("talking-head.y4m")).expect("named so").starts_with(b"YUV4MPEG2 W32 H32 F30000:1001")
    );
}

#[test]
fn quality_is_reported_as_a_table_as_json_and_by_picture() {
    let folder = folder();
    let path = folder.path();
    let table = good(path, &["media", "quality", "clip.y4m", "worse.y4m"]);
    for part in ["8 pictures of 64x48", "psnr_y (dB)", "ssim_gaussian", "si_reference", "48.13"] {
        assert!(table.contains(part), "{part} in {table}");
    }
    let args = ["media", "quality", "clip.y4m", "worse.y4m", "--json", "--frames", "frames.csv", "--cdf", "cdf.csv"];
    let report: serde_json::Value = serde_json::from_str(&good(path, &args)).expect("JSON");
    let metric = |name: &str| {
        let all = report["metrics"].as_array().expect("a list");
        all.iter().find(|m| m["metric"] == name).expect(name).clone()
    };
    // Off by one everywhere is 20 log10 255.
    for name in ["psnr_y", "psnr_u", "psnr_v", "psnr_average", "psnr_weighted"] {
        for value in ["mean", "min", "p5", "median", "max"] {
            assert!((metric(name)[value].as_f64().expect(value) - 48.1308).abs() < 1e-3, "{name} {value}");
        }
    }
    assert!((report["psnr_of_mse_average"].as_f64().expect("a number") - 48.1308).abs() < 1e-4);
    let ssim = metric("ssim_tiled")["mean"].as_f64().expect("a number");
    assert!(ssim > 0.98 && ssim < 1.0, "{ssim}");
    assert!(metric("ti_reference")["max"].as_f64() > Some(5.0));
    assert_eq!(
        (report["pictures"].as_u64(), report["equal"].as_u64(), report["longer"].is_null()),
        (Some(8), Some(0), true)
    );

    let frames = std::fs::read_to_string(path.join("frames.csv")).expect("written");
    assert_eq!(frames.lines().count(), 9);
    assert!(frames.starts_with("picture,psnr_y,psnr_u,") && frames.contains("\n7,48.1308"), "{frames}");
    // The first picture has no TI.
    assert_eq!(frames.lines().nth(1).expect("a line").split(',').filter(|c| c.is_empty()).count(), 2);
    let cdf = std::fs::read_to_string(path.join("cdf.csv")).expect("written");
    assert!(cdf.contains("\npsnr_y,48.1308,1.000000\n"), "{cdf}");
}

#[test]
fn references_may_be_clips_raw_or_on_standard_input() {
    let folder = folder();
    let path = folder.path();
    let json = |args: &[&str]| -> serde_json::Value { serde_json::from_str(&good(path, args)).expect("JSON") };
    let report = json(&["media", "quality", "sports:64x48", "clip.y4m", "--json"]);
    assert_eq!((report["pictures"].as_u64(), report["equal"].as_u64()), (Some(8), Some(8)));

    let bytes = std::fs::read(path.join("clip.y4m")).expect("there");
    let raw: Vec<u8> =
        bytes[bytes.len() - 8 * (64 * 72 + 6)..].chunks(64 * 72 + 6).flat_map(|p| &p[6..]).copied().collect();
    std::fs::write(path.join("clip.yuv"), &raw).expect("written");
    let report = json(&["media", "quality", "clip.yuv", "worse.y4m", "--size", "64x48", "--json"]);
    assert_eq!(report["pictures"].as_u64(), Some(8));

    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let command = command.current_dir(path).args(["media", "quality", "-", "worse.y4m", "--json"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    // Six of the eight pictures.
    child.stdin.take().expect("piped").write_all(&bytes[..bytes.len() - 2 * (64 * 72 + 6)]).expect("written");
    let o = child.wait_with_output().expect("ends");
    let report: serde_json::Value = serde_json::from_slice(&o.stdout).expect("JSON");
    assert_eq!((report["pictures"].as_u64(), report["longer"].as_str()), (Some(6), Some("distorted")));
    assert!(String::from_utf8_lossy(&o.stderr).contains("worse.y4m has more pictures"));
}

#[test]
fn errors_name_the_file_the_place_and_the_way_out() {
    let folder = folder();
    let path = folder.path();
    let bytes = std::fs::read(path.join("clip.y4m")).expect("there");
    std::fs::write(path.join("short.y4m"), &bytes[..bytes.len() - 10]).expect("written");
    std::fs::write(path.join("other.bin"), b"something else entirely").expect("written");
    good(path, &["media", "clip", "sports", "--size", "32x48", "--frames", "1", "--out", "small.y4m", "-q"]);
    for (args, parts) in [
        (&["media", "quality", "clip.y4m", "short.y4m"][..], &["short.y4m", "picture 7", "cut short"][..]),
        (&["media", "quality", "clip.y4m", "none.y4m"], &["none.y4m", "no such file", "talking-head"]),
        (&["media", "quality", "clip.y4m", "other.bin"], &["other.bin", "--size 640x480"]),
        (&["media", "quality", "clip.y4m", "small.y4m"], &["32x48", "64x48", "scale=64:48"]),
        (&["media", "quality", "-", "-"], &["standard input"]),
        (&["media", "clip", "akiyo"], &["akiyo", "talking-head, hand-held, sports"]),
        (&["media", "clip", "sports", "--size", "64"], &["64", "640x480"]),
        (&["media", "clip", "sports", "--fps", "x"], &["frame rate", "30000/1001"]),
    ] {
        let said = bad(path, args);
        // Long lines are broken.
        let flat = said.replace('│', "").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(parts.iter().all(|p| flat.contains(p)), "{parts:?} in {said}");
    }
    // A failure leaves no file behind.
    bad(path, &["media", "quality", "clip.y4m", "short.y4m", "--frames", "frames.csv"]);
    let left = std::fs::read_dir(path).expect("a folder").filter(|e| {
        let name = e.as_ref().expect("an entry").file_name().to_string_lossy().into_owned();
        name.contains("frames") || name.contains(".part")
    });
    assert_eq!(left.count(), 0);
    let o = weir(path, &["media", "clip", "sports", "--frames", "1", "--out", "no/such/folder.y4m"]);
    assert_eq!(o.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&o.stderr).contains("no/such/folder.y4m"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_clip_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let args = ["media", "clip", "sports", "--frames", "1000000", "--size", "32x24", "--out", "long.y4m", "-q"];
    let mut child = command.current_dir(folder.path()).args(args).spawn().expect("starts");
    let names = || std::fs::read_dir(folder.path()).expect("a folder").count();
    for _ in 0..600 {
        if names() > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(names(), 1, "it has begun");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
    assert!(kill.success());
    assert_eq!(child.wait().expect("ends").code(), Some(130));
    assert_eq!(names(), 0);
}

const CALL: &str = r#"
title = "A short call with pictures"
duration = "2 s"
[links.path]
rate = "2 Mbps"
delay = "20 ms"
queue = "200 ms"
[rtp.call]
controller = "sluice"
source = { model = "encoder", clip = "sports", picture = "64x48", fps = 30 }
start_rate = "300 kbps"
playout_deadline = "200 ms"
"#;

#[test]
fn a_call_with_an_encoder_shows_the_quality_of_its_pictures() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("call.toml"), CALL).expect("written");
    let table = good(path, &["run", "call.toml"]);
    for part in ["PSNR", "SSIM", "frozen", "means over the pictures captured"] {
        assert!(table.contains(part), "{part} in {table}");
    }
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
    // Without pictures there is no such table.
    std::fs::write(
        path.join("plain.toml"),
        CALL.replace("model = \"encoder\", clip = \"sports\", picture = \"64x48\"", "model = \"perfect-frames\""),
    )
    .expect("written");
    assert!(!good(path, &["run", "plain.toml"]).contains("PSNR"));
}

#[test]
fn vmaf_is_computed_where_the_scenario_asks_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    std::fs::write(path.join("call.toml"), CALL.replace("fps = 30 }", "fps = 30, vmaf = true }")).expect("written");
    if cfg!(feature = "vmaf") {
        let table = good(path, &["run", "call.toml"]);
        assert!(table.contains("VMAF"), "{table}");
    } else {
        let o = weir(path, &["run", "call.toml"]);
        let said = String::from_utf8_lossy(&o.stderr);
        assert!(!o.status.success() && said.contains("feature `vmaf`") && said.contains("call"), "{said}");
    }
}
