//! Regular reports and feedback on a stream.

use super::IncomingStream;
use crate::identity::FeedbackSsrcs;
use crate::rtcp::NextUnit;
use weir_cc::cue::OneWayDelay;
use weir_media::Playout;
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtcp::OneWayDelayReport;

impl IncomingStream {
    /// Appends a regular report's blocks on the packets since the last one, if a plan requires them.
    pub(crate) fn write_interval(&mut self, ssrc: u32, out: &mut Vec<u8>) {
        if !self.stats.is_started() {
            return;
        }
        let media_ssrc = self.identity.ssrc;
        let range = match &mut self.interval {
            Some(interval) if self.xr.has_traces() => interval.write(
                FeedbackSsrcs { sender: ssrc, media: media_ssrc },
                &self.xr,
                self.repair.is_some() || self.nack.is_some(),
                out,
            ),
            Some(interval) => interval.skip(),
            None => (0, 0),
        };
        if let Some(OneWayDelay { min, mean, last: latest }) =
            self.one_way_delay.as_mut().and_then(|m| m.take_interval())
        {
            let (begin, end) = range;
            OneWayDelayReport { sender_ssrc: ssrc, media_ssrc, begin, end, min, mean, latest }.write_into(out);
        }
    }

    /// The next packet to be decoded, by its sequence number on the wire, and the time until then. If none is waiting,
    /// it is the one after the newest.
    pub(crate) fn next_to_decode(&self, now: Timestamp) -> NextUnit {
        match self.playout.as_deref().and_then(Playout::next_to_play) {
            Some((sequence, deadline)) => {
                NextUnit { sequence: sequence as u16, playout_delay: Some((deadline - now).max(TimeDelta::ZERO)) }
            }
            None => NextUnit { sequence: self.stats.highest().wrapping_add(1) as u16, playout_delay: None },
        }
    }

    /// Feedback up to these numbers was sent.
    pub(crate) fn on_reported(&mut self, upto: crate::receiver::Reported) -> bool {
        let mut covered = false;
        if let Some(log) = &mut self.log {
            covered |= log.on_reported(upto.media);
        }
        if let Some(log) = self.repair_log_mut() {
            covered |= log.on_reported(upto.repair);
        }
        if let Some(log) = self.retransmission_log_mut() {
            covered |= log.on_reported(upto.retransmission);
        }
        covered
    }
}
