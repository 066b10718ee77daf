//! Who the other end is: sources that begin, leave, come back under another name, or have this end's own.

use super::{Datagram, Endpoint, Sync};
use crate::feedback::TwccWriter;
use core::net::SocketAddr;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_units::{Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::Bye;
use weir_wire::rtp::PacketView;

/// Packets of a source that has left may still be under way for so long.
const STRAGGLERS: TimeDelta = TimeDelta::from_secs(1);
/// This end takes a new source identifier at most so often: what goes on under the new one is a loop (RFC 3550, section
/// 8.2, has the order of ten reporting intervals).
const LOOP_GUARD: TimeDelta = TimeDelta::from_secs(10);
/// Sets the random numbers of new identifiers apart from the others.
const COLLISION_SEED: u64 = 0x434f_4c4c_4944;

/// What is known of the other end as a source.
#[derive(Debug)]
pub(super) struct Remote {
    /// When it was last heard.
    pub heard: Timestamp,
    /// When it said goodbye.
    left: Option<Timestamp>,
    candidate: Option<Candidate>,
    /// Identifiers that this end has given up, of media, repair and retransmission, and how many of them it had used; until
    /// it has said so.
    pub given_up: Option<([u32; 3], usize)>,
    collided: Option<Timestamp>,
}

/// A source on probation: one packet of it has come (RFC 3550, appendix A.1).
#[derive(Debug)]
struct Candidate {
    ssrc: u32,
    next: u16,
    /// That packet, which is taken in when the next one follows.
    bytes: Vec<u8>,
    payload: u32,
    ecn: Ecn,
}

impl Remote {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self { heard: now, left: None, candidate: None, given_up: None, collided: None }
    }
    pub(super) const fn has_left(&self) -> bool {
        self.left.is_some()
    }
}

impl Endpoint {
    /// The other end's source of media, where it is known.
    pub fn remote_ssrc(&self) -> Option<u32> {
        (self.config.remote_ssrc != 0).then_some(self.config.remote_ssrc)
    }
    /// Whether the other end's source has said goodbye and no other has taken its place.
    pub fn remote_left(&self) -> bool {
        self.remote.has_left()
    }
    /// This end's source of media: as configured, or another one after a collision.
    pub fn ssrc(&self) -> u32 {
        self.config.ssrc
    }

    /// A packet of the other end's source; whether it begins anew with it.
    #[inline]
    pub(super) fn on_remote_rtp(&mut self, now: Timestamp) {
        if self.remote.left.is_some_and(|at| now.saturating_since(at) > STRAGGLERS) {
            self.take_up(self.config.remote_ssrc, now);
        }
        self.remote.heard = now;
    }

    /// RTP of a source that is neither the other end's media nor its repair; whether it is the other end's from now on.
    #[inline(never)]
    pub(super) fn on_stranger(
        &mut self,
        now: Timestamp,
        view: &PacketView<'_>,
        datagram: &Datagram<'_>,
        source: Option<&SocketAddr>,
    ) -> bool {
        let (ssrc, sequence) = (view.ssrc(), view.sequence());
        self.on_heard(ssrc, now);
        if ssrc == 0 || view.payload_type() != self.config.payload_type || !self.wants_source(now) {
            return false;
        }
        let next = sequence.wrapping_add(1);
        match &mut self.remote.candidate {
            Some(c) if c.ssrc == ssrc && c.next == sequence => {}
            Some(c) => {
                (c.ssrc, c.next, c.payload, c.ecn) = (ssrc, next, datagram.payload, datagram.ecn);
                c.bytes.clear();
                c.bytes.extend_from_slice(datagram.bytes);
                return false;
            }
            None => {
                let (bytes, payload, ecn) = (datagram.bytes.to_vec(), datagram.payload, datagram.ecn);
                self.remote.candidate = Some(Candidate { ssrc, next, bytes, payload, ecn });
                return false;
            }
        }
        let held = self.remote.candidate.take();
        self.take_up(ssrc, now);
        if let Some(c) = held {
            self.on_rtp(now, &Datagram { bytes: &c.bytes, payload: c.payload, ecn: c.ecn }, source);
        }
        self.on_rtp(now, datagram, source);
        true
    }

    /// Whether another source may take the other end's place.
    fn wants_source(&self, now: Timestamp) -> bool {
        let silent = |time| now.saturating_since(self.remote.heard) >= time;
        self.config.remote_ssrc == 0 || self.config.latch.is_some_and(|time| self.remote.has_left() || silent(time))
    }

    /// This source is the other end's from now on; all that is known of the one before is forgotten.
    fn take_up(&mut self, ssrc: u32, now: Timestamp) {
        let is_first = self.config.remote_ssrc == 0;
        if self.config.remote_ssrc != ssrc {
            self.config.remote_ssrc = ssrc;
            if !is_first {
                (self.config.remote_repair_ssrc, self.config.remote_retransmission_ssrc) = (None, None);
            }
        }
        self.counters.sources += 1;
        let silence = now.saturating_since(self.remote.heard);
        (self.remote.heard, self.remote.left) = (now, None);
        (self.report, self.sync, self.last_sr, self.last_repair_sr) = (None, Sync::No, None, None);
        (self.last_retransmission_sr, self.reference_heard, self.prior_highest) = (None, None, None);
        self.picture.reset();
        self.twcc = TwccWriter::new(self.config.ssrc, ssrc);
        if let Some(r) = &mut self.receiver {
            r.begin_anew(&self.config, silence, now);
        }
        if !is_first {
            self.reader.begin_anew();
            if let Some(s) = &mut self.sender {
                s.on_new_peer(now);
            }
        }
    }

    pub(super) fn on_bye(&mut self, bye: &Bye<'_>, now: Timestamp) {
        if bye.sources.iter().any(|s| s == self.config.remote_ssrc) && self.config.remote_ssrc != 0 {
            self.counters.byes += 1;
            self.remote.left.get_or_insert(now);
            self.report = None;
            self.picture.reset();
        }
    }

    /// Something has come from this source.
    pub(super) fn on_heard(&mut self, ssrc: u32, now: Timestamp) {
        if ssrc == self.config.remote_ssrc {
            self.remote.heard = now;
        } else if self.own_sources().contains(&ssrc) {
            self.on_collision(now);
        }
    }

    fn own_sources(&self) -> [u32; 3] {
        [self.config.ssrc, self.config.repair_ssrcs().0, self.config.retransmission_ssrcs().0]
    }

    /// Somebody else has this end's identifier, or this end's packets come back to it.
    #[cold]
    fn on_collision(&mut self, now: Timestamp) {
        self.counters.collisions += 1;
        let is_loop = self.remote.collided.is_some_and(|at| now.saturating_since(at) < LOOP_GUARD);
        if self.config.latch.is_none() || is_loop {
            return;
        }
        self.remote.collided = Some(now);
        let mut given_up = [self.config.ssrc; 3];
        let mut count = 1;
        let [_, repair, retransmission] = self.own_sources();
        let beside =
            [(repair, self.send_counters().repair_packets), (retransmission, self.retransmission_counters().packets)];
        for (source, packets) in beside {
            given_up[count] = source;
            count += usize::from(packets > 0);
        }
        let mut rng = Pcg64Mcg::seed_from_u64(self.config.seed ^ COLLISION_SEED ^ self.counters.collisions);
        let (own, theirs) = (self.own_sources(), self.config.remote_ssrc);
        let mut ssrc = rng.random::<u32>();
        // Apart from those that there are in the bits that streams beside the media do not turn.
        while ssrc == 0 || own.iter().chain([&theirs]).any(|taken| (taken ^ ssrc) << 2 == 0) {
            ssrc = ssrc.wrapping_add(1);
        }
        self.remote.given_up = Some((given_up, count));
        (self.config.ssrc, self.prior_highest) = (ssrc, None);
        (self.config.repair_ssrc, self.config.retransmission_ssrc) = (None, None);
        self.twcc = TwccWriter::new(ssrc, self.config.remote_ssrc);
        if let Some(s) = &mut self.sender {
            s.repair.set_media_ssrc(ssrc);
        }
    }
}
