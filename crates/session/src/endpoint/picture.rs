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
/// Most spacing of requests. The round-trip time measured in an outage is the queue's that it left behind: waited for, it would keep the
/// picture frozen for as long again. One request too many costs a key frame at most, which the other end limits.
const MAX_SPACING: TimeDelta = TimeDelta::from_millis(1_000);

/// Time after which a request without a response is repeated.
fn spacing(rtt: Option<TimeDelta>, playout: TimeDelta) -> TimeDelta {
    (rtt.unwrap_or(FIRST_ROUND_TRIP) + playout).clamp(MIN_SPACING, MAX_SPACING)
}

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
        for s in self.receiver.iter_mut().flat_map(|r| &mut r.streams) {
            let playout = s.playout.as_ref().map_or(TimeDelta::ZERO, |p| p.max_delay());
            let spacing = spacing(self.rtt, playout);
            let ssrcs = FeedbackSsrcs { sender: self.config.ssrc, media: s.identity.ssrc };
            s.picture.write(ssrcs, s.identity.payload_type, spacing, now, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip_of_an_outage_is_not_waited_for() {
        let ms = TimeDelta::from_millis;
        let at = |rtt: Option<i64>, playout| spacing(rtt.map(ms), ms(playout));
        assert_eq!([at(None, 0), at(Some(10), 0), at(Some(300), 400)], [ms(200), ms(50), ms(700)]);
        assert_eq!(at(Some(22_000), 400), ms(1_000));
    }
}
