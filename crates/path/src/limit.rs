use crate::error::ConfigError;
use std::fmt;
use weir_units::{DataSize, TimeDelta};

/// An amount of queued data: a queue's limit, or its marking threshold.
///
/// Only queued packets count. The packet in transmission does not, as in ns-3, where the device has taken it out of its
/// queue: a link with a queue of 75,000 bytes holds those and one packet more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// No limit.
    Unlimited,
    /// Bytes.
    Size(DataSize),
    /// Packets.
    Packets(u32),
    /// Bytes that are transmitted in this time at the current capacity, or at the last one above zero during an outage.
    /// A packet that finds an empty queue is always accepted, so that a falling capacity cannot block the link.
    Time(TimeDelta),
}

impl Limit {
    /// Rejects an amount of zero; `field` names it in the error.
    pub(crate) fn check(self, field: &'static str) -> Result<(), ConfigError> {
        let positive = match self {
            Self::Unlimited => true,
            Self::Size(s) => !s.is_zero(),
            Self::Packets(n) => n > 0,
            Self::Time(t) => t > TimeDelta::ZERO,
        };
        let none = "a positive amount, or unlimited";
        if positive { Ok(()) } else { Err(ConfigError::new(field, format_args!("{self:?}"), none)) }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Size(s) => write!(f, "{s}"),
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Time(t) => write!(f, "{t}"),
        }
    }
}
