//! What an application may change while a call runs.

use super::{Bye, Endpoint, Sync, timer_config};
use crate::observer::Observer;
use crate::protection::RepairChoice;
use crate::sender::OutgoingStream;
use crate::session_params::{Profile, SessionParams};
use weir_cc::Limits;
use weir_fec::SchemeError;
use weir_media::{Codec, ParamError, Source};
use weir_units::{DataRate, Timestamp};

impl Endpoint {
    /// What this end adds to the RTP timestamps of its first source: a random number (RFC 3550, section 5.1).
    pub fn rtp_timestamp_offset(&self) -> Option<u32> {
        self.first_outgoing().map(OutgoingStream::rtp_offset)
    }
    /// New bounds on the media rate.
    pub fn set_limits(&mut self, limits: Limits, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.on_limits(limits, now);
        }
    }
    /// Stops or restarts all media sources; RTCP goes on.
    pub fn set_paused(&mut self, paused: bool) {
        if paused
            && !self.paused
            && let Some(s) = &mut self.sender
        {
            s.path_mut().breaker.on_stopped();
        }
        self.paused = paused;
    }
    /// Asks all sources for a key frame.
    pub fn request_key_frame(&mut self, now: Timestamp) {
        for s in self.sender.iter_mut().flat_map(|s| &mut s.streams) {
            s.source_mut().request_key_frame(now);
        }
    }
    /// Ends the call: the next datagram is a compound with BYE, and nothing follows it.
    pub fn leave(&mut self) {
        if self.bye == Bye::No {
            self.bye = Bye::Wanted;
        }
    }

    /// Who decides on repair packets of all streams, from the next media packet on, where a policy of error resilience does not.
    ///
    /// # Errors
    /// Where no code has the scheme's numbers; nothing changes then.
    pub fn set_repair(&mut self, choice: RepairChoice) -> Result<(), SchemeError> {
        self.sender.iter_mut().flat_map(|s| &mut s.streams).try_for_each(|s| s.set_repair(choice))
    }
    /// Lets media flow again after a trip; `false` where it is too early for that, or there is no circuit breaker. The
    /// caller should have reason to think that the congestion has gone (RFC 8083, section 4.5).
    pub fn restart_after_trip(&mut self, now: Timestamp) -> bool {
        self.sender.as_mut().is_some_and(|s| s.path_mut().breaker.restart(now))
    }
    /// Who sees packets pass from now on; `None` for nobody. Gives back who saw them until now.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer>>) -> Option<Box<dyn Observer>> {
        core::mem::replace(&mut self.observer, observer)
    }

    /// The parameters of the session.
    pub fn session_params(&self) -> &SessionParams {
        &self.config.params
    }
    /// New parameters of the session. RTCP timing follows them from the next report on, RTP from the next packet.
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

    /// Wants a report before its time. It leaves by the next [`Self::poll_transmit`] where the rules of early feedback allow
    /// it (RFC 4585, section 3.5), which is returned, and as the next regular one otherwise.
    pub fn send_early_rtcp(&mut self, now: Timestamp) -> bool {
        self.early_wanted = self.config.params.profile == Profile::Avpf && self.timer.may_send_early(now);
        self.early_wanted
    }
    /// Asks the other end for a sender report, by the rules of early feedback (RTCP-SR-REQ; RFC 6051, section 3.2).
    pub fn request_sender_report(&mut self) {
        self.sync = Sync::Wanted;
    }

    /// The codec of the first stream, where its source is one.
    pub fn codec(&self) -> Option<&(dyn Codec + Send)> {
        self.first_outgoing()?.source().codec()
    }
    /// The codec to change of the first stream, where its source is one.
    pub fn codec_mut(&mut self) -> Option<&mut (dyn Codec + Send)> {
        self.sender.as_mut()?.streams.first_mut()?.source_mut().codec_mut()
    }
    /// Another source of frames of the first stream, which follows the rate that holds now. What waits in the queue still leaves.
    pub fn set_source(&mut self, source: Source, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.set_source(0, source, now);
        }
    }
    /// Asks the encoder of the first stream for this rate whatever the controller says, or leaves it to the controller again. Packets are
    /// paced as the controller says all the same.
    pub fn hold_media_rate(&mut self, rate: Option<DataRate>, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.hold_media_rate(0, rate, now);
        }
    }
}
