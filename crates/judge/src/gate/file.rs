//! The file of a gate: controllers, suites and budgets.

use super::budget::{Bound, Budget, FORMS, Than};
use serde::Deserialize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;
use weir_lab::scenario::{InputError, parse_time, read_text, suggest};

/// Greatest size of a gate's file, in bytes.
pub const MAX_FILE: u64 = 1 << 20;
/// Most controllers and suites of a file, budgets and rows of a suite, seeds, and seconds.
const MAX_CONTROLLERS: usize = 32;
const MAX_SUITES: usize = 200;
const MAX_BUDGETS: usize = 100;
const MAX_ROWS: usize = 100;
const MAX_RUNS: u32 = 10_000;
const MAX_TIME_S: f64 = 86_400.0;
/// Values where the file has none: time in s, seeds, the first seed, error.
const TIME_S: f64 = 60.0;
const RUNS: u32 = 40;
const SEED: u64 = 1;
const ERROR: f64 = 0.05;
/// Greatest error: at a half a coin would do.
const MAX_ERROR: f64 = 0.4;

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    controllers: Spanned<Vec<Spanned<String>>>,
    time: Option<Spanned<String>>,
    runs: Option<Spanned<i64>>,
    seed: Option<Spanned<i64>>,
    error: Option<Spanned<f64>>,
    suites: Spanned<Vec<Spanned<RawSuite>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    name: Option<Spanned<String>>,
    scenario: Option<Spanned<String>>,
    rows: Option<Spanned<Vec<Spanned<String>>>>,
    rfc8867: Option<Spanned<bool>>,
    budgets: Option<Spanned<Vec<Spanned<String>>>>,
}

/// A text, and its place in the file in bytes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct At {
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

impl From<&Spanned<String>> for At {
    fn from(spanned: &Spanned<String>) -> Self {
        Self { text: spanned.get_ref().clone(), span: spanned.span() }
    }
}

/// A file that has been read: its words have their forms, and nothing that it names has been looked for.
#[derive(Clone, PartialEq, Debug)]
pub struct GateFile {
    name: String,
    text: Arc<str>,
    folder: PathBuf,
    pub(super) controllers: Vec<At>,
    /// Time for the runs in s.
    pub time_s: f64,
    /// Most seeds of each controller in each scenario.
    pub runs: u32,
    pub(super) runs_at: Range<usize>,
    /// The first seed.
    pub seed: u64,
    /// Accepted probability of a wrong verdict, over all budgets.
    pub error: f64,
    pub(super) suites: Vec<Suite>,
}

/// Scenarios, and budgets for each.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Suite {
    pub(super) name: String,
    pub(super) of: Of,
    /// None for the goals of rows, or the criteria of RFC 8867.
    pub(super) budgets: Vec<(At, Budget)>,
    /// Path of the suite's fields.
    pub(super) field: String,
}

/// Scenarios of a suite.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Of {
    Scenario(At),
    Rows(Vec<At>),
    Rfc8867(Range<usize>),
}

impl Suite {
    /// Where the suite says what it runs.
    pub(super) fn span(&self) -> Range<usize> {
        match &self.of {
            Of::Scenario(at) => at.span.clone(),
            Of::Rows(rows) => rows.first().map_or(0..0, |r| r.span.clone()),
            Of::Rfc8867(span) => span.clone(),
        }
    }
}

impl GateFile {
    /// A file from disk. Scenarios that it names by a path are looked for from its folder.
    ///
    /// # Errors
    /// It cannot be read, or see [`Self::parse`].
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let name = path.display().to_string();
        let text = read_text(path, MAX_FILE).map_err(|why| {
            InputError::whole(&name, why).help("docs/gate.md has a whole file; `weir gate FILE` names another")
        })?;
        Self::parse(&name, &text, path.parent().unwrap_or(Path::new("")))
    }

    /// A file's text.
    ///
    /// # Errors
    /// It is no TOML, has a field that does not exist, or a value out of its range: with the place, the value and a way out.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, InputError> {
        let text: Arc<str> = text.into();
        let raw: Raw = toml::from_str(&text).map_err(|e| unread(name, &text, &e))?;
        let mut file = Self {
            name: name.into(),
            text,
            folder: folder.into(),
            controllers: raw.controllers.get_ref().iter().map(At::from).collect(),
            time_s: TIME_S,
            runs: RUNS,
            runs_at: raw.runs.as_ref().map_or_else(|| raw.controllers.span(), Spanned::span),
            seed: SEED,
            error: ERROR,
            suites: Vec::new(),
        };
        file.numbers(&raw)?;
        file.check_controllers(raw.controllers.span())?;
        let suites = raw.suites.get_ref();
        if suites.is_empty() || suites.len() > MAX_SUITES {
            let message = format!("{} suites: expected 1 to {MAX_SUITES}", suites.len());
            return Err(file.fault(raw.suites.span(), "suites", message, "each is headed [[suites]]"));
        }
        for (i, suite) in suites.iter().enumerate() {
            let suite = file.suite(suite, &format!("suites[{i}]"))?;
            if let Some(other) = file.suites.iter().find(|s| s.name == suite.name) {
                let message = format!("two suites are named `{}`", other.name);
                let help = "give one of them another `name`";
                return Err(file.fault(suite.span(), &format!("{}.name", suite.field), message, help));
            }
            file.suites.push(suite);
        }
        Ok(file)
    }

    /// Its name for messages: the path by which it was read.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The controllers that it judges, by name.
    pub fn controllers(&self) -> impl Iterator<Item = &str> {
        self.controllers.iter().map(|c| c.text.as_str())
    }

    /// All controllers that it names: those judged, and those that budgets compare with.
    pub fn named(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.controllers().collect();
        for (_, budget) in self.suites.iter().flat_map(|s| &s.budgets) {
            if let Bound::NoWorse { than: Than::Controller(name), .. } = &budget.bound
                && !all.contains(&name.as_str())
            {
                all.push(name);
            }
        }
        all
    }

    /// An error about one of the names that it has, at its place.
    pub fn at_name(&self, name: &str, message: &str, help: &str) -> InputError {
        let judged = self.controllers.iter().find(|c| c.text == name).map(|c| (c.span.clone(), "controllers".into()));
        let compared = || {
            let of = |suite: &Suite| {
                let is = |b: &Budget| matches!(&b.bound, Bound::NoWorse { than: Than::Controller(n), .. } if n == name);
                let (at, _) = suite.budgets.iter().find(|(_, b)| is(b))?;
                Some((at.span.clone(), format!("{}.budgets", suite.field)))
            };
            self.suites.iter().find_map(of)
        };
        let (span, field) = judged.or_else(compared).unwrap_or((0..0, String::new()));
        self.fault(span, &field, message, help)
    }

    /// Where a scenario is that the file names by a path.
    pub(super) fn path(&self, given: &str) -> String {
        self.folder.join(given).display().to_string()
    }

    /// Line of a place, from 1.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        self.text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1)
    }

    /// An error at a place.
    pub(super) fn fault(
        &self,
        span: Range<usize>,
        field: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> InputError {
        InputError::at(&self.name, &self.text, span, message).field(field).help(help)
    }

    fn numbers(&mut self, raw: &Raw) -> Result<(), InputError> {
        if let Some(time) = &raw.time {
            let help = "such as time = \"60 s\"; it ends the runs, whatever is undecided then";
            let seconds = parse_time(time.get_ref()).map_err(|why| self.fault(time.span(), "time", why, help))?;
            self.time_s = seconds.as_secs_f64();
            if !(1.0..=MAX_TIME_S).contains(&self.time_s) {
                let message = format!("{}: expected 1 s to {} min", time.get_ref(), MAX_TIME_S / 60.0);
                return Err(self.fault(time.span(), "time", message, help));
            }
        }
        if let Some(runs) = &raw.runs {
            let n = u32::try_from(*runs.get_ref()).ok().filter(|n| (1..=MAX_RUNS).contains(n));
            let message = || format!("{}: expected 1 to {MAX_RUNS}", runs.get_ref());
            let help = format!("most seeds of each controller in each scenario; {RUNS} if absent");
            self.runs = n.ok_or_else(|| self.fault(runs.span(), "runs", message(), help))?;
        }
        if let Some(seed) = &raw.seed {
            let message = || format!("{}: expected 0 or more", seed.get_ref());
            let n = u64::try_from(*seed.get_ref());
            self.seed = n.map_err(|_| self.fault(seed.span(), "seed", message(), "the first seed; 1 if absent"))?;
        }
        if let Some(error) = &raw.error {
            self.error = *error.get_ref();
            if !(self.error > 0.0 && self.error <= MAX_ERROR) {
                let message = format!("{}: expected more than 0 and at most {MAX_ERROR}", self.error);
                let help = "probability of a wrong verdict over all budgets; 0.05 if absent";
                return Err(self.fault(error.span(), "error", message, help));
            }
        }
        Ok(())
    }

    fn check_controllers(&self, list: Range<usize>) -> Result<(), InputError> {
        let all = &self.controllers;
        if all.is_empty() || all.len() > MAX_CONTROLLERS {
            let message = format!("{} controllers: expected 1 to {MAX_CONTROLLERS}", all.len());
            return Err(self.fault(list, "controllers", message, "such as controllers = [\"gcc\"]"));
        }
        for (i, c) in all.iter().enumerate() {
            if all[..i].iter().any(|other| other.text == c.text) {
                return Err(self.fault(
                    c.span.clone(),
                    "controllers",
                    format!("`{}` is named twice", c.text),
                    "name it once",
                ));
            }
        }
        Ok(())
    }

    fn suite(&self, raw: &Spanned<RawSuite>, field: &str) -> Result<Suite, InputError> {
        let suite = raw.get_ref();
        let rows = suite.rows.as_ref().map(|rows| (rows.span(), rows.get_ref().iter().map(At::from).collect()));
        let kinds = [
            suite.scenario.as_ref().map(|s| (s.span(), Of::Scenario(s.into()))),
            rows.map(|(span, rows)| (span, Of::Rows(rows))),
            suite.rfc8867.as_ref().filter(|r| *r.get_ref()).map(|r| (r.span(), Of::Rfc8867(r.span()))),
        ];
        let mut kinds = kinds.into_iter().flatten();
        let help = "one of scenario = \"NAME or FILE\", rows = [\"h10\"] and rfc8867 = true";
        let Some((span, of)) = kinds.next() else {
            return Err(self.fault(raw.span(), field, "the suite runs nothing", help));
        };
        if let Some((other, _)) = kinds.next() {
            return Err(self.fault(other, field, "the suite runs two kinds of scenarios", format!("{help}, no more")));
        }
        if let Of::Rows(rows) = &of
            && (rows.is_empty() || rows.len() > MAX_ROWS)
        {
            let message = format!("{} rows: expected 1 to {MAX_ROWS}", rows.len());
            return Err(self.fault(span, &format!("{field}.rows"), message, "such as rows = [\"e\", \"h10\"]"));
        }
        let given = suite.budgets.as_ref();
        let count = given.map_or(0, |b| b.get_ref().len());
        let is_scenario = matches!(of, Of::Scenario(_));
        if count > MAX_BUDGETS || (count == 0 && (is_scenario || given.is_some())) {
            let place = given.map_or(span, Spanned::span);
            let message = format!("{count} budgets: expected 1 to {MAX_BUDGETS}");
            return Err(self.fault(place, &format!("{field}.budgets"), message, FORMS));
        }
        let name = match (&suite.name, &of) {
            (Some(name), _) => name.get_ref().trim().to_owned(),
            (None, Of::Scenario(at)) => at.text.clone(),
            (None, Of::Rows(rows)) => {
                format!("rows {}", rows.iter().map(|r| r.text.as_str()).collect::<Vec<_>>().join(","))
            }
            (None, Of::Rfc8867(_)) => "rfc8867".into(),
        };
        if name.is_empty() || name.len() > 100 || name.chars().any(char::is_control) {
            let span = suite.name.as_ref().map_or_else(|| raw.span(), Spanned::span);
            let message = format!("`{}`: expected 1 to 100 bytes of one line", name.escape_debug());
            return Err(self.fault(span, &format!("{field}.name"), message, "give the suite a short `name`"));
        }
        let budgets = given.map_or(&[][..], |b| b.get_ref());
        let budgets = budgets.iter().enumerate().map(|(i, text)| self.budget(text, &format!("{field}.budgets[{i}]")));
        Ok(Suite { name, of, budgets: budgets.collect::<Result<_, _>>()?, field: field.into() })
    }

    fn budget(&self, text: &Spanned<String>, field: &str) -> Result<(At, Budget), InputError> {
        let at = At::from(text);
        let budget = Budget::parse(&at.text).map_err(|fault| {
            // Within the quotes, if the text has no escapes.
            let inside = at.span.start + 1..at.span.end.saturating_sub(1);
            let span = match self.text.get(inside.clone()) {
                Some(written) if written == at.text => inside.start + fault.span.start..inside.start + fault.span.end,
                _ => at.span.clone(),
            };
            self.fault(span, field, fault.message, fault.help)
        })?;
        Ok((at, budget))
    }
}

/// The error of the TOML library, with the nearest name where one is unknown.
fn unread(file: &str, text: &Arc<str>, e: &toml::de::Error) -> InputError {
    let message = e.message();
    let error = InputError::at(file, text, e.span().unwrap_or(0..0), message);
    let mut names = message.split('`').skip(1).step_by(2);
    match names.next() {
        Some(given) if message.starts_with("unknown field `") => {
            let known: Vec<&str> = names.collect();
            InputError::at(file, text, e.span().unwrap_or(0..0), format!("unknown field `{given}`"))
                .field(given)
                .help(suggest::help(given, &known))
        }
        Some(lacking) if message.starts_with("missing field `") => {
            error.field(lacking).help("docs/gate.md has a whole file")
        }
        _ => error.help("docs/gate.md has a whole file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "controllers = [\"gcc\"]\n";
    const SUITE: &str = "[[suites]]\nscenario = \"quick\"\nbudgets = [\"loss <= 0.02\"]\n";

    fn parse(text: &str) -> Result<GateFile, InputError> {
        GateFile::parse("gate.toml", text, Path::new("dir"))
    }

    #[test]
    fn a_whole_file_is_read_with_its_defaults() {
        let text = "controllers = [\"gcc\", \"exec:./mine\"]\ntime = \"2 min\"\nruns = 30\nseed = 0\nerror = 0.1\n\
                    [[suites]]\nname = \"still\"\nscenario = \"quick\"\nbudgets = [\"loss <= 0.02\", \
                    \"utilisation no worse than sluice by 5 %\"]\n[[suites]]\nrows = [\"h\"]\n[[suites]]\nrfc8867 = true\n";
        let file = parse(text).expect("sound");
        assert_eq!((file.time_s.round(), file.runs, file.seed, file.error), (120.0, 30, 0, 0.1));
        assert_eq!(file.named(), ["gcc", "exec:./mine", "sluice"]);
        let names: Vec<&str> = file.suites.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["still", "rows h", "rfc8867"]);
        assert_eq!(file.line(&file.suites[0].budgets[1].0.span), 9);
        assert_eq!(file.path("a/b.toml"), Path::new("dir/a/b.toml").display().to_string());
        let plain = parse(&format!("{HEAD}{SUITE}")).expect("sound");
        assert_eq!((plain.time_s.round(), plain.runs, plain.seed, plain.error), (60.0, 40, 1, 0.05));
        let error = file.at_name("sluice", "no", "help");
        assert_eq!((error.position().map(|p| p.0), error.field_path()), (Some(9), Some("suites[0].budgets")));
    }

    /// Each fault has its line and column, its field, the value, and a way out.
    #[test]
    fn every_fault_has_its_place_and_a_way_out() {
        let with = |line: &str| format!("{HEAD}{line}\n{SUITE}");
        let suite = |lines: &str| format!("{HEAD}[[suites]]\n{lines}\n");
        let budget = |text: &str| suite(&format!("scenario = \"quick\"\nbudgets = [\"loss <= 1\", \"{text}\"]"));
        for (text, at, field, message, help) in [
            (with("tiem = \"5 s\""), (2, 1), "tiem", "unknown field `tiem`", "did you mean `time`?"),
            (with("time = \"5\""), (2, 8), "time", "has no unit", "such as time = \"60 s\""),
            (with("time = \"0 s\""), (2, 8), "time", "expected 1 s to 1440 min", "ends the runs"),
            (with("runs = 0"), (2, 8), "runs", "0: expected 1 to 10000", "40 if absent"),
            (with("runs = 5000000000"), (2, 8), "runs", "5000000000: expected", "most seeds"),
            (with("seed = -3"), (2, 8), "seed", "-3: expected 0 or more", "1 if absent"),
            (with("error = 0.5"), (2, 9), "error", "0.5: expected more than 0", "0.05 if absent"),
            (with("error = nan"), (2, 9), "error", "NaN: expected", "0.05 if absent"),
            (SUITE.into(), (1, 1), "controllers", "missing field `controllers`", "docs/gate.md"),
            (HEAD.into(), (1, 1), "suites", "missing field `suites`", "docs/gate.md"),
            (format!("controllers = []\n{SUITE}"), (1, 15), "controllers", "0 controllers", "such as"),
            (format!("controllers = [\"a\", \"a\"]\n{SUITE}"), (1, 21), "controllers", "`a` is named twice", "once"),
            (format!("suites = []\n{HEAD}"), (1, 10), "suites", "0 suites", "[[suites]]"),
            (suite("name = \"x\""), (2, 1), "suites[0]", "runs nothing", "rfc8867 = true"),
            (suite("rfc8867 = false"), (2, 1), "suites[0]", "runs nothing", "scenario ="),
            (suite("scenario = \"a\"\nrows = [\"e\"]"), (4, 8), "suites[0]", "two kinds", "no more"),
            (suite("rows = []"), (3, 8), "suites[0].rows", "0 rows", "rows = [\"e\", \"h10\"]"),
            (suite("scenario = \"a\""), (3, 12), "suites[0].budgets", "0 budgets", "METRIC <= N"),
            (suite("rows = [\"e\"]\nbudgets = []"), (4, 11), "suites[0].budgets", "0 budgets", "METRIC <= N"),
            (suite("name = \"\"\nrows = [\"e\"]"), (3, 8), "suites[0].name", "1 to 100 bytes", "short `name`"),
            (format!("{HEAD}{SUITE}{SUITE}"), (6, 12), "suites[1].name", "two suites are named `quick`", "another"),
            (budget("loss < 1"), (4, 26), "suites[0].budgets[1]", "`loss < 1` is no budget", "METRIC >= N"),
            (budget("loss <= 1 %"), (4, 33), "suites[0].budgets[1]", "found `1 %`", "not written"),
            (budget("loss no worse than gcc"), (4, 45), "suites[0].budgets[1]", "not NAME by N %", "by 10 %"),
        ] {
            let error = parse(&text).expect_err(&text);
            assert_eq!((error.position(), error.field_path()), (Some(at), Some(field)), "{text}: {error}");
            assert!(error.message().contains(message), "{text}: {error}");
            assert!(error.help_text().is_some_and(|h| h.contains(help)), "{text}: {:?}", error.help_text());
        }
        let error = parse("controllers = [").expect_err("no TOML");
        assert!(error.position().is_some() && error.help_text().is_some(), "{error}");
        let many = format!("controllers = [{}]\n{SUITE}", "\"a\",".repeat(40));
        assert!(parse(&many).expect_err("many").message().contains("40 controllers"));
    }

    #[test]
    fn a_file_that_is_not_there_or_too_large_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("weir-gate.toml");
        let error = GateFile::read(&path).expect_err("missing");
        assert!(error.message().contains("no such file") && error.help_text().is_some(), "{error}");
        std::fs::write(&path, vec![b'#'; MAX_FILE as usize + 1]).expect("written");
        assert!(GateFile::read(&path).expect_err("large").message().contains("at most"), "bounded");
    }
}
