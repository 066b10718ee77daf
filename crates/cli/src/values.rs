//! Values as they are written on the command line.

use weir_media::{FrameRate, MediaError};
use weir_units::DataRate;

/// A time on the command line, in s: a number with ms, s, min or h, or s alone.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err("a time is not below zero: one such as 30s".into());
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let scale = match text[digits..].trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "min" => 60.0,
        "h" => 3_600.0,
        other => return Err(format!("`{other}` is no unit of time: ms, s, min or h")),
    };
    match text[..digits].parse::<f64>() {
        Ok(n) if n > 0.0 => Ok(n * scale),
        _ => Err("not a time above zero, such as 30s".into()),
    }
}

/// As [`seconds`], or 0.
pub(crate) fn seconds_from_zero(text: &str) -> Result<f64, String> {
    if text.trim() == "0" { Ok(0.0) } else { seconds(text) }
}

/// Whether a rate is written in bytes a second, which only the case of its letters tells from bits.
fn is_in_bytes(text: &str) -> bool {
    let text = text.trim();
    let unit = text.strip_suffix("/s").or_else(|| text.strip_suffix("ps")).unwrap_or(text);
    unit.ends_with('B')
}

/// A rate's unit as scenario files spell it, however it is written on the command line. Bytes a second stay as they are.
#[cfg(target_os = "linux")]
pub(crate) fn rate(text: &str) -> String {
    if is_in_bytes(text) {
        return text.to_owned();
    }
    let lower = text.trim().to_ascii_lowercase();
    for (given, spelt) in [("gbps", "Gbps"), ("mbps", "Mbps"), ("kbps", "kbps"), ("bps", "bps")] {
        if let Some(number) = lower.strip_suffix(given) {
            return format!("{} {spelt}", number.trim());
        }
    }
    text.to_owned()
}

/// A bit rate on the command line: a number with bps, kbps, Mbps or Gbps, in any case; bit/s and bit are as good as bps.
pub(crate) fn bit_rate(text: &str) -> Result<DataRate, String> {
    let lower = text.trim().to_ascii_lowercase();
    let stem = ["bps", "bit/s", "bit"].into_iter().find_map(|unit| lower.strip_suffix(unit));
    let given = stem.map(|stem| match stem.chars().last() {
        Some('g') => (&stem[..stem.len() - 1], 1e9),
        Some('m') => (&stem[..stem.len() - 1], 1e6),
        Some('k') => (&stem[..stem.len() - 1], 1e3),
        _ => (stem, 1.0),
    });
    let number = given.and_then(|(number, scale)| Some(number.trim().parse::<f64>().ok()? * scale));
    if is_in_bytes(text) {
        return Err(format!("`{text}` is in bytes; rates are in bits, and a byte has 8: such as 500kbps or 2mbps"));
    }
    match number {
        Some(bps) if bps > 0.0 && bps < 1e15 => Ok(DataRate::from_bps_f64(bps)),
        None if text.trim().parse::<f64>().is_ok() => Err(format!("`{text}` has no unit: such as 500kbps or 2mbps")),
        _ => Err(format!("`{text}` is no rate, such as 500kbps or 2mbps")),
    }
}

/// A share on the command line: `1%` or `0.01`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(n) => (n.trim(), 0.01),
        None => (text.trim(), 1.0),
    };
    match number.parse::<f64>().map(|n| n * scale) {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is no share: 0 to 1, or 0% to 100%")),
    }
}

/// A size on the command line.
pub(crate) fn size(text: &str) -> Result<(u32, u32), String> {
    weir_media::clip::parse_size(text).map_err(|e| e.to_string())
}

/// Frames a second on the command line.
pub(crate) fn frame_rate(text: &str) -> Result<FrameRate, String> {
    text.parse().map_err(|e: MediaError| e.to_string())
}

/// A queue with its discipline as scenario files spell it, from `NAME[,PARAMETER=VALUE]...` on the command line.
#[cfg(target_os = "linux")]
pub(crate) fn queue(discipline: &str, limit: Option<&str>) -> String {
    let mut parts = discipline.split(',').map(str::trim);
    let mut fields = vec![format!("discipline = {:?}", parts.next().unwrap_or_default())];
    fields.extend(limit.map(|l| format!("limit = {l:?}")));
    for part in parts {
        let (name, value) = part.split_once('=').map_or((part, ""), |(n, v)| (n.trim(), v.trim()));
        // Quantities are quoted, numbers and switches are not.
        fields.push(match (value.parse::<f64>(), value.parse::<bool>()) {
            (Ok(number), _) => format!("{name:?} = {number:?}"),
            (_, Ok(on)) => format!("{name:?} = {on}"),
            _ => format!("{name:?} = {value:?}"),
        });
    }
    format!("queue = {{ {} }}\n", fields.join(", "))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_discipline_is_spelt_as_in_a_scenario_file() {
        assert_eq!(queue("codel", None), "queue = { discipline = \"codel\" }\n");
        assert_eq!(
            queue("codel, target = 5ms,ecn=false,x=0.5", Some("1 s")),
            "queue = { discipline = \"codel\", limit = \"1 s\", \"target\" = \"5ms\", \"ecn\" = false, \"x\" = 0.5 }\n"
        );
        assert_eq!(queue("codel,ecn", None), "queue = { discipline = \"codel\", \"ecn\" = \"\" }\n");
    }

    #[test]
    fn times_and_shares() {
        assert_eq!(seconds("30s"), Ok(30.0));
        assert_eq!(seconds("250 ms"), Ok(0.25));
        assert_eq!(seconds("1.5min"), Ok(90.0));
        assert_eq!(seconds("2"), Ok(2.0));
        assert!(seconds("0").is_err() && seconds("x").is_err() && seconds("3 days").is_err());
        assert_eq!(bit_rate("1.5Mbps"), Ok(DataRate::from_kbps(1_500)));
        assert_eq!(bit_rate("64 kbps"), Ok(DataRate::from_kbps(64)));
        for text in ["5Mbit", "5mbps", "5 Mbit/s", "5000kbit"] {
            assert_eq!(bit_rate(text), Ok(DataRate::from_mbps(5)), "{text}");
        }
        assert_eq!((seconds_from_zero("0"), seconds_from_zero("15s")), (Ok(0.0), Ok(15.0)));
        assert!(
            bit_rate("5MB").is_err()
                && bit_rate("2").is_err()
                && bit_rate("-1kbps").is_err()
                && bit_rate("infbps").is_err()
        );
        for bytes in ["2MB", "2 MBps", "100kB/s", "5 B"] {
            assert!(bit_rate(bytes).is_err_and(|e| e.contains("rates are in bits")), "{bytes}");
            assert_eq!(rate(bytes), bytes);
        }
        assert_eq!(bit_rate("5MBPS"), Ok(DataRate::from_mbps(5)));
        assert!(bit_rate("999999999999").is_err_and(|e| e.contains("has no unit")));
        assert_eq!(rate("2mbps"), "2 Mbps");
        assert_eq!(rate("300 KBPS"), "300 kbps");
        assert_eq!(rate("unlimited"), "unlimited");
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        assert!(share("2").is_err() && share("-1%").is_err() && share("NaN").is_err());
    }
}
