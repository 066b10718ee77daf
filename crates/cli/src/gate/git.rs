//! A git repository and a worktree of it that lives for one command, by the program `git`.
//!
//! Hooks do not run, names that look like options are refused by `--end-of-options`, and git is asked in its own language (LC_ALL=C). The
//! worktree of the user, with all that is not committed, is never touched.

use crate::gate::child::{Child, Ended};
use crate::output::{Failure, remark};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_lab::scenario::InputError;

/// Wall time for one command of git.
const LIMIT: Duration = Duration::from_secs(600);
/// Most bytes of an output: the names of a million commits.
const MAX_OUTPUT: u64 = 100 << 20;
/// Most characters of a commit's title.
const TITLE: usize = 60;
/// Variables of git that would lead to another repository, such as those that a hook has.
const AMBIENT: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG_PARAMETERS",
];

/// A commit by its whole name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Commit(String);

/// The repository around a folder.
pub(super) struct Repository<'a> {
    top: PathBuf,
    /// The folder, from the top.
    pub(super) inside: PathBuf,
    stop: &'a AtomicBool,
}

/// Text of others as one line: without control characters, which a terminal would obey.
fn plain(text: &str) -> String {
    let one = text.trim().chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c });
    one.collect()
}

fn run(folder: &Path, stop: &AtomicBool, words: &[&str]) -> Result<Ended, Failure> {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]).args(words);
    AMBIENT.iter().for_each(|name| _ = git.env_remove(name));
    git.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    let child = Child::start(git, MAX_OUTPUT).map_err(|e| {
        InputError::whole("git", format!("it does not start: {e}")).help("--bisect needs the program git in the PATH")
    })?;
    child.wait(stop, LIMIT)
}

impl<'a> Repository<'a> {
    /// The repository of the folder of the shell.
    pub(super) fn here(stop: &'a AtomicBool) -> Result<Self, Failure> {
        let asked = run(Path::new("."), stop, &["rev-parse", "--show-toplevel", "--show-prefix"])?;
        let mut lines = asked.output.lines();
        let Some(top) = lines.next().filter(|line| asked.is_success() && !line.is_empty()) else {
            let error = InputError::whole("--bisect", format!("no worktree of git is here: {}", plain(&asked.said())));
            return Err(error.help("run it in a folder of the repository that has GOOD and BAD").into());
        };
        Ok(Self { top: top.into(), inside: lines.next().unwrap_or_default().into(), stop })
    }

    fn git(&self, words: &[&str]) -> Result<Ended, Failure> {
        run(&self.top, self.stop, words)
    }

    /// The output of a command that has to succeed.
    fn output(&self, words: &[&str]) -> Result<String, Failure> {
        let ended = self.git(words)?;
        if ended.is_success() {
            return Ok(ended.output);
        }
        Err(Failure::Work(format!("git {}: {}", words.first().unwrap_or(&""), plain(&ended.said()))))
    }

    /// The commit that a name stands for; `which` is GOOD or BAD.
    pub(super) fn commit(&self, which: &str, name: &str) -> Result<Commit, Failure> {
        let wanted = format!("{name}^{{commit}}");
        let asked = self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted])?;
        let id = asked.output.trim();
        let is_id = (40..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit());
        if asked.is_success() && is_id {
            return Ok(Commit(id.into()));
        }
        let error =
            InputError::whole("--bisect", format!("{which} = `{}` is no commit of this repository", plain(name)));
        Err(error.help("a branch, a tag or a commit, as `git log --oneline` shows them").into())
    }

    /// Whether all that one commit has is in the other.
    pub(super) fn is_ancestor(&self, one: &Commit, of: &Commit) -> Result<bool, Failure> {
        Ok(self.git(&["merge-base", "--is-ancestor", &one.0, &of.0])?.is_success())
    }

    /// Commits that are in `bad` and in none of `good`, those first whose verdict halves the rest.
    pub(super) fn between(&self, good: &[Commit], bad: &Commit) -> Result<Vec<Commit>, Failure> {
        let mut words = vec!["rev-list", "--bisect-all", &bad.0, "--not"];
        words.extend(good.iter().map(|c| c.0.as_str()));
        let all = self.output(&words)?;
        Ok(all.lines().filter_map(|line| line.split(' ').next()).map(|id| Commit(id.into())).collect())
    }

    /// Short name and title.
    pub(super) fn title(&self, commit: &Commit) -> Result<String, Failure> {
        let line = plain(&self.output(&["log", "-1", "--format=%h %s", &commit.0])?);
        let mut short: String = line.chars().take(TITLE).collect();
        if line.chars().nth(TITLE).is_some() {
            short += "...";
        }
        Ok(short)
    }

    /// Whether files that git knows have changes that are not committed.
    pub(super) fn has_changes(&self) -> Result<bool, Failure> {
        let status = self.output(&["status", "--porcelain", "--untracked-files=no"])?;
        Ok(!status.trim().is_empty())
    }
}

/// A worktree in a folder of its own among temporary files. Dropped, it is gone, and the repository as it was.
pub(super) struct Worktree<'a> {
    repository: &'a Repository<'a>,
    folder: PathBuf,
    /// The folder of the shell, to which the process returns.
    home: PathBuf,
}

impl<'a> Worktree<'a> {
    /// A worktree at a commit.
    pub(super) fn new(repository: &'a Repository<'a>, commit: &Commit) -> Result<Self, Failure> {
        let home = std::env::current_dir().map_err(Failure::work)?;
        let folder = empty_folder().map_err(|e| Failure::Work(format!("a folder for the worktree: {e}")))?;
        let out = Self { repository, folder, home };
        let path = out.folder.display().to_string();
        repository.output(&["worktree", "add", "--quiet", "--detach", &path, &commit.0])?;
        Ok(out)
    }

    /// Files are those of a commit from now on; those that are ignored stay, so that builds are quick.
    pub(super) fn check_out(&self, commit: &Commit) -> Result<(), Failure> {
        // Git leaves a folder that somebody is in, even where the commit does not have it.
        std::env::set_current_dir(&self.home).map_err(Failure::work)?;
        let stop = self.repository.stop;
        for words in [&["checkout", "--quiet", "--force", "--detach", &commit.0][..], &["clean", "-ffdq"]] {
            let ended = run(&self.folder, stop, words)?;
            if !ended.is_success() {
                return Err(Failure::Work(format!("git {}: {}", words[0], plain(&ended.said()))));
            }
        }
        Ok(())
    }

    /// Goes to the folder that the shell is in, if the commit has it.
    pub(super) fn enter(&self) -> std::io::Result<()> {
        std::env::set_current_dir(self.folder.join(&self.repository.inside))
    }
}

impl Drop for Worktree<'_> {
    fn drop(&mut self) {
        let _ = std::env::set_current_dir(&self.home);
        let path = self.folder.display().to_string();
        // Also after Ctrl-C.
        let go_on = AtomicBool::new(false);
        let removed = run(&self.repository.top, &go_on, &["worktree", "remove", "--force", &path]);
        if self.folder.exists() {
            let _ = std::fs::remove_dir_all(&self.folder);
            let _ = run(&self.repository.top, &go_on, &["worktree", "prune"]);
        }
        if self.folder.exists() {
            let why = removed.map_or_else(|e| format!("{e:?}"), |ended| plain(&ended.said()));
            remark(&format!("{path} could not be removed ({why}): `git worktree remove --force {path}` does"));
        }
    }
}

/// A new folder that nobody else can enter.
fn empty_folder() -> std::io::Result<PathBuf> {
    #[cfg(unix)]
    let builder = {
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
    };
    #[cfg(not(unix))]
    let builder = std::fs::DirBuilder::new();
    let mut number = 0;
    loop {
        let folder = std::env::temp_dir().join(format!("weir-bisect-{}-{number}", std::process::id()));
        match builder.create(&folder) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists && number < 1_000 => number += 1,
            done => return done.map(|()| folder),
        }
    }
}
