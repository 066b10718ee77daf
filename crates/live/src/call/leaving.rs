//! The end of a call: its BYE, repeated where the first may have been lost.

use crate::call::carrier::Carrier;
use weir_units::{TimeDelta, Timestamp};

/// Time for a DCCP connection to close.
const CLOSING: TimeDelta = TimeDelta::from_millis(500);
/// Number of BYEs sent by UDP, unless the other end's own shows that it has left: the loss of a single one would keep it waiting for its
/// limit of silence.
const BYES: i64 = 3;
/// Time between them.
const INTERVAL: TimeDelta = TimeDelta::from_millis(20);

/// An end that has sent its first BYE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    since: Timestamp,
    byes: i64,
}

impl Leaving {
    pub(super) fn begin(now: Timestamp) -> Self {
        Self { since: now, byes: 1 }
    }

    /// Whether the BYE has to be repeated now; counts it.
    pub(super) fn repeats(&mut self, now: Timestamp, carrier: &Carrier) -> bool {
        let repeats = !carrier.is_dccp() && self.byes < BYES && now >= self.since + INTERVAL * self.byes;
        self.byes += i64::from(repeats);
        repeats
    }

    /// Whether nothing more has to be sent. `answered`: the other end has sent a BYE.
    pub(super) fn is_over(&self, now: Timestamp, carrier: &Carrier, answered: bool) -> bool {
        let is_sent = carrier.is_dccp() || answered || self.byes >= BYES;
        now - self.since >= CLOSING || (is_sent && carrier.has_left())
    }
}
