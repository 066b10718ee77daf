//! Checks of single values of a link's configuration.

use crate::error::ConfigError;
use weir_units::TimeDelta;

/// Rejects what is no share; `field` names it in the error.
pub(crate) fn check_share(field: &'static str, value: f64) -> Result<(), ConfigError> {
    let expected = "a share between 0 and 1 (1 % is 0.01)";
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(ConfigError::new(field, value, expected)) }
}

/// Rejects what is negative or above an hour.
pub(crate) fn check_delay(field: &'static str, value: TimeDelta) -> Result<(), ConfigError> {
    let expected = "zero or a positive time, an hour at most";
    if value.is_negative() || value > TimeDelta::from_secs(3_600) {
        return Err(ConfigError::new(field, value, expected));
    }
    Ok(())
}
