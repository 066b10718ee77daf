//! The source of an incoming stream: sources that begin, leave, or return under another identifier.

use crate::datagram::Datagram;
use weir_units::{Ecn, TimeDelta, Timestamp};

/// Packets of a source that has left may still be in flight for this long.
const STRAGGLERS: TimeDelta = TimeDelta::from_secs(1);

/// State of an incoming stream's source.
#[derive(Debug)]
pub(crate) struct Source {
    /// When it was last received from.
    pub heard: Timestamp,
    /// When its BYE was received.
    left: Option<Timestamp>,
    candidate: Option<Candidate>,
}

/// A source on probation: one of its packets has been received (RFC 3550, appendix A.1).
#[derive(Debug)]
pub(crate) struct Candidate {
    pub ssrc: u32,
    next: u16,
    /// That packet, which is accepted when the next one follows.
    pub bytes: Vec<u8>,
    pub payload: u32,
    pub ecn: Ecn,
}

impl Source {
    pub(crate) const fn new(now: Timestamp) -> Self {
        Self { heard: now, left: None, candidate: None }
    }
    pub(crate) const fn has_left(&self) -> bool {
        self.left.is_some()
    }
    /// Whether it left so long ago that a further packet indicates a restart.
    pub(crate) fn has_come_back(&self, now: Timestamp) -> bool {
        self.left.is_some_and(|at| now.saturating_since(at) > STRAGGLERS)
    }
    pub(crate) fn is_silent(&self, time: TimeDelta, now: Timestamp) -> bool {
        now.saturating_since(self.heard) >= time
    }
    pub(crate) fn on_bye(&mut self, now: Timestamp) {
        self.left.get_or_insert(now);
    }
    /// Makes it the stream's source; returns the duration of the silence before.
    pub(crate) fn take_up(&mut self, now: Timestamp) -> TimeDelta {
        let silence = now.saturating_since(self.heard);
        (self.heard, self.left) = (now, None);
        silence
    }

    /// A packet of another source that may replace this one. The second one in sequence returns the first.
    pub(crate) fn on_candidate(&mut self, ssrc: u32, sequence: u16, datagram: &Datagram<'_>) -> Option<Candidate> {
        let next = sequence.wrapping_add(1);
        match &mut self.candidate {
            Some(c) if c.ssrc == ssrc && c.next == sequence => return self.candidate.take(),
            Some(c) => {
                (c.ssrc, c.next, c.payload, c.ecn) = (ssrc, next, datagram.payload, datagram.ecn);
                c.bytes.clear();
                c.bytes.extend_from_slice(datagram.bytes);
            }
            None => {
                let (bytes, payload, ecn) = (datagram.bytes.to_vec(), datagram.payload, datagram.ecn);
                self.candidate = Some(Candidate { ssrc, next, bytes, payload, ecn });
            }
        }
        None
    }
}
