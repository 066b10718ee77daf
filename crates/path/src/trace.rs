//! Capacity traces as text: mahimahi's delivery opportunities, tables of time and rate, and published measurements.

mod formats;
mod text;

pub use formats::TraceFormat;
pub use text::TraceError;

use crate::opportunities::Opportunities;
use crate::schedule::{Schedule, Step};
use text::{cells, lines};
use weir_units::{DataRate, TimeDelta};

impl Opportunities {
    /// Parses mahimahi's format: each line has the millisecond of one 1,500-byte opportunity; lines are in order, and
    /// the last one ends the cycle. `file` names the text in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, TraceError> {
        let mut ms: Vec<u32> = Vec::new();
        let mut last = (1, "");
        for (line, l) in lines(text) {
            let expected = "a whole number of milliseconds (a table of time and rate is another format)";
            let t = l.parse().map_err(|_| TraceError::new(file, line, "time", l, expected))?;
            if let Some(&before) = ms.last().filter(|&&before| before > t) {
                let expected = format!("{before} or later: the times of a mahimahi trace are in order");
                return Err(TraceError::new(file, line, "time", l, expected));
            }
            ms.push(t);
            last = (line, l);
        }
        Self::new(ms).map_err(|e| TraceError::new(file, last.0, "time", last.1, e.expected))
    }
}

impl Schedule {
    /// Parses a table of time and rate, two columns separated by commas, semicolons or spaces. Each rate applies from
    /// its time to the next row's. Times are relative to the first row's. Without a header the columns are seconds and
    /// kbit/s; a header names `time_s`, `time_ms` or `time_us` and `rate_bps`, `rate_kbps`, `capacity_kbps` or
    /// `rate_mbps`, in any order and among other columns. With `repeat` the table repeats, the last row lasting as long
    /// as the one before it. `file` names the text in errors.
    pub fn parse(text: &str, file: &str, repeat: bool) -> Result<Self, TraceError> {
        let mut columns = Columns::default();
        let mut steps: Vec<Step> = Vec::new();
        let mut origin = None;
        let mut end = (1, "");
        for (i, (line, l)) in lines(text).enumerate() {
            end = (line, l);
            if i == 0 && l.starts_with(|c: char| c.is_alphabetic() || c == '"') {
                columns = Columns::from_header(l, file, line)?;
                continue;
            }
            let (time, rate) = columns.row(l, file, line)?;
            let at = TimeDelta::from_secs_f64((time - *origin.get_or_insert(time)) * columns.time_unit);
            if let Some(before) = steps.last().filter(|s| s.at >= at) {
                let expected = format!("a time after the row before ({} from the first row)", before.at);
                return Err(TraceError::new(file, line, "time", time, expected));
            }
            steps.push(Step { at, rate: DataRate::from_bps_f64(rate * columns.rate_unit) });
        }
        let held = match steps[..] {
            [.., a, b] => Some(b.at + (b.at - a.at)),
            _ => None,
        };
        Self::new(steps, held.filter(|_| repeat)).map_err(|e| TraceError::new(file, end.0, "row", end.1, e.expected))
    }
}

/// The columns of time and rate, and their units.
struct Columns {
    time: usize,
    rate: usize,
    time_unit: f64,
    rate_unit: f64,
}

impl Default for Columns {
    fn default() -> Self {
        Self { time: 0, rate: 1, time_unit: 1.0, rate_unit: 1e3 }
    }
}

const TIME_NAMES: [(&str, f64); 6] =
    [("time_s", 1.0), ("time", 1.0), ("seconds", 1.0), ("time_ms", 1e-3), ("time_us", 1e-6), ("time_ns", 1e-9)];
const RATE_NAMES: [(&str, f64); 5] =
    [("rate_kbps", 1e3), ("rate", 1e3), ("rate_bps", 1.0), ("rate_mbps", 1e6), ("capacity_kbps", 1e3)];

impl Columns {
    fn from_header(line: &str, file: &str, number: usize) -> Result<Self, TraceError> {
        let find = |field: &str, names: &[(&str, f64)]| {
            cells(line)
                .enumerate()
                .find_map(|(i, c)| {
                    let (_, unit) = names.iter().find(|(n, _)| c.eq_ignore_ascii_case(n))?;
                    Some((i, *unit))
                })
                .ok_or_else(|| {
                    let names: Vec<_> = names.iter().map(|(n, _)| *n).collect();
                    let expected = format!("a column named one of {}", names.join(", "));
                    TraceError::new(file, number, &format!("header, {field} column"), line, expected)
                })
        };
        let (time, time_unit) = find("time", &TIME_NAMES)?;
        let (rate, rate_unit) = find("rate", &RATE_NAMES)?;
        Ok(Self { time, rate, time_unit, rate_unit })
    }

    fn row(&self, line: &str, file: &str, number: usize) -> Result<(f64, f64), TraceError> {
        let read = |column: usize, field: &str, expected: &str| {
            let cell = cells(line).nth(column).unwrap_or("");
            let value = cell.parse::<f64>().ok().filter(|v| v.is_finite() && (field == "time" || *v >= 0.0));
            value.ok_or_else(|| TraceError::new(file, number, field, cell, expected))
        };
        let time =
            read(self.time, "time", "a number; two columns, time and rate (without a header: seconds and kbit/s)")?;
        Ok((time, read(self.rate, "rate", "a number, zero or positive (without a header: kbit/s)")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_units::Timestamp;

    #[test]
    fn separators_between_quotes_are_of_the_cell() {
        let error = Schedule::parse("0,700\n\"3,5\",\"700,5\"\n", "x.csv", false).expect_err("decimal commas");
        assert!(error.to_string().contains("3,5"), "{error}");
        let quoted =
            Schedule::parse("time_s;rate_kbps\n\"0\";\"700\"\n\"3.5\";\"900\"\n", "x.csv", false).expect("sound");
        assert_eq!(quoted.steps().iter().map(|s| s.rate.as_bps()).collect::<Vec<_>>(), [700_000, 900_000]);
    }

    #[test]
    fn tables_are_read_with_and_without_header() {
        let bare = Schedule::parse("# a drive\n10.0,500\n10.5,0\n\n12,1500.5\n", "x.csv", true).expect("sound");
        let steps: Vec<_> = bare.steps().iter().map(|s| (s.at.as_millis(), s.rate.as_bps())).collect();
        assert_eq!(steps, [(0, 500_000), (500, 0), (2_000, 1_500_500)]);
        assert_eq!(bare.period(), Some(TimeDelta::from_millis(3_500)));
        let named = Schedule::parse("cell;rate_mbps;time_ms\r\n7;2.5;0\r\n8;3;40\r\n", "x.csv", false).expect("sound");
        assert_eq!((named.steps().len(), named.period()), (2, None));
        assert_eq!(named.rate_at(Timestamp::from_millis(41)).as_bps(), 3_000_000);
        let tabs = Schedule::parse("0\t1\n1\t2\n", "x", false).expect("sound");
        assert_eq!(tabs.rate_at(Timestamp::from_secs(1)).as_bps(), 2_000);
    }

    #[test]
    fn opportunities_are_read() {
        let o = Opportunities::parse("0\n1\n1\n 7\n", "x.mahi").expect("sound");
        assert_eq!((o.millis(), o.period()), (&[0, 1, 1, 7][..], TimeDelta::from_millis(7)));
    }

    #[test]
    fn errors_name_file_line_and_way_out() {
        let mahi = |t| Opportunities::parse(t, "a.mahi").expect_err("unsound").to_string();
        assert!(mahi("1\nx\n").starts_with("a.mahi:2: time is \"x\": expected a whole number of milliseconds"));
        assert!(mahi("4\n\n3\n").starts_with("a.mahi:3: time is \"3\": expected 4 or later"));
        assert!(mahi("0\n0\n").starts_with("a.mahi:2: time is \"0\": expected a last opportunity after 0 ms"));
        assert!(mahi("").starts_with("a.mahi:1:"));
        let table = |t| Schedule::parse(t, "b.csv", false).expect_err("unsound").to_string();
        assert!(table("0,1\n1,-5\n").starts_with("b.csv:2: rate is \"-5\": expected a number, zero or positive"));
        assert!(table("0,1\n0,2\n").starts_with("b.csv:2: time is \"0\": expected a time after the row before"));
        assert!(table("0\n").starts_with("b.csv:1: rate is \"\""));
        assert!(table("0,NaN\n").starts_with("b.csv:1: rate is \"NaN\""));
        assert!(table("time_s,speed\n").contains("one of rate_kbps, rate, rate_bps, rate_mbps"));
        assert!(table("\n# nothing\n").contains("at least one step"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9a-z,;.\\-\t\n#]{0,200}", repeat: bool) {
            let _ = (Opportunities::parse(&text, "x"), Schedule::parse(&text, "x", repeat));
        }
    }
}
