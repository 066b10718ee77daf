//! The data that a sender has to send.

use super::TcpConfigError;
use crate::distribution::{Distribution, Random};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// The data that a sender has to send.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Workload {
    /// Endless data.
    Bulk,
    /// One transfer.
    Transfer {
        /// Its data.
        size: DataSize,
    },
    /// Endless data at a constant rate, as from a live source: data that the network has not yet accepted waits at the
    /// sender without limit (as for a constant-rate application over TCP in ns-2). Sent in full segments.
    Stream {
        /// The rate of the data, excluding headers.
        rate: DataRate,
    },
    /// Consecutive transfers, with pauses from the end of one to the beginning of the next.
    OnOff {
        /// Bytes of a transfer.
        size: Distribution,
        /// Seconds of a pause.
        off: Distribution,
        /// Whether the first transfer begins at once instead of after a pause.
        starts_on: bool,
        /// Whether all use one connection, whose window is kept except for a restart after an idle time above the
        /// retransmission timeout (RFC 5681, section 4.1), like a browser's persistent connection and ns-2's agents.
        /// Otherwise each has its own connection.
        persistent: bool,
        /// Seed of the random numbers.
        seed: u64,
    },
}

/// Errors: as for [`Distribution::check`].
pub(crate) fn check(field: &'static str, d: &Distribution) -> Result<(), TcpConfigError> {
    d.check().map_err(|e| TcpConfigError {
        field,
        value: format!("a distribution with {} {}", e.field, e.value),
        expected: e.expected,
    })
}

/// A transfer's bytes.
pub(crate) fn draw_size(size: &Distribution, random: &mut Random) -> u64 {
    size.sample(random).clamp(MIN_TRANSFER, MAX_TRANSFER) as u64
}

/// Least size of a transfer, so that a draw of zero still takes time to send.
const MIN_TRANSFER: f64 = 1.0;
/// Greatest size of a transfer (1 PB), more than any run can send.
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
        if let Workload::Stream { rate } = workload
            && rate.as_bps() == 0
        {
            let (value, expected) = (rate.to_string(), "above zero");
            return Err(TcpConfigError { field: "rate", value, expected });
        }
        if let Workload::OnOff { size, off, seed: given, .. } = workload {
            check("size", &size)?;
            check("off", &off)?;
            seed = given;
        }
        Ok(Self { workload, random: Random::new(seed), begun: 0 })
    }

    pub(crate) fn is_persistent(&self) -> bool {
        matches!(self.workload, Workload::OnOff { persistent: true, .. })
    }
    pub(crate) fn stream(&self) -> Option<DataRate> {
        match self.workload {
            Workload::Stream { rate } => Some(rate),
            _ => None,
        }
    }

    /// The next transfer after `now`: its time and size in bytes; `u64::MAX` for endless.
    pub(crate) fn next(&mut self, now: Timestamp) -> Option<(Timestamp, u64)> {
        self.begun += 1;
        match self.workload {
            Workload::Bulk | Workload::Stream { .. } => (self.begun == 1).then_some((now, u64::MAX)),
            Workload::Transfer { size } => (self.begun == 1 && !size.is_zero()).then_some((now, size.as_bytes())),
            Workload::OnOff { size, off, starts_on, .. } => {
                // The pause is drawn in either case, so that the transfers are the same.
                let pause = TimeDelta::from_secs_f64(off.sample(&mut self.random));
                let at = if starts_on && self.begun == 1 { now } else { now + pause };
                Some((at, draw_size(&size, &mut self.random)))
            }
        }
    }
}
