//! Playout in the receiving direction.

use super::{Incoming, MediaReceiver, Payload};
use weir_cc::ReceiverController;
use weir_cc::cue::FramePlayout;
use weir_media::{MediaPacket, PlayoutEvent, Verdict};
use weir_units::{TimeDelta, Timestamp};

/// Frames played or missed that wait to be polled; of more, the oldest are dropped.
const MAX_EVENTS: usize = 1_024;
/// So many packets in a row that come too late, over so long a time, are no longer the path's jitter.
const LATE_PACKETS: u32 = 20;
const LATE_TIME: TimeDelta = TimeDelta::from_millis(500);
const LATE_GAP: TimeDelta = TimeDelta::from_millis(200);

impl MediaReceiver {
    /// Gives a packet to playout; whether it came too late for that.
    #[inline]
    pub(super) fn play(&mut self, sequence: u64, packet: &Incoming, payload: &Payload<'_>, now: Timestamp) -> bool {
        let Some(playout) = &mut self.playout else { return false };
        if packet.is_padding {
            playout.on_padding(sequence);
            return false;
        }
        let (rtp_timestamp, marker, size) = (packet.rtp_timestamp, packet.marker, packet.payload);
        let verdict = playout.on_packet(now, &MediaPacket { sequence, rtp_timestamp, start: None, marker, size });
        if let Some(content) = self.content.as_mut().filter(|_| verdict == Verdict::InTime) {
            content.insert(now, (sequence, rtp_timestamp, marker), payload);
        }
        let Verdict::Discarded { of_frame: discarded } = verdict else {
            self.late.0 = 0;
            return false;
        };
        if self.content.is_some() {
            self.follow_delay(rtp_timestamp, now);
        }
        if let Some(c) = &mut self.controller {
            let buffered = TimeDelta::ZERO;
            c.on_playout(&FramePlayout { now, rtp_timestamp, complete: false, discarded, buffered });
        }
        true
    }

    /// Where all packets come too late for a while the path has become longer, or the clocks have drifted apart: frames are
    /// played later from then on. Adaptive playout follows by itself what its longest delay allows, drift included; beyond that it
    /// is begun anew, and capture times that are told no longer count.
    #[cold]
    fn follow_delay(&mut self, rtp_timestamp: u32, now: Timestamp) {
        // What comes behind a silence tells nothing of the path before it.
        if self.late.0 == 0 || now.saturating_since(self.late.2) > LATE_GAP {
            (self.late.0, self.late.1) = (0, now);
        }
        (self.late.0, self.late.2) = (self.late.0 + 1, now);
        if self.late.0 >= LATE_PACKETS
            && now.saturating_since(self.late.1) >= LATE_TIME
            && let Some(playout) = &mut self.playout
        {
            self.late.0 = 0;
            self.from_fastest = self.adaptive.is_some();
            playout.begin_delays_anew(now, rtp_timestamp);
        }
    }

    /// The other end has told when a frame was captured, on a clock that is also this end's.
    pub(crate) fn set_capture_time(&mut self, rtp_timestamp: u32, captured: Timestamp) {
        if let Some(playout) = self.playout.as_mut().filter(|_| !self.from_fastest) {
            playout.set_capture_time(rtp_timestamp, captured);
        }
    }

    /// Plays the frames that are due and tells the controller's receiver half.
    pub(crate) fn run_playout(&mut self, now: Timestamp) {
        if !self.runs_playout() {
            return;
        }
        let Some(playout) = &mut self.playout else { return };
        while let Some(e) = playout.poll(now) {
            if let Some(c) = &mut self.controller {
                let buffered = e.delay.map_or(TimeDelta::ZERO, |d| (playout.delay() - d).max(TimeDelta::ZERO));
                let (rtp_timestamp, complete) = (e.rtp_timestamp, e.delay.is_some());
                c.on_playout(&FramePlayout { now: e.at, rtp_timestamp, complete, discarded: 0, buffered });
            }
            if self.events.len() == MAX_EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(e);
        }
    }

    /// Whether frames are played at their deadlines, and not only when somebody asks.
    pub(super) fn runs_playout(&self) -> bool {
        self.controller.is_some() || self.content.is_some()
    }

    pub(crate) fn poll_playout(&mut self, now: Timestamp) -> Option<PlayoutEvent> {
        if !self.runs_playout() {
            return self.playout.as_mut()?.poll(now);
        }
        self.run_playout(now);
        self.events.pop_front()
    }
}
