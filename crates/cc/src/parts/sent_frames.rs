//! Frames by the packets that were sent of them, until all of those are reported: for controllers whose frames are their probes.

use crate::cue::{PacketResult, SentPacket};
use std::collections::VecDeque;
use weir_units::{DataSize, Ecn, RemoteTimestamp, Timestamp};

/// Most frames that wait for reports: two seconds of 120 a second. The oldest are forgotten.
const MAX_FRAMES: usize = 256;
/// Packets back to which it is known whether they were media.
const MAX_PACKETS: u64 = 4_096;
const WORDS: usize = (MAX_PACKETS / 64) as usize;

/// A frame of which packets have been sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Bytes queued since the start, up to the end of this frame.
    end: u64,
    /// When it entered the queue.
    pub(crate) queued_at: Timestamp,
    first: u64,
    /// Number of its last packet.
    pub(crate) last: u64,
    is_sent: bool,
    /// When its first packet was sent.
    pub(crate) departure: Timestamp,
    pub(crate) last_departure: Timestamp,
    first_size: u64,
    last_size: u64,
    /// Bytes sent, and those that arrived.
    pub(crate) bytes: u64,
    pub(crate) received: u64,
    /// Packets sent, and those of them that are reported.
    pub(crate) packets: u32,
    reported: u32,
    pub(crate) lost: u32,
    pub(crate) marked: u32,
    pub(crate) first_arrival: Option<RemoteTimestamp>,
    last_arrival: Option<RemoteTimestamp>,
    /// The latest arrival of any of its packets.
    pub(crate) newest_arrival: Option<RemoteTimestamp>,
}

impl Frame {
    /// The durations of sending and receiving in seconds a byte (NSEND and NRECV of draft-ageneau-ccwg-ndtc), where the frame is long enough to sample the capacity; a receive duration counts up to `longest` seconds.
    pub(crate) fn durations(&self, min_length: DataSize, longest: f64) -> Option<(f64, f64)> {
        // One of the outer packets is not within the durations (*Frame Size Calculation* of the draft).
        let length = self.bytes as f64 - (self.first_size + self.last_size) as f64 / 2.0;
        if self.packets < 2 || self.lost > 0 || length < min_length.as_bytes() as f64 {
            return None;
        }
        let send = (self.last_departure - self.departure).as_secs_f64();
        let receive = (self.last_arrival? - self.first_arrival?).as_secs_f64().clamp(0.0, longest);
        Some((send / length, receive / length))
    }
}

/// The frames of a path, by what is queued between encoder and pacer.
#[derive(Clone, Debug)]
pub(crate) struct SentFrames {
    /// Bytes that have entered the queue since the start.
    queued: u64,
    /// Frames that have entered the queue and are not sent: their ends in bytes since the start, and when they entered.
    ends: VecDeque<(u64, Timestamp)>,
    frames: VecDeque<Frame>,
    /// A bit a packet: whether it was neither padding, repair nor a retransmission.
    media: [u64; WORDS],
}

impl SentFrames {
    pub(crate) fn new() -> Self {
        Self {
            queued: 0,
            ends: VecDeque::with_capacity(MAX_FRAMES),
            frames: VecDeque::with_capacity(MAX_FRAMES),
            media: [0; WORDS],
        }
    }

    /// A frame of `added` bytes has entered the queue.
    pub(crate) fn on_queued(&mut self, added: DataSize, now: Timestamp) {
        self.queued = self.queued.saturating_add(added.as_bytes());
        if self.ends.len() == MAX_FRAMES {
            self.ends.pop_front();
        }
        self.ends.push_back((self.queued, now));
    }

    /// A packet has been sent. Returns when its frame entered the queue, if this is the second packet of it.
    pub(crate) fn on_sent(&mut self, p: &SentPacket) -> Option<Timestamp> {
        let is_media = !(p.is_padding || p.is_repair || p.is_retransmission);
        let (word, bit) = place(p.sequence);
        self.media[word] = (self.media[word] & !bit) | if is_media { bit } else { 0 };
        if !is_media {
            return None;
        }
        // The packet's end in the queue, counted from what is queued behind it.
        let at = self.queued.saturating_sub(p.queued.as_bytes());
        while self.ends.front().is_some_and(|&(end, _)| end < at) {
            self.ends.pop_front();
        }
        let (end, queued_at) = self.ends.front().copied().unwrap_or((at, p.now));
        let size = p.size.as_bytes();
        match self.frames.back_mut() {
            Some(f) if f.end == end => {
                f.last = p.sequence;
                f.last_departure = p.now;
                f.last_size = size;
                f.bytes = f.bytes.saturating_add(size);
                f.packets = f.packets.saturating_add(1);
                f.is_sent = at >= end;
                (f.packets == 2).then_some(f.queued_at)
            }
            newest => {
                if let Some(f) = newest {
                    f.is_sent = true;
                }
                if self.frames.len() == MAX_FRAMES {
                    self.frames.pop_front();
                }
                self.frames.push_back(Frame {
                    end,
                    queued_at,
                    first: p.sequence,
                    last: p.sequence,
                    is_sent: at >= end,
                    departure: p.now,
                    last_departure: p.now,
                    first_size: size,
                    last_size: size,
                    bytes: size,
                    received: 0,
                    packets: 1,
                    reported: 0,
                    lost: 0,
                    marked: 0,
                    first_arrival: None,
                    last_arrival: None,
                    newest_arrival: None,
                });
                None
            }
        }
    }

    /// The oldest frame that is not wholly reported.
    pub(crate) fn oldest(&self) -> Option<&Frame> {
        self.frames.front()
    }

    /// The frame of the newest packet.
    pub(crate) fn newest(&self) -> Option<&Frame> {
        self.frames.back()
    }

    /// The oldest frame if it ends before this packet, which is reported: what it lacks then is not waited for.
    pub(crate) fn take_before(&mut self, sequence: u64) -> Option<Frame> {
        let ends_before = self.frames.front().is_some_and(|f| f.is_sent && f.last < sequence);
        if ends_before { self.frames.pop_front() } else { None }
    }

    /// The oldest frame if all of it is reported.
    pub(crate) fn take_reported(&mut self) -> Option<Frame> {
        let is_reported = self.frames.front().is_some_and(|f| f.is_sent && f.reported >= f.packets);
        if is_reported { self.frames.pop_front() } else { None }
    }

    /// A packet is reported; frames that end before it have been taken.
    pub(crate) fn on_fate(&mut self, p: &PacketResult) {
        let (word, bit) = place(p.sequence);
        let Some(f) = self.frames.front_mut() else { return };
        if p.sequence < f.first || self.media[word] & bit == 0 {
            return;
        }
        if !p.was_lost {
            f.reported = f.reported.saturating_add(1);
        }
        let Some(arrival) = p.arrival else {
            f.lost = f.lost.saturating_add(1);
            return;
        };
        f.received = f.received.saturating_add(p.size.as_bytes());
        f.newest_arrival = f.newest_arrival.max(Some(arrival));
        f.marked = f.marked.saturating_add(u32::from(p.ecn == Ecn::Ce));
        if p.sequence == f.first {
            f.first_arrival = Some(arrival);
        }
        if p.sequence == f.last {
            f.last_arrival = Some(arrival);
        }
    }
}

fn place(sequence: u64) -> (usize, u64) {
    let at = sequence % MAX_PACKETS;
    ((at / 64) as usize, 1 << (at % 64))
}
