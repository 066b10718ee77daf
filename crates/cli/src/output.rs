//! Standard output and standard error, and the exit codes.

use miette::{GraphicalReportHandler, GraphicalTheme};
use std::borrow::Cow;
use std::fs;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use weir_lab::plan::PlanError;
use weir_lab::scenario::InputError;

/// A run or a write failed.
const FAILED: u8 = 1;
/// The command line, or a file that it names, is wrong, or the command is not there.
pub(crate) const USAGE: u8 = 2;
/// A recording that was read is damaged.
const DAMAGED: u8 = 3;
/// Interrupted, as shells report it: 128 and the signal's number.
const INTERRUPTED: u8 = 130;

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user's input is invalid.
    Input(InputError),
    /// This build lacks the command.
    Absent(String),
    /// The work failed.
    Work(String),
    /// A recording is damaged; the rest of it has been shown, and the damage said.
    Damaged,
    /// Ctrl-C or SIGTERM.
    Interrupted,
    /// The same while a read waited for what is named.
    Reading(String),
    /// Standard output was closed, as by `head`: there is nobody to tell.
    Closed,
}

impl From<InputError> for Failure {
    fn from(e: InputError) -> Self {
        Self::Input(e)
    }
}

impl Failure {
    pub(crate) fn work(e: impl std::fmt::Display) -> Self {
        Self::Work(e.to_string())
    }

    /// A command's plan that cannot be run, or was not.
    pub(crate) fn plan(command: &'static str, e: PlanError) -> Self {
        match e {
            PlanError::Stopped => Self::Interrupted,
            PlanError::Stuck { .. } => Self::work(e),
            e => InputError::whole(command, e.to_string()).into(),
        }
    }

    /// Reports it to the user, and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Closed => ExitCode::SUCCESS,
            Self::Damaged => ExitCode::from(DAMAGED),
            Self::Interrupted => {
                remark("interrupted");
                ExitCode::from(INTERRUPTED)
            }
            Self::Reading(what) => {
                let what = if what == "-" { "standard input" } else { &what };
                remark(&format!("interrupted while reading {what}"));
                ExitCode::from(INTERRUPTED)
            }
            Self::Absent(what) => {
                remark(&what);
                ExitCode::from(USAGE)
            }
            Self::Work(what) => {
                remark(&format!("error: {what}"));
                ExitCode::from(FAILED)
            }
            Self::Input(e) => {
                let mut text = String::new();
                let colour =
                    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
                let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
                if GraphicalReportHandler::new_themed(theme).render_report(&mut text, &e).is_err() {
                    text = e.to_string();
                }
                // Colours are ours, the words have none but printable characters.
                let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
                ExitCode::from(USAGE)
            }
        }
    }
}

/// Makes sure, before minutes of work, that files can be written into a folder, which the work makes if it is absent. Nothing
/// is left behind. Errors: they cannot, with the option that names the folder.
pub(crate) fn check_folder(option: &str, folder: &Path) -> Result<(), Failure> {
    let absent: Vec<&Path> = folder.ancestors().take_while(|f| !f.as_os_str().is_empty() && !f.exists()).collect();
    let probe = folder.join(format!(".weir-{}", std::process::id()));
    let tried =
        fs::create_dir_all(folder).and_then(|()| fs::File::create_new(&probe)).and_then(|_| fs::remove_file(&probe));
    for made in absent {
        // Somebody else may use it by now.
        let _ = fs::remove_dir(made);
    }
    let wrong = |e: std::io::Error| {
        let error = InputError::whole(option, format!("{}: cannot be written: {e}", folder.display()));
        Failure::from(error.help("name a folder that can, or one in it"))
    };
    tried.map_err(wrong)
}

/// The same of a file's folder, which has to be there.
pub(crate) fn check_file(option: &str, file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() || file.is_dir() {
        let what = if file.is_dir() { "is a folder" } else { "its folder is not there" };
        return Err(InputError::whole(option, format!("{}: {what}", file.display())).help("name a file").into());
    }
    // A device or a pipe, such as /dev/stdout, is written as it is.
    if file.exists() && !file.is_file() { Ok(()) } else { check_folder(option, folder) }
}

/// Refuses a file that is written if it is one of those that are read, by whatever name: what was recorded would be gone.
pub(crate) fn check_apart<'a>(
    option: &str,
    file: &Path,
    read: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    if !read.into_iter().any(|other| is_same(file, other)) {
        return Ok(());
    }
    let why = format!("{}: is read as well, and would be written over", file.display());
    Err(InputError::whole(option, why).help("name another file").into())
}

/// Whether two names lead to one file. A device or a pipe is none that can be lost.
fn is_same(a: &Path, b: &Path) -> bool {
    let (Ok(first), Ok(second)) = (fs::metadata(a), fs::metadata(b)) else { return false };
    #[cfg(unix)]
    let same = {
        use std::os::unix::fs::MetadataExt;
        (first.dev(), first.ino()) == (second.dev(), second.ino())
    };
    #[cfg(not(unix))]
    let same = fs::canonicalize(a).ok().is_some_and(|a| fs::canonicalize(b).is_ok_and(|b| a == b));
    same && first.is_file() && second.is_file()
}

/// A line on standard error. A closed standard error is no failure.
pub(crate) fn remark(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable(text));
}

/// Text without control characters: names and titles of files from elsewhere could write anything anywhere on a terminal.
fn printable(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let next = text.chars().skip(1).map(Some).chain([None]);
    // A file's own line ends stay.
    let is_kept = |c: char, next: Option<char>| is_plain(c) || (c == '\r' && next == Some('\n'));
    let kept = text.chars().zip(next).map(|(c, next)| if is_kept(c, next) { c } else { char::REPLACEMENT_CHARACTER });
    Cow::Owned(kept.collect())
}

/// Prints on standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_as_is(&printable(text))
}

fn print_as_is(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Err(Failure::Closed),
        other => other.map_err(|e| Failure::Work(format!("standard output: {e}"))),
    }
}

/// Version of the schemas of `--json`. It goes up where a field changes its meaning or disappears; new fields leave it as it is.
const SCHEMA_VERSION: u32 = 1;

/// The name that an output gives its schema by.
pub(crate) fn schema_id(of: &str) -> String {
    format!("weir:{of}:{SCHEMA_VERSION}")
}

/// Prints a value as JSON, led by the name of the schema that it follows.
pub(crate) fn print_report(of: &str, value: &impl serde::Serialize) -> Result<(), Failure> {
    #[derive(serde::Serialize)]
    struct Named<'a, T> {
        schema: String,
        #[serde(flatten)]
        value: &'a T,
    }
    let mut text = serde_json::to_string_pretty(&Named { schema: schema_id(of), value }).map_err(Failure::work)?;
    text.push('\n');
    // Programs read it, and strings in it have their control characters escaped.
    print_as_is(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_not_printed_and_line_ends_stay() {
        assert!(matches!(printable("plain\ttext\n"), Cow::Borrowed(_)));
        assert_eq!(printable("a\u{1b}[2Jb\r\nc\rd\u{9b}\u{7f}"), "a\u{fffd}[2Jb\r\nc\u{fffd}d\u{fffd}\u{fffd}");
    }
}
