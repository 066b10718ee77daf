//! `weir gate --bisect GOOD BAD CMD`: the commit from which on a budget fails.
//!
//! Commits are built and judged in a worktree of their own, by the gate's file as it is here: the judge stays the same while the estimator
//! changes. A commit that does not build, does not start or stays undecided is left out, and others are tried in its place.

use super::child::{Child, Ended};
use super::git::{Commit, Repository, Worktree};
use super::{begin, permitted};
use crate::Done;
use crate::args::GateArgs;
use crate::output::{Failure, print, remark};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;
use weir_estimator::words;
use weir_judge::gate::{Baseline, Check, Ended as GateEnded, GateFile, Plan, Verdict, Work};
use weir_lab::run::RunOptions;
use weir_lab::scenario::InputError;

/// Wall time for a build.
const BUILD: Duration = Duration::from_secs(3600);

/// Verdict on a commit.
enum Tried {
    Passes,
    /// With the budgets that fail.
    Fails(Vec<Check>),
    /// With the reason.
    LeftOut(String),
}

impl Tried {
    const fn name(&self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Fails(_) => "fails",
            Self::LeftOut(_) => "left out",
        }
    }
}

/// All that judges a commit.
struct Judge<'a> {
    session: &'a Session,
    args: &'a GateArgs,
    file: GateFile,
    baseline: Option<Baseline>,
    build: Vec<String>,
    repository: &'a Repository<'a>,
    worktree: Worktree<'a>,
    /// Commits that have been tried, with verdict and title.
    tried: Vec<(&'static str, String)>,
}

pub(super) fn bisect(session: &Session, args: &GateArgs, names: [&str; 2], command: &str) -> Done {
    let build = words(command).map_err(|e| {
        InputError::whole("--bisect", format!("CMD = {e}")).help("such as make, or \"sh -c 'cd sub && make'\"")
    })?;
    // Found from here, also while another folder is the current one.
    let path = std::path::absolute(&args.file).map_err(Failure::work)?;
    let file = super::read(&path, args)?;
    permitted(session, &file, args.allow_exec)?;
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let repository = Repository::here(&session.stop)?;
    let [good, bad] = [("GOOD", names[0]), ("BAD", names[1])].map(|(which, name)| repository.commit(which, name));
    let (good, bad) = (good?, bad?);
    if good == bad || !repository.is_ancestor(&good, &bad)? {
        let [good, bad] = names.map(str::escape_debug);
        let error = InputError::whole("--bisect", format!("GOOD = `{good}` is no ancestor of BAD = `{bad}`"));
        let help = format!("`git merge-base {good} {bad}` is one, if it passes");
        return Err(error.help(help).into());
    }
    if !args.quiet && repository.has_changes()? {
        remark("note: changes that are not committed are no part of what is tried");
    }
    let worktree = Worktree::new(&repository, &bad)?;
    let mut judge =
        Judge { session, args, file, baseline, build, repository: &repository, worktree, tried: Vec::new() };
    let failing = judge.ends(&good, &bad, names)?;
    let found = judge.search(good, bad, failing)?;
    print(&judge.text(&found)?)?;
    match found.left_out.len() {
        0 => Ok(()),
        n => Err(Failure::Work(format!("{n} commits beside it could not be judged: one of them may be the first"))),
    }
}

/// The first commit that is known to fail, its failing budgets, and those before it that could not be judged.
struct Found {
    commit: Commit,
    failing: Vec<Check>,
    left_out: Vec<Commit>,
}

impl Judge<'_> {
    /// Tries both ends: BAD has to fail, and GOOD to keep what fails there. Returns the budgets that fail.
    fn ends(&mut self, good: &Commit, bad: &Commit, names: [&str; 2]) -> Result<Vec<Check>, Failure> {
        let [of_good, of_bad] = names.map(str::escape_debug);
        let fold = |text: String| Failure::Work(text);
        let failing = match self.try_out(bad, None)? {
            Tried::Fails(failing) => failing,
            Tried::Passes => return Err(fold(format!("BAD = {of_bad} passes: there is nothing to find"))),
            Tried::LeftOut(why) => return Err(fold(format!("BAD = {of_bad} cannot be judged: {why}"))),
        };
        match self.try_out(good, Some(&failing))? {
            Tried::Passes => Ok(failing),
            Tried::Fails(also) => Err(fold(format!(
                "GOOD = {of_good} fails too: {}; give an earlier commit",
                also.iter().map(Check::sentence).collect::<Vec<_>>().join("; ")
            ))),
            Tried::LeftOut(why) => Err(fold(format!("GOOD = {of_good} cannot be judged: {why}"))),
        }
    }

    fn search(&mut self, good: Commit, mut bad: Commit, mut failing: Vec<Check>) -> Result<Found, Failure> {
        let (mut good, mut left_out) = (vec![good], Vec::<Commit>::new());
        // A commit counts by the budgets that fail at BAD: others are another matter.
        let asked = failing.clone();
        loop {
            let between = self.repository.between(&good, &bad)?;
            let next = between.iter().find(|c| **c != bad && !left_out.contains(c));
            let Some(next) = next.cloned() else {
                left_out.retain(|c| between.contains(c));
                return Ok(Found { commit: bad, failing, left_out });
            };
            match self.try_out(&next, Some(&asked))? {
                Tried::Passes => good.push(next),
                Tried::Fails(checks) => (bad, failing) = (next, checks),
                Tried::LeftOut(_) => left_out.push(next),
            }
        }
    }

    /// Builds and judges a commit, by these budgets or by all.
    fn try_out(&mut self, commit: &Commit, asked: Option<&[Check]>) -> Result<Tried, Failure> {
        let title = self.repository.title(commit)?;
        let tried = self.judge(commit, asked)?;
        if !self.args.quiet {
            let why = if let Tried::LeftOut(why) = &tried { format!(": {why}") } else { String::new() };
            remark(fold(&format!("{} {title}{why}\n", tried.name())).trim_end());
        }
        self.tried.push((tried.name(), title));
        Ok(tried)
    }

    fn judge(&self, commit: &Commit, asked: Option<&[Check]>) -> Result<Tried, Failure> {
        self.worktree.check_out(commit)?;
        if let Err(e) = self.worktree.enter() {
            let folder = self.repository.inside.display();
            return Ok(Tried::LeftOut(format!("it has no folder {folder}, from which this was started: {e}")));
        }
        let built = self.build()?;
        if !built.is_success() {
            let said: String = built.said().chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
            return Ok(Tried::LeftOut(format!("`{}` fails: {said}", self.build.join(" "))));
        }
        let (registry, faults) = permitted(self.session, &self.file, self.args.allow_exec)?;
        let plan = match Plan::new(&self.file, &registry) {
            Ok(plan) => plan,
            // Among others: the program is not there, or is no estimator.
            Err(e) => return Ok(Tried::LeftOut(format!("{}: {}", e.file(), e.message()))),
        };
        let begin = begin();
        let elapsed = || begin.elapsed().as_secs_f64();
        let work = Work {
            baseline: self.baseline.as_ref(),
            saves: false,
            threads: threads(self.args.jobs),
            elapsed: &elapsed,
            faults: &|| faults.take_here(),
        };
        let report = self.session.with_progress(self.args.quiet, true, |options, progress| {
            let options = RunOptions { registry: &registry, ..*options };
            plan.run(work, &options, &|what| progress.set_message(what.to_owned())).report
        });
        if report.ended == Some(GateEnded::Stopped) || self.session.stopped() {
            return Err(Failure::Interrupted);
        }
        let is_asked = |c: &&Check| asked.is_none_or(|asked| asked.iter().any(|a| is_same(a, c)));
        let checks: Vec<&Check> = report.checks.iter().filter(is_asked).collect();
        let failing: Vec<Check> = checks.iter().filter(|c| c.verdict == Verdict::Fails).map(|c| (*c).clone()).collect();
        Ok(match checks.iter().find(|c| c.verdict == Verdict::Undecided) {
            _ if !failing.is_empty() => Tried::Fails(failing),
            Some(check) => Tried::LeftOut(check.sentence()),
            None => Tried::Passes,
        })
    }

    fn build(&self) -> Result<Ended, Failure> {
        let mut command = Command::new(&self.build[0]);
        command.args(&self.build[1..]);
        let child = Child::start(command, 0).map_err(|e| {
            let error = InputError::whole("--bisect", format!("CMD = `{}` does not start: {e}", self.build[0]));
            error.help("no shell is involved: \"sh -c '...'\" is one")
        })?;
        child.wait(&self.session.stop, BUILD)
    }

    fn text(&self, found: &Found) -> Result<String, Failure> {
        let mut rows = table(&["verdict", "commit"], 2);
        for (verdict, title) in &self.tried {
            rows.add_row([(*verdict).to_owned(), title.clone()]);
        }
        let mut out = format!("{rows}\n\n");
        out += &fold(&format!("{} is the first that fails.\n", self.repository.title(&found.commit)?));
        for check in &found.failing {
            let _ = write!(
                out,
                "{}",
                fold(&format!("{}:{}: {}\n", self.args.file.display(), check.line, check.sentence()))
            );
        }
        for commit in &found.left_out {
            out += &fold(&format!("Not judged, and perhaps the first: {}.\n", self.repository.title(commit)?));
        }
        Ok(out)
    }
}

fn is_same(a: &Check, b: &Check) -> bool {
    (&a.suite, &a.scenario, &a.controller, &a.budget) == (&b.suite, &b.scenario, &b.controller, &b.budget)
}
