//! Rows of recorded capacity: any trace that scenario files can name, with a call at 25 ms over it.
//!
//! A trace is cut to 120 s and not scaled. The queue is drop-tail of 300 ms at the mean rate, 60 kB at least; the source makes
//! equal frames, 30 a second, in packets of 1,200 B. Floor 50 kbit/s where the mean is below 1 Mbit/s, else 100; ceiling 1.5
//! times the mean; start 300 kbit/s, or the ceiling where that is lower. The *omniscient* sender sends exactly the capacity, up
//! to the ceiling.

use std::path::{Path, PathBuf};
use weir_lab::scenario::{InputError, read_text};
use weir_path::{Capacity, TraceFormat};
use weir_units::TimeDelta;

/// Longest part of a trace that is used, and shortest trace, s.
const CUT: f64 = 120.0;
const LEAST: f64 = 10.0;
/// Extra delay within which media is on time, ms.
pub(super) const LATE: f64 = 100.0;
/// Propagation delay one way, ms.
pub(super) const ONE_WAY: f64 = 25.0;
/// Most traces of a folder, greatest size of a file in bytes, and deepest folder below it.
const MOST: usize = 1_000;
const MAX_TRACE: u64 = 64 << 20;
const DEEPEST: usize = 6;

/// A recorded capacity.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// Its name: the file's, with the folder's in front.
    pub name: String,
    /// The folder that the file is in.
    pub group: String,
    /// Length in s and rate in bit/s.
    pub(super) spans: Vec<(f64, f64)>,
    /// Delivery opportunities in ms, for mahimahi's traces.
    pub(super) opportunities: Vec<u32>,
}

/// Traces in a folder, and files that are none.
#[derive(Debug, Default)]
pub struct Traces {
    /// The traces, by name.
    pub traces: Vec<Trace>,
    /// Files that are none, and why.
    pub skipped: Vec<String>,
}

/// Reads every trace below a folder: files of the formats that scenarios know, each by its name and first line. With
/// `format`, all files are of it. Errors: the folder cannot be read; it holds none, or more than 1,000.
pub fn read_traces(folder: &Path, format: Option<TraceFormat>) -> Result<Traces, InputError> {
    let shown = folder.display().to_string();
    let mut files = Vec::new();
    walk(folder, 0, &mut files).map_err(|e| InputError::whole(&shown, e.to_string()).field("--traces"))?;
    files.sort();
    if files.len() > MOST {
        let message = format!("{} files; at most {MOST} are read", files.len());
        return Err(InputError::whole(&shown, message).field("--traces").help("name a folder further down"));
    }
    let mut found = Traces::default();
    for file in files {
        match Trace::read(folder, &file, format) {
            Ok(trace) => found.traces.push(trace),
            Err(why) => found.skipped.push(format!("{}: {why}", file.display())),
        }
    }
    if found.traces.is_empty() {
        let why = found.skipped.first().map_or_else(|| "the folder is empty".into(), Clone::clone);
        let help = "formats: mahimahi, a table of time and rate (.csv), Norwegian HSDPA, Belgian 4G, Irish 5G";
        return Err(InputError::whole(&shown, format!("no capacity trace in it; {why}")).field("--traces").help(help));
    }
    Ok(found)
}

fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let (path, kind) = entry.and_then(|e| Ok((e.path(), e.file_type()?)))?;
        let is_hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
        if kind.is_dir() && depth < DEEPEST && !is_hidden {
            walk(&path, depth + 1, files)?;
        } else if kind.is_file() && !is_hidden {
            files.push(path);
        }
    }
    Ok(())
}

impl Trace {
    fn read(root: &Path, file: &Path, format: Option<TraceFormat>) -> Result<Self, String> {
        let text = read_text(file, MAX_TRACE)?;
        let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let format = format.unwrap_or_else(|| TraceFormat::detect(&name, &text));
        let capacity = format.parse(&text, &name).map_err(|e| e.to_string())?;
        let parent = file.parent().unwrap_or(root);
        let folder = parent.file_name().or(root.file_name()).map(|n| n.to_string_lossy().into_owned());
        let group: String = folder.unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
        let stem: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        Self::new(format!("{group}/{stem}"), group, &capacity)
    }

    /// A trace of a capacity that changes. Errors: why it is of no use.
    pub fn new(name: String, group: String, capacity: &Capacity) -> Result<Self, String> {
        let (spans, opportunities) = match capacity {
            Capacity::Schedule(s) => {
                let period = s.period().map_or(f64::INFINITY, TimeDelta::as_secs_f64);
                let ends = s.steps().iter().skip(1).map(|s| s.at.as_secs_f64()).chain([period]);
                let spans = s.steps().iter().zip(ends).map(|(s, end)| (end - s.at.as_secs_f64(), s.rate.as_bps_f64()));
                (spans.collect::<Vec<_>>(), vec![])
            }
            Capacity::Opportunities(o) => {
                let length = o.period().as_secs_f64().min(CUT);
                let ms: Vec<u32> = o.millis().iter().copied().filter(|ms| f64::from(*ms) <= length * 1e3).collect();
                let mut spans = vec![(0.01, 0.0); (length * 100.0) as usize];
                let last = spans.len().saturating_sub(1);
                for at in &ms {
                    if let Some(span) = spans.get_mut((*at as usize / 10).min(last)) {
                        span.1 += 1500.0 * 8.0 / 0.01;
                    }
                }
                (spans, ms)
            }
            Capacity::Constant(_) | Capacity::Unlimited | _ => return Err("its capacity does not change".into()),
        };
        let trace = Self { name, group, spans: cut(&spans), opportunities };
        if trace.duration() < LEAST {
            return Err(format!("{:.1} s long; {LEAST} s are needed", trace.duration()));
        }
        if trace.mean() < 10e3 {
            return Err(format!("{:.0} bit/s on average: too slow for a call", trace.mean()));
        }
        Ok(trace)
    }

    pub(super) fn duration(&self) -> f64 {
        self.spans.iter().map(|s| s.0).sum()
    }
    pub(super) fn mean(&self) -> f64 {
        self.spans.iter().map(|(d, r)| d * r).sum::<f64>() / self.duration()
    }
    pub(super) fn ceiling(&self) -> f64 {
        1.5 * self.mean()
    }
    pub(super) fn floor(&self) -> f64 {
        if self.mean() < 1e6 { 50e3 } else { 100e3 }
    }
    pub(super) fn start(&self) -> f64 {
        self.ceiling().min(300e3)
    }
    pub(super) fn queue_bytes(&self) -> f64 {
        (self.mean() * 0.3 / 8.0).max(60e3)
    }

    /// Mean goodput of the omniscient sender, bit/s. Opportunities are taken together by 100 ms, since single ones exceed any
    /// ceiling.
    pub(super) fn omniscient(&self) -> f64 {
        let most = self.ceiling();
        let bits = if self.opportunities.is_empty() {
            self.spans.iter().map(|(d, r)| d * r.min(most)).sum::<f64>()
        } else {
            self.capacities(LATE / 1e3).iter().map(|r| r.min(most) * LATE / 1e3).sum()
        };
        bits / self.duration()
    }

    /// Mean capacity in steps of so many seconds, bit/s.
    pub(super) fn capacities(&self, step: f64) -> Vec<f64> {
        let (mut out, mut left, mut bits) = (Vec::new(), step, 0.0);
        for (mut span, rate) in self.spans.iter().copied() {
            while span >= left - 1e-12 {
                out.push((bits + rate * left) / step);
                (span, left, bits) = (span - left, step, 0.0);
            }
            bits += rate * span;
            left -= span;
        }
        out
    }
}

fn cut(spans: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let (mut out, mut at) = (Vec::new(), 0.0);
    for (span, rate) in spans {
        let span = span.min(CUT - at);
        if span > 1e-9 {
            out.push((span, *rate));
            at += span;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_steps() -> Trace {
        let capacity = TraceFormat::Table.parse("time_s,rate_bps\n0,2000000\n60,1000000\n", "x.csv").expect("a table");
        assert_eq!(capacity.rate_at(weir_units::Timestamp::from_secs(61)).as_bps(), 1_000_000);
        Trace::new("g/x".into(), "g".into(), &capacity).expect("a trace")
    }

    #[test]
    fn a_trace_gives_bounds_queue_and_the_omniscient_sender() {
        let t = two_steps();
        assert_eq!((t.duration(), t.mean(), t.ceiling(), t.floor()), (120.0, 1.5e6, 2.25e6, 100e3));
        assert_eq!((t.queue_bytes(), t.start(), t.omniscient()), (60e3, 300e3, 1.5e6));
        let steps = t.capacities(40.0);
        assert_eq!(steps.len(), 3);
        assert!((steps[1] - 1.5e6).abs() < 1e-3, "{steps:?}");
    }

    #[test]
    fn opportunities_are_cut_and_counted() {
        let text: String = (1..=13_000).map(|i| format!("{}\n", i * 10)).collect();
        let capacity = TraceFormat::Mahimahi.parse(&text, "x").expect("opportunities");
        let t = Trace::new("g/x".into(), "g".into(), &capacity).expect("a trace");
        assert!((t.duration() - 120.0).abs() < 1e-6);
        assert!((t.mean() - 1.2e6).abs() < 1e3, "{}", t.mean());
        assert_eq!(t.opportunities.last(), Some(&120_000));
    }

    #[test]
    fn a_folder_is_read_and_what_is_no_trace_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let sub = dir.path().join("lte");
        std::fs::create_dir(&sub).expect("made");
        std::fs::write(sub.join("a.csv"), "time_s,rate_bps\n0,2000000\n60,1000000\n").expect("written");
        std::fs::write(sub.join("README.txt"), "words\n").expect("written");
        let found = read_traces(dir.path(), None).expect("one trace");
        assert_eq!((found.traces[0].name.as_str(), found.traces[0].group.as_str()), ("lte/a-csv", "lte"));
        assert!(found.skipped[0].contains("README.txt"), "{:?}", found.skipped);
        std::fs::remove_file(sub.join("a.csv")).expect("removed");
        let error = read_traces(dir.path(), None).expect_err("none left").to_string();
        assert!(error.contains("no capacity trace"), "{error}");
        assert!(read_traces(&dir.path().join("nowhere"), None).is_err());
    }
}
