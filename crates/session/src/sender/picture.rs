//! Picture feedback by the other end, and limits on its key frames.

use super::stream::OutgoingStream;
use crate::picture::{FirId, Named};
use weir_media::SourceFeedback;
use weir_units::cold_path;
use weir_units::{DataSize, TimeDelta, Timestamp};
use weir_wire::rtcp::Rpsi;

/// Round-trip time for recognising repetitions of a FIR until one is measured.
const FIRST_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(250);
/// The longest for that: after an outage one of many seconds may have been measured, and a repetition is no rarity then.
const MAX_ROUND_TRIP: TimeDelta = TimeDelta::from_millis(1_000);

impl OutgoingStream {
    /// The other end requests a key frame, by this FIR or by PLI. The repetition of a FIR causes another key frame once
    /// two round trips have passed since the last one (RFC 5104, section 3.5.1.1).
    pub(crate) fn on_key_request(&mut self, fir: Option<FirId>, rtt: Option<TimeDelta>, now: Timestamp) {
        let p = &mut self.picture;
        p.counters.key_requests += 1;
        let repeated = fir.is_some() && p.fir == fir;
        p.fir = fir.or(p.fir);
        let answered = p.asked.max(p.made).filter(|_| repeated);
        if answered.is_some_and(|t| now.saturating_since(t) <= rtt.unwrap_or(FIRST_ROUND_TRIP).min(MAX_ROUND_TRIP) * 2)
        {
            return;
        }
        // A command must be obeyed, if later; PLI is repeated if the key frame in flight was not an answer to it.
        let is_waiting = self.queue.has_key_frame();
        let granted = !is_waiting && self.picture.may_grant(now) && self.ask_for_key_frame(now);
        self.picture.requested |= !granted && fir.is_some();
        self.picture.counters.key_requests_granted += u64::from(granted || fir.is_some());
    }

    fn ask_for_key_frame(&mut self, now: Timestamp) -> bool {
        let may = self.picture.may_ask(now);
        if may {
            (self.picture.asked, self.picture.wanted, self.picture.requested) = (Some(now), false, false);
            self.source.request_key_frame(now);
        }
        may
    }

    /// Frames were discarded: later ones cannot be decoded without a key frame.
    pub(super) fn want_key_frame(&mut self, now: Timestamp) {
        self.picture.wanted = !self.ask_for_key_frame(now);
    }

    pub(super) fn run_picture(&mut self, now: Timestamp) {
        if self.picture.wanted || self.picture.requested {
            cold_path();
            if self.picture.wanted || self.picture.may_grant(now) {
                self.want_key_frame(now);
            }
        }
    }

    /// The picture feedback of one compound: its RPSI, if any, and whether there was an SLI.
    #[inline(never)]
    pub(crate) fn on_picture_feedback(
        &mut self,
        rpsi: Option<Rpsi<'_>>,
        slices_lost: bool,
        rtt: Option<TimeDelta>,
        now: Timestamp,
    ) {
        let payload_type = self.identity.payload_type;
        let p = &mut self.picture;
        let picture = rpsi.and_then(|r| {
            let named = Named::read(p.config.name, &r).filter(|_| r.payload_type == payload_type);
            let known = match named {
                Some(Named::RtpTimestamp(t)) => Some(t.wrapping_sub(self.rtp_offset)),
                Some(Named::PictureId(id)) => p.pictures.rtp_timestamp(id),
                None => None,
            };
            p.counters.unknown += u64::from(known.is_none());
            known
        });
        if let Some(rtp_timestamp) = picture.filter(|_| p.config.acknowledge && !slices_lost) {
            p.counters.acknowledgements += 1;
            p.decoded = Some(rtp_timestamp);
            self.source.on_feedback(SourceFeedback::Decoded { rtp_timestamp }, now);
            return;
        }
        if rpsi.is_some() && picture.is_none() && !slices_lost {
            return;
        }
        // An SLI alone: the last acknowledged picture is the reference (RFC 7741, section 5.2).
        p.counters.references += 1;
        let gone_back = picture.or(p.decoded).is_some_and(|rtp_timestamp| {
            self.source.on_feedback(SourceFeedback::ReferenceWanted { rtp_timestamp }, now)
        });
        if !gone_back {
            self.on_key_request(None, rtt, now);
        }
    }

    /// Another end has replaced the previous one and cannot decode anything yet.
    pub(crate) fn on_new_peer(&mut self, now: Timestamp) {
        (self.picture.fir, self.picture.decoded) = (None, None);
        self.want_key_frame(now);
    }

    /// Requests slices of at most this size from the source.
    pub(crate) fn set_slice_size(&mut self, size: Option<DataSize>, now: Timestamp) -> bool {
        self.source.on_feedback(SourceFeedback::SliceSize(size), now)
    }
}
