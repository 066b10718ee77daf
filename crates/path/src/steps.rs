use crate::error::ConfigError;
use std::sync::Arc;
use weir_units::{TimeDelta, Timestamp};

/// Values from given times on, optionally repeated. Cheap to clone.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps<T>(Arc<Table<T>>);

#[derive(PartialEq, Debug)]
struct Table<T> {
    at: Vec<TimeDelta>,
    values: Vec<T>,
    period: Option<TimeDelta>,
}

impl<T: Copy> Steps<T> {
    /// Values and their start, counted from zero of the clock, in increasing order; with `period`, they repeat. Errors: no
    /// steps, a first step that is not at zero, steps out of order, or a period that ends before the last step begins.
    pub fn new(steps: Vec<(TimeDelta, T)>, period: Option<TimeDelta>) -> Result<Self, ConfigError> {
        let (at, values): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
        check_times(&at, period, ["steps", "steps[0].at", "steps.at", "steps.period"])?;
        Ok(Self(Arc::new(Table { at, values, period })))
    }

    /// One value for ever.
    pub fn constant(value: T) -> Self {
        Self(Arc::new(Table { at: vec![TimeDelta::ZERO], values: vec![value], period: None }))
    }

    /// The values in order.
    pub fn values(&self) -> &[T] {
        &self.0.values
    }

    /// The value at a time; before zero of the clock, the first one.
    pub fn at(&self, time: Timestamp) -> T {
        let Table { at, values, period } = &*self.0;
        let mut since = (time - Timestamp::ZERO).max(TimeDelta::ZERO);
        if let Some(p) = period {
            since = TimeDelta::from_nanos(since.as_nanos() % p.as_nanos());
        }
        values[at.partition_point(|&t| t <= since).max(1) - 1]
    }
}

/// Checks the starts of steps. Errors: see [`Steps::new`]; `fields` names the list, its first start, its starts and the
/// period.
pub(crate) fn check_times(
    at: &[TimeDelta],
    period: Option<TimeDelta>,
    fields: [&'static str; 4],
) -> Result<(), ConfigError> {
    let (Some(&first), Some(&last)) = (at.first(), at.last()) else {
        return Err(ConfigError::new(fields[0], "empty", "at least one step"));
    };
    if first != TimeDelta::ZERO {
        return Err(ConfigError::new(fields[1], first, "0: the first step holds from the start"));
    }
    if let Some(w) = at.windows(2).find(|w| w[1] <= w[0]) {
        return Err(ConfigError::new(fields[2], w[1], "a later time than that of the step before"));
    }
    if let Some(p) = period.filter(|&p| p <= last) {
        return Err(ConfigError::new(fields[3], p, "a longer time than that of the last step"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: i64) -> TimeDelta {
        TimeDelta::from_secs(n)
    }

    #[test]
    fn a_step_holds_until_the_next_one() {
        let steps = vec![(secs(0), 'a'), (secs(2), 'b'), (secs(5), 'c')];
        let at =
            |s: &Steps<char>, times: [i64; 6]| times.map(|t| s.at(Timestamp::from_secs(t))).iter().collect::<String>();
        let once = Steps::new(steps.clone(), None).expect("sound");
        assert_eq!(at(&once, [-1, 0, 1, 2, 5, 1_000_000]), "aaabcc");
        let repeated = Steps::new(steps, Some(secs(6))).expect("sound");
        assert_eq!(at(&repeated, [4, 5, 6, 7, 8, 12 * 1_000 + 2]), "bcaabb");
        assert_eq!(repeated.values(), ['a', 'b', 'c']);
        assert_eq!(once.at(Timestamp::MAX), 'c');
    }

    #[test]
    fn errors_name_the_step() {
        let err = |at: &[i64], p: Option<i64>| {
            Steps::new(at.iter().map(|&t| (secs(t), ())).collect(), p.map(secs)).expect_err("unsound").to_string()
        };
        assert!(err(&[], None).contains("at least one step"));
        assert!(err(&[1], None).contains("steps[0].at is 1000 ms"));
        assert!(err(&[0, 0], None).contains("later time"));
        assert!(err(&[0, 9], Some(9)).contains("period is 9000 ms"));
    }
}
