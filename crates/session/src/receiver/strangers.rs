//! Packets of sources that belong to no stream: probes without a source, and retransmissions or layers that are not bound yet. They are
//! refused, but reported like others, since their sender would take them for lost.
//!
//! Transport-wide feedback reports by the path's numbers, whatever their source; RFC 8888 by source, from its first packet on.

use super::Receiver;
use crate::arrivals::ArrivalLog;
use crate::received_packet::ReceivedPacket;
use crate::sent::nearest;
use weir_cc::FeedbackFormat;
use weir_units::{TimeDelta, Timestamp};

/// Most sources reported by their own numbers, each with at most 16,384 packets.
const MAX_SOURCES: usize = 8;
/// A source silent for this long gives way to another.
const SILENCE: TimeDelta = TimeDelta::from_secs(1);
/// Numbers further than this from the source's last reset its log.
const MAX_STEP: u64 = 1_000;

/// A source of no stream.
#[derive(Debug)]
pub(crate) struct Stranger {
    pub ssrc: u32,
    pub log: ArrivalLog,
    highest: u64,
    heard: Timestamp,
}

impl Receiver {
    /// A packet of a source of no stream, or one that a stream does not accept, has arrived.
    #[cold]
    pub(crate) fn on_stranger(&mut self, packet: &ReceivedPacket<'_>) {
        let (now, ecn) = (packet.now, packet.datagram.ecn);
        if self.is_multipath() {
            return;
        }
        match self.path.format() {
            Some(FeedbackFormat::TransportWide) => {
                let Some(number) = packet.path_sequence else { return };
                self.path.on_unknown(number, packet.size, ecn, now);
            }
            Some(FeedbackFormat::CongestionControl) => {
                let Some(stranger) = self.stranger(packet) else { return };
                let number = nearest(stranger.highest, packet.rtp.sequence());
                stranger.highest = stranger.highest.max(number);
                stranger.log.on_packet(number, now, ecn);
                self.path.on_rtp(None, packet.size, ecn, now);
            }
            None => return,
        }
        if self.path.wants_schedule() && self.news() > 0 {
            self.path.schedule_feedback(now);
        }
    }

    /// The state of a packet's source.
    fn stranger(&mut self, packet: &ReceivedPacket<'_>) -> Option<&mut Stranger> {
        let (ssrc, now) = (packet.rtp.ssrc(), packet.now);
        let highest = 65_536 + u64::from(packet.rtp.sequence());
        let known = self.strangers.iter().position(|s| s.ssrc == ssrc);
        let is_far = |s: &Stranger| nearest(s.highest, packet.rtp.sequence()).abs_diff(s.highest) > MAX_STEP;
        let place = match known {
            Some(place) if !is_far(&self.strangers[place]) => {
                self.strangers[place].heard = now;
                return self.strangers.get_mut(place);
            }
            Some(place) => place,
            None if self.strangers.len() < MAX_SOURCES => self.strangers.len(),
            None => {
                let silent = self.strangers.iter().enumerate().min_by_key(|(_, s)| s.heard);
                silent.filter(|(_, s)| now.saturating_since(s.heard) >= SILENCE)?.0
            }
        };
        let log = self.path.stream_log()?;
        let new = Stranger { ssrc, log, highest, heard: now };
        match self.strangers.get_mut(place) {
            Some(old) => *old = new,
            None => self.strangers.push(new),
        }
        self.strangers.get_mut(place)
    }

    /// Sources that have become a stream's are reported there.
    pub(crate) fn forget_known_strangers(&mut self) {
        let streams = &self.streams;
        self.strangers.retain(|s| !streams.iter().any(|stream| stream.identity.has(s.ssrc)));
    }
}
