//! Picture feedback from the decoder to the other end.

use super::Endpoint;
use crate::identity::FeedbackSsrcs;
use crate::session_params::Profile;
use crate::timers::earliest;
use weir_units::{TimeDelta, Timestamp};

/// Round-trip time for the spacing of requests until one is measured.
const FIRST_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(200);
/// Least spacing of requests: an encoder needs a frame's time to respond.
const MIN_SPACING: TimeDelta = TimeDelta::from_millis(50);

impl Endpoint {
    pub(crate) fn has_feedback(&self) -> bool {
        self.receiver.is_some() && self.config.params.profile == Profile::Avpf
    }

    /// Wakes for picture feedback that is due then if it may be sent before the next regular packet.
    #[inline(never)]
    pub(super) fn picture_timeout(&self, due: Timestamp, at: &mut Timestamp) {
        if self.has_feedback() {
            let early = due.max(self.timer.early_from());
            earliest(at, (early < self.timer.next_regular()).then_some(early));
        }
    }

    pub(super) fn write_picture_feedback(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        let rtt = self.rtt.unwrap_or(FIRST_ROUND_TRIP);
        for s in self.receiver.iter_mut().flat_map(|r| &mut r.streams) {
            let playout = s.playout.as_ref().map_or(TimeDelta::ZERO, |p| p.max_delay());
            let spacing = (rtt + playout).max(MIN_SPACING);
            let ssrcs = FeedbackSsrcs { sender: self.config.ssrc, media: s.identity.ssrc };
            s.picture.write(ssrcs, s.identity.payload_type, spacing, now, out);
        }
    }
}
