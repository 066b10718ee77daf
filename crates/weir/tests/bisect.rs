//! `weir gate --bisect`, in small repositories that are made for it.
#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

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

const GATE: &str = r#"controllers = ["exec:./out/estimator"]
[[suites]]
scenario = "clean.toml"
budgets = ["loss <= 0.5", "goodput_bps >= 200000"]
"#;

/// A rate that the build puts into the program; it fails for any that is no number.
const BUILD: &str = r#"mkdir -p out
rate=$(cat rate); test "$rate" -gt 0 || { echo "no rate: $rate" >&2; exit 3; }
cat > out/estimator <<EOF
#!/bin/sh
read l; echo '{"turn":0,"media_bps":$rate,"about":{"version":2,"name":"mine","events":["limits"]}}'; cat >/dev/null
EOF
chmod +x out/estimator
"#;

fn git(folder: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(folder).args(["-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]);
    let o = git.args(words).env("LC_ALL", "C").env("GIT_CONFIG_GLOBAL", "/dev/null").output().expect("git is there");
    assert!(o.status.success(), "git {words:?}: {}", text(&o.stderr));
    text(&o.stdout)
}

/// A repository with a commit for each rate, and a folder for temporary files.
fn repository(rates: &[&str]) -> (tempfile::TempDir, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path();
    git(path, &["init", "-q", "-b", "main", "."]);
    for (name, text) in [("clean.toml", CLEAN), ("weir-gate.toml", GATE), ("build.sh", BUILD), (".gitignore", "out\n")]
    {
        std::fs::write(path.join(name), text).expect("written");
    }
    for (i, rate) in rates.iter().enumerate() {
        std::fs::write(path.join("rate"), rate).expect("written");
        std::fs::write(path.join("number"), i.to_string()).expect("written");
        git(path, &["add", "-A"]);
        git(path, &["commit", "-q", "-m", &format!("A rate of {rate}")]);
    }
    (dir, tempfile::tempdir().expect("a folder"))
}

fn weir(folder: &Path, temporary: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).env("TMPDIR", temporary).env("NO_COLOR", "1").env("COLUMNS", "80");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").args(["gate", "--allow-exec"]).args(args);
    command
}

fn bisect(folder: &Path, temporary: &Path, words: [&str; 3], more: &[&str]) -> Output {
    weir(folder, temporary, &[&["--bisect"], &words[..], more].concat()).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn in_one_line(bytes: &[u8]) -> String {
    text(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All of a repository that a search could leave changed.
fn state(folder: &Path) -> String {
    let all: [&[&str]; 4] =
        [&["status", "--porcelain"], &["worktree", "list"], &["for-each-ref"], &["rev-parse", "HEAD"]];
    all.map(|words| git(folder, words)).concat()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).expect("a folder").next().is_none()
}

#[test]
fn the_first_commit_that_fails_is_named_with_its_budget() {
    let rates = ["400000", "400001", "none", "400002", "400003", "100000", "100001", "none", "100002", "100003"];
    let (dir, temporary) = repository(&rates);
    let path = dir.path();
    // Changes that are not committed are no part of it, and stay.
    std::fs::write(path.join("rate"), "7").expect("written");
    std::fs::write(path.join("new"), "file").expect("written");
    let hook = path.join(".git/hooks/post-checkout");
    std::fs::create_dir_all(path.join(".git/hooks")).expect("a folder");
    std::fs::write(&hook, "#!/bin/sh\ntouch hooked; exit 1\n").expect("written");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
    let before = state(path);
    let o = bisect(path, temporary.path(), ["main~9", "main", "sh build.sh"], &[]);
    let (out, said) = (text(&o.stdout), in_one_line(&o.stderr));
    assert_eq!(o.status.code(), Some(0), "{out}{said}");
    let short = git(path, &["rev-parse", "--short", "main~4"]);
    assert!(out.contains(&format!("{} A rate of 100000 is the first that fails.", short.trim())), "{out}");
    let line = "weir-gate.toml:4: clean.toml, exec:./out/estimator: goodput_bps >= 200000 fails";
    assert!(in_one_line(&o.stdout).contains(line), "{out}");
    assert!(out.lines().all(|l| l.chars().count() <= 80), "{out}");
    assert!(said.contains("not committed") && said.contains("passes"), "{said}");
    assert_eq!(state(path), before);
    assert!(is_empty(temporary.path()) && !path.join("hooked").exists() && !path.join("out").exists());
    // Both ends, the logarithm of what is between, and those left out.
    let tried = out.lines().filter(|l| l.contains("A rate of")).count() - 1;
    assert!((4..=8).contains(&tried), "{out}");
}

#[test]
fn commits_that_do_not_build_are_named_where_they_may_be_the_first() {
    let (dir, temporary) = repository(&["400000", "none", "100000"]);
    let below = dir.path().join("below");
    std::fs::create_dir(&below).expect("a folder");
    std::fs::write(below.join("kept"), "").expect("written");
    git(dir.path(), &["add", "-A"]);
    git(dir.path(), &["commit", "-q", "-m", "A folder"]);
    let o = bisect(dir.path(), temporary.path(), ["HEAD~3", "HEAD", "sh build.sh"], &["-q"]);
    let (out, said) = (in_one_line(&o.stdout), in_one_line(&o.stderr));
    assert_eq!(o.status.code(), Some(1), "{out}{said}");
    assert!(out.contains("A rate of 100000 is the first that fails."), "{out}");
    assert!(out.contains("Not judged, and perhaps the first:") && out.contains("A rate of none."), "{out}");
    assert!(said.contains("1 commits beside it could not be judged"), "{said}");
    // From a folder that GOOD does not have.
    std::fs::write(dir.path().join("below.toml"), GATE.replace("./out/", "./built/")).expect("written");
    let build = "sh -c 'cd .. && sh build.sh && cp -r out below/built'";
    let o = bisect(&below, temporary.path(), ["HEAD~3", "HEAD", build], &["-q", "../below.toml"]);
    let said = in_one_line(&o.stderr);
    assert_eq!(o.status.code(), Some(1), "{said}");
    assert!(said.contains("GOOD = HEAD~3 cannot be judged: it has no folder below"), "{said}");
    assert!(is_empty(temporary.path()));
}

#[test]
fn wrong_words_have_a_way_out_and_nothing_is_left() {
    let (dir, temporary) = repository(&["100000", "400000", "100001"]);
    let path = dir.path();
    let none = tempfile::tempdir().expect("a folder");
    for name in ["clean.toml", "weir-gate.toml"] {
        std::fs::copy(path.join(name), none.path().join(name)).expect("copied");
    }
    let build = "sh build.sh";
    let before = state(path);
    for (folder, words, code, parts) in [
        (none.path(), ["a", "b", build], 2, &["no worktree of git is here", "GOOD and BAD"][..]),
        (path, ["--all", "main", build], 2, &["GOOD = `--all` is no commit", "git log"]),
        (path, ["-x", "main", build], 2, &["GOOD = `-x` is no commit"]),
        (path, ["main~1", "main:rate", build], 2, &["BAD = `main:rate` is no commit"]),
        (path, ["main~1", "no/such\u{1b}[2J", build], 2, &["is no commit", "no/such"]),
        (path, ["main", "main~1", build], 2, &["GOOD = `main` is no ancestor of BAD = `main~1`", "merge-base"]),
        (path, ["main", "main", build], 2, &["is no ancestor"]),
        (path, ["main~1", "main", "sh 'x"], 2, &["CMD = `sh 'x` is no command"]),
        (path, ["main~1", "main", "/no/such/program"], 2, &["`/no/such/program` does not start", "sh -c"]),
        (path, ["main~2", "main", build], 1, &["GOOD = main~2 fails too", "give an earlier commit"]),
        (path, ["main~2", "main~1", build], 1, &["BAD = main~1 passes", "nothing to find"]),
        (path, ["main~1", "main", "sh -c 'echo no luck >&2; exit 9'"], 1, &["BAD = main cannot be judged", "no luck"]),
        // No estimator was built.
        (path, ["main~1", "main", "true"], 1, &["BAD = main cannot be judged", "does not start"]),
    ] {
        let o = bisect(folder, temporary.path(), words, &["-q"]);
        let said = in_one_line(&o.stderr);
        assert_eq!((o.status.code(), o.stdout.len()), (Some(code), 0), "{words:?}: {said}");
        let lacking: Vec<_> = parts.iter().filter(|p| !said.contains(**p)).collect();
        assert!(lacking.is_empty() && !said.contains('\u{1b}'), "{words:?}: lacks {lacking:?}: {said}");
        assert!(is_empty(temporary.path()), "{words:?}");
    }
    assert_eq!(state(path), before);
    let o = bisect(path, temporary.path(), ["main~1", "main", build], &["--json"]);
    assert_eq!(o.status.code(), Some(2));
    assert!(in_one_line(&o.stderr).contains("cannot be used with"), "{}", text(&o.stderr));
}

#[test]
fn a_stop_kills_the_build_and_leaves_the_repository_whole() {
    let (dir, temporary) = repository(&["400000", "100000"]);
    let path = dir.path();
    let before = state(path);
    for signal in ["-INT", "-TERM"] {
        let begun = path.join("out");
        let _ = std::fs::remove_dir_all(&begun);
        let build = format!("sh -c 'mkdir -p {}; sleep 100 & wait'", begun.display());
        let mut command = weir(path, temporary.path(), &["--bisect", "main~1", "main", &build]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        for _ in 0..500 {
            if begun.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(begun.exists(), "the build has begun");
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill").success());
        let o = child.wait_with_output().expect("ends");
        assert_eq!(o.status.code(), Some(130), "{signal}: {}", text(&o.stderr));
        assert!(is_empty(temporary.path()), "{signal}");
    }
    assert_eq!(state(path), before);
}
