//! Error resilience: retransmissions on request; by a policy slice sizes for the source and unequal protection for the codes.

use super::stream::OutgoingStream;
use super::{Sender, elsewhere};
use crate::protection::RepairChoice;
use crate::resilience::unequal;
use crate::sender_model::SenderModel;
use weir_cc::Controller;
use weir_fec::SchemeError;
use weir_media::SourceFeedback;
use weir_units::{TimeDelta, Timestamp};

impl OutgoingStream {
    /// A report on the media stream has this fraction lost.
    pub(crate) fn on_loss(&mut self, fraction: f64, rtt: Option<TimeDelta>, now: Timestamp) {
        if let Some(r) = &mut self.resilience {
            r.on_loss(fraction, rtt);
            self.follow_resilience(now);
        }
    }

    /// Applies the policy's decision.
    #[inline(never)]
    pub(super) fn follow_resilience(&mut self, now: Timestamp) {
        let Some(r) = &mut self.resilience else { return };
        let size = r.decision().slice_size;
        if size != r.slice_size {
            r.slice_size = size;
            if !self.source.on_feedback(SourceFeedback::SliceSize(size), now) && size.is_some() {
                r.without_slices();
            }
        }
        let protection = r.wanted_protection();
        if protection != r.protection {
            r.protection = protection;
            let choice = protection.map_or(r.otherwise, unequal);
            // The policy's choices are within the bounds of the codes.
            self.repair.refused += u64::from(self.repair.choose(choice).is_err());
        }
    }

    /// The controller plans repair itself.
    #[inline(never)]
    pub(super) fn yield_protection(&mut self, now: Timestamp) {
        if let Some(r) = &mut self.resilience {
            r.yields = true;
        }
        self.follow_resilience(now);
    }

    /// Whether media is reduced for repair packets: those that are due to the policy, or to a scheme fixed within the rate.
    pub(super) fn makes_room_for_repair(&self) -> bool {
        self.repair_within_rate || self.resilience.as_ref().is_some_and(|r| r.protection.is_some())
    }

    /// Sets who decides on repair packets if unequal protection does not.
    pub(crate) fn set_repair(&mut self, choice: RepairChoice) -> Result<(), SchemeError> {
        if let Some(r) = self.resilience.as_mut() {
            if let RepairChoice::Fixed(protection) = choice {
                protection.checked()?;
            }
            r.otherwise = choice;
            if r.protection.is_some() {
                return Ok(());
            }
        }
        self.repair.choose(choice)
    }
}

impl Sender {
    /// The other end reports packets of a stream missing.
    pub(crate) fn on_nack(&mut self, ssrc: u32, sequences: impl Iterator<Item = u16>, now: Timestamp) {
        if self.path().breaker.tripped().is_some() {
            return;
        }
        // Of all paths: the first may have fallen, and what is retransmitted goes where there is room.
        let rate = self.joint_target().media_rate;
        let single = self.streams.len() == 1;
        let (paths, multipath) = (&self.paths, self.multipath.as_deref());
        let Some(s) = self.streams.iter_mut().find(|s| s.identity.ssrc == ssrc) else { return };
        let rate = match s.model {
            // libwebrtc's one limit for all streams is the target before the congestion window's reduction (`SetMaxRate`).
            SenderModel::Chromium => paths[0].controller.coupled_rate().unwrap_or(rate),
            SenderModel::Weir if single => rate,
            SenderModel::Weir => s.share.rate,
        };
        if let Some(r) = &mut s.retransmitter {
            let media = &s.media;
            let on_its_way = |n| multipath.is_some_and(|m| elsewhere::is_on_its_way(m, paths, media.get(n)));
            r.on_nack(sequences.map(|n| media.nearest(n)), on_its_way, rate, now);
            let beside = s.repair.on_resent(r.accepted(), now);
            r.charge(beside);
        }
    }
}
