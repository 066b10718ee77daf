//! The application's policy for all paths.

use super::Endpoint;
use weir_units::{DataRate, Timestamp};

impl Endpoint {
    /// Sets the media rate that suffices: paths of a worse [`PathClass`](crate::multipath::PathClass) carry media only
    /// while those of better ones have less. `None`, the default, uses all but backups.
    pub fn set_sufficient_rate(&mut self, rate: Option<DataRate>, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.set_sufficient_rate(rate, now);
        }
    }
}
