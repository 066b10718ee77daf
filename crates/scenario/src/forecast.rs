//! A forecast of capacity that both ends of a call get, as from a map of network coverage.

use std::ops::RangeInclusive;
use std::sync::Arc;
use weir_path::Capacity;
use weir_units::{DataRate, TimeDelta};

/// Most rides that a map is made of.
pub(super) const MOST_RIDES: usize = 100;
/// Most rows of a file.
const MOST_ROWS: usize = 1_000_000;

/// A forecast of capacity that both ends of a call get.
#[derive(Clone, PartialEq, Debug)]
pub struct Forecast {
    /// Source of the rates.
    pub source: Foreknown,
    /// Length of its segments; those of [`Foreknown::Foretold`] are in the table.
    pub segment: TimeDelta,
    /// How far it looks ahead.
    pub look_ahead: TimeDelta,
    /// Interval at which a new one is given.
    pub interval: TimeDelta,
    /// Factor on all rates.
    pub factor: f64,
    /// Whether the receiver alone gets it, and announces it to the sender in RTCP.
    pub in_band: bool,
}

/// Source of a forecast's rates.
#[derive(Clone, PartialEq, Debug)]
pub enum Foreknown {
    /// The link itself.
    Driven,
    /// Rides drawn from that of the link.
    Drawn {
        /// Their number.
        rides: usize,
        /// Most time by which one is earlier or later.
        shift: TimeDelta,
        /// Standard deviation of the logarithm of the ratio of rates.
        spread: f64,
    },
    /// Other rides.
    Rides(Vec<Capacity>),
    /// A table, in order of time.
    Foretold(Arc<[Foretold]>),
}

/// A map's capacity for the time from `from` to the next row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Foretold {
    /// From the beginning of the run.
    pub from: TimeDelta,
    /// `None` if nothing is known.
    pub capacity: Option<Expected>,
}

impl Foretold {
    /// Reads a table with the columns `time_s`, `low_kbps`, `median_kbps` and `confidence`, from 0 to 1; "-" says that nothing is
    /// known.
    ///
    /// # Errors
    /// The line at fault, its field, its value and what is expected.
    pub fn parse_table(text: &str) -> Result<Vec<Self>, String> {
        parse(text)
            .map_err(|(line, field, value, expected)| format!("line {line}: {field} is {value:?}: expected {expected}"))
    }
}

/// An expected capacity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Expected {
    /// Lower quartile.
    pub low: DataRate,
    /// Median.
    pub median: DataRate,
    /// 0 to 1.
    pub confidence: f64,
}

/// Reads a table of a forecast. Errors: line, field, its value and what is expected.
pub(super) fn parse(text: &str) -> Result<Vec<Foretold>, (usize, &'static str, String, &'static str)> {
    let mut rows: Vec<Foretold> = Vec::new();
    let lines = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim().trim_start_matches('\u{feff}')));
    for (line, row) in lines.filter(|(_, l)| !l.is_empty() && !l.starts_with('#')) {
        if rows.is_empty() && row.starts_with("time_s") {
            continue;
        }
        let mut cells = row.split(',').map(str::trim);
        let mut next = |field: &'static str, range: RangeInclusive<f64>, expected: &'static str| {
            let cell = cells.next().unwrap_or("");
            if cell == "-" && field != "time_s" {
                return Ok(None);
            }
            let number = cell.parse::<f64>().ok().filter(|n| range.contains(n));
            number.map(Some).ok_or_else(|| (line, field, cell.to_owned(), expected))
        };
        let from = next("time_s", 0.0..=1e6, "seconds from 0 to 1,000,000")?.unwrap_or_default();
        let rate = "kbit/s from 0 to 100,000,000, or -";
        let low = next("low_kbps", 0.0..=1e8, rate)?;
        let median = next("median_kbps", 0.0..=1e8, rate)?;
        let confidence = next("confidence", 0.0..=1.0, "a number from 0 to 1, or -")?;
        let from = TimeDelta::from_secs_f64(from);
        if rows.last().is_some_and(|last| from <= last.from) {
            return Err((line, "time_s", row.chars().take(20).collect(), "a time after that of the row before"));
        }
        if rows.len() >= MOST_ROWS {
            return Err((line, "rows", rows.len().to_string(), "at most 1,000,000 rows"));
        }
        let kbps = |n: f64| DataRate::from_bps_f64(1e3 * n);
        let capacity = low.zip(median).zip(confidence).map(|((low, median), confidence)| Expected {
            low: kbps(low.min(median)),
            median: kbps(median),
            confidence,
        });
        rows.push(Foretold { from, capacity });
    }
    if rows.is_empty() {
        return Err((1, "rows", String::new(), "at least one row: time_s,low_kbps,median_kbps,confidence"));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_rows_in_order_and_gaps() {
        let rows = parse("# a map\ntime_s,low_kbps,median_kbps,confidence\n0,400,500,0.5\n5,-,-,-\n").expect("sound");
        let kbps = DataRate::from_kbps;
        let capacity = Some(Expected { low: kbps(400), median: kbps(500), confidence: 0.5 });
        assert_eq!(
            rows,
            [Foretold { from: TimeDelta::ZERO, capacity }, Foretold { from: TimeDelta::from_secs(5), capacity: None },]
        );
        let fault = |text: &str| parse(text).map_err(|e| (e.0, e.1)).expect_err(text);
        assert_eq!(fault("0,1,2,0.5\n0,1,2,0.5"), (2, "time_s"));
        assert_eq!(fault("0,1,2,1.5"), (1, "confidence"));
        assert_eq!(fault("0,1,nan,1"), (1, "median_kbps"));
        assert_eq!(fault("x"), (1, "time_s"));
        assert_eq!(fault("# nothing"), (1, "rows"));
    }
}
