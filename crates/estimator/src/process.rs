//! An estimator's process: turns are written to its standard input, answers read from its standard output.

use crate::binary::{self, HEAD, Head};
use crate::protocol::{Answer, Event, Form, Turn};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Wall time for an answer. Start-up has more: some languages compile first.
const BUDGET: Duration = Duration::from_secs(5);
const START_BUDGET: Duration = Duration::from_secs(60);
/// Interval at which the budget is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Time in which a process may end by itself after its input has ended.
const GRACE: Duration = Duration::from_secs(1);
/// Most probes of an answer.
pub(crate) const MAX_PROBES: usize = 16;
/// Longest answer in bytes.
const MAX_ANSWER: u64 = 1 << 20;
/// Bytes of standard error that are kept, the last ones.
const MAX_COMPLAINTS: usize = 4 << 10;
/// Most processes at once.
const MAX_PROCESSES: usize = 256;

/// Wall times for answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budgets {
    /// For the answer to turn 0.
    pub(crate) start: Duration,
    /// For every other one.
    pub(crate) turn: Duration,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { start: START_BUDGET, turn: BUDGET }
    }
}

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "a process is watched by the wall clock; no result depends on it")]
pub(crate) fn wall() -> Instant {
    Instant::now()
}

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Why an estimator is not followed any longer, or was never begun with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The command has no words, or a quote without its end.
    #[error("`{0}` is no command: give a program and its arguments, quoted as in a shell")]
    NoCommand(String),
    /// The program does not start.
    #[error("`{program}` does not start: {error}{}", here(.program))]
    DoesNotStart {
        /// The program.
        program: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// There are as many processes as may be.
    #[error("{MAX_PROCESSES} estimators run already: use fewer flows or threads (--jobs)")]
    TooMany,
    /// The process has ended.
    #[error("it ended ({status}) in place of an answer to turn {turn}{}{complaints}", long(*.bytes))]
    Ended {
        /// The turn.
        turn: u64,
        /// Bytes of the turn's message.
        bytes: usize,
        /// Its exit code or signal.
        status: String,
        /// The end of its standard error.
        complaints: String,
    },
    /// No answer within the budget.
    #[error("no answer to turn {turn} within {} s; it was killed. A turn has one answer, flushed{complaints}", budget.as_secs())]
    Late {
        /// The turn.
        turn: u64,
        /// The budget.
        budget: Duration,
        /// The end of its standard error.
        complaints: String,
    },
    /// An answer is too long.
    #[error("the answer to turn {turn} is longer than {MAX_ANSWER} bytes, or has no line end")]
    TooLong {
        /// The turn.
        turn: u64,
    },
    /// An answer is not in the protocol.
    #[error("the answer to turn {turn} cannot be read: {why}; it begins with `{line}`")]
    Unreadable {
        /// The turn.
        turn: u64,
        /// The fault.
        why: String,
        /// Its begin.
        line: String,
    },
    /// An answer has an impossible value.
    #[error("the answer to turn {turn} has {field} = {value}; expected {expected}")]
    Impossible {
        /// The turn.
        turn: u64,
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// The values that are possible.
        expected: String,
    },
}

/// Most characters of a stranger's text that an error repeats.
const MAX_SHOWN: usize = 200;

/// Text of a process as an error repeats it: short, and without control characters, which a terminal would obey.
pub(crate) fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut out: String = text.chars().take(MAX_SHOWN).map(plain).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        out.push_str(" ...");
    }
    out
}

/// The process that was started.
struct Running {
    child: Child,
    /// Its end has been taken from the system, so that its number, and its group's, may be another's.
    is_reaped: bool,
}

impl Running {
    /// How it ended, if it has.
    fn status(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten();
        self.is_reaped |= status.is_some();
        status
    }
}

/// State shared with the threads that watch and listen.
struct Watched {
    child: Mutex<Running>,
    /// When the answer is due; `None` between turns.
    due: Mutex<Option<Instant>>,
    was_late: AtomicBool,
    is_over: AtomicBool,
    complaints: Mutex<VecDeque<u8>>,
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watched {
    /// Kills the process and those that it started. These hold its output open after its own end.
    fn kill(&self) {
        let mut running = lock(&self.child);
        #[cfg(unix)]
        if !running.is_reaped
            && let Ok(id) = i32::try_from(running.child.id())
        {
            let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL);
        }
        let _ = running.child.kill();
    }

    fn complaints(&self) -> String {
        let kept: Vec<u8> = lock(&self.complaints).iter().copied().collect();
        let text = String::from_utf8_lossy(&kept);
        let last: Vec<&str> = text.lines().rev().filter(|l| !l.trim().is_empty()).take(5).collect();
        let lines: Vec<String> = last.into_iter().rev().map(shown).collect();
        if lines.is_empty() { String::new() } else { format!("; standard error: {}", lines.join(" / ")) }
    }
}

/// Messages exchanged with a process, and the wall time from writing a turn to having its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) turns: u64,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
}

/// A running estimator.
pub(crate) struct Process {
    watched: Arc<Watched>,
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    text: Vec<u8>,
    next: u64,
    budgets: Budgets,
    /// Form of messages from turn 1 on.
    form: Form,
    traffic: Traffic,
}

/// The program and its arguments of a command, whose words are separated as in a shell; no shell is involved.
///
/// # Errors
/// There is no word, or a quote has no end.
pub fn words(command: &str) -> Result<Vec<String>, Fault> {
    let words = shlex::split(command).filter(|w| !w.is_empty());
    words.ok_or_else(|| Fault::NoCommand(command.into()))
}

/// A hint where a command without a folder is a file of the current one.
fn here(program: &str) -> String {
    if program.contains(std::path::MAIN_SEPARATOR) || !std::path::Path::new(program).is_file() {
        return String::new();
    }
    format!("; the file of this folder is `./{program}`, or an argument of what runs it: `python3 {program}`")
}

/// A hint where a message is longer than readers of lines take by default.
fn long(bytes: usize) -> String {
    const LINE: usize = 64 << 10;
    if bytes < LINE {
        return String::new();
    }
    format!(", whose message has {bytes} bytes: does it bound a line (Go's bufio.Scanner takes 64 KiB)?")
}

impl Process {
    /// Starts a command, whose words are separated as in a shell; no shell is involved.
    pub(crate) fn start(command: &str, budgets: Budgets) -> Result<Self, Fault> {
        let words = words(command)?;
        if RUNNING.fetch_add(1, Ordering::Relaxed) >= MAX_PROCESSES {
            RUNNING.fetch_sub(1, Ordering::Relaxed);
            return Err(Fault::TooMany);
        }
        let mut process = Command::new(&words[0]);
        process.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, to be killed with its children; Ctrl-C at the terminal ends the run first.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        let mut child = process.spawn().map_err(|error| {
            RUNNING.fetch_sub(1, Ordering::Relaxed);
            Fault::DoesNotStart { program: words[0].clone(), error }
        })?;
        let (input, output, complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let watched = Arc::new(Watched {
            child: Mutex::new(Running { child, is_reaped: false }),
            due: Mutex::new(None),
            was_late: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            complaints: Mutex::new(VecDeque::new()),
        });
        let (watching, listening) = (Arc::clone(&watched), Arc::clone(&watched));
        thread::spawn(move || watch(&watching));
        if let Some(complaints) = complaints {
            thread::spawn(move || listen(complaints, &listening));
        }
        let (Some(input), Some(output)) = (input, output) else { unreachable!("both are pipes") };
        Ok(Self {
            watched,
            input: Some(BufWriter::with_capacity(1 << 16, input)),
            output: BufReader::with_capacity(1 << 16, output),
            line: Vec::new(),
            text: Vec::new(),
            next: 0,
            budgets,
            form: Form::Json,
            traffic: Traffic::default(),
        })
    }

    /// Turns are exchanged in this form from now on.
    pub(crate) fn speak(&mut self, form: Form) {
        self.form = form;
    }

    /// The turn that was answered last.
    pub(crate) const fn turn(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    /// The turns after the first so far.
    pub(crate) const fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Writes a turn and reads its answer. `events` is cleared.
    pub(crate) fn ask(&mut self, events: &mut Vec<Event>) -> Result<Answer, Fault> {
        let turn = self.next;
        self.next += 1;
        let begin = wall();
        self.text.clear();
        match self.form {
            Form::Binary => binary::write_turn(turn, events, &mut self.text),
            Form::Json => {
                let message = Turn { turn, events: std::mem::take(events) };
                // Into memory, where nothing fails.
                let _ = serde_json::to_writer(&mut self.text, &message);
                self.text.push(b'\n');
                *events = message.events;
            }
        }
        let count = events.len() as u64;
        events.clear();
        let budget = if turn == 0 { self.budgets.start } else { self.budgets.turn };
        *lock(&self.watched.due) = Some(begin + budget);
        if let Some(input) = &mut self.input {
            // One that has ended may have answered first.
            let _ = input.write_all(&self.text).and_then(|()| input.flush());
        }
        let answer = match self.form {
            Form::Binary => self.frame(turn),
            Form::Json => self.line(turn),
        };
        *lock(&self.watched.due) = None;
        if self.watched.was_late.load(Ordering::Relaxed) && answer.is_err() {
            return Err(Fault::Late { turn, budget, complaints: self.watched.complaints() });
        }
        if turn > 0 {
            self.traffic.turns += 1;
            self.traffic.events += count;
            self.traffic.bytes += self.text.len() as u64;
            self.traffic.took += begin.elapsed();
        }
        answer
    }

    /// Reads an answer in JSON.
    fn line(&mut self, turn: u64) -> Result<Answer, Fault> {
        self.line.clear();
        let read = (&mut self.output).take(MAX_ANSWER).read_until(b'\n', &mut self.line);
        let has_end = self.line.last() == Some(&b'\n');
        match read {
            Ok(1..) if has_end => {}
            Ok(1..) if self.line.len() as u64 >= MAX_ANSWER => return Err(Fault::TooLong { turn }),
            _ => return Err(self.ended(turn)),
        }
        let read = serde_json::from_slice(&self.line).map_err(|e| e.to_string());
        read.and_then(|answer| in_order(answer, turn)).map_err(|why| {
            let line = String::from_utf8_lossy(&self.line);
            Fault::Unreadable { turn, why: shown(&why), line: shown(line.trim_end()) }
        })
    }

    /// Reads an answer in the binary form: its head, which says how much follows, and so much.
    fn frame(&mut self, turn: u64) -> Result<Answer, Fault> {
        self.line.clear();
        self.line.resize(HEAD, 0);
        if self.output.read_exact(&mut self.line).is_err() {
            return Err(self.ended(turn));
        }
        let unreadable = |bytes: &[u8], why: String| {
            let digits: Vec<String> = bytes.iter().take(HEAD).map(|b| format!("{b:02x}")).collect();
            Fault::Unreadable { turn, why: shown(&why), line: digits.join(" ") }
        };
        let head = Head::read(&self.line).map_err(|why| unreadable(&self.line, why))?;
        if let Some(why) = head.fault(MAX_PROBES) {
            return Err(unreadable(&self.line, why));
        }
        self.line.resize(HEAD + head.length as usize, 0);
        if self.output.read_exact(&mut self.line[HEAD..]).is_err() {
            return Err(self.ended(turn));
        }
        let read = binary::read_answer(&self.line).and_then(|answer| in_order(answer, turn));
        read.map_err(|why| unreadable(&self.line, why))
    }

    fn ended(&self, turn: u64) -> Fault {
        // Its last words may still be under way.
        let status = wait(&self.watched).unwrap_or_else(|| {
            self.watched.kill();
            "its output was closed".into()
        });
        thread::sleep(LOOK);
        Fault::Ended { turn, bytes: self.text.len(), status, complaints: self.watched.complaints() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        if wait(&self.watched).is_none() {
            self.watched.kill();
            let mut running = lock(&self.watched.child);
            running.is_reaped |= running.child.wait().is_ok();
        }
        self.watched.is_over.store(true, Ordering::Relaxed);
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

fn in_order(answer: Answer, turn: u64) -> Result<Answer, String> {
    if answer.turn == turn {
        return Ok(answer);
    }
    Err(format!("it answers turn {}: one answer a turn, in order", answer.turn))
}

/// Waits for the end of a process for the time of grace.
fn wait(watched: &Watched) -> Option<String> {
    let end = wall() + GRACE;
    loop {
        if let Some(status) = lock(&watched.child).status() {
            return Some(status.to_string());
        }
        if wall() >= end {
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the process when an answer is overdue, which ends the read.
fn watch(watched: &Watched) {
    while !watched.is_over.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
        if lock(&watched.due).is_some_and(|due| wall() >= due) {
            watched.was_late.store(true, Ordering::Relaxed);
            watched.kill();
            return;
        }
    }
}

/// Keeps the end of standard error, so that the process never waits for room in it.
fn listen(mut from: impl Read, watched: &Watched) {
    let mut part = [0; 1024];
    while let Ok(count @ 1..) = from.read(&mut part) {
        let mut kept = lock(&watched.complaints);
        kept.extend(&part[..count]);
        let surplus = kept.len().saturating_sub(MAX_COMPLAINTS);
        kept.drain(..surplus);
    }
}
