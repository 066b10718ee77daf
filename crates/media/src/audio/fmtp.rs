//! SDP parameters of Opus (RFC 7587, sections 6.1 and 7).

use crate::MediaError;
use core::fmt;
use core::str::FromStr;

/// Bounds of `maxaveragebitrate` in bit/s (RFC 7587, section 6.1).
const RATES: core::ops::RangeInclusive<u32> = 6_000..=510_000;
/// Bounds of `maxplaybackrate` and `sprop-maxcapturerate` in Hz (section 6.1: any value from 8,000 to 48,000).
const SAMPLE_RATES: core::ops::RangeInclusive<u32> = 8_000..=48_000;
/// Bounds of `ptime` and `maxptime` in ms (section 6.1: up to 120).
const TIMES: core::ops::RangeInclusive<u32> = 3..=120;

/// The media type parameters of Opus; `None` if absent, in which case the default applies.
///
/// The text form is the value of `a=fmtp` after the payload type; `ptime` and `maxptime` are separate attributes and
/// not included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpusParams {
    /// Highest sampling rate that the receiver plays, in Hz; 48,000 if absent.
    pub maxplaybackrate: Option<u32>,
    /// Highest sampling rate that the sender captures, in Hz; 48,000 if absent.
    pub sprop_maxcapturerate: Option<u32>,
    /// Highest average bit rate that the receiver accepts, in bit/s.
    pub maxaveragebitrate: Option<u32>,
    /// Whether the receiver prefers stereo; mono if absent.
    pub stereo: Option<bool>,
    /// Whether the sender is likely to send stereo; mono if absent.
    pub sprop_stereo: Option<bool>,
    /// Whether the receiver prefers a constant bit rate; variable if absent.
    pub cbr: Option<bool>,
    /// Whether the receiver uses in-band FEC; no if absent.
    pub useinbandfec: Option<bool>,
    /// Whether the receiver prefers DTX; no if absent.
    pub usedtx: Option<bool>,
    /// Preferred packet time in ms (`a=ptime`); 20 if absent.
    pub ptime: Option<u32>,
    /// Greatest packet time in ms (`a=maxptime`); 120 if absent.
    pub maxptime: Option<u32>,
}

impl OpusParams {
    /// Parses the value of `a=ptime` or `a=maxptime`.
    ///
    /// # Errors
    /// It is not a number from 3 to 120.
    pub fn read_time(text: &str) -> Result<u32, MediaError> {
        number("ptime", text, &TIMES)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), MediaError> {
        match name {
            "maxplaybackrate" => self.maxplaybackrate = Some(number("maxplaybackrate", value, &SAMPLE_RATES)?),
            "sprop-maxcapturerate" => {
                self.sprop_maxcapturerate = Some(number("sprop-maxcapturerate", value, &SAMPLE_RATES)?);
            }
            "maxaveragebitrate" => {
                // Values out of range are ignored (section 6.1).
                let rate = number("maxaveragebitrate", value, &(1..=999_999_999))?;
                self.maxaveragebitrate = RATES.contains(&rate).then_some(rate);
            }
            "stereo" => self.stereo = Some(flag("stereo", value)?),
            "sprop-stereo" => self.sprop_stereo = Some(flag("sprop-stereo", value)?),
            "cbr" => self.cbr = Some(flag("cbr", value)?),
            "useinbandfec" => self.useinbandfec = Some(flag("useinbandfec", value)?),
            "usedtx" => self.usedtx = Some(flag("usedtx", value)?),
            // Some implementations put these here.
            "ptime" => self.ptime = Some(Self::read_time(value)?),
            "maxptime" => self.maxptime = Some(Self::read_time(value)?),
            // Unknown parameters are ignored (RFC 6838, section 4.3, and RFC 4855).
            _ => {}
        }
        Ok(())
    }
}

fn wrong(field: &'static str, value: &str, expected: String) -> MediaError {
    MediaError::new("fmtp of opus", field, format!("{value:?}"), expected)
}

fn number(field: &'static str, text: &str, range: &core::ops::RangeInclusive<u32>) -> Result<u32, MediaError> {
    let digits = text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit());
    let value = text.parse().ok().filter(|v| digits && range.contains(v));
    value.ok_or_else(|| wrong(field, text, format!("{} to {}", range.start(), range.end())))
}

fn flag(field: &'static str, text: &str) -> Result<bool, MediaError> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(wrong(field, text, "0 or 1".into())),
    }
}

impl FromStr for OpusParams {
    type Err = MediaError;
    /// Parses the value of `a=fmtp` after the payload type. Unknown parameters are ignored; of repeated ones the last
    /// applies.
    ///
    /// # Errors
    /// A known parameter has an invalid value or none.
    fn from_str(text: &str) -> Result<Self, MediaError> {
        let mut params = Self::default();
        for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) =
                part.split_once('=').ok_or_else(|| wrong("parameter", part, "name=value; name=value".into()))?;
            params.set(name.trim().to_ascii_lowercase().as_str(), value.trim())?;
        }
        Ok(params)
    }
}

impl fmt::Display for OpusParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flag = |b: Option<bool>| b.map(u32::from);
        let all = [
            ("maxplaybackrate", self.maxplaybackrate),
            ("sprop-maxcapturerate", self.sprop_maxcapturerate),
            ("maxaveragebitrate", self.maxaveragebitrate),
            ("stereo", flag(self.stereo)),
            ("sprop-stereo", flag(self.sprop_stereo)),
            ("cbr", flag(self.cbr)),
            ("useinbandfec", flag(self.useinbandfec)),
            ("usedtx", flag(self.usedtx)),
        ];
        for (n, (name, value)) in all.iter().filter_map(|(n, v)| v.map(|v| (n, v))).enumerate() {
            write!(f, "{}{name}={value}", if n > 0 { ";" } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_the_rfc_is_read_and_written() {
        // RFC 7587, section 7, example 2.
        let text = "maxplaybackrate=16000; sprop-maxcapturerate=16000; maxaveragebitrate=20000; stereo=1; useinbandfec=1; \
                    usedtx=0";
        let p: OpusParams = text.parse().unwrap();
        assert_eq!((p.maxplaybackrate, p.sprop_maxcapturerate), (Some(16_000), Some(16_000)));
        assert_eq!((p.maxaveragebitrate, p.stereo, p.sprop_stereo), (Some(20_000), Some(true), None));
        assert_eq!((p.useinbandfec, p.usedtx, p.cbr), (Some(true), Some(false), None));
        assert_eq!(p.to_string(), text.replace("; ", ";"));
        // As written by browsers.
        let p: OpusParams = "minptime=10;useinbandfec=1".parse().unwrap();
        assert_eq!(p, OpusParams { useinbandfec: Some(true), ..OpusParams::default() });
        assert_eq!("".parse(), Ok(OpusParams::default()));
        assert_eq!("maxaveragebitrate=700000".parse(), Ok(OpusParams::default()));
        assert_eq!(OpusParams::read_time("20"), Ok(20));
    }

    #[test]
    fn wrong_values_are_named() {
        for (text, field) in [
            ("stereo=2", "stereo"),
            ("usedtx=", "usedtx"),
            ("cbr=yes", "cbr"),
            ("maxaveragebitrate=0", "maxaveragebitrate"),
            ("maxaveragebitrate=99999999999999999999", "maxaveragebitrate"),
            ("maxplaybackrate=-8000", "maxplaybackrate"),
            ("maxplaybackrate=96000", "maxplaybackrate"),
            ("stereo", "parameter"),
            ("maxptime=1000", "ptime"),
        ] {
            let error = text.parse::<OpusParams>().unwrap_err().to_string();
            assert!(error.contains(field) && error.contains("expected"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            rates in (proptest::option::of(8_000u32..=48_000), proptest::option::of(6_000u32..=510_000)),
            flags in proptest::array::uniform5(proptest::option::of(any::<bool>())),
        ) {
            let [stereo, sprop_stereo, cbr, useinbandfec, usedtx] = flags;
            let p = OpusParams {
                maxplaybackrate: rates.0, maxaveragebitrate: rates.1, stereo, sprop_stereo, cbr, useinbandfec, usedtx,
                ..OpusParams::default()
            };
            prop_assert_eq!(p.to_string().parse(), Ok(p));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[ -~]{0,80}") {
            if let Ok(p) = text.parse::<OpusParams>() {
                let again: OpusParams = p.to_string().parse().unwrap();
                prop_assert_eq!(OpusParams { ptime: p.ptime, maxptime: p.maxptime, ..again }, p);
            }
        }
    }
}
