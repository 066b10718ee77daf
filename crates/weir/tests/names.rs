//! Former names of commands, and commands that a build lacks.

use std::path::Path;
use std::process::{Command, Output};

fn weir(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(args).env("NO_COLOR", "1").env("COLUMNS", "80").output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn former_names_print_what_today_s_print_and_one_line_more_on_standard_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for (old, new, name) in [
        (&["list", "controllers"][..], &["show", "controllers"][..], "weir show"),
        (&["list", "--json", "papers"], &["show", "papers", "--json"], "weir show"),
        (&["scenario", "show", "quick"], &["show", "scenario", "quick"], "weir show scenario"),
        (&["scenario", "check", "quick"], &["show", "scenario", "--check", "quick"], "weir show scenario --check"),
        (&["scenario", "schema"], &["show", "schema", "scenario"], "weir show schema scenario"),
        (&["schema", "twin"], &["show", "schema", "judge", "twins"], "weir show schema"),
        (&["twin", "list"], &["show", "twins"], "weir show twins"),
        (&["twin", "run", "nada/single", "-q"], &["judge", "twins", "nada/single", "-q"], "weir judge twins"),
        (&["explain", "quick", "--json"], &["run", "quick", "--explain", "--json"], "weir run --explain"),
        (
            &["reproduce", "rmcat-comparison", "--table", "2", "--runs", "1", "-q"],
            &["judge", "paper", "rmcat-comparison", "--table", "2", "--runs", "1", "-q"],
            "weir judge paper",
        ),
    ] {
        let (before, now) = (weir(path, old), weir(path, new));
        assert_eq!((before.status.code(), text(&before.stdout)), (now.status.code(), text(&now.stdout)), "{old:?}");
        assert!(now.status.success() && !now.stdout.is_empty(), "{new:?}: {}", text(&now.stderr));
        let notes: Vec<String> =
            text(&before.stderr).lines().filter(|l| l.contains(" is now ")).map(str::to_owned).collect();
        assert!(notes.len() == 1 && notes[0].contains(&format!("`{name}`")), "{old:?}: {notes:?}");
        assert!(!text(&now.stderr).contains(" is now "), "{new:?}");
    }
}

#[test]
fn former_options_work_and_former_exit_codes_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let clip = weir(path, &["clip", "sports", "--size", "64x48", "--rate", "15", "--frames", "3", "-q"]);
    assert!(clip.status.success() && path.join("sports.y4m").is_file(), "{}", text(&clip.stderr));
    let clip =
        weir(path, &["media", "clip", "sports", "--size", "64x48", "--fps", "15", "--frames", "3", "--out", "b.y4m"]);
    assert!(clip.status.success(), "{}", text(&clip.stderr));
    let read = |name: &str| std::fs::read(path.join(name)).expect("there");
    assert_eq!(read("sports.y4m"), read("b.y4m"));
    let capture = weir(path, &["pcap", "quick", "--controller", "gcc", "--at", "sender"]);
    assert!(capture.status.success() && capture.stdout.is_empty(), "{}", text(&capture.stdout));
    assert!(text(&capture.stderr).contains(" packets: quick-gcc.pcapng"), "{}", text(&capture.stderr));
    assert!(path.join("quick-gcc.pcapng").is_file());
    let threads = ["compare", "--scenario", "quick", "--runs", "1", "--threads", "1", "-q"];
    assert!(weir(path, &threads).status.success());
    assert_eq!(weir(path, &["list", "nonsense"]).status.code(), Some(2));
    assert_eq!(weir(path, &["reproduce", "nonsense"]).status.code(), Some(2));
}

#[test]
fn help_has_today_s_names_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = text(&weir(folder.path(), &["--help"]).stdout);
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|l| !l.starts_with("Commands:"))
        .skip(1)
        .take_while(|l| !l.is_empty())
        .filter_map(|l| l.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .collect();
    #[cfg(target_os = "linux")]
    assert_eq!(commands, ["run", "compare", "judge", "search", "live", "media", "show", "bench", "help"], "{help}");
    assert!(
        !commands.contains(&"overlay") && help.contains("\n  overlay ") && help.contains("\n  coverage "),
        "{help}"
    );
}

/// A build without a feature says how to get the command; one that has all of them has nothing to say.
#[test]
fn a_command_that_is_not_built_in_says_how_to_get_it_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |args: &[&str]| {
        let o = weir(folder.path(), args);
        (o.status.code(), text(&o.stderr))
    };
    let lacking = text(&weir(folder.path(), &["--help"]).stdout);
    // Lines are folded at the terminal's width.
    let lacking = lacking.split_whitespace().collect::<Vec<_>>().join(" ");
    for (args, feature, is_there) in [
        (&["coverage", "demo", "--keep"][..], "coverage", cfg!(feature = "coverage")),
        (&["completions", "bash"], "dist", cfg!(feature = "dist")),
        (&["manual"], "dist", cfg!(feature = "dist")),
        (&["search", "tune", "gcc"], "tune", cfg!(feature = "tune")),
        (&["live", "webrtc", "--clip", "sports"], "webrtc", cfg!(feature = "webrtc")),
    ] {
        assert_eq!(lacking.contains(&format!("(--features {feature})")), !is_there, "{lacking}");
        if is_there {
            continue;
        }
        let (code, error) = said(args);
        assert_eq!((code, error.lines().count()), (Some(2), 1), "{error}");
        let command = format!("cargo run --release --features {feature} -- {}", args.join(" "));
        assert!(error.contains(&command), "{error}");
        assert!(error.contains(&format!("cargo install --path crates/weir --features {feature}")), "{error}");
    }
}

#[test]
fn without_a_command_there_is_the_comparison_with_sluice_and_a_line_about_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let o = weir(folder.path(), &[]);
    let shown = text(&o.stdout);
    assert!(o.status.success(), "{}", text(&o.stderr));
    for controller in ["gcc", "nada", "scream", "sluice"] {
        assert!(shown.lines().any(|l| l.starts_with(&format!("│ {controller} "))), "{controller}: {shown}");
    }
    assert!(shown.trim_end().ends_with("weir --help"), "{shown}");
    let page = std::fs::read_to_string(folder.path().join("weir-report/report.html")).expect("a report");
    assert!(page.contains("sluice"));
}
