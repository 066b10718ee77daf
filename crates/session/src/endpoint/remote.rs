//! The other end's sources: those that begin, leave, return under another identifier, or collide with this end's.

use super::subflows::twcc_writer;
use super::{Endpoint, SrRequestState, used_sources};
use crate::datagram::Datagram;
use crate::outcome::{Outcome, Refusal};
use crate::received_packet::ReceivedPacket;
use crate::receiver::{IncomingStream, SenderReports, Shared};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtcp::Bye;
use weir_wire::rtp::PacketView;

/// This end changes its source identifier at most once in this time: a further collision is a loop (RFC 3550,
/// section 8.2, has the order of ten reporting intervals).
const LOOP_GUARD: TimeDelta = TimeDelta::from_secs(10);
/// Separates the random values of new identifiers from the others.
const COLLISION_SEED: u64 = 0x434f_4c4c_4944;

impl Endpoint {
    /// A packet of an incoming stream's source; it restarts the stream if the source had left. Returns whether it had.
    #[inline]
    pub(super) fn on_stream_rtp(&mut self, index: usize, now: Timestamp) -> bool {
        let Some(receiver) = &mut self.receiver else { return false };
        let source = &mut receiver.streams[index].source;
        let is_back = source.has_come_back(now);
        if is_back {
            let ssrc = receiver.streams[index].identity.ssrc;
            self.take_up(index, ssrc, now);
        } else {
            source.heard = now;
        }
        is_back
    }

    /// RTP of a source that belongs to no stream; returns whether a stream has accepted it.
    #[inline(never)]
    pub(super) fn on_stranger(&mut self, packet: &ReceivedPacket<'_>) -> Outcome {
        let ReceivedPacket { now, datagram, source, rtp, .. } = packet;
        let (now, ssrc) = (*now, rtp.ssrc());
        self.on_heard(ssrc, now);
        let held = self.stream_wanting(rtp, now).and_then(|index| {
            let stream = &mut self.receiver.as_mut()?.streams[index];
            Some((index, stream.source.on_candidate(ssrc, rtp.sequence(), datagram)?))
        });
        let Some((index, first)) = held else {
            self.counters.unknown_source += 1;
            self.report_stranger(packet);
            return Outcome::Refused(Refusal::UnknownSource);
        };
        self.take_up(index, ssrc, now);
        let first = Datagram { bytes: &first.bytes, payload: first.payload, ecn: first.ecn, ..*datagram };
        self.on_rtp(now, &first, *source);
        let outcome = self.on_rtp(now, datagram, *source);
        self.settled = false;
        outcome
    }

    /// A packet is refused, but has arrived.
    pub(super) fn report_stranger(&mut self, packet: &ReceivedPacket<'_>) {
        if let Some(receiver) = &mut self.receiver {
            receiver.on_stranger(packet);
        }
    }

    /// The stream that can accept a source: of its payload type, and of its MID and RID if both have any, without a
    /// source or with one that has left.
    fn stream_wanting(&self, view: &PacketView<'_>, now: Timestamp) -> Option<usize> {
        if view.ssrc() == 0 {
            return None;
        }
        let latch = self.config.latch;
        let is_free = |s: &IncomingStream| {
            s.identity.ssrc == 0 || latch.is_some_and(|time| s.source.has_left() || s.source.is_silent(time, now))
        };
        let (mid, rid) = (view.extension(self.config.extensions.mid_id), view.extension(self.config.extensions.rid_id));
        let mut wanting = self.receiver.as_ref()?.streams.iter().enumerate().filter(|(_, s)| {
            let is_other = |own: Option<crate::identity::Label>, has: Option<&[u8]>| {
                own.zip(has).is_some_and(|(own, has)| own.as_bytes() != has)
            };
            let named = s.identity.rid.is_none() || rid.is_some();
            s.identity.payload_type == view.payload_type()
                && named
                && !is_other(s.identity.mid, mid)
                && !is_other(s.identity.rid, rid)
                && is_free(s)
        });
        wanting.next().map(|(i, _)| i)
    }

    /// Makes this source the stream's; the state of the previous one is dropped.
    fn take_up(&mut self, index: usize, ssrc: u32, now: Timestamp) {
        let Some(receiver) = &mut self.receiver else { return };
        let identity = &mut receiver.streams[index].identity;
        let is_first = identity.ssrc == 0;
        if identity.ssrc != ssrc {
            identity.ssrc = ssrc;
            if !is_first {
                (identity.repair_ssrc, identity.retransmission_ssrc) = (None, None);
            }
        }
        self.counters.sources += 1;
        let silence = receiver.streams[index].source.take_up(now);
        receiver.streams[index].heard = SenderReports::default();
        if let Some(s) = self.sender.as_mut().filter(|_| index == 0) {
            s.streams.iter_mut().for_each(|s| s.prior_highest = None);
        }
        if index == 0 {
            self.config.remote_ssrc = ssrc;
            (self.report, self.sr_request, self.reference_heard) = (None, SrRequestState::None, None);
            let writer = twcc_writer(self.config.ssrc, ssrc, receiver.is_multipath());
            receiver.restart_path(writer, silence, now);
            receiver.path.set_params(&self.config.params);
        }
        let shared = Shared { params: &self.config.params, session_bandwidth: self.config.session_bandwidth };
        let (stream, path) = receiver.with_path(index);
        stream.restart(path, shared, now);
        if !is_first
            && index == 0
            && let Some(s) = &mut self.sender
        {
            s.path_mut().reader.restart();
            s.streams.iter_mut().for_each(|s| s.on_new_peer(now));
        }
    }

    pub(super) fn on_bye(&mut self, bye: &Bye<'_>, now: Timestamp) {
        let own = self.config.remote_ssrc;
        let mut counted = false;
        for ssrc in bye.sources.iter().filter(|&ssrc| ssrc != 0) {
            self.on_requester_left(ssrc, now);
            self.on_vector_source_left(ssrc, now);
            if let Some(s) = self.receiver.iter_mut().flat_map(|r| &mut r.streams).find(|s| s.identity.ssrc == ssrc) {
                // A BYE may be repeated.
                counted |= !s.source.has_left();
                s.source.on_bye(now);
                s.picture.reset();
            }
            // An end that receives nothing may not know the other's source.
            if ssrc == own || (own == 0 && self.receiver.is_none()) {
                self.report = None;
                counted |= !self.remote_bye;
                self.remote_bye = true;
            }
        }
        self.counters.byes += u64::from(counted);
        if let Some(reason) = bye.reason.filter(|_| counted) {
            self.remote_reason = Some(String::from_utf8_lossy(reason).into());
        }
    }

    /// A packet of this source was received.
    pub(super) fn on_heard(&mut self, ssrc: u32, now: Timestamp) {
        if let Some(s) = self.receiver.iter_mut().flat_map(|r| &mut r.streams).find(|s| s.identity.ssrc == ssrc) {
            s.source.heard = now;
        } else if ssrc != self.config.remote_ssrc && self.has_source(ssrc) {
            self.on_collision(ssrc, now);
        }
    }

    /// Whether a source is this end's.
    fn has_source(&self, ssrc: u32) -> bool {
        let streams = self.sender.iter().flat_map(|s| &s.streams);
        self.config.ssrc == ssrc || streams.map(|s| s.identity).any(|id| id.has(ssrc))
    }

    /// An identifier of this end is used by others, or this end's packets loop back: the stream that has it changes its
    /// identifiers.
    #[cold]
    fn on_collision(&mut self, taken: u32, now: Timestamp) {
        self.counters.collisions += 1;
        let is_loop = self.collided.is_some_and(|at| now.saturating_since(at) < LOOP_GUARD);
        if self.config.latch.is_none() || is_loop {
            return;
        }
        self.collided = Some(now);
        let ssrc = self.free_ssrc();
        let reports = self.config.ssrc;
        let mut is_own = taken == reports;
        let stream = self.sender.iter_mut().flat_map(|s| &mut s.streams).find(|s| s.identity.has(taken));
        match stream {
            Some(stream) => {
                is_own = stream.identity.ssrc == reports;
                self.goodbyes.extend(used_sources(stream).into_iter().flatten());
                stream.identity.ssrc = ssrc;
                (stream.identity.repair_ssrc, stream.identity.retransmission_ssrc) = (None, None);
                stream.prior_highest = None;
                stream.repair.set_media_ssrc(ssrc);
            }
            None => self.goodbyes.push(reports),
        }
        if is_own {
            self.config.ssrc = ssrc;
            if let Some(r) = &mut self.receiver {
                r.path.twcc = twcc_writer(ssrc, self.config.remote_ssrc, r.is_multipath());
            }
        }
    }

    /// A random identifier that differs from existing ones in the bits that repair and retransmission streams do not
    /// invert.
    fn free_ssrc(&self) -> u32 {
        let mut rng = Pcg64Mcg::seed_from_u64(self.config.seed ^ COLLISION_SEED ^ self.counters.collisions);
        let own = self.sender.iter().flat_map(|s| s.streams.iter().map(|s| s.identity));
        let theirs = self.receiver.iter().flat_map(|r| r.streams.iter().map(|s| s.identity));
        let reporting = [self.config.ssrc, self.config.remote_ssrc];
        let taken: Vec<u32> = own.chain(theirs).flat_map(|id| id.sources()).chain(reporting).collect();
        let mut ssrc = rng.random::<u32>();
        while ssrc == 0 || taken.iter().any(|t| (t ^ ssrc) << 2 == 0) {
            ssrc = ssrc.wrapping_add(1);
        }
        ssrc
    }
}
