//! The steps of `tools/gate`, as GitHub and GitLab run them: in a small project with nothing of Weir but its program.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CLEAN: &str = r#"
title = "clean"
duration = "3 s"
[links.bottleneck]
rate = "1 Mbps"
delay = "20 ms"
[rtp.video]
controller = "$controller"
start_rate = "300 kbps"
"#;

/// An estimator of the project.
const ESTIMATOR: &str = r#"#!/bin/sh
read l; echo '{"turn":0,"media_bps":400000,"about":{"version":2,"name":"mine","events":["limits"]}}'; cat >/dev/null
"#;

fn template(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/gate").join(name);
    std::fs::read_to_string(file).expect("a template")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// One step of a composite action.
#[derive(Debug, Default)]
struct Step {
    name: String,
    is_always: bool,
    /// Variables, each with its input.
    env: Vec<(String, String)>,
    script: String,
}

/// As much of YAML as the action has: keys with a value on their line, and blocks after `|`.
fn action() -> (BTreeMap<String, String>, Vec<Step>) {
    let text = template("action.yml");
    assert!(!text.contains('\t') && text.contains("\n  using: composite\n"));
    let (head, steps) = text.split_once("\n  steps:\n").expect("steps");
    let mut inputs = BTreeMap::new();
    let mut input = String::new();
    for line in head.split_once("\ninputs:\n").expect("inputs").1.lines().take_while(|l| l.starts_with(' ')) {
        let (key, value) = line.trim().split_once(':').expect("a key");
        match (indent(line), key) {
            (2, _) => input = key.into(),
            (4, "default") => _ = inputs.insert(input.clone(), value.trim().trim_matches('"').into()),
            (4, "description") => {}
            _ => panic!("{line}"),
        }
    }
    let mut all: Vec<Step> = Vec::new();
    let mut lines = steps.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("    - name: ") {
            all.push(Step { name: name.into(), ..Step::default() });
            continue;
        }
        let step = all.last_mut().expect("a step begins with its name");
        let (key, value) = line.trim().split_once(':').expect("a key");
        match (indent(line), key, value.trim()) {
            (6, "shell", "bash") | (6, "env", "") => {}
            (6, "if", "always()") => step.is_always = true,
            (8, name, value) => {
                let input = value.strip_prefix("${{ inputs.").and_then(|v| v.strip_suffix(" }}"));
                step.env.push((name.into(), input.expect("an input").into()));
            }
            (6, "run", "|") => {
                while let Some(line) = lines.next_if(|l| l.is_empty() || indent(l) >= 8) {
                    step.script += &format!("{}\n", line.get(8..).unwrap_or_default());
                }
            }
            _ => panic!("{line}"),
        }
    }
    (inputs, all)
}

/// A project that knows nothing of Weir, and a folder with programs.
fn project(budget: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let programs = dir.path().join("programs");
    let project = dir.path().join("a project");
    std::fs::create_dir_all(&programs).and_then(|()| std::fs::create_dir_all(&project)).expect("folders");
    let gate = format!(
        "controllers = [\"exec:./estimator\"]\n[[suites]]\nscenario = \"clean.toml\"\nbudgets = [\n    \"{budget}\",\n]\n"
    );
    for (name, text) in [("clean.toml", CLEAN), ("weir gate.toml", &gate), ("estimator", ESTIMATOR)] {
        std::fs::write(project.join(name), text).expect("written");
    }
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.join("estimator"), mode).expect("a mode");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_weir"), programs.join("weir")).expect("a link");
    (dir, project)
}

/// A shell as a runner has it, with the programs of the system and, if wanted, Weir's.
fn shell(project: &Path, with_weir: bool) -> Command {
    let mut bash = Command::new("bash");
    let programs = project.with_file_name("programs").display().to_string();
    let path = if with_weir { format!("{programs}:/usr/bin:/bin") } else { "/usr/bin:/bin".into() };
    bash.env_clear().env("PATH", path).env("HOME", project.with_file_name("home")).current_dir(project);
    bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c"]);
    bash
}

/// Runs the steps with these inputs: those that ran, each with its output. After a failure only those go on that always do.
fn act(project: &Path, with_weir: bool, given: &[(&str, &str)]) -> Vec<(String, Output)> {
    let (mut inputs, steps) = action();
    for (name, value) in given {
        assert!(inputs.insert((*name).into(), (*value).into()).is_some(), "an input {name}");
    }
    let mut done: Vec<(String, Output)> = Vec::new();
    for step in steps {
        let has_failed = done.iter().any(|(_, o)| !o.status.success());
        if has_failed && !step.is_always {
            continue;
        }
        let mut bash = shell(project, with_weir);
        bash.arg(&step.script).env("GITHUB_STEP_SUMMARY", project.with_file_name("summary.md"));
        for (name, input) in &step.env {
            bash.env(name, &inputs[input]);
        }
        done.push((step.name, bash.output().expect("bash is there")));
    }
    done
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const FILE: (&str, &str) = ("file", "weir gate.toml");
const EXEC: (&str, &str) = ("allow-exec", "true");

#[test]
fn the_action_passes_fails_and_shows_both() {
    let (dir, passing) = project("loss <= 0.01");
    let done = act(&passing, true, &[FILE, EXEC]);
    let names: Vec<&str> = done.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Weir is there", "Gate", "Summary"]);
    for (name, o) in &done {
        assert!(o.status.success(), "{name}: {}{}", text(&o.stdout), text(&o.stderr));
    }
    let summary = std::fs::read_to_string(dir.path().join("summary.md")).expect("a summary");
    assert!(summary.starts_with("## The gate passes: 1 of 1 budgets pass"), "{summary}");
    for name in ["gate.md", "gate.xml", "gate.sarif"] {
        assert!(passing.join("weir-gate").join(name).is_file(), "{name}");
    }

    let (dir, failing) = project("goodput_bps >= 900000");
    let done = act(&failing, true, &[FILE, EXEC, ("out", "a folder/of ours")]);
    let codes: Vec<_> = done.iter().map(|(name, o)| (name.as_str(), o.status.code())).collect();
    assert_eq!(codes, [("Weir is there", Some(0)), ("Gate", Some(1)), ("Summary", Some(0))]);
    let shown = text(&done[1].1.stdout);
    assert!(shown.contains("::error file=weir gate.toml,line=5,title=weir gate fails::clean.toml"), "{shown}");
    let summary = std::fs::read_to_string(dir.path().join("summary.md")).expect("a summary");
    assert!(summary.contains("**fails** (line 5)") && summary.contains("(<gate-plot-1.svg>)"), "{summary}");
    assert!(failing.join("a folder/of ours/gate-plot-1.svg").is_file());
}

#[test]
fn the_action_starts_no_programs_unasked_and_says_what_it_lacks() {
    let (_dir, project) = project("utilisation no worse than baseline by 5 %");
    let done = act(&project, true, &[FILE]);
    let (name, o) = &done[1];
    assert_eq!((name.as_str(), o.status.code()), ("Gate", Some(2)), "{}", text(&o.stderr));
    assert!(text(&o.stderr).contains("--allow-exec"), "{}", text(&o.stderr));
    let done = act(&project, false, &[FILE]);
    assert_eq!((done.len(), done[0].1.status.code()), (2, Some(2)));
    assert!(text(&done[0].1.stdout).starts_with("::error title=weir gate::no weir is in the PATH"));
    // Without a baseline the budget is undecided: a failure where the gate is strict.
    assert_eq!(act(&project, true, &[FILE, EXEC])[1].1.status.code(), Some(0));
    assert_eq!(act(&project, true, &[FILE, EXEC, ("strict", "true")])[1].1.status.code(), Some(1));
    let saved = "weir gate -q --allow-exec --save-baseline 'base line.json' 'weir gate.toml'";
    let o = shell(&project, true).arg(saved).output().expect("bash is there");
    assert!(o.status.success(), "{}", text(&o.stderr));
    let all = [FILE, EXEC, ("strict", "true"), ("baseline", "base line.json")];
    let done = act(&project, true, &all);
    assert_eq!(done[1].1.status.code(), Some(0), "{}{}", text(&done[1].1.stdout), text(&done[1].1.stderr));
}

#[test]
fn inputs_are_words_and_never_commands() {
    let (_dir, project) = project("loss <= 0.01");
    for file in ["--help", "$(touch taken)", "\"; touch taken; \"", "-", "`touch taken`"] {
        let done = act(&project, true, &[("file", file), EXEC]);
        assert_eq!(done[1].1.status.code(), Some(2), "{file}: {}", text(&done[1].1.stderr));
    }
    assert!(!project.join("taken").exists());
    // Texts of a workflow reach the scripts by the environment alone.
    assert!(action().1.iter().all(|step| !step.script.contains("${{")));
}

#[test]
fn the_script_for_gitlab_runs_the_gate() {
    let template = template("gitlab.yml");
    let script: Vec<&str> =
        template.lines().skip_while(|l| *l != "  script:").skip(1).map_while(|l| l.strip_prefix("    - ")).collect();
    assert_eq!(script.len(), 4, "{template}");
    let (_dir, project) = project("loss <= 0.01");
    std::fs::rename(project.join("weir gate.toml"), project.join("weir-gate.toml")).expect("renamed");
    let options = template.lines().find_map(|l| l.strip_prefix("    WEIR_GATE: ")).expect("options");
    let mut bash = shell(&project, true);
    let o = bash.arg(script.join("\n")).env("WEIR_GATE", options).env("CARGO_HOME", project.join(".cargo")).output();
    let o = o.expect("bash is there");
    assert!(o.status.success(), "{}{}", text(&o.stdout), text(&o.stderr));
    let junit = std::fs::read_to_string(project.join("weir-gate/gate.xml")).expect("written");
    assert!(junit.contains("tests=\"1\" failures=\"0\""), "{junit}");
}
