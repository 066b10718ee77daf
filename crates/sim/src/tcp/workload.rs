//! What a sender has to send.

use super::TcpConfigError;
use crate::distribution::{Distribution, Random};
use weir_units::{DataSize, TimeDelta, Timestamp};

/// What a sender has to send.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Workload {
    /// Data without end.
    Bulk,
    /// One transfer.
    Transfer {
        /// Its data.
        size: DataSize,
    },
    /// Transfers one after another, each on a connection of its own, with pauses from the end of one to the beginning
    /// of the next.
    OnOff {
        /// Bytes of a transfer.
        size: Distribution,
        /// Seconds of a pause.
        off: Distribution,
        /// Whether the first transfer begins at once rather than after a pause.
        starts_on: bool,
        /// Fixes the draws.
        seed: u64,
    },
}

/// Transfers of less than this are made this long, so that a draw of zero still takes time to send.
const MIN_TRANSFER: f64 = 1.0;
/// Transfers are cut to this (1 PB), which no run ends.
const MAX_TRANSFER: f64 = 1e15;

/// The transfers of a [`Workload`], in order.
#[derive(Clone, Debug)]
pub(crate) struct Transfers {
    workload: Workload,
    random: Random,
    begun: u64,
}

impl Transfers {
    pub(crate) fn new(workload: Workload) -> Result<Self, TcpConfigError> {
        let mut seed = 0;
        if let Workload::OnOff { size, off, seed: given, .. } = workload {
            for (name, d) in [("size", size), ("off", off)] {
                d.check().map_err(|e| TcpConfigError {
                    field: name,
                    value: format!("a distribution with {} {}", e.field, e.value),
                    expected: e.expected,
                })?;
            }
            seed = given;
        }
        Ok(Self { workload, random: Random::new(seed), begun: 0 })
    }

    /// The next transfer after `now`: when it begins and how many bytes it has; `u64::MAX` for no end.
    pub(crate) fn next(&mut self, now: Timestamp) -> Option<(Timestamp, u64)> {
        self.begun += 1;
        match self.workload {
            Workload::Bulk => (self.begun == 1).then_some((now, u64::MAX)),
            Workload::Transfer { size } => (self.begun == 1 && !size.is_zero()).then_some((now, size.as_bytes())),
            Workload::OnOff { size, off, starts_on, .. } => {
                // The pause is drawn in either case, so that the transfers are the same.
                let pause = TimeDelta::from_secs_f64(off.sample(&mut self.random));
                let at = if starts_on && self.begun == 1 { now } else { now + pause };
                let bytes = size.sample(&mut self.random).clamp(MIN_TRANSFER, MAX_TRANSFER);
                Some((at, bytes as u64))
            }
        }
    }
}
