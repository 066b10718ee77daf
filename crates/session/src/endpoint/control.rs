//! Changes by the application during a call.

use super::{Bye, Endpoint, RtcpControl, zero_of};
use crate::observer::Observer;
use crate::protection::RepairChoice;
use weir_cc::Limits;
use weir_fec::SchemeError;
use weir_units::{DataRate, TimeDelta, Timestamp};

impl Endpoint {
    /// Sets new bounds on the media rate.
    pub fn set_limits(&mut self, limits: Limits, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.on_limits(limits, now);
        }
    }
    /// Stops or restarts all media sources; RTCP continues.
    pub fn set_paused(&mut self, paused: bool) {
        if paused
            && !self.paused
            && let Some(s) = &mut self.sender
        {
            s.path_mut().breaker.on_stopped();
        }
        self.paused = paused;
    }
    /// The target at which the application would send more than its sources give, as who forwards one of several encodings of others
    /// would; `None` if there is none. Padding is sent up to it, within the target, since a target that follows the sending rate would not
    /// rise otherwise.
    pub fn set_wanted_target(&mut self, wanted: Option<DataRate>, now: Timestamp) {
        if let Some(s) = self.sender.as_mut().filter(|s| s.wanted_target != wanted) {
            s.wanted_target = wanted;
            s.share_out(now);
        }
    }
    /// Requests a key frame from all sources.
    pub fn request_key_frame(&mut self, now: Timestamp) {
        for s in self.sender.iter_mut().flat_map(|s| &mut s.streams) {
            s.source_mut().request_key_frame(now);
        }
    }

    /// Sets who decides on repair packets of all streams, from the next media packet on, unless a policy of error
    /// resilience does.
    ///
    /// # Errors
    /// No code supports the scheme's numbers; nothing changes then.
    pub fn set_repair(&mut self, choice: RepairChoice) -> Result<(), SchemeError> {
        self.sender.iter_mut().flat_map(|s| &mut s.streams).try_for_each(|s| s.set_repair(choice))
    }
    /// Sets the observer of packets; `None` removes it. Returns the previous one.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer>>) -> Option<Box<dyn Observer>> {
        core::mem::replace(&mut self.observer, observer)
    }

    /// Ends the call: the next datagram is a compound with BYE, and nothing is sent after it. The reason is for the other
    /// end (RFC 3550, section 6.6); 255 bytes of it are sent. Another call after it was sent repeats the BYE, with the first
    /// reason: it may have been lost.
    pub fn leave(&mut self, reason: Option<&str>) {
        if self.bye == Bye::No {
            self.own_reason = reason.map(Into::into);
        }
        self.bye = Bye::Wanted;
    }
}

impl RtcpControl<'_> {
    /// The media clock of all streams, which RTP timestamps state, has moved beside the time passed in: backwards if it stood still while
    /// the sources were paused. Sender reports state it from now on, and frames from the next one on.
    pub fn move_media_clock(&mut self, by: TimeDelta) {
        self.end.sender.iter_mut().flat_map(|s| &mut s.streams).for_each(|s| s.move_media_clock(by));
    }
    /// The clock that timestamps are read from has been set: it is now `offset` ahead of the time passed in
    /// ([`EndConfig::clock_offset`](crate::EndConfig::clock_offset)). Timers and the media clock, which RTP timestamps state, do not change.
    pub fn set_clock_offset(&mut self, offset: TimeDelta) {
        let end = &mut *self.end;
        end.config.clock_offset = offset;
        end.zero = zero_of(&end.config);
        if let Some(r) = &mut end.receiver {
            r.clock_offset = offset;
        }
    }
}
