//! Playout in the receiving direction.

use super::path::ReceivePath;
use super::stream::IncomingStream;
use crate::received_packet::ReceivedPacket;
use weir_cc::ReceiverController;
use weir_cc::cue::FramePlayout;
use weir_media::audio::{AudioPacket, AudioSlot, AudioSlotContent};
use weir_media::{MediaPacket, PlayoutEvent, ReceivedFrame, Verdict};
use weir_units::cold_path;
use weir_units::{PathId, TimeDelta, Timestamp};

/// Most playout events waiting to be polled; beyond that the oldest are dropped.
const MAX_EVENTS: usize = 1_024;
impl IncomingStream {
    /// A media packet has arrived on a path: playout follows its skew.
    #[inline]
    pub(super) fn follow_skew(&mut self, path: PathId, packet: &ReceivedPacket<'_>) {
        let Some(skewed) = self.skewed.as_mut().filter(|_| packet.has_media()) else { return };
        cold_path();
        let delay = skewed.on_packet(path, packet.rtp.timestamp(), packet.now);
        if let Some(playout) = &mut self.playout {
            playout.set_delay(delay, packet.now);
        }
    }

    /// A media packet has arrived: playout follows the plan for losses.
    #[inline]
    pub(super) fn follow_plan(&mut self, sequence: u64, packet: &ReceivedPacket<'_>) {
        let Some(planned) = self.planned.as_mut().filter(|_| packet.has_media()) else { return };
        cold_path();
        if let Some(playout) = &mut self.playout {
            planned.on_packet(sequence, packet, playout);
        }
    }

    /// Passes a packet to playout; returns whether it is too late.
    #[inline]
    pub(super) fn play(&mut self, path: &mut ReceivePath, sequence: u64, packet: &ReceivedPacket<'_>) -> bool {
        (self.audio.is_some() || self.playout.is_some()) && self.pass_to_playout(path, sequence, packet)
    }
    #[inline(never)]
    fn pass_to_playout(&mut self, path: &mut ReceivePath, sequence: u64, packet: &ReceivedPacket<'_>) -> bool {
        if self.audio.is_some() {
            return self.play_audio(sequence, packet);
        }
        let Some(playout) = &mut self.playout else { return false };
        if !packet.has_media() {
            playout.on_padding(sequence);
            return false;
        }
        let now = packet.now;
        let (rtp_timestamp, marker, size) = (packet.rtp.timestamp(), packet.rtp.marker(), packet.payload_size());
        // Among repair packets that are not sent again, gaps in sequence numbers say little of where frames begin.
        let in_red = self.identity.parity_format.red().is_some();
        let start = if in_red { weir_media::begins_vp8_frame(packet.rtp.payload()) } else { None };
        let moves = playout.moves();
        let verdict = playout.on_packet(now, &MediaPacket { sequence, rtp_timestamp, start, marker, size });
        if let Some(skewed) = self.skewed.as_mut().filter(|_| moves > 0 && playout.moves() > moves) {
            // Capture times have moved.
            skewed.restart();
        }
        if let Some(content) = self.content.as_mut().filter(|_| verdict == Verdict::InTime) {
            let deadline = playout.deadline_of(rtp_timestamp).unwrap_or(now);
            content.insert(packet, sequence, deadline);
        }
        let Verdict::Discarded { of_frame: discarded } = verdict else { return false };
        if let Some(c) = &mut path.controller {
            let buffered = TimeDelta::ZERO;
            c.on_playout(&FramePlayout { now, rtp_timestamp, complete: false, discarded, buffered });
        }
        true
    }

    /// The other end has reported a frame's capture time, by a clock shared with this end.
    pub(crate) fn set_capture_time(&mut self, rtp_timestamp: u32, captured: Timestamp) {
        if let Some(audio) = &mut self.audio {
            audio.set_capture_time(rtp_timestamp, captured);
        }
        if let Some(playout) = &mut self.playout {
            playout.set_capture_time(rtp_timestamp, captured);
        }
    }

    /// Plays the frames that are due and informs the controller's receiver half.
    pub(super) fn play_due(&mut self, path: &mut ReceivePath, now: Timestamp) {
        let Some(playout) = &mut self.playout else { return };
        while let Some(e) = playout.poll(now) {
            if let Some(c) = &mut path.controller {
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

    /// Passes a packet to audio playout; returns whether it is too late.
    #[inline(never)]
    fn play_audio(&mut self, sequence: u64, packet: &ReceivedPacket<'_>) -> bool {
        let Some(audio) = self.audio.as_mut().filter(|_| packet.has_media()) else { return false };
        let (rtp_timestamp, payload) = (packet.rtp.timestamp(), packet.payload());
        let coded = if payload.zeros == 0 && self.keeps_slots {
            let Ok(coded) = AudioPacket::opus(sequence, rtp_timestamp, payload.bytes) else {
                self.counters.undecodable += 1;
                return false;
            };
            coded
        } else {
            AudioPacket::sized(sequence, rtp_timestamp, packet.payload_size())
        };
        matches!(audio.on_packet(packet.now, &coded), Verdict::Discarded { .. })
    }

    /// Plays the audio slots that are due.
    fn play_slots(&mut self, now: Timestamp) {
        let Some(audio) = &mut self.audio else { return };
        while let Some(slot) = audio.poll(now) {
            if matches!(slot.content, AudioSlotContent::Packet(_)) {
                self.clock.on_played(slot.rtp_timestamp, self.identity.clock_rate, slot.at);
            }
            if self.keeps_slots {
                if self.slots.len() == MAX_EVENTS {
                    self.slots.pop_front();
                }
                self.slots.push_back(slot);
            }
        }
    }
    pub(crate) fn poll_audio(&mut self, now: Timestamp) -> Option<AudioSlot> {
        self.play_slots(now);
        self.slots.pop_front()
    }

    /// Whether frames are played at their deadlines, not only when the application polls.
    fn plays_by_itself(&self, path: &ReceivePath) -> bool {
        path.controller.is_some() || self.content.is_some()
    }

    /// Plays the frames that are due if the application does not poll.
    pub(crate) fn run_playout(&mut self, path: &mut ReceivePath, now: Timestamp) {
        if self.audio.is_some() {
            self.play_slots(now);
        }
        if self.plays_by_itself(path) {
            self.play_due(path, now);
        }
    }

    pub(crate) fn poll_playout(&mut self, path: &mut ReceivePath, now: Timestamp) -> Option<PlayoutEvent> {
        let event = if self.plays_by_itself(path) {
            self.play_due(path, now);
            self.events.pop_front()
        } else {
            self.playout.as_mut()?.poll(now)
        }?;
        if !self.is_single && event.delay.is_some() {
            self.clock.on_played(event.rtp_timestamp, self.identity.clock_rate, event.at);
        }
        Some(event)
    }

    /// Moves the received content of this event's frame into `frame`; `false` if there is none.
    pub(crate) fn take_frame(&mut self, event: &PlayoutEvent, frame: &mut ReceivedFrame) -> bool {
        let taken = self.content.as_mut().is_some_and(|c| c.take(event, frame));
        if taken {
            let payload = frame.packets.first().map(|p| &p.bytes[..]);
            self.picture.note(frame.rtp_timestamp, payload);
        }
        taken
    }
}
