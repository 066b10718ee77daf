use crate::{Operator, Position, Technology, Update, WallTime};
use std::collections::BTreeMap;
use weir_units::DataRate;

/// Most lines of a log.
const MAX_LINES: usize = 1_000_000;

/// A format of logs of rides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// The raw logs of the Norwegian 3G rides (H. Riiser et al., "Commute path bandwidth traces from 3G networks", MMSys 2013):
    /// UNIX time, elapsed ms, latitude, longitude, bytes and ms since the last sample, separated by blanks.
    Norway,
    /// The CSV of the Irish 4G and 5G rides (D. Raca et al., MMSys 2020): columns by name in the first line, rates in kbit/s,
    /// `-` where nothing is known. Times there are local; they are taken as UTC.
    Ireland,
}

/// A log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct LogError {
    /// Its number, from 1.
    pub line: usize,
    /// The fault in it.
    pub why: String,
}

/// Reads a log as the reports of one device, whose ids are the numbers of the lines. Lines without a position or a rate are
/// left out.
///
/// # Errors
/// A line is not of the format.
pub fn read_log(text: &str, format: LogFormat, operator: &Operator) -> Result<Vec<Update>, LogError> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim())).filter(|(_, line)| !line.is_empty());
    let mut lines = lines.take(MAX_LINES + 1);
    let mut updates = Vec::new();
    let mut columns = Vec::new();
    if format == LogFormat::Ireland
        && let Some((_, line)) = lines.next()
    {
        columns = line.trim_start_matches('\u{feff}').split(',').map(str::trim).collect();
        for needed in ["Timestamp", "Longitude", "Latitude", "DL_bitrate"] {
            if !columns.contains(&needed) {
                return Err(LogError { line: 1, why: format!("no column {needed}") });
            }
        }
    }
    for (number, line) in lines {
        let error = |why: String| LogError { line: number, why };
        if number > MAX_LINES {
            return Err(error(format!("more than {MAX_LINES} lines")));
        }
        let read = match format {
            LogFormat::Norway => norway(line),
            LogFormat::Ireland => ireland(&columns.iter().copied().zip(line.split(',').map(str::trim)).collect()),
        };
        if let Some((time, position, rate, technology, rest)) = read.map_err(error)? {
            let mut update = Update::new(number as u64, time, position, operator.clone(), technology, rate);
            update.accuracy_m = 10.0;
            update.cell_id = rest;
            updates.push(update);
        }
    }
    Ok(updates)
}

type Line = Option<(WallTime, Position, DataRate, Technology, Option<u64>)>;

fn norway(line: &str) -> Result<Line, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [time, _, lat, lon, bytes, ms] = fields[..] else {
        return Err(format!("{} fields instead of 6", fields.len()));
    };
    if lat == "NOFIX" || lon == "NOFIX" {
        return Ok(None);
    }
    let number = |text: &str| text.parse::<f64>().map_err(|e| format!("{text:?}: {e}"));
    let position = Position::new(number(lat)?, number(lon)?).map_err(|e| e.to_string())?;
    let seconds: u64 = time.parse().map_err(|e| format!("{time:?}: {e}"))?;
    let ms = number(ms)?;
    if ms.is_nan() || ms <= 0.0 {
        return Ok(None);
    }
    let rate = DataRate::from_bps_f64(number(bytes)? * 8_000.0 / ms);
    Ok(Some((WallTime::from_unix_millis(seconds.saturating_mul(1_000)), position, rate, Technology::Umts, None)))
}

fn ireland(fields: &BTreeMap<&str, &str>) -> Result<Line, String> {
    let known = |name: &str| fields.get(name).copied().filter(|v| *v != "-" && !v.is_empty());
    let (Some(time), Some(lat), Some(lon)) = (known("Timestamp"), known("Latitude"), known("Longitude")) else {
        return Ok(None);
    };
    let Some(kbps) = known("DL_bitrate") else { return Ok(None) };
    let number = |text: &str| text.parse::<f64>().map_err(|e| format!("{text:?}: {e}"));
    let position = Position::new(number(lat)?, number(lon)?).map_err(|e| e.to_string())?;
    let technology = match known("NetworkMode") {
        Some("5G") => Technology::Nr,
        Some("LTE") => Technology::Lte,
        Some("UMTS" | "HSPA" | "HSPA+" | "HSDPA" | "HSUPA") => Technology::Umts,
        Some("EDGE" | "GPRS" | "GSM") => Technology::Gsm,
        _ => Technology::Unknown,
    };
    let cell = known("CellID").and_then(|c| c.parse().ok());
    let rate = DataRate::from_bps_f64(number(kbps)? * 1_000.0);
    Ok(Some((unix_time(time)?, position, rate, technology, cell)))
}

/// `2019.12.16_07:22:43`, as UTC.
fn unix_time(text: &str) -> Result<WallTime, String> {
    let parts: Option<Vec<u64>> = text.split(['.', '_', ':']).map(|p| p.parse().ok()).collect();
    let wrong = || format!("{text:?} is no time as 2019.12.16_07:22:43");
    let Some([year, month, day, hour, minute, second]) = parts.and_then(|p| <[u64; 6]>::try_from(p).ok()) else {
        return Err(wrong());
    };
    let valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    if !valid {
        return Err(wrong());
    }
    // Days since 1970-01-01 of the proleptic Gregorian calendar, in years that begin in March (H. Hinnant, "chrono-compatible
    // low-level date algorithms").
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468;
    Ok(WallTime::from_unix_millis(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, format: LogFormat) -> Result<Vec<Update>, LogError> {
        read_log(text, format, &"244-91".parse().expect("valid"))
    }

    #[test]
    fn a_norwegian_log_is_read() {
        let text = "1284365019 332305 59.933668 10.827808 162792 1013\n\n1284365020 333313 59.933668 10.827808 0 0\n\
            1284365021 333314 NOFIX NOFIX 1000 1000\n";
        let updates = read(text, LogFormat::Norway).expect("read");
        assert_eq!(updates.len(), 1);
        assert_eq!(
            (updates[0].time_ms.as_unix_millis(), updates[0].throughput.as_bps()),
            (1_284_365_019_000, 1_285_623)
        );
        assert_eq!(read("1 2 3", LogFormat::Norway).expect_err("short").to_string(), "line 1: 3 fields instead of 6");
        assert!(read("1 2 95.0 3 4 5", LogFormat::Norway).is_err());
    }

    #[test]
    fn an_irish_log_is_read_by_its_columns() {
        let text = "Timestamp,Longitude,Latitude,Speed,NetworkMode,CellID,DL_bitrate\n\
            2019.12.16_07:22:43,-8.5,51.9,10,5G,7,12345\n2019.12.16_07:22:44,-8.5,51.9,10,LTE,7,-\n";
        let updates = read(text, LogFormat::Ireland).expect("read");
        assert_eq!(updates.len(), 1);
        let one = &updates[0];
        assert_eq!((one.time_ms.as_unix_millis(), one.throughput.as_bps()), (1_576_480_963_000, 12_345_000));
        assert_eq!((one.technology, one.cell_id, one.id), (Technology::Nr, Some(7), 2));
        let error = read("Timestamp,Latitude\n", LogFormat::Ireland).expect_err("columns");
        assert_eq!(error.to_string(), "line 1: no column Longitude");
        assert_eq!(unix_time("2000.02.29_12:00:00").expect("a time").as_unix_millis(), 951_825_600_000);
        assert!(unix_time("2019.13.16_07:22:43").is_err() && unix_time("2019").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_log_or_an_error(text in "[-0-9a-zA-Z ,.:_\n]{0,200}") {
            for format in [LogFormat::Norway, LogFormat::Ireland] {
                let _ = read(&text, format);
                let _ = read(&format!("Timestamp,Longitude,Latitude,DL_bitrate\n{text}"), format);
            }
        }
    }
}
