//! Packets as released by the pacer.

use super::{NextPacket, Sender};
use crate::allocation::MediaKind;
use crate::datagram::Kind;
use crate::frame_repair::FramePacket;
use crate::queue::QueuedPacket;
use crate::retransmission::Keep;
use crate::sent::Sent;
use weir_cc::PacerDecision;
use weir_cc::cue::SentPacket;
use weir_fec::Importance;
use weir_units::cold_path;
use weir_units::{DataSize, PathId, TimeDelta, Timestamp};

/// The packet being sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outgoing {
    /// The path on which it is sent.
    pub path: PathId,
    /// Index of its stream.
    pub stream: usize,
    /// Transport-wide sequence number.
    pub transport: u64,
    /// The stream's own sequence number.
    pub sequence: u64,
    /// Its kind. A repair packet is in [`RepairSender::take_popped`](crate::protection::RepairSender::take_popped); the
    /// payload of a retransmission is found by [`Self::resent`].
    pub kind: Kind,
    /// The media packet; for padding and repair only the RTP timestamp of the last one is valid.
    pub media: QueuedPacket,
    /// The media stream's number of a retransmitted packet.
    pub resent: u64,
    /// Payload of padding.
    pub padding: u8,
}

impl Sender {
    /// Appends the content of the outgoing packet, if any; then all of its payload is in `out`.
    #[inline]
    pub(crate) fn write_content(&mut self, out: &mut Vec<u8>) {
        if self.streams[self.outgoing.stream].queue.take_content(out) {
            self.outgoing.media.payload = 0;
        }
    }

    /// Whether [`Self::poll_packet`] may find anything to send.
    #[inline]
    pub(crate) fn may_send(&self) -> bool {
        self.multipath.is_some() || self.has_queued() || self.path().may_pad()
    }

    #[inline]
    pub(super) fn has_queued(&self) -> bool {
        self.streams.iter().any(|s| s.has_queued())
    }

    /// The stream whose packet is sent next: audio first, then retransmissions and repair, then the oldest media
    /// packet.
    #[inline(always)]
    pub(super) fn next_stream(&self) -> Option<(usize, NextPacket)> {
        if let [only] = &self.streams[..] {
            return Some((0, only.next_packet()?));
        }
        self.next_of_streams()
    }
    #[inline(never)]
    fn next_of_streams(&self) -> Option<(usize, NextPacket)> {
        let waiting = self.streams.iter().enumerate().filter_map(|(i, s)| Some((i, s, s.next_packet()?)));
        let rank = |s: &super::OutgoingStream, next: &NextPacket| {
            let captured = s.queue.front().map_or(Timestamp::ZERO, |p| p.captured);
            (s.demand.media != MediaKind::Audio, next.kind == Kind::Media, captured)
        };
        waiting.min_by_key(|(_, s, next)| rank(s, next)).map(|(i, _, next)| (i, next))
    }

    /// The stream on which padding is sent: the first that is not audio, since padding replaces video.
    pub(super) fn padding_stream(&self) -> usize {
        self.streams.iter().position(|s| s.demand.media == MediaKind::Video && s.share.is_on).unwrap_or(0)
    }

    /// Index of the stream whose media packet is sent next, if any is queued.
    pub(crate) fn next_media(&self) -> Option<usize> {
        self.next_stream().map(|(i, _)| i).filter(|&i| self.streams[i].queue.front().is_some())
    }

    /// Takes the packet that may be sent now, if any, into [`Self::outgoing`].
    pub(crate) fn poll_packet(&mut self, now: Timestamp) -> bool {
        if self.multipath.is_some() {
            return self.poll_packet_on_paths(now);
        }
        if self.path().breaker.tripped().is_some() {
            return false;
        }
        let is_queued = self.has_queued();
        if !is_queued && !self.path().may_pad() {
            return false;
        }
        if self.path().follows_backlog() {
            if self.send_sound(now) {
                return true;
            }
            self.measure_backlog(now);
        }
        let (probe, padding) = match self.path_mut().poll_pacer(now, is_queued) {
            PacerDecision::Media { probe } => (probe, false),
            PacerDecision::Padding { probe } => (probe, true),
            PacerDecision::Wait(_) | PacerDecision::Idle => return false,
        };
        let (index, next) = if padding {
            cold_path();
            (self.padding_stream(), NextPacket::padding(self.path().pads_little()))
        } else {
            let Some(next) = self.next_stream() else { return false };
            next
        };
        self.send(0, index, next, probe, now)
    }

    /// Takes a packet of sound, which does not wait for a pacer that sends in bursts.
    #[cold]
    fn send_sound(&mut self, now: Timestamp) -> bool {
        let next = self.next_stream().filter(|(i, next)| {
            next.kind == Kind::Media
                && self.streams[*i].demand.media == MediaKind::Audio
                && self.path().may_skip_pacer()
        });
        let Some((index, next)) = next else { return false };
        self.path_mut().skip_pacer(true);
        let is_sent = self.send(0, index, next, 0, now);
        if !is_sent {
            self.path_mut().skip_pacer(false);
        }
        is_sent
    }

    /// Passes the pacer what is queued, and for how long.
    #[cold]
    fn measure_backlog(&mut self, now: Timestamp) {
        let queued = self.streams.iter().map(|s| s.waiting_size()).fold(DataSize::ZERO, |a, b| a + b);
        let ages = self.streams.iter().map(|s| s.queued_ages(now));
        let (packets, sum) = ages.fold((0, TimeDelta::ZERO), |(n, sum), (packets, age)| (n + packets, sum + age));
        let mean = sum / i64::try_from(packets).unwrap_or(i64::MAX).max(1);
        self.path_mut().on_backlog(queued, mean, now);
    }

    /// Takes a stream's next packet into [`Self::outgoing`], to be sent on a path; `false` if the path's window is closed.
    #[inline]
    pub(super) fn send(
        &mut self,
        path_index: usize,
        index: usize,
        next: NextPacket,
        probe: u32,
        now: Timestamp,
    ) -> bool {
        let padding = next.kind == Kind::Padding;
        let (path, s) = (&mut self.paths[path_index], &mut self.streams[index]);
        let headers = s.overhead;
        let size = DataSize::from_bytes(u64::from(headers) + next.payload);
        if !path.has_room(size) {
            return false;
        }
        let transport = path.take_number();
        let bytes = u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        let packet = Sent { transport, departure: now, size: bytes, path: path.id, is_padding: padding };
        let own_stream = match (next.kind, &mut s.retransmitter) {
            (Kind::Retransmission, Some(r)) => Some(&mut r.stream),
            (Kind::Repair, _) if s.identity.parity_format.red().is_none() => Some(&mut s.repair.stream),
            _ => None,
        };
        let sequence = match own_stream {
            // From here on the media stream has numbers of its own.
            Some(stream) => {
                cold_path();
                s.media.keep();
                stream.on_sent(packet)
            }
            None => s.media.on_sent(packet),
        };
        let (media, resent) = s.take(next, size, now);
        let (is_repair, is_retransmission) = (next.kind == Kind::Repair, next.kind == Kind::Retransmission);
        let is_extra = is_retransmission || is_repair && s.makes_room_for_repair();
        if let Some(room) = &mut s.room {
            cold_path();
            room.on_sent(size.as_bytes(), is_extra);
        }
        let queued = self.streams.iter().map(|s| s.waiting_size()).fold(DataSize::ZERO, |a, b| a + b);
        let packet = SentPacket {
            now,
            sequence: transport,
            size,
            is_padding: padding,
            is_repair,
            is_retransmission,
            probe,
            queued,
            bytes_in_flight: DataSize::ZERO,
        };
        path.on_sent(packet, headers);
        let padding = if padding { next.payload as u8 } else { 0 };
        self.outgoing =
            Outgoing { path: path.id, stream: index, transport, sequence, kind: next.kind, media, resent, padding };
        true
    }

    /// The outgoing media packet has been written to `bytes`, up to its payload: adds it to the repair code.
    #[inline(never)]
    pub(crate) fn protect(&mut self, bytes: &[u8], now: Timestamp) {
        let packet = self.outgoing;
        let repair = &mut self.streams[packet.stream].repair;
        let importance = packet.media.importance;
        if repair.is_by_frames() {
            if packet.kind == Kind::Media {
                let QueuedPacket { captured, rtp_timestamp, marker, payload, .. } = packet.media;
                let of = FramePacket { now, sequence: packet.sequence, captured, rtp_timestamp, marker };
                repair.on_frame_packet(of, bytes, payload.into());
            }
            return;
        }
        if packet.kind == Kind::Media || repair.wants_padding() {
            let ends_key_frame = packet.media.marker && importance == Importance::Key;
            repair.on_media(packet.sequence, bytes, packet.media.payload.into(), importance, ends_key_frame);
        }
    }

    /// The outgoing media packet has been written to `bytes`: keeps it for retransmission.
    #[inline(never)]
    pub(crate) fn keep(&mut self, bytes: &[u8], now: Timestamp) {
        let packet = self.outgoing;
        let in_red = self.streams[packet.stream].is_in_red();
        if let Some(r) = &mut self.streams[packet.stream].retransmitter {
            let kept = match packet.kind {
                Kind::Padding => Keep::Nothing,
                _ if in_red => Keep::BehindRed,
                _ => Keep::Payload,
            };
            r.keep(now, packet.sequence, bytes, packet.media.payload, kept);
        }
    }
}
