use crate::{Position, WallTime};
use weir_units::TimeDelta;

/// A part of the week in which load is alike: four parts of the day, on weekdays and at weekends.
///
/// The time is the mean solar time of the place (UTC and 4 minutes a degree), so that no table of time zones is needed: it
/// is within an hour or two of the legal time, which blurs the boundaries but nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HourClass(u8);

impl HourClass {
    /// The number of classes.
    pub const COUNT: u8 = 8;

    /// The class of a time at a place.
    pub fn of(time: WallTime, at: Position) -> Self {
        let solar = time.plus(TimeDelta::from_secs((at.lon() * 240.0) as i64));
        let hours = solar.as_unix_millis() / 3_600_000;
        // 1970-01-01 was a Thursday: days 2 and 3 of each week that begins there are Saturday and Sunday.
        let weekend = matches!(hours / 24 % 7, 2 | 3);
        let part = match hours % 24 {
            0..=5 => 0,
            6..=9 => 1,
            10..=15 => 2,
            _ => 3,
        };
        Self(part + if weekend { 4 } else { 0 })
    }

    /// The number of the class: 0 night (0 to 6), 1 morning (6 to 10), 2 day (10 to 16), 3 evening; 4 to 7 at weekends.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The class of a number, or `None` if there is none.
    pub fn from_number(number: u8) -> Option<Self> {
        (number < Self::COUNT).then_some(Self(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_week_is_divided_by_solar_time() {
        let at = |lon| Position::new(0.0, lon).expect("valid");
        let class = |ms, lon| HourClass::of(WallTime::from_unix_millis(ms), at(lon)).number();
        // 2023-11-14 (Tuesday) 22:13:20 UTC is the evening at Greenwich, and 6:13 on Wednesday 120 degrees east.
        assert_eq!((class(1_700_000_000_000, 0.0), class(1_700_000_000_000, 120.0)), (3, 1));
        // 2023-11-18, 12:00 UTC: a Saturday.
        assert_eq!((class(1_700_308_800_000, 0.0), class(1_700_308_800_000, -180.0)), (6, 4));
        // No place and time overflows.
        assert!(class(0, -180.0) < HourClass::COUNT && class(u64::MAX, 180.0) < HourClass::COUNT);
    }
}
