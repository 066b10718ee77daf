//! Formats of published measurements of mobile networks.

use super::text::{TraceError, cells, lines};
use crate::capacity::Capacity;
use crate::opportunities::Opportunities;
use crate::schedule::{Schedule, Step};
use weir_units::{DataRate, TimeDelta};

/// The format of a capacity trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum TraceFormat {
    /// mahimahi: each line has the millisecond of one 1,500-byte opportunity.
    Mahimahi,
    /// A table of time and rate: see [`Schedule::parse`].
    Table,
    /// Two columns, seconds and Mbit/s: the Norwegian HSDPA logs by second, as resampled by the ABR community.
    SecondsMbps,
    /// The Norwegian HSDPA logs as recorded (Riiser and others, MMSys 2013): UNIX time in s, elapsed ms, latitude,
    /// longitude, bytes received since the last sample, ms since the last sample.
    NorwayRaw,
    /// The Belgian 4G logs as JSON (van der Hooft and others, IEEE Comm. Letters 2016): a list of `duration_ms` and
    /// `bandwidth_kbps`.
    Belgium4g,
    /// The Irish 5G logs as CSV (Raca and others, MMSys 2020): the column `DL_bitrate`.
    Ireland5g,
    /// The same: the column `UL_bitrate`.
    Ireland5gUplink,
}

impl TraceFormat {
    /// The format detected from a file's name and first line; mahimahi by default. Two columns without a header are
    /// [`Self::Table`] in a `.csv` and mahimahi otherwise, where they are rejected: [`Self::SecondsMbps`] must be
    /// requested, since nothing in the file identifies it.
    pub fn detect(file: &str, text: &str) -> Self {
        let first = lines(text).next().map_or("", |l| l.1);
        if first.starts_with("Timestamp,") && first.contains("DL_bitrate") {
            Self::Ireland5g
        } else if file.ends_with(".json") || first.starts_with(['[', '{']) {
            Self::Belgium4g
        } else if file.ends_with(".csv") {
            Self::Table
        } else if first.split_whitespace().count() == 6 {
            Self::NorwayRaw
        } else {
            Self::Mahimahi
        }
    }

    /// Parses a trace, which repeats from its end. `file` names the text in errors. Errors: the line and field at
    /// fault.
    pub fn parse(self, text: &str, file: &str) -> Result<Capacity, TraceError> {
        if self == Self::Mahimahi {
            return Opportunities::parse(text, file).map(Capacity::Opportunities);
        }
        let schedule = match self {
            Self::NorwayRaw => norway_raw(text, file),
            Self::Belgium4g => belgium_4g(text, file),
            Self::Ireland5g => ireland_5g(text, file, "DL_bitrate"),
            Self::Ireland5gUplink => ireland_5g(text, file, "UL_bitrate"),
            Self::SecondsMbps => seconds_mbps(text, file),
            Self::Table | Self::Mahimahi => Schedule::parse(text, file, true),
        };
        schedule.map(Capacity::Schedule)
    }
}

/// Collects spans of known rate into a repeating schedule. Spans begin at the given times; between spans the previous
/// rate continues, since nothing was measured there.
#[derive(Default)]
struct Spans {
    steps: Vec<Step>,
    end: TimeDelta,
    last: (usize, String),
}

impl Spans {
    fn push(&mut self, at: TimeDelta, until: TimeDelta, bps: f64) {
        match self.steps.last_mut() {
            // A second value for the same time replaces the first.
            Some(s) if s.at >= at => s.rate = DataRate::from_bps_f64(bps),
            _ => self.steps.push(Step { at, rate: DataRate::from_bps_f64(bps) }),
        }
        self.end = self.end.max(until);
    }

    fn finish(self, file: &str) -> Result<Schedule, TraceError> {
        let (line, text) = self.last;
        let period = Some(self.end).filter(|_| !self.steps.is_empty());
        Schedule::new(self.steps, period).map_err(|e| TraceError::new(file, line.max(1), "row", text, e.expected))
    }
}

/// A finite number in a column, zero or positive.
fn number(file: &str, line: usize, field: &str, cell: &str) -> Result<f64, TraceError> {
    let value = cell.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
    value.ok_or_else(|| TraceError::new(file, line, field, cell, "a number, zero or positive"))
}

fn seconds_mbps(text: &str, file: &str) -> Result<Schedule, TraceError> {
    let mut rows: Vec<(usize, f64, f64)> = Vec::new();
    for (line, l) in lines(text) {
        let mut columns = cells(l);
        let mut next = |field| number(file, line, field, columns.next().unwrap_or(""));
        let (time, mbps) = (next("time in s")?, next("rate in Mbit/s")?);
        if let Some(before) = rows.last().filter(|r| r.1 >= time) {
            let expected = format!("a time after the row before, {}", before.1);
            return Err(TraceError::new(file, line, "time in s", time, expected));
        }
        rows.push((line, time, mbps));
    }
    let first = rows.first().map_or(0.0, |r| r.1);
    let mut spans = Spans::default();
    for (i, &(line, time, mbps)) in rows.iter().enumerate() {
        // The last row lasts as long as the one before it.
        let until = rows.get(i + 1).map_or_else(|| 2.0 * time - rows[i.saturating_sub(1)].1, |n| n.1);
        let at = |t: f64| TimeDelta::from_secs_f64(t - first);
        spans.push(at(time), at(until.max(time + 1e-3)), mbps * 1e6);
        spans.last = (line, format!("{time} {mbps}"));
    }
    spans.finish(file)
}

fn norway_raw(text: &str, file: &str) -> Result<Schedule, TraceError> {
    let mut spans = Spans::default();
    let mut origin = None;
    let mut before = 0.0;
    for (line, l) in lines(text) {
        let columns: Vec<&str> = l.split_whitespace().collect();
        let [_, elapsed, _, _, bytes, held] = columns[..] else {
            let expected = "six columns: UNIX time, elapsed ms, latitude, longitude, bytes, ms since the last sample";
            return Err(TraceError::new(file, line, "row", l, expected));
        };
        let elapsed = number(file, line, "elapsed ms", elapsed)?;
        let bytes = number(file, line, "bytes", bytes)?;
        let held = number(file, line, "ms since the last sample", held)?;
        if held <= 0.0 {
            return Err(TraceError::new(file, line, "ms since the last sample", held, "a time above zero"));
        }
        if origin.is_some() && elapsed <= before {
            let expected = format!("a time after the row before, {before}");
            return Err(TraceError::new(file, line, "elapsed ms", elapsed, expected));
        }
        before = elapsed;
        let origin = *origin.get_or_insert(elapsed - held);
        let at = |ms: f64| TimeDelta::from_secs_f64((ms - origin).max(0.0) * 1e-3);
        spans.push(at(elapsed - held), at(elapsed), bytes * 8_000.0 / held);
        spans.last = (line, l.into());
    }
    spans.finish(file)
}

/// A list of flat objects of numbers, as written by the converter.
fn belgium_4g(text: &str, file: &str) -> Result<Schedule, TraceError> {
    let mut spans = Spans::default();
    let mut at = TimeDelta::ZERO;
    let mut rest = text.trim_start_matches('\u{feff}');
    let line_of = |rest: &str| 1 + text[..text.len() - rest.len()].bytes().filter(|b| *b == b'\n').count();
    let outside = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | ',');
    loop {
        rest = rest.trim_start_matches(outside);
        if rest.is_empty() {
            return spans.finish(file);
        }
        let line = line_of(rest);
        let object = rest.strip_prefix('{').and_then(|r| r.split_once('}'));
        let Some((fields, after)) = object else {
            let found: String = rest.chars().take(20).collect();
            let expected = "a list of objects, {\"duration_ms\": ..., \"bandwidth_kbps\": ...}";
            return Err(TraceError::new(file, line, "list", found, expected));
        };
        let field = |name: &str| {
            let value = fields.split(',').find_map(|f| {
                let (key, value) = f.split_once(':')?;
                (key.trim().trim_matches('"') == name).then(|| value.trim())
            });
            number(file, line, name, value.unwrap_or(""))
        };
        let (duration, kbps) = (field("duration_ms")?, field("bandwidth_kbps")?);
        if duration <= 0.0 || duration > 1e9 {
            return Err(TraceError::new(file, line, "duration_ms", duration, "a time above zero, 10^9 at most"));
        }
        let until = at + TimeDelta::from_secs_f64(duration * 1e-3);
        spans.push(at, until, kbps * 1e3);
        spans.last = (line, fields.trim().into());
        (at, rest) = (until, after);
    }
}

fn ireland_5g(text: &str, file: &str, wanted: &str) -> Result<Schedule, TraceError> {
    let mut spans = Spans::default();
    let mut columns = None;
    let mut origin = None;
    for (line, l) in lines(text) {
        let Some((time_at, rate_at)) = columns else {
            let find = |name: &str| {
                let known = cells(l).position(|c| c == name);
                known.ok_or_else(|| TraceError::new(file, line, "header", l, format!("a column named {name}")))
            };
            columns = Some((find("Timestamp")?, find(wanted)?));
            continue;
        };
        let cell = |at: usize| cells(l).nth(at).unwrap_or("");
        let stamp = cell(time_at);
        let second = seconds_of(stamp).ok_or_else(|| {
            TraceError::new(file, line, "Timestamp", stamp, "a time as in 2019.12.16_13.40.04, between 1970 and 9999")
        })?;
        // A dash is a missing value.
        if cell(rate_at) == "-" {
            continue;
        }
        let kbps = number(file, line, wanted, cell(rate_at))?;
        let since = second - *origin.get_or_insert(second);
        let at = TimeDelta::from_secs(since);
        if spans.steps.last().is_some_and(|s| s.at > at) {
            return Err(TraceError::new(file, line, "Timestamp", stamp, "a time no earlier than the row before"));
        }
        spans.push(at, at + TimeDelta::from_secs(1), kbps * 1e3);
        spans.last = (line, stamp.into());
    }
    spans.finish(file)
}

/// Seconds of `2019.12.16_13.40.04` since 1970, as if all days were UTC.
fn seconds_of(stamp: &str) -> Option<i64> {
    let (date, time) = stamp.split_once('_')?;
    let three = |s: &str| -> Option<[i64; 3]> {
        let numbers: Vec<i64> = s.split('.').map(|n| n.parse().ok()).collect::<Option<_>>()?;
        numbers.try_into().ok()
    };
    let ([year, month, day], [h, m, s]) = (three(date)?, three(time)?);
    let sound = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sound || !(0..24).contains(&h) || !(0..60).contains(&m) || !(0..61).contains(&s) {
        return None;
    }
    // Days from a year that begins in March, so that a leap day is last.
    let (y, shifted) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * shifted + 2) / 5 + day - 1 - 719_468;
    Some(((days * 24 + h) * 60 + m) * 60 + s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Samples are written here in the formats of the data sets; they are not taken from them.

    fn steps(format: TraceFormat, text: &str) -> (Vec<(i64, u64)>, i64) {
        let Capacity::Schedule(s) = format.parse(text, "t").expect("sound") else { panic!("a schedule") };
        let steps = s.steps().iter().map(|s| (s.at.as_millis(), s.rate.as_bps())).collect();
        (steps, s.period().expect("repeats").as_millis())
    }
    fn error(format: TraceFormat, text: &str) -> String {
        format.parse(text, "t").expect_err("unsound").to_string()
    }

    #[test]
    fn norwegian_logs_as_recorded() {
        // 125,000 bytes in 1,000 ms are 1 Mbit/s. The third sample follows a gap of 3 s, over which the rate continues.
        let text = "1284365019 5000 59.9 10.8 125000 1000\n1284365020 6000 59.9 10.8 62500 1000\n\
                    1284365024 10000 59.9 10.8 0 1000\n";
        assert_eq!(steps(TraceFormat::NorwayRaw, text), (vec![(0, 1_000_000), (1_000, 500_000), (5_000, 0)], 6_000));
        assert!(error(TraceFormat::NorwayRaw, "1 2 3 4 5\n").starts_with("t:1: row is \"1 2 3 4 5\": expected six"));
        let at_once = "1 5000 1 1 1 1000\n2 5000 1 1 1 1000\n";
        assert!(
            error(TraceFormat::NorwayRaw, at_once).starts_with("t:2: elapsed ms is \"5000\": expected a time after")
        );
        assert!(error(TraceFormat::NorwayRaw, "1 5 1 1 x 9\n").starts_with("t:1: bytes is \"x\""));
        assert!(error(TraceFormat::NorwayRaw, "1 5 1 1 9 0\n").starts_with("t:1: ms since the last sample is \"0\""));
    }

    #[test]
    fn seconds_and_megabits() {
        let text = "226 2.5\n227\t0.25\n229 1\n";
        let expected = vec![(0, 2_500_000), (1_000, 250_000), (3_000, 1_000_000)];
        assert_eq!(steps(TraceFormat::SecondsMbps, text), (expected, 5_000));
        assert!(
            error(TraceFormat::SecondsMbps, "1 2\n1 3\n").starts_with("t:2: time in s is \"1\": expected a time after")
        );
        assert!(error(TraceFormat::SecondsMbps, "1\n").starts_with("t:1: rate in Mbit/s is \"\""));
    }

    #[test]
    fn belgian_lists() {
        let text = "[\n {\"duration_ms\": 710, \"bandwidth_kbps\": 11201, \"latency_ms\": 20},\n \
                    {\"bandwidth_kbps\": 0, \"duration_ms\": 1000}\n]\n";
        assert_eq!(steps(TraceFormat::Belgium4g, text), (vec![(0, 11_201_000), (710, 0)], 1_710));
        assert!(error(TraceFormat::Belgium4g, "[\n{\"duration_ms\": 7}]").starts_with("t:2: bandwidth_kbps is \"\""));
        assert!(error(TraceFormat::Belgium4g, "[\n\n7]").starts_with("t:3: list is \"7]\""));
        let zero = "[{\"duration_ms\": 0, \"bandwidth_kbps\": 1}]";
        assert!(error(TraceFormat::Belgium4g, zero).starts_with("t:1: duration_ms is \"0\""));
        assert!(error(TraceFormat::Belgium4g, "[]").contains("at least one step"));
    }

    #[test]
    fn irish_tables() {
        let text = "Timestamp,Speed,DL_bitrate,UL_bitrate\n2019.12.31_23.59.59,0,1000,10\n2020.01.01_00.00.00,0,-,20\n\
                    2020.01.01_00.00.01,1,3000,30\n2020.01.01_00.00.01,1,4000,40\n";
        assert_eq!(steps(TraceFormat::Ireland5g, text), (vec![(0, 1_000_000), (2_000, 4_000_000)], 3_000));
        let up = vec![(0, 10_000), (1_000, 20_000), (2_000, 40_000)];
        assert_eq!(steps(TraceFormat::Ireland5gUplink, text), (up, 3_000));
        assert_eq!(seconds_of("1970.01.02_00.00.01"), Some(86_401));
        // 2000 was a leap year: 11,016 days to 1 March.
        assert_eq!(seconds_of("2000.03.01_00.00.00"), Some(11_017 * 86_400));
        let bad = |row: &str| error(TraceFormat::Ireland5g, &format!("Timestamp,DL_bitrate\n{row}\n"));
        assert!(bad("2019.13.01_00.00.00,1").starts_with("t:2: Timestamp is \"2019.13.01_00.00.00\""));
        assert!(bad("2019.12.01_00.00.00,fast").starts_with("t:2: DL_bitrate is \"fast\""));
        assert!(error(TraceFormat::Ireland5g, "Timestamp,x\n").contains("a column named DL_bitrate"));
    }

    #[test]
    fn the_format_is_detected_where_possible() {
        let of = TraceFormat::detect;
        assert_eq!(of("x.csv", "Timestamp,Speed,DL_bitrate\n"), TraceFormat::Ireland5g);
        assert_eq!(of("x.csv", "0,1\n"), TraceFormat::Table);
        assert_eq!(of("x.json", "\n"), TraceFormat::Belgium4g);
        assert_eq!(of("x.txt", "1 2 3 4 5 6\n"), TraceFormat::NorwayRaw);
        assert_eq!(of("x.up", "1\n"), TraceFormat::Mahimahi);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a-zT,;:.\\-_\\[\\]{}\" \t\n#]{0,200}", which in 0usize..7) {
            use TraceFormat::*;
            let all = [Mahimahi, Table, SecondsMbps, NorwayRaw, Belgium4g, Ireland5g, Ireland5gUplink];
            let _ = (all[which].parse(&text, "x"), TraceFormat::detect("x", &text));
        }
    }
}
