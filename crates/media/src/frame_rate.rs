use core::fmt;
use core::str::FromStr;
use weir_units::TimeDelta;

use crate::MediaError;

const NANOS: u64 = 1_000_000_000;
/// Most frames per second: far above cameras, and low enough that no two pictures have the same time.
const MAX_RATE: u32 = 1_000;
/// Least rate: one picture in 1,000 s.
const MIN_RATE_INVERSE: u32 = 1_000;

/// Pictures a second as a fraction: 30000/1001 for what television calls 29.97.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FrameRate {
    numerator: u32,
    denominator: u32,
}

impl FrameRate {
    /// `numerator` pictures in `denominator` seconds.
    ///
    /// # Errors
    /// The rate is not from 1/1000 to 1000 a second.
    pub fn new(numerator: u32, denominator: u32) -> Result<Self, MediaError> {
        let (n, d) = (u64::from(numerator), u64::from(denominator));
        if d == 0 || n > d * u64::from(MAX_RATE) || n * u64::from(MIN_RATE_INVERSE) < d || n == 0 {
            let (value, expected) = (format!("{numerator}/{denominator}"), "1/1000 to 1000 a second");
            return Err(MediaError::new("pictures", "frame rate", value, expected));
        }
        Ok(Self { numerator, denominator })
    }
    /// Pictures a second.
    pub fn as_f64(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }
    /// Numerator and denominator.
    pub const fn fraction(self) -> (u32, u32) {
        (self.numerator, self.denominator)
    }
    /// Time between two pictures, rounded to the nearest nanosecond.
    pub const fn interval(self) -> TimeDelta {
        let (n, d) = (self.numerator as u64, self.denominator as u64);
        TimeDelta::from_nanos(((d * NANOS + n / 2) / n) as i64)
    }
    /// Time of a picture after picture 0, without accumulating the rounding of [`Self::interval`].
    pub fn time_of(self, picture: u64) -> TimeDelta {
        let ns = u128::from(picture) * u128::from(self.denominator) * u128::from(NANOS) / u128::from(self.numerator);
        TimeDelta::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for FrameRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            d => write!(f, "{}/{d}", self.numerator),
        }
    }
}

impl FromStr for FrameRate {
    type Err = MediaError;
    /// `30`, `30000/1001`, `12.5`; 23.976, 29.97 and 59.94 have their meaning in television.
    fn from_str(text: &str) -> Result<Self, MediaError> {
        let wrong =
            || MediaError::new("pictures", "frame rate", format!("{text:?}"), "a number as 15, 29.97 or 30000/1001");
        let television = match text {
            "23.976" | "23.98" => Some(24_000),
            "29.97" => Some(30_000),
            "59.94" => Some(60_000),
            _ => None,
        };
        if let Some(n) = television {
            return Self::new(n, 1_001);
        }
        if let Some((n, d)) = text.split_once(['/', ':']) {
            return Self::new(n.parse().map_err(|_| wrong())?, d.parse().map_err(|_| wrong())?);
        }
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = u32::try_from(decimals.len()).ok().filter(|&n| n <= 4).ok_or_else(wrong)?;
        if !decimals.bytes().chain(whole.bytes()).all(|b| b.is_ascii_digit()) {
            return Err(wrong());
        }
        let n: u32 = format!("{whole}{decimals}").parse().map_err(|_| wrong())?;
        Self::new(n, 10u32.pow(digits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        let read = |t: &str| t.parse::<FrameRate>().map(FrameRate::fraction);
        assert_eq!(read("30").unwrap(), (30, 1));
        assert_eq!(read("29.97").unwrap(), (30_000, 1_001));
        assert_eq!(read("12.5").unwrap(), (125, 10));
        assert_eq!(read("30000/1001").unwrap(), (30_000, 1_001));
        assert_eq!(read("25:1").unwrap(), (25, 1));
        for wrong in ["", "-1", "0", "1/0", "1001", "x", "1.23456", "30fps", "99999999999", "1/1001", "+5", "."] {
            assert!(read(wrong).unwrap_err().to_string().contains("frame rate"), "{wrong}");
        }
    }

    #[test]
    fn times_do_not_drift() {
        let tv = FrameRate::new(30_000, 1_001).unwrap();
        assert_eq!(tv.interval(), TimeDelta::from_nanos(33_366_667));
        assert_eq!(tv.time_of(30_000), TimeDelta::from_secs(1_001));
        assert_eq!(FrameRate::new(15, 1).unwrap().to_string(), "15");
        assert_eq!(tv.to_string(), "30000/1001");
    }
}
