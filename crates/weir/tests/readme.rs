//! Every command of README.md and docs/tour.md, as a user types it at a terminal of 80x24 characters.
#![cfg(target_os = "linux")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The documents, from the root of the checkout.
const DOCUMENTS: &[&str] = &["README.md", "docs/tour.md"];

/// Commands that are not run, by their beginning, each with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo run --release", "it builds; it is `weir compare`, which is run with `--runs 1`"),
    ("cargo install", "it installs"),
    ("./test", "it runs this test"),
    ("weir help COMMAND", "COMMAND is a placeholder; `weir help compare` is run"),
    ("weir compare --scenario calls/three-calls", "20 s of CPU; tests/terminal.rs runs the scenario once"),
    ("weir bench", "minutes of CPU; tests/terminal.rs has it at a small scale"),
    ("weir judge paper rtp-cc-thesis", "minutes of CPU; tests/reproductions.rs has one at a small scale"),
    ("weir judge paper fbra", "minutes of CPU, as stated"),
    ("weir judge paper dccp-video", "minutes of CPU, as stated"),
    ("weir live call listen", "it listens at all addresses"),
    ("weir live call connect", "HOST and the fingerprint are placeholders"),
    ("weir live webrtc", "it serves until Ctrl-C; crates/peer/tests/page calls it"),
    ("weir live emulate", "needs namespaces and ping; tests/live.rs has it"),
    ("weir live testbed", "needs namespaces, and lasts 200 s; tests/live.rs has it"),
    ("weir live dccp serve", "it occupies DCCP's UDP port; tests/dccp.rs has it"),
];

/// Commands that last until Ctrl-C, by their beginning.
const ENDLESS: &[&str] = &["weir live call loopback"];
/// Commands that are run with less work, by their beginning: what is replaced, and by what.
const LESS: &[(&str, &str, &str)] = &[
    ("weir search tune", "--evaluations 20", "--evaluations 2 --generated 4"),
    ("weir overlay", "--nodes 200", "--nodes 60"),
    ("weir judge rows", "sluice,gcc", "sluice,gcc --runs 1"),
];
/// When Ctrl-C is typed.
const TYPED_AFTER: Duration = Duration::from_secs(2);

/// Maximum time of a command in the dev profile on a slow machine.
const MAX_TIME: Duration = Duration::from_secs(120);

/// A command, and what its document says beside it.
#[derive(Debug)]
struct Listed {
    command: String,
    remark: String,
}

/// The text of all documents, in their order.
fn documents() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    DOCUMENTS.iter().map(|name| std::fs::read_to_string(root.join(name)).expect(name)).collect()
}

fn is_command(text: &str) -> bool {
    ["weir ", "cargo ", "./test"].iter().any(|c| text.starts_with(c))
}

/// The commands of indented lines, and those between backquotes that have arguments.
fn listed(text: &str) -> Vec<Listed> {
    let mut all = Vec::new();
    for line in text.lines() {
        if let Some(code) = line.strip_prefix("    ").filter(|c| is_command(c)) {
            let (command, remark) = code.split_once(" #").unwrap_or((code, ""));
            all.push(Listed { command: command.trim().into(), remark: remark.trim().into() });
            continue;
        }
        for code in line.split('`').skip(1).step_by(2).filter(|c| is_command(c)) {
            let has_arguments = code.split(' ').count() > 2;
            if has_arguments {
                all.push(Listed { command: code.into(), remark: String::new() });
            }
        }
    }
    all
}

/// Runs a command at a terminal, and returns its exit code and all that the terminal is sent. Where `interrupt` is set, Ctrl-C
/// is typed after that time.
fn at_terminal(folder: &Path, command: &str, interrupt: Option<Duration>) -> (Option<i32>, String) {
    let programs = PathBuf::from(env!("CARGO_BIN_EXE_weir"));
    let programs = programs.parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let exec = if interrupt.is_some() { "exec " } else { "" };
    // The terminal does not echo the key, which is no output of the command.
    let line = format!("stty cols 80 rows 24 -echo; {exec}{command}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
    script.current_dir(folder).env("PATH", path).env("SHELL", "/bin/sh").env("TERM", "xterm").env_remove("COLUMNS");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script, of util-linux");
    let mut keys = child.stdin.take().expect("piped");
    let typing = std::thread::spawn(move || {
        if let Some(time) = interrupt {
            std::thread::sleep(time);
            keys.write_all(b"\x03").expect("typed");
        }
        keys
    });
    let out = child.wait_with_output().expect("ends");
    drop(typing.join().expect("typed"));
    (out.status.code(), String::from_utf8(out.stdout).expect("UTF-8"))
}

/// The text without control sequences.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            // ESC [ parameters final, with the final byte from @ to ~.
            '\x1b' => drop(rest.by_ref().skip(1).find(|c| ('@'..='~').contains(c))),
            c => out.push(c),
        }
    }
    out
}

/// The widest line.
fn widest(text: &str) -> &str {
    text.split(['\n', '\r']).max_by_key(|line| line.chars().count()).unwrap_or_default()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long another process takes")]
fn every_command_succeeds_within_80_columns_and_the_time_stated() {
    let all = listed(&documents());
    assert!(all.len() > 25, "{all:#?}");
    for (start, _) in NOT_RUN {
        assert!(all.iter().any(|l| l.command.starts_with(start)), "{DOCUMENTS:?} have no `{start}` any more");
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Files that the reader is assumed to have.
    std::fs::write(folder.path().join("grid.toml"), "scenarios = \"quick\"\nseeds = 2\n").expect("writable");
    for (at, file) in [("sender", "left.pcap.gz"), ("receiver", "right.pcap.gz")] {
        let record = format!("weir run quick -q --pcap-at {at} --pcap r.pcapng && gzip -c r.pcapng >{file}");
        assert_eq!(at_terminal(folder.path(), &record, None).0, Some(0));
    }
    assert_eq!(at_terminal(folder.path(), "mkdir recordings && cp *.pcap.gz recordings", None).0, Some(0));
    let clip = "weir media clip talking-head --size 640x480 --fps 15 --frames 15 --out decoded.y4m -q";
    assert_eq!(at_terminal(folder.path(), clip, None).0, Some(0));
    let mut count = 0;
    for (at, Listed { command, remark }) in all.iter().enumerate() {
        let is_repeated = all[..at].iter().any(|l| l.command == *command);
        if is_repeated {
            continue;
        }
        if let Some((_, reason)) = NOT_RUN.iter().find(|n| command.starts_with(n.0)) {
            println!("not run: {command}: {reason}");
            continue;
        }
        let interrupt = ENDLESS.iter().any(|e| command.starts_with(e)).then_some(TYPED_AFTER);
        let less = LESS.iter().find(|l| command.starts_with(l.0)).map_or(command.clone(), |(_, more, less)| {
            assert!(command.contains(more), "{command} has no `{more}` any more");
            command.replace(more, less)
        });
        let command = &less;
        let begin = Instant::now();
        let (code, text) = at_terminal(folder.path(), command, interrupt);
        let (took, text) = (begin.elapsed(), plain(&text));
        println!("{:.1} s: {command}", took.as_secs_f64());
        assert_eq!(code, Some(0), "{command}: {text}");
        let wide = widest(&text);
        assert!(wide.chars().count() <= 80, "{command}: {wide}");
        assert!(!remark.contains("minutes") && took < MAX_TIME, "{command} took {took:?}, stated: {remark}");
        count += 1;
    }
    assert!(count >= 12, "{count} commands were run");
}

#[test]
fn the_table_shown_is_the_one_that_is_printed() {
    let text = documents();
    let (_, after) = text.split_once("(`weir compare --runs 1`)\n\n").expect("the command of the table");
    let table: Vec<&str> = after.lines().map_while(|l| l.strip_prefix("    ")).collect();
    assert!(table.len() > 5, "{table:?}");
    let folder = tempfile::tempdir().expect("a folder");
    // One scenario of those that are compared, under the same controllers.
    let command =
        "weir compare --runs 1 --scenario rmcat-comparison/responsiveness --controllers gcc,nada,scream,sluice";
    let (code, printed) = at_terminal(folder.path(), command, None);
    let printed = plain(&printed).replace('\r', "");
    assert!(code == Some(0) && printed.contains(&table.join("\n")), "{printed}");
}
