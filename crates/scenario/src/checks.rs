//! Checks of single values.

use super::error::InputError;
use super::quantity::{Queue, Time};
use super::spanned::At;
use super::tree::Text;
use weir_path::Limit;
use weir_units::TimeDelta;

/// A name that is valid in paths, file names and tables.
pub(super) fn check_name(text: &Text, name: &At<String>) -> Result<(), InputError> {
    let ok = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.value.is_empty() || name.value.len() > 64 || !name.value.chars().all(ok) {
        return Err(text
            .error(name.span.clone(), format!("`{}` cannot be a name here", name.value))
            .help("names have 1 to 64 letters, digits, `-` and `_`"));
    }
    Ok(())
}

/// A time above zero.
pub(super) fn positive(text: &Text, t: &At<Time>) -> Result<TimeDelta, InputError> {
    if t.value.0 > TimeDelta::ZERO {
        return Ok(t.value.0);
    }
    Err(text.error(t.span.clone(), "expected a time above zero"))
}

/// A queue with a capacity above zero.
pub(super) fn positive_queue(text: &Text, q: &At<Queue>) -> Result<Limit, InputError> {
    let zero = match q.value.0 {
        Limit::Unlimited => false,
        Limit::Size(s) => s.is_zero(),
        Limit::Packets(n) => n == 0,
        Limit::Time(t) => t == TimeDelta::ZERO,
    };
    if zero { Err(text.error(q.span.clone(), "expected a queue above zero")) } else { Ok(q.value.0) }
}

/// A number from 0 to 1.
pub(super) fn probability(text: &Text, p: &At<f64>) -> Result<f64, InputError> {
    if (0.0..=1.0).contains(&p.value) {
        return Ok(p.value);
    }
    Err(text.error(p.span.clone(), format!("expected a probability between 0 and 1, found {}", p.value)))
}
