//! Error resilience by a policy: slice sizes for the source, unequal protection for the codes.

use super::stream::OutgoingStream;
use crate::protection::RepairChoice;
use crate::resilience::unequal;
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

    /// Whether repair packets are due to the policy, so that media is reduced for them.
    pub(super) fn protects_by_policy(&self) -> bool {
        self.resilience.as_ref().is_some_and(|r| r.protection.is_some())
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
