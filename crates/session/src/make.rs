//! Makes ends from their plans.

use crate::config::PathConfig;
use crate::endpoint::{Endpoint, StreamError};
use crate::plan::{CallPlan, EndPlan};
use weir_units::Timestamp;

impl EndPlan {
    /// Makes the end of a call that begins at `now`.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn make(self, now: Timestamp) -> Result<Endpoint, StreamError> {
        Endpoint::new(self, now)
    }
}

impl CallPlan {
    /// Makes the sending and the receiving end.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn into_ends(self, now: Timestamp) -> Result<(Endpoint, Endpoint), StreamError> {
        let Self { sender, receiver, outgoing, incoming, sending, receiving, group } = self;
        let paths = sending.into_iter().map(PathConfig::from).collect();
        let sender = EndPlan { end: sender, outgoing, incoming: Vec::new(), paths, group };
        let paths = receiving.into_iter().map(PathConfig::from).collect();
        let receiver = EndPlan { incoming, paths, ..EndPlan::new(receiver) };
        Ok((sender.make(now)?, receiver.make(now)?))
    }
}
