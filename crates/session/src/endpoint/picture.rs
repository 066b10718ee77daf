//! Picture feedback from the decoder to the other end.

use super::Endpoint;
use crate::identity::FeedbackSsrcs;
use crate::picture::PictureCounters;
use crate::receiver::Receiver;
use crate::session_params::Profile;
use crate::timers::earliest;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Round-trip time for the spacing of requests until one is measured.
const FIRST_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(200);
/// Least spacing of requests: an encoder needs a frame's time to respond.
const MIN_SPACING: TimeDelta = TimeDelta::from_millis(50);

impl Endpoint {
    /// Requests a key frame from the other end as soon as the rules of early feedback allow (RFC 4585, section 3.5),
    /// and repeats the request until a picture is decoded intact; the interval is a round trip plus the playout delay
    /// of a response. `false` if the profile has no feedback messages.
    pub fn request_key_frame_from_peer(&mut self, now: Timestamp) -> bool {
        self.incoming_first().is_some_and(|mut s| s.request_key_frame(now))
    }
    /// Reports that the picture with this RTP timestamp, as in [`ReceivedFrame`](weir_media::ReceivedFrame), was
    /// decoded. `intact` means that it equals the encoder's: neither it nor anything that it is predicted from was
    /// missing. This ends pending requests, and is acknowledged if so configured.
    pub fn on_decoded(&mut self, rtp_timestamp: u32, intact: bool, now: Timestamp) {
        let _ = now;
        if let Some(mut s) = self.incoming_first() {
            s.on_decoded(rtp_timestamp, intact);
        }
    }
    /// Reports that pictures after the one with this RTP timestamp, which was decoded intact, are damaged: the other
    /// end is asked to refer to it again (RPSI), repeatedly until a later picture is decoded intact, and finally for a
    /// key frame. Call it with each damaged picture, or once. If a policy of error resilience disables references, a
    /// key frame is requested instead. `false` if the profile has no feedback messages.
    pub fn on_damaged(&mut self, last_decoded_rtp_timestamp: u32, now: Timestamp) -> bool {
        self.incoming_first().is_some_and(|mut s| s.on_damaged(last_decoded_rtp_timestamp, now))
    }
    /// Requests slices of at most this size from this end's source, or one slice per frame; `false` if it has no
    /// support.
    pub fn set_slice_size(&mut self, size: Option<DataSize>, now: Timestamp) -> bool {
        self.sender.as_mut().is_some_and(|s| s.streams[0].set_slice_size(size, now))
    }
    /// Counters of picture feedback, sent and received.
    pub fn picture_counters(&self) -> PictureCounters {
        let sent = self.first_incoming().map(|s| s.picture.counters).unwrap_or_default();
        let received = self.first_outgoing().map(|s| s.picture.counters).unwrap_or_default();
        PictureCounters {
            key_requests: received.key_requests,
            key_requests_granted: received.key_requests_granted,
            references: received.references,
            acknowledgements: received.acknowledgements,
            unknown: received.unknown,
            ..sent
        }
    }

    fn incoming_first(&mut self) -> Option<super::Incoming<'_>> {
        let id = self.first_incoming()?.id;
        self.incoming(id)
    }

    pub(crate) fn has_feedback(&self) -> bool {
        self.receiver.is_some() && self.config.params.profile == Profile::Avpf
    }

    /// Wakes for picture feedback if it may be sent before the next regular packet.
    #[inline]
    pub(super) fn picture_timeout(&self, receiver: &Receiver, at: &mut Timestamp) {
        let due = receiver.picture_due();
        if due < Timestamp::MAX && self.has_feedback() {
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
