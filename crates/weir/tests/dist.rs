//! Completions and man pages, as packages contain them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn weir(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).current_dir(folder).args(args).output().expect("starts")
}

fn good(folder: &Path, args: &[&str]) -> String {
    let out = weir(folder, args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("UTF-8")
}

/// Pages of a folder by name.
fn pages(folder: &Path) -> Vec<(String, String)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .expect("pages")
        .map(|e| e.expect("an entry"))
        .map(|e| (e.file_name().to_string_lossy().into_owned(), fs::read_to_string(e.path()).expect("UTF-8")))
        .collect();
    all.sort();
    all
}

/// Candidates that Bash gives for the last of these words.
fn completed(script: &str, words: &[&str]) -> BTreeSet<String> {
    let last = words.len() - 1;
    let run = format!(
        "source {script}\nCOMP_WORDS=({})\nCOMP_CWORD={last}\n_weir weir '{}' '{}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|w| format!("'{w}'")).collect::<Vec<_>>().join(" "),
        words[last],
        words[last - 1],
    );
    let out = Command::new("bash").args(["--norc", "-c", &run]).stderr(Stdio::null()).output().expect("Bash");
    String::from_utf8(out.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("weir");
    fs::write(&script, good(folder.path(), &["completions", "bash"])).expect("written");
    let script = script.display().to_string();
    let commands = completed(&script, &["weir", ""]);
    // Those that `weir --help` names apart as well.
    for name in ["compare", "live", "open", "gate", "estimator", "completions", "manual"] {
        assert!(commands.contains(name), "{name}: {commands:?}");
    }
    let some = completed(&script, &["weir", "com"]);
    assert_eq!(some.iter().map(String::as_str).collect::<Vec<_>>(), ["compare", "completions"]);
    let options = completed(&script, &["weir", "overlay", "--no"]);
    assert_eq!(options.iter().map(String::as_str).collect::<Vec<_>>(), ["--nodes"]);
    let values = completed(&script, &["weir", "overlay", "--division", ""]);
    assert_eq!(values.iter().map(String::as_str).collect::<Vec<_>>(), ["frames", "packets"]);
}

#[test]
fn every_shell_has_completions_and_other_names_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (shell, begin) in
        [("bash", "_weir()"), ("zsh", "#compdef weir"), ("fish", "# Print"), ("powershell", "using namespace")]
    {
        let text = good(folder.path(), &["completions", shell]);
        assert!(text.trim_start().starts_with(begin), "{shell}: {}", &text[..80]);
        assert!(text.len() > 10_000 && text.len() < 1_000_000, "{shell}: {} bytes", text.len());
    }
    let refused = weir(folder.path(), &["completions", "tcsh"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("bash"), "it lists those that there are");
}

#[test]
fn each_command_has_a_page_with_its_examples() {
    let folder = tempfile::tempdir().expect("a folder");
    good(folder.path(), &["manual", "--out", "man"]);
    let all = pages(&folder.path().join("man"));
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    for name in ["weir.1", "weir-compare.1", "weir-judge-paper.1", "weir-open.1", "weir-completions.1"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    assert!(names.len() > 40 && names.len() < 100, "{} pages", names.len());
    assert!(!names.iter().any(|n| n.contains("help")), "{names:?}");
    for (name, text) in &all {
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{name}");
        // A date would make two builds differ.
        let title = text.lines().find(|l| l.starts_with(".TH "));
        assert!(title.is_some_and(|t| t.contains(" 1  ") || t.contains("1 \"\"")), "{name} has a date: {title:?}");
    }
    let page = |name: &str| all.iter().find(|p| p.0 == name).map_or("", |p| &p.1);
    assert!(page("weir-overlay.1").contains("Examples:"), "{}", page("weir-overlay.1"));
    good(folder.path(), &["manual", "--out", "again"]);
    assert_eq!(pages(&folder.path().join("again")), all);
}
