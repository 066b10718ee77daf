//! Changes by the application during a call.

use super::{Bye, Endpoint, SrRequestState, timer_config};
use crate::observer::Observer;
use crate::protection::RepairChoice;
use crate::session_params::{Profile, SessionParams};
use weir_cc::Limits;
use weir_fec::SchemeError;
use weir_media::{Codec, ParamError};
use weir_units::{DataRate, Timestamp};

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
    /// Ends the call: the next datagram is a compound with BYE, and nothing is sent after it.
    pub fn leave(&mut self) {
        if self.bye == Bye::No {
            self.bye = Bye::Wanted;
        }
    }
    /// As [`Self::leave`], with a reason for the other end in the BYE (RFC 3550, section 6.6); 255 bytes of it are sent.
    pub fn leave_because(&mut self, reason: &str) {
        if self.bye == Bye::No {
            self.own_reason = Some(reason.into());
        }
        self.leave();
    }

    /// Sets who decides on repair packets of all streams, from the next media packet on, unless a policy of error
    /// resilience does.
    ///
    /// # Errors
    /// No code supports the scheme's numbers; nothing changes then.
    pub fn set_repair(&mut self, choice: RepairChoice) -> Result<(), SchemeError> {
        self.sender.iter_mut().flat_map(|s| &mut s.streams).try_for_each(|s| s.set_repair(choice))
    }
    /// Restarts media after a trip; `false` if it is too early, or there is no circuit breaker. The caller should have
    /// reason to believe that the congestion has ended (RFC 8083, section 4.5).
    pub fn restart_after_trip(&mut self, now: Timestamp) -> bool {
        self.sender.as_mut().is_some_and(|s| s.path_mut().breaker.restart(now))
    }
    /// Sets the observer of packets; `None` removes it. Returns the previous one.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer>>) -> Option<Box<dyn Observer>> {
        core::mem::replace(&mut self.observer, observer)
    }

    /// The session's parameters.
    pub fn session_params(&self) -> &SessionParams {
        &self.config.params
    }
    /// Sets the session's parameters. RTCP timing follows them from the next report, RTP from the next packet.
    ///
    /// # Errors
    /// As [`SessionParams::check`]; nothing changes then.
    pub fn set_session_params(&mut self, params: SessionParams) -> Result<(), ParamError> {
        params.check()?;
        self.config.params = params;
        let (senders, we_sent) = (self.timer.config().senders, self.timer.config().we_sent);
        self.timer.set_config(timer_config(&self.config, self.plan, senders, we_sent));
        self.follow_streams();
        if let Some(s) = &mut self.sender {
            s.expect_traces(params.xr.is_some_and(|x| x.has_traces()));
        }
        if let Some(r) = &mut self.receiver {
            r.set_params(&params);
        }
        Ok(())
    }

    /// Requests an early report. The next [`Self::poll_transmit`] sends it if the rules of early feedback allow it
    /// (RFC 4585, section 3.5), in which case this returns `true`; otherwise the next regular report is sent.
    pub fn send_early_rtcp(&mut self, now: Timestamp) -> bool {
        self.early_wanted = self.config.params.profile == Profile::Avpf && self.timer.may_send_early(now);
        self.early_wanted
    }
    /// Requests a sender report from the other end, by the rules of early feedback (RTCP-SR-REQ; RFC 6051,
    /// section 3.2).
    pub fn request_sender_report(&mut self) {
        self.sr_request = SrRequestState::Wanted;
    }

    /// The codec of the first stream, if its source is one.
    pub fn codec(&self) -> Option<&(dyn Codec + Send)> {
        self.first_outgoing()?.source().codec()
    }
}
