//! Pairs of measurements: this build's program beside that of another commit, run by turns.

use crate::repository::git;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Interval at which the stop flag is looked at while a program runs.
const LOOK: Duration = Duration::from_millis(50);
/// Folder below the repository's root that keeps what was built of other commits.
const CACHE: &str = "target/bench-against";

/// Why there is no comparison.
#[derive(Debug, PartialEq, Eq)]
pub enum AgainstError {
    /// The stop flag was set.
    Stopped,
    /// A command or a file failed, in words.
    Failed(String),
}

fn failed(what: impl Into<String>) -> AgainstError {
    AgainstError::Failed(what.into())
}

/// The commit that a name stands for in the repository at `root`, as 40 hexadecimal digits. Errors: there is none.
pub fn commit(root: &Path, name: &str) -> Result<String, AgainstError> {
    let spec = format!("{name}^{{commit}}");
    git(root, &["rev-parse", "--verify", "--quiet", "--end-of-options", &spec])
        .map_err(|_| failed(format!("{name} is no commit of the repository {}", root.display())))
}

/// A worktree of a commit in a folder of its own, which goes with this value.
#[derive(Debug)]
struct Worktree<'a> {
    root: &'a Path,
    folder: PathBuf,
}

impl<'a> Worktree<'a> {
    fn new(root: &'a Path, commit: &str) -> Result<Self, AgainstError> {
        // A process may have several of one commit at a time.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-bench-{}-{}-{number}", &commit[..12], std::process::id());
        let folder = std::env::temp_dir().join(name);
        let worktree = Self { root, folder };
        git(root, &["worktree", "add", "--detach", "--quiet", &worktree.folder.to_string_lossy(), commit])
            .map_err(failed)?;
        Ok(worktree)
    }
}

impl Drop for Worktree<'_> {
    fn drop(&mut self) {
        // If git fails, a folder for temporary files is left, and an entry that `git worktree prune` removes.
        let _ = git(self.root, &["worktree", "remove", "--force", &self.folder.to_string_lossy()]);
    }
}

/// Waits for a program, and kills it where the stop flag is set.
fn wait(mut child: std::process::Child, stop: &AtomicBool) -> Result<std::process::Output, AgainstError> {
    let mut out = child.stdout.take();
    // Read beside the waiting, so that a full pipe holds nobody up.
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = out.as_mut().map(|out| std::io::Read::read_to_end(out, &mut bytes));
        read.transpose().map(|_| bytes)
    });
    let status = loop {
        if stop.load(Ordering::Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(AgainstError::Stopped);
        }
        match child.try_wait().map_err(|e| failed(e.to_string()))? {
            Some(status) => break status,
            None => std::thread::sleep(LOOK),
        }
    };
    let stdout = reader.join().map_err(|_| failed("a program's output was not read"))?;
    Ok(std::process::Output { status, stdout: stdout.map_err(|e| failed(e.to_string()))?, stderr: Vec::new() })
}

/// The program `weir` of a commit in release mode. It is built in a worktree in the folder for temporary files, with a target
/// folder of its own, and kept below `target/bench-against`: a second call finds it there. `say` gets a line about what is
/// done. Errors: the build fails, or the stop flag is set.
pub fn program(root: &Path, commit: &str, stop: &AtomicBool, say: &dyn Fn(&str)) -> Result<PathBuf, AgainstError> {
    let cache = root.join(CACHE);
    let kept = cache.join(commit).join(format!("weir{}", std::env::consts::EXE_SUFFIX));
    if kept.is_file() {
        return Ok(kept);
    }
    let worktree = Worktree::new(root, commit)?;
    say(&format!("building {} once; it is kept in {}", &commit[..12], cache.display()));
    let target = cache.join("target");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--package", "weir"]).current_dir(&worktree.folder);
    let child = cargo.env("CARGO_TARGET_DIR", &target).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    let built = wait(child.map_err(|e| failed(format!("cargo does not start: {e}")))?, stop)?;
    if !built.status.success() {
        return Err(failed(format!("building {commit} has failed ({})", built.status)));
    }
    let place = kept.parent().unwrap_or(&cache);
    let made = target.join("release").join(kept.file_name().unwrap_or_default());
    let keep = std::fs::create_dir_all(place).and_then(|()| std::fs::copy(&made, &kept));
    keep.map_err(|e| failed(format!("{}: {e}", kept.display())))?;
    Ok(kept)
}

/// A row of `weir bench --json`, as far as all versions have it.
#[derive(Deserialize, Clone, PartialEq, Debug)]
struct Measured {
    name: String,
    unit: String,
    speed: f64,
}

#[derive(Deserialize)]
struct Output {
    rows: Vec<Measured>,
}

/// Runs `weir bench --json` of a program once.
fn measure(program: &Path, scale: f64, stop: &AtomicBool) -> Result<Vec<Measured>, AgainstError> {
    let mut command = Command::new(program);
    command.args(["bench", "--json", "--quiet", "--ns3", "never", "--scale", &scale.to_string()]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let out = wait(child.map_err(|e| failed(format!("{} does not start: {e}", program.display())))?, stop)?;
    if !out.status.success() {
        return Err(failed(format!("{} bench has failed ({})", program.display(), out.status)));
    }
    let output: Result<Output, _> = serde_json::from_slice(&out.stdout);
    Ok(output.map_err(|e| failed(format!("{} bench --json printed something else: {e}", program.display())))?.rows)
}

/// A row of two programs.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    /// Its name.
    pub name: String,
    /// The unit of the speeds, as `weir bench --json` has it.
    pub unit: String,
    /// Median speed of the other commit; absent where it has no such row, or one in another unit.
    pub before: Option<f64>,
    /// Median speed of this build; absent where it has no such row.
    pub now: Option<f64>,
    /// How many times as fast this build is: the ratio of the medians, upside down where the unit is a time.
    pub ratio: Option<f64>,
    /// The least ratio of one round.
    pub least: Option<f64>,
    /// The greatest ratio of one round.
    pub most: Option<f64>,
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[n / 2]),
        n => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
    }
}

/// Joins the rounds of both programs, row by row: those of this build in their order, then those that only the other has.
fn pairs(before: &[Vec<Measured>], now: &[Vec<Measured>]) -> Vec<Pair> {
    let mut names: Vec<(String, String)> = Vec::new();
    for row in now.iter().chain(before).flatten() {
        let key = (row.name.clone(), row.unit.clone());
        if !names.contains(&key) {
            names.push(key);
        }
    }
    let speeds = |rounds: &[Vec<Measured>]| {
        let mut all: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
        for row in rounds.iter().flatten() {
            all.entry((row.name.clone(), row.unit.clone())).or_default().push(row.speed);
        }
        all
    };
    let (before, now) = (speeds(before), speeds(now));
    let pair = |key: (String, String)| {
        let (b, n) = (before.get(&key).map_or(&[][..], Vec::as_slice), now.get(&key).map_or(&[][..], Vec::as_slice));
        // Less is faster where the unit is a time.
        let faster = |before: f64, now: f64| if key.1.starts_with("ns_") { before / now } else { now / before };
        let ratios: Vec<f64> = b.iter().zip(n).map(|(b, n)| faster(*b, *n)).collect();
        let (before, now) = (median(b), median(n));
        Pair {
            ratio: before.zip(now).map(|(b, n)| faster(b, n)),
            least: ratios.iter().copied().reduce(f64::min),
            most: ratios.iter().copied().reduce(f64::max),
            before,
            now,
            name: key.0,
            unit: key.1,
        }
    };
    names.into_iter().map(pair).collect()
}

/// The rows of two programs.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The rows of both.
    pub pairs: Vec<Pair>,
    /// Whole rounds measured: fewer than asked for if the stop flag was set meanwhile.
    pub rounds: u32,
}

/// Measures both programs by turns, `rounds` times each, the first of a round taking turns too. `begins` is called before
/// each with the share of the work that is done. Errors: a program fails, or the stop flag is set before the end of the first round.
pub fn compare(
    (before, now): (&Path, &Path),
    (rounds, scale): (u32, f64),
    stop: &AtomicBool,
    begins: &dyn Fn(f64, &str),
) -> Result<Comparison, AgainstError> {
    let mut measured = [Vec::new(), Vec::new()];
    'rounds: for round in 0..rounds {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for (k, side) in order.into_iter().enumerate() {
            let (program, name) = if side == 0 { (before, "the other commit") } else { (now, "this build") };
            begins(
                f64::from(2 * round + k as u32) / f64::from(2 * rounds),
                &format!("round {} of {rounds}: {name}", round + 1),
            );
            match measure(program, scale, stop) {
                Err(AgainstError::Stopped) if round > 0 => break 'rounds,
                rows => measured[side].push(rows?),
            }
        }
    }
    let [mut before, mut now] = measured;
    let whole = before.len().min(now.len());
    before.truncate(whole);
    now.truncate(whole);
    Ok(Comparison { pairs: pairs(&before, &now), rounds: whole as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, unit: &str, speed: f64) -> Measured {
        Measured { name: name.into(), unit: unit.into(), speed }
    }

    #[test]
    fn medians_are_paired_and_rows_of_one_side_are_absent() {
        let before =
            [100.0, 90.0, 110.0].map(|s| vec![row("udp", "packets_per_cpu_s", s), row("old", "ns_per_packet", 1.0)]);
        let now =
            [150.0, 135.0, 220.0].map(|s| vec![row("udp", "packets_per_cpu_s", s), row("new", "ns_per_packet", 2.0)]);
        let all = pairs(&before, &now);
        assert_eq!(all.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["udp", "new", "old"]);
        assert_eq!((all[0].before, all[0].now, all[0].ratio), (Some(100.0), Some(150.0), Some(1.5)));
        assert_eq!((all[0].least, all[0].most), (Some(1.5), Some(2.0)));
        assert_eq!((all[1].before, all[1].now, all[1].ratio), (None, Some(2.0), None));
        assert_eq!((all[2].before, all[2].now, all[2].ratio), (Some(1.0), None, None));
    }

    #[test]
    fn less_time_is_faster_and_other_units_are_other_rows() {
        let all = pairs(&[vec![row("gcc", "ns_per_packet", 52.0)]], &[vec![row("gcc", "ns_per_packet", 104.0)]]);
        assert_eq!(all[0].ratio, Some(0.5));
        let all = pairs(&[vec![row("gcc", "ns_per_packet", 52.0)]], &[vec![row("gcc", "packets_per_cpu_s", 1.0)]]);
        assert!(all.len() == 2 && all.iter().all(|p| p.ratio.is_none()), "{all:?}");
    }

    #[test]
    fn medians_of_even_counts_lie_between() {
        assert_eq!((median(&[3.0, 1.0]), median(&[5.0, 1.0, 3.0]), median(&[])), (Some(2.0), Some(3.0), None));
    }

    #[cfg(unix)]
    #[test]
    fn whole_rounds_are_kept_where_it_is_stopped() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("weir");
        let rows = r#"{"rows":[{"name":"udp","unit":"ns_per_packet","speed":2.0}]}"#;
        std::fs::write(&program, format!("#!/bin/sh\necho '{rows}'\n")).expect("written");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
        for (at, whole) in
            [("round 1 of 3: this build", None), ("round 3 of 3: the other commit", Some(2)), ("-", Some(3))]
        {
            let stop = AtomicBool::new(false);
            let begins = |_: f64, name: &str| stop.store(name == at, std::sync::atomic::Ordering::Relaxed);
            let found = compare((&program, &program), (3, 1.0), &stop, &begins);
            assert_eq!(found.as_ref().ok().map(|f| f.rounds), whole, "{at}: {found:?}");
            assert!(found.is_ok_and(|f| f.pairs[0].ratio == Some(1.0)) == whole.is_some());
        }
    }

    /// A repository with one commit.
    fn repository() -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        git(root, &["init", "--quiet"]).expect("git");
        std::fs::write(root.join("file"), "one").expect("written");
        git(root, &["add", "file"]).expect("added");
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "One"];
        git(root, &author).expect("committed");
        let head = commit(root, "HEAD").expect("there is one");
        (folder, head)
    }

    #[test]
    fn a_worktree_goes_with_its_value_and_a_commit_that_is_not_there_is_named() {
        let (folder, head) = repository();
        let worktree = Worktree::new(folder.path(), &head).expect("made");
        let place = worktree.folder.clone();
        assert_eq!(std::fs::read_to_string(place.join("file")).expect("there"), "one");
        drop(worktree);
        assert!(!place.exists());
        assert_eq!(git(folder.path(), &["worktree", "list"]).expect("listed").lines().count(), 1);
        let AgainstError::Failed(why) = commit(folder.path(), "no-such-name").expect_err("none") else {
            panic!("stopped")
        };
        assert!(why.starts_with("no-such-name is no commit"), "{why}");
    }

    #[test]
    fn a_build_that_is_stopped_or_fails_leaves_no_worktree() {
        let (folder, head) = repository();
        for stop in [true, false] {
            let ended =
                program(folder.path(), &head, &AtomicBool::new(stop), &|_| {}).expect_err("there is nothing to build");
            assert_eq!(ended == AgainstError::Stopped, stop, "{ended:?}");
            assert_eq!(git(folder.path(), &["worktree", "list"]).expect("listed").lines().count(), 1);
        }
    }
}
