//! `weir open`.

mod page;

use crate::Done;
use crate::args::OpenArgs;
use crate::episodes;
use crate::output::{Failure, check_apart, check_file, print, print_report, remark};
use crate::reading::heeding;
use crate::session::Session;
use crate::tables::{fold, table};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_estimator::PREFIX;
use weir_lab::scenario::InputError;
use weir_timeline::lint::lint;
use weir_timeline::redact::{Pseudonyms, redact};
use weir_timeline::replay::{self, ReplayError};
use weir_timeline::why::{Curves, Explanation, Level, Rules, curves, explain};
use weir_timeline::{Call, Format, Interruption, ReadError, Recording, Report, Source, Window, read};
use weir_units::TimeDelta;

/// Largest file of rules, in bytes.
const MAX_RULES: u64 = 1 << 20;

fn open_file(path: &Path) -> Result<Recording, InputError> {
    let name = path.display().to_string();
    let refused = |why: String| InputError::whole(&name, why);
    let file = weir_files::open(path).map_err(|e| refused(e.to_string()))?;
    read(&name, file).map_err(|e| match e {
        ReadError::Io(e) => refused(e.to_string()),
        e => refused(e.to_string()).help("weir help open lists the formats"),
    })
}

/// Writes copies of the files without private details; names of files are replaced too where there are several.
fn write_redacted(files: &[PathBuf], out: &Path) -> Done {
    let several = files.len() > 1;
    let refused = |path: &Path, e: &std::io::Error| {
        let (why, way) = match e.kind() {
            ErrorKind::AlreadyExists => ("is there already".to_owned(), "name one that is not, or remove it"),
            _ => (format!("cannot be written: {e}"), "name another place"),
        };
        InputError::whole("--redact", format!("{}: {why}", path.display())).help(way)
    };
    if several {
        std::fs::create_dir(out).map_err(|e| refused(out, &e))?;
    }
    let mut names = Pseudonyms::default();
    for (i, path) in files.iter().enumerate() {
        let name = path.display().to_string();
        let file = weir_files::open(path).map_err(|e| InputError::whole(&name, e.to_string()))?;
        let to = if several { out.join(format!("{}", i + 1)) } else { out.to_path_buf() };
        // Never over a file that is there: it may be the one that is read.
        let target = File::create_new(&to).map_err(|e| refused(&to, &e))?;
        let mut target = BufWriter::new(target);
        let done = redact(file, &mut target, &mut names).map_err(|e| InputError::whole(&name, e.to_string()))?;
        let mut line = format!("{}: {}, written to {}", name, done.format.name(), to.display());
        if done.left_out > 0 {
            let _ = write!(line, "; {} records left out", done.left_out);
        }
        if let Some(why) = done.stop {
            let _ = write!(line, "; stopped early: {why}");
        }
        remark(&line);
    }
    Ok(())
}

/// The recordings of one call; reading them ends at the stop flag.
pub(crate) fn call(session: &Session, files: &[PathBuf]) -> Result<Call, Failure> {
    let mut recordings = Vec::new();
    for path in files {
        let given = path.clone();
        recordings.push(heeding(&session.stop, &path.display().to_string(), move || open_file(&given))??);
    }
    Ok(Call::new(recordings))
}

pub(crate) fn open(session: &Session, args: &OpenArgs) -> Done {
    if let Some(out) = &args.redact {
        let (files, out) = (args.files.clone(), out.clone());
        return heeding(&session.stop, "the recordings", move || write_redacted(&files, &out))?;
    }
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        let why = format!("{to} s is not behind --from, {from} s");
        return Err(InputError::whole("--to", why).help("give a later time, or leave it out").into());
    }
    if let Some(name) = args.controllers.iter().find(|name| name.starts_with(PREFIX)) {
        let why = format!("`{name}`: a recording cannot be fed to a program, to Weir's own controllers alone");
        let help = "weir whatif runs a program over the link of the call";
        return Err(InputError::whole("--controllers", why).help(help).into());
    }
    session.check_controllers("--controllers", &args.controllers)?;
    let mut controllers: Vec<String> = Vec::new();
    for name in &args.controllers {
        if !controllers.contains(name) {
            controllers.push(name.clone());
        }
    }
    if let Some(page) = &args.report {
        check_file("--report", page)?;
        check_apart("--report", page, args.files.iter().chain(&args.rules).map(PathBuf::as_path))?;
    }
    let rules = args.rules.as_deref().map(rules).transpose()?;
    let call = call(session, &args.files)?;
    let length = call.recordings.iter().filter_map(Recording::span).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let length = length.map_or(0.0, |(from, to)| (to - from).as_secs_f64());
    if let Some(from) = args.from.filter(|from| *from > length) {
        let why = format!("{from} s is behind the call's end: it is {length:.1} s long");
        return Err(InputError::whole("--from", why).help("give an earlier time").into());
    }
    let wanted = Wanted {
        episodes: args.why || args.json || args.report.is_some() || rules.is_some(),
        findings: args.lint || args.report.is_some(),
        curves: args.report.is_some() || rules.is_some(),
        rules,
        controllers,
        window: (args.from, args.to),
    };
    let found = heeding(&session.stop, "the recordings", move || wanted.find(call))?;
    let found = found.map_err(|e| InputError::whole("--controllers", e.to_string()))?;
    if let Some(path) = &args.report {
        page::write(path, &found)?;
        if !args.quiet {
            remark(&format!("report: {}", path.display()));
        }
    }
    if args.json {
        print_report("open", &found.report)?;
    } else {
        print(&text(&found, args))?;
    }
    whole(&found.report.sources.iter().flat_map(damage).collect::<Vec<_>>(), args.quiet)
}

/// Where the recordings of a call could not be read, and why.
pub(crate) fn damages(call: &Call) -> Vec<String> {
    call.recordings.iter().flat_map(|r| damage(&Source::from(r))).collect()
}

/// Says damage after what could be read was shown. Errors: there is some.
pub(crate) fn whole(damages: &[String], quiet: bool) -> Done {
    if damages.is_empty() {
        return Ok(());
    }
    if !quiet {
        damages.iter().for_each(|line| remark(line));
    }
    Err(Failure::Damaged)
}

/// Where a file could not be read, and why.
fn damage(source: &Source) -> Vec<String> {
    let line = |what: &str, at: &Interruption| format!("{}: {what} at byte {}: {}", source.path, at.offset, at.why);
    let passed_over = source.damaged.as_ref().map(|at| line("damaged", at) + ", and what is like it, was passed over");
    passed_over.into_iter().chain(source.stopped.as_ref().map(|at| line("stopped", at))).collect()
}

/// Findings that are wanted.
struct Wanted {
    episodes: bool,
    findings: bool,
    curves: bool,
    rules: Option<Rules>,
    controllers: Vec<String>,
    /// Begin and end, in s.
    window: (Option<f64>, Option<f64>),
}

/// The part of a call that is shown, and what was found in it.
struct Found {
    call: Call,
    report: Report,
    curves: Option<Curves>,
    /// First time in any of the files, in Unix ms: zero of what is shown, in a window too.
    start_ms: i64,
}

impl Wanted {
    /// Episodes and targets are found in the whole call, as they depend on what was before.
    fn find(self, mut call: Call) -> Result<Found, ReplayError> {
        let none = Explanation { level: Level::None, episodes: Vec::new(), missing: None };
        let mut found = if self.episodes { explain(&call) } else { none };
        let mut over_time = if self.curves { curves(&call) } else { None };
        if let (Some(rules), Some(curves)) = (&self.rules, &over_time) {
            rules.apply(&mut found.episodes, curves);
        }
        let replays = self.controllers.iter().map(|name| replay::replay(&call, name)).collect::<Result<_, _>>()?;
        let window = match self.window {
            (None, None) => None,
            (from, to) => Window::of(&call, from.unwrap_or(0.0), to),
        };
        let start_ms = call.recordings.iter().filter_map(Recording::span).map(|s| s.0.as_millis()).min().unwrap_or(0);
        if let Some(window) = window {
            window.cut(&mut call);
        }
        let mut report = Report { replays, ..Report::new(&call, found) };
        if self.findings {
            report.findings = call.recordings.iter().flat_map(lint).collect();
        }
        if let Some(window) = window {
            window.cut_report(&mut report);
            over_time.iter_mut().for_each(|curves| window.cut_curves(curves));
        }
        Ok(Found { call, report, curves: over_time, start_ms })
    }
}

/// Rules of a user's file.
fn rules(path: &Path) -> Result<Rules, Failure> {
    let name = path.display().to_string();
    let text = weir_files::read_text(path, MAX_RULES).map_err(|e| InputError::whole(&name, e.to_string()))?;
    let text: Arc<str> = text.into();
    Rules::parse(&text).map_err(|e| {
        let fault = InputError::at(&name, &text, e.span, e.message).field(e.field);
        e.help.map_or(fault.clone(), |help| fault.help(help)).into()
    })
}

fn text(found: &Found, args: &OpenArgs) -> String {
    let Found { call, report, .. } = found;
    let mut out = String::new();
    for (recording, source) in call.recordings.iter().zip(&report.sources) {
        file(&mut out, recording, source);
    }
    if args.why || args.rules.is_some() {
        let missing = report.missing.as_deref();
        out.push_str(&episodes::text(report.level, missing, &report.episodes, found.start_ms));
    }
    if args.lint {
        findings(&mut out, report);
    }
    if !report.replays.is_empty() {
        targets(&mut out, report, found.start_ms);
    }
    out
}

fn times(n: u64) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

fn findings(out: &mut String, report: &Report) {
    if report.findings.is_empty() {
        out.push_str("No rule of RTP or RTCP is broken by what can be read.\n");
    }
    for f in &report.findings {
        out.push_str(&fold(&format!("{} ({}): {} by {} packets", f.rule, f.path, times(f.count), f.direction)));
        out.push('\n');
        for p in &f.packets {
            let table = if p.rtcp { "RTCP" } else { "RTP" };
            out.push_str(&fold(&format!("  packet {} ({table}): {}", p.number, p.text)));
            out.push('\n');
        }
        out.push_str(&fold(&format!("  {}: {}", f.section, f.effect)));
        out.push('\n');
    }
}

/// Targets of each controller each 5 s, and what they are.
fn targets(out: &mut String, report: &Report, start_ms: i64) {
    let mut head = vec!["s".to_owned()];
    head.extend(report.replays.iter().map(|r| format!("{} kbit/s", r.controller)));
    let mut t = table(&head.iter().map(String::as_str).collect::<Vec<_>>(), 1);
    let longest = report.replays.iter().map(|r| r.targets.len()).max().unwrap_or(0);
    for i in (0..longest).step_by(50) {
        let at = report.replays.iter().find_map(|r| r.targets.get(i)).map_or(start_ms, |t| t.0);
        let mut row = vec![format!("{:.0}", (at - start_ms) as f64 / 1e3)];
        row.extend(report.replays.iter().map(|r| r.targets.get(i).map_or("-".into(), |t| format!("{:.0}", t.1))));
        t.add_row(row);
    }
    out.push_str(&fold(&format!("Targets on the recorded feedback: {}.", replay::LABEL)));
    let _ = writeln!(out, "\n{t}");
    for r in &report.replays {
        if let Some(off) = r.off_estimate {
            let _ = writeln!(out, "{}: {:.1} % off the logged estimate (median over time)", r.controller, off * 100.0);
        }
    }
}

fn file(out: &mut String, recording: &Recording, source: &Source) {
    let line = |out: &mut String, text: &str| {
        out.push_str(&fold(text));
        out.push('\n');
    };
    let mut head = format!("{}: {}", source.path, source.format.name());
    if let Some((from, to)) = recording.span() {
        let _ = write!(head, ", {:.1} s", (to - from).as_secs_f64());
    }
    line(out, &head);
    let p = &source.packets;
    let mut counts = vec![format!("{} sent", p.sent), format!("{} received", p.received), format!("{} lost", p.lost)];
    if source.reported > 0 && p.sent > 0 {
        counts[0] += &format!(" ({} reported lost)", p.reported_lost);
    }
    if p.passing > 0 {
        counts.insert(2, format!("{} passing", p.passing));
    }
    line(out, &format!("  packets: {}", counts.join(", ")));
    let rows: [(&str, u64); 6] = [
        ("RTCP packets", source.rtcp),
        ("packets in feedback", source.reported),
        ("estimates", source.estimates),
        ("probes", source.probes),
        ("decoded frames", recording.frames.len() as u64),
        (
            match source.format {
                Format::Scream => "numbers of the controller",
                Format::WeirSeries | Format::WeirResult | Format::WeirPage => "numbers of flows, links and ends",
                _ => "numbers of getStats",
            },
            source.series,
        ),
    ];
    let rows: Vec<String> = rows.iter().filter(|r| r.1 > 0).map(|(name, n)| format!("{n} {name}")).collect();
    if !rows.is_empty() {
        line(out, &format!("  {}", rows.join(", ")));
    }
    for (what, count) in &source.faults {
        line(out, &format!("  passed over: {count} {what}"));
    }
    for fact in &source.guessed {
        line(out, &format!("  by behaviour: {fact}"));
    }
    if !recording.packets.is_empty() {
        streams(out, recording);
    }
    out.push('\n');
}

fn streams(out: &mut String, recording: &Recording) {
    let mut streams: BTreeMap<u32, (u64, u64, &str)> = BTreeMap::new();
    for packet in &recording.packets {
        let way = match packet.direction {
            weir_timeline::Direction::Sent => "sent",
            weir_timeline::Direction::Received => "received",
            weir_timeline::Direction::Passing => "passing",
        };
        let stream = streams.entry(packet.ssrc).or_insert((0, 0, way));
        stream.0 += 1;
        stream.1 += u64::from(packet.size);
    }
    let seconds = recording.span().map_or(TimeDelta::ZERO, |(from, to)| to - from).as_secs_f64();
    let mut rows: Vec<_> = streams.into_iter().collect();
    rows.sort_by_key(|(ssrc, (_, bytes, _))| (std::cmp::Reverse(*bytes), *ssrc));
    let mut t = table(&["stream", "", "packets", "bytes", "mean kbit/s"], 2);
    let more = rows.len().saturating_sub(12);
    for (ssrc, (packets, bytes, way)) in rows.into_iter().take(12) {
        let rate = if seconds > 0.0 { format!("{:.0}", bytes as f64 * 8e-3 / seconds) } else { "-".into() };
        t.add_row([format!("{ssrc:08x}"), way.into(), packets.to_string(), bytes.to_string(), rate]);
    }
    let _ = writeln!(out, "{t}");
    if more > 0 {
        let _ = writeln!(out, "  and {more} streams more");
    }
}
