//! Quantities as text: a number and its unit, such as `2 Mbps`, `100 ms` or `75 kB`.

use super::suggest::nearest;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;
use weir_path::Limit;
use weir_units::{DataRate, DataSize, TimeDelta};

/// A kind of quantity: its units and their factors to the base unit.
struct Kind {
    /// With its article, for messages.
    noun: &'static str,
    example: &'static str,
    units: &'static [(&'static str, f64)],
    /// Maximum in the base unit, far above any use but far below the saturation of sums.
    max: f64,
    max_text: &'static str,
}

const RATE_UNITS: &[(&str, f64)] = &[("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)];
const TIME_UNITS: &[(&str, f64)] = &[("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 6e10)];
const SIZE_UNITS: &[(&str, f64)] = &[("B", 1.0), ("kB", 1e3), ("MB", 1e6)];
const QUEUE_EXPECTED: &str = "a queue in bytes, packets or time, such as \"75 kB\", \"50 packets\" or \"300 ms\"";
const PACKET_UNITS: &[(&str, f64)] = &[("packets", 1.0)];

/// Rates in bit/s.
const RATE: Kind = Kind { noun: "a rate", example: "2 Mbps", units: RATE_UNITS, max: 1e12, max_text: "1000 Gbps" };
/// Times in nanoseconds.
const TIME: Kind = Kind { noun: "a time", example: "100 ms", units: TIME_UNITS, max: 3.6e14, max_text: "6000 min" };
/// Sizes in bytes.
const SIZE: Kind = Kind { noun: "a size", example: "75 kB", units: SIZE_UNITS, max: 1e12, max_text: "1000000 MB" };
const PACKETS: Kind =
    Kind { noun: "a number of packets", example: "50 packets", units: PACKET_UNITS, max: 1e9, max_text: "1e9" };

impl Kind {
    fn expected(&self) -> String {
        let units: Vec<_> = self.units.iter().map(|u| u.0).collect();
        format!("{} with its unit, such as \"{}\" (units: {})", self.noun, self.example, units.join(", "))
    }
    #[cfg(feature = "schema")]
    fn pattern(&self) -> String {
        let units: Vec<_> = self.units.iter().map(|u| u.0).collect();
        format!("[0-9]+(\\.[0-9]+)? ?({})", units.join("|"))
    }
    /// The number in the base unit. Errors: what was expected, as text.
    fn parse(&self, text: &str) -> Result<f64, String> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim();
        let bad = || format!("expected {}, found \"{text}\"", self.expected());
        let n: f64 = number.parse().map_err(|_| bad())?;
        let Some((_, scale)) = self.units.iter().find(|u| u.0 == unit) else {
            return Err(bad() + &self.hint(n, number, unit));
        };
        let value = n * scale;
        if value > self.max {
            return Err(format!("\"{text}\" is more than the {} allowed here", self.max_text));
        }
        Ok(value)
    }
    /// After the error of a number whose unit is none of these: what may be meant.
    fn hint(&self, n: f64, number: &str, unit: &str) -> String {
        if unit.is_empty() {
            return ", which has no unit".into();
        }
        if let Some(bits) = bits(unit).filter(|_| self.units[0].0 == "bps") {
            let as_bits = format!("{} {bits}", n * 8.0);
            return format!("; rates are in bits, and a byte has 8: \"{as_bits}\" is as much as {number} {unit}");
        }
        meant(number, unit, self.units.iter().map(|u| u.0))
    }
}

/// After the error of a number whose unit is unknown: the same number with a unit of the same magnitude, if one is near.
fn meant(number: &str, unit: &str, units: impl Iterator<Item = &'static str> + Clone) -> String {
    if unit
        .strip_prefix(['e', 'E'])
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c)))
    {
        return "; a number has no exponent here: write it out, or give a larger unit".into();
    }
    // Another first letter is another magnitude, or another quantity.
    let is_alike = |u: &&str| u.eq_ignore_ascii_case(unit) || u.chars().next() == unit.chars().next();
    let alike = units.filter(is_alike).collect::<Vec<_>>();
    let near = nearest(unit, alike.iter().copied());
    near.map(|near| format!("; did you mean \"{number} {near}\"?")).unwrap_or_default()
}

/// The unit of rates that has as many bits as this one has bytes, if this is one of bytes: `MB`, `kB/s`, `GBps`.
fn bits(unit: &str) -> Option<&'static str> {
    match unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")).unwrap_or(unit) {
        "B" => Some("bps"),
        "kB" | "KB" => Some("kbps"),
        "MB" => Some("Mbps"),
        "GB" => Some("Gbps"),
        _ => None,
    }
}

/// A rate with its unit, as scenario files have it (`2 Mbps`). Errors: what was expected, as text.
pub fn parse_rate(text: &str) -> Result<DataRate, String> {
    rate(text)
}
fn rate(text: &str) -> Result<DataRate, String> {
    RATE.parse(text).map(DataRate::from_bps_f64)
}
/// A time with its unit, as scenario files have it (`100 ms`, `2 min`). Errors: what was expected, as text.
pub fn parse_time(text: &str) -> Result<TimeDelta, String> {
    time(text)
}
fn time(text: &str) -> Result<TimeDelta, String> {
    // Whole nanoseconds are exact in a float up to 2^53 ns, above the greatest time allowed.
    TIME.parse(text).map(|ns| TimeDelta::from_nanos((ns + 0.5) as i64))
}
fn size(text: &str) -> Result<DataSize, String> {
    SIZE.parse(text).map(|b| DataSize::from_bytes((b + 0.5) as u64))
}
fn queue(text: &str) -> Result<Limit, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim();
    let has = |kind: &Kind| kind.units.iter().any(|u| u.0 == unit);
    if has(&SIZE) {
        return size(text).map(Limit::Size);
    }
    if has(&TIME) {
        return time(text).map(Limit::Time);
    }
    if has(&PACKETS) {
        return PACKETS.parse(text).map(|n| Limit::Packets(n as u32));
    }
    let all = SIZE_UNITS.iter().chain(TIME_UNITS).chain(PACKET_UNITS).map(|u| u.0);
    let hint = match number {
        _ if unit.is_empty() => ", which has no unit".into(),
        "" => String::new(),
        _ => meant(number, unit, all),
    };
    Err(format!("expected {QUEUE_EXPECTED}, found \"{text}\"{hint}"))
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($ty:ty) = $parse:ident, $schema:literal, $expected:expr, $pattern:expr, $examples:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) struct $name(pub(super) $ty);

        impl $name {
            /// From text. Errors: what was expected, as text.
            pub(super) fn read(text: &str) -> Result<Self, String> {
                $parse(text).map(Self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{}", $expected)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::read(text).map_err(E::custom)
                    }
                }
                d.deserialize_any(Visitor)
            }
        }
        #[cfg(feature = "schema")]
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $schema.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": format!("Expected: {}.", $expected),
                    "pattern": format!("^({})$", $pattern),
                    "examples": $examples,
                })
            }
        }
    };
}

quantity!(
    /// A rate.
    Rate(DataRate) = rate, "Rate", RATE.expected(), RATE.pattern(), ["2 Mbps", "500 kbps"]
);
quantity!(
    /// A time, never negative.
    Time(TimeDelta) = time, "Time", TIME.expected(), TIME.pattern(), ["100 ms", "20 s"]
);
quantity!(
    /// A size.
    Size(DataSize) = size, "Size", SIZE.expected(), SIZE.pattern(), ["75 kB", "1000 B"]
);
quantity!(
    /// Room of a queue.
    Queue(Limit) = queue, "Queue",
    QUEUE_EXPECTED,
    format!("{}|{}|{}", SIZE.pattern(), TIME.pattern(), PACKETS.pattern()), ["300 ms", "75 kB", "50 packets"]
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_numbers_with_units() {
        assert_eq!(rate("2 Mbps"), Ok(DataRate::from_mbps(2)));
        assert_eq!(rate("0.5Mbps"), Ok(DataRate::from_kbps(500)));
        assert_eq!(time("100 ms"), Ok(TimeDelta::from_millis(100)));
        assert_eq!(time("1.5 min"), Ok(TimeDelta::from_secs(90)));
        assert_eq!(size("75 kB"), Ok(DataSize::from_bytes(75_000)));
        assert_eq!(queue("300 ms"), Ok(Limit::Time(TimeDelta::from_millis(300))));
        assert_eq!(queue("75000 B"), Ok(Limit::Size(DataSize::from_bytes(75_000))));
        assert_eq!(queue("50 packets"), Ok(Limit::Packets(50)));
    }

    #[test]
    fn errors_state_the_fault() {
        let has = |r: Result<DataRate, String>, part: &str| {
            let e = r.expect_err(part);
            assert!(e.contains(part), "{e}");
        };
        has(rate("2 mbps"), "did you mean \"2 Mbps\"?");
        has(rate("2"), "found \"2\", which has no unit");
        has(rate("2 MB"), "\"16 Mbps\" is as much as 2 MB");
        has(rate("100kB/s"), "\"800 kbps\" is as much as 100 kB/s");
        has(rate("2 Mbytes"), "expected a rate");
        assert!(time("50").expect_err("no unit").ends_with("found \"50\", which has no unit"));
        assert!(queue("5").expect_err("no unit").ends_with("found \"5\", which has no unit"));
        has(rate("-2 Mbps"), "expected a rate");
        has(rate("1e9 Gbps"), "expected a rate");
        has(rate("2000 Gbps"), "more than the 1000 Gbps");
        has(rate("1.2.3 Mbps"), "expected a rate");
        assert!(queue("50 pakets").expect_err("typo").contains("did you mean \"50 packets\"?"));
        assert!(queue("ms").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,20}|[0-9.]{0,30}[ \u{3000}]?[a-zA-Z]{0,8}[ \u{3000}]?") {
            let _ = (rate(&text), time(&text), size(&text), queue(&text));
        }

        #[test]
        fn whole_numbers_are_exact(n in 0u32..1_000_000) {
            prop_assert_eq!(rate(&format!("{n} kbps")), Ok(DataRate::from_kbps(n.into())));
            prop_assert_eq!(time(&format!("{n} us")), Ok(TimeDelta::from_micros(n.into())));
        }
    }
}
