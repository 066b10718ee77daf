//! What belongs to an outgoing stream: its source, packetiser, queue, repair, retransmission and pictures.

use super::PADDING_SIZE;
use super::key_frames::PictureState;
use crate::allocation::{Demand, Share};
use crate::config::OutgoingConfig;
use crate::datagram::Kind;
use crate::identity::StreamIdentity;
use crate::ids::OutgoingId;
use crate::protection::{RepairPacket, RepairSender};
use crate::queue::{QueuedPacket, RtpQueue};
use crate::resilience::{Room, SendResilience};
use crate::retransmission::{RetransmissionConfig, Retransmitter};
use crate::sent::{Intervals, SentStream};
use weir_cc::RepairPlan;
use weir_fec::Importance;
use weir_media::{Frame, FrameKind, Packetiser, Payloads, Source};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// What the sending direction has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendCounters {
    /// Media payload bytes that the source has generated.
    pub generated: u64,
    /// Frames that the source has generated.
    pub frames: u64,
    /// Key frames among them.
    pub key_frames: u64,
    /// RTP packets sent on the media stream, padding included.
    pub packets: u64,
    /// RTP payload bytes sent, without padding (the sender's octet count of RFC 3550, section 6.4.1).
    pub payload: u64,
    /// RTP bytes sent on the media stream: headers, payload and padding.
    pub bytes: u64,
    /// Padding-only packets sent.
    pub padding_packets: u64,
    /// Repair packets sent, on their own stream.
    pub repair_packets: u64,
    /// RTP bytes of repair packets: headers and payload.
    pub repair_bytes: u64,
    /// RTP payload bytes of repair packets.
    pub repair_payload: u64,
    /// Media packets that left under a repair scheme.
    pub protected_packets: u64,
    /// Repair packets that were made and did not leave: no room, or packets that their format cannot describe.
    pub repair_dropped: u64,
    /// Repair plans of the controller that no code can follow.
    pub repair_refused: u64,
    /// Frames that did not leave: their source made a payload larger than a packet holds.
    pub oversized_frames: u64,
    /// Packets among those sent that a transport with a queue of its own did not take: they are lost.
    pub refused_packets: u64,
    /// RTP payload bytes of these.
    pub refused_payload: u64,
}

impl core::ops::AddAssign for SendCounters {
    fn add_assign(&mut self, o: Self) {
        self.generated += o.generated;
        self.frames += o.frames;
        self.key_frames += o.key_frames;
        self.packets += o.packets;
        self.payload += o.payload;
        self.bytes += o.bytes;
        self.padding_packets += o.padding_packets;
        self.repair_packets += o.repair_packets;
        self.repair_bytes += o.repair_bytes;
        self.repair_payload += o.repair_payload;
        self.protected_packets += o.protected_packets;
        self.repair_dropped += o.repair_dropped;
        self.repair_refused += o.repair_refused;
        self.oversized_frames += o.oversized_frames;
        self.refused_packets += o.refused_packets;
        self.refused_payload += o.refused_payload;
    }
}

/// First sequence numbers and timestamp of a stream, random (RFC 3550, section 5.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstNumbers {
    pub media: u64,
    pub repair: u64,
    pub retransmission: u64,
    pub timestamp: u32,
}

// Fields in this order: what each packet needs lies together, so that few cache lines are touched where calls are many.
#[repr(C)]
pub(crate) struct OutgoingStream {
    pub(super) source: Source,
    pub(super) queue: RtpQueue,
    /// The media stream, padding included.
    pub media: SentStream,
    pub retransmitter: Option<Box<Retransmitter>>,
    pub resilience: Option<Box<SendResilience>>,
    pub share: Share,
    /// The rate that the application wants of the encoder instead of its share.
    pub(super) held: Option<DataRate>,
    pub(super) max_queue_age: Option<TimeDelta>,
    /// Bytes of RTP header and extensions in front of every payload.
    pub overhead: u32,
    pub last_rtp_timestamp: u32,
    pub(super) rtp_offset: u32,
    /// The application has stopped the source.
    pub is_paused: bool,
    /// MID and RID go with each packet until a report shows that the other end knows the stream.
    pub is_labelled: bool,
    pub id: OutgoingId,
    pub identity: StreamIdentity,
    pub counters: SendCounters,
    /// What media leaves to error resilience.
    pub(super) room: Option<Room>,
    pub repair: RepairSender,
    pub picture: PictureState,
    packetiser: Packetiser,
    /// The frame that is being packetised, where it has content.
    payloads: Payloads,
    pub demand: Demand,
    /// Its longest payload, where a transport bears that.
    wanted_payload: DataSize,
    pub(super) intervals: Intervals,
    /// The highest sequence number of the report block before.
    pub prior_highest: Option<u32>,
}

impl OutgoingStream {
    pub(crate) fn new(
        id: OutgoingId,
        config: OutgoingConfig,
        first: FirstNumbers,
        keeps: bool,
        now: Timestamp,
    ) -> Self {
        let identity = config.identity;
        let retransmission = config.retransmission.or(config.resilience.map(|_| RetransmissionConfig::default()));
        let max_payload = config.packetiser.max_payload;
        Self {
            id,
            identity,
            demand: config.demand,
            share: Share::new(),
            source: config.source,
            wanted_payload: max_payload,
            packetiser: config.packetiser,
            queue: RtpQueue::default(),
            payloads: Payloads::default(),
            max_queue_age: config.max_queue_age,
            media: SentStream::new(first.media, keeps),
            intervals: Intervals::default(),
            repair: RepairSender::new(config.repair, first.repair, identity.ssrc),
            room: retransmission.map(|_| Room::new(now)),
            retransmitter: retransmission.map(|c| Box::new(Retransmitter::new(c, first.retransmission))),
            resilience: config.resilience.map(|c| Box::new(SendResilience::new(c, max_payload, config.repair))),
            picture: PictureState::new(config.picture),
            last_rtp_timestamp: first.timestamp,
            rtp_offset: first.timestamp,
            counters: SendCounters::default(),
            prior_highest: None,
            held: None,
            is_paused: false,
            is_labelled: identity.mid.is_some() || identity.rid.is_some(),
            overhead: 0,
        }
    }

    pub(crate) fn rtp_offset(&self) -> u32 {
        self.rtp_offset
    }
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }
    pub(crate) fn source_mut(&mut self) -> &mut Source {
        &mut self.source
    }
    pub(crate) fn queue(&self) -> &RtpQueue {
        &self.queue
    }
    pub(crate) fn counters(&self) -> SendCounters {
        SendCounters {
            protected_packets: self.repair.protected,
            repair_dropped: self.repair.dropped,
            repair_refused: self.repair.refused,
            ..self.counters
        }
    }
    /// Packets that run-length reports name and that were not sent, or are no longer remembered.
    pub(crate) fn unknown_reports(&self) -> u64 {
        self.intervals.unknown
    }
    /// Packets of the retransmission stream, and their payload, for sender reports.
    pub(crate) fn retransmitted(&self) -> (u64, u64) {
        self.retransmitter.as_ref().map_or((0, 0), |r| (r.counters.packets, r.counters.payload))
    }

    /// Payloads may be no longer than this nor than they were meant to be, from the next frame on.
    pub(crate) fn limit_payload(&mut self, max: DataSize) {
        self.packetiser.max_payload = self.wanted_payload.min(max);
    }

    /// The RTP timestamp of an instant, for sender reports.
    pub(crate) fn rtp_timestamp_at(&self, now: Timestamp) -> u32 {
        let ticks = i128::from(now.as_nanos()) * i128::from(self.identity.clock_rate) / 1_000_000_000;
        self.rtp_offset.wrapping_add(ticks as u32)
    }

    /// Asks the source for a rate, less what error resilience takes of it.
    pub(crate) fn set_rate(&mut self, rate: DataRate, now: Timestamp) {
        self.source.on_target(self.room.map_or(rate, |room| room.within(rate)), now);
    }

    /// The rate that the source is to follow: what the application holds it at, or its share.
    pub(crate) fn rate(&self) -> DataRate {
        self.held.unwrap_or(self.share.rate)
    }

    /// Repair that a controller plans; where it plans any, a policy of error resilience leaves protection to it.
    pub(crate) fn follow_plan(&mut self, plan: RepairPlan, now: Timestamp) {
        self.repair.follow(plan);
        if plan != RepairPlan::Off && self.resilience.as_ref().is_some_and(|r| !r.yields) {
            self.yield_protection(now);
        }
    }

    /// Whether anything waits to leave.
    #[inline]
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
            || self.repair.front().is_some()
            || self.retransmitter.as_deref().is_some_and(Retransmitter::is_waiting)
    }

    /// Bytes that wait, repair and retransmissions included.
    #[inline]
    pub(crate) fn waiting_size(&self) -> DataSize {
        let beside = self.retransmitter.as_deref().map_or(0, Retransmitter::waiting_size);
        self.queue.size() + DataSize::from_bytes(self.repair.waiting_size() + beside)
    }

    /// Payload of the packet that leaves next: one that is sent again, a repair packet right behind the media packet that
    /// completed it, or media.
    #[inline]
    pub(crate) fn next_packet(&self) -> Option<NextPacket> {
        if let Some(payload) = self.retransmitter.as_deref().and_then(Retransmitter::front_size) {
            return Some(NextPacket { kind: Kind::Retransmission, payload });
        }
        if let Some(packet) = self.repair.front().map(RepairPacket::size) {
            return Some(NextPacket { kind: Kind::Repair, payload: packet });
        }
        self.queue.front().map(|p| NextPacket { kind: Kind::Media, payload: p.payload.into() })
    }

    /// Takes the packet that leaves now, of the kind that [`Self::next_packet`] gave, or padding.
    #[inline]
    pub(super) fn take(&mut self, next: NextPacket, size: DataSize, now: Timestamp) -> (QueuedPacket, u64) {
        let mut media = QueuedPacket {
            payload: 0,
            marker: false,
            rtp_timestamp: self.last_rtp_timestamp,
            captured: now,
            importance: Importance::Other,
        };
        let c = &mut self.counters;
        let mut resent = 0;
        match next.kind {
            Kind::Retransmission => {
                if let Some(r) = &mut self.retransmitter {
                    r.counters.bytes += size.as_bytes();
                    let packet = r.pop(now).unwrap_or_default();
                    (media.marker, media.rtp_timestamp, resent) =
                        (packet.marker, packet.rtp_timestamp, packet.sequence);
                }
            }
            Kind::Repair => {
                c.repair_packets += 1;
                c.repair_bytes += size.as_bytes();
                c.repair_payload += self.repair.pop_next();
            }
            Kind::Padding => {
                c.packets += 1;
                c.bytes += size.as_bytes();
                c.padding_packets += 1;
            }
            Kind::Media => {
                c.packets += 1;
                c.bytes += size.as_bytes();
                media = self.queue.pop().unwrap_or(media);
                c.payload += next.payload;
                self.last_rtp_timestamp = media.rtp_timestamp;
            }
        }
        (media, resent)
    }

    /// Frames come out of the source: queues one, and gives its size.
    #[inline]
    pub(super) fn enqueue(&mut self, frame: &Frame, now: Timestamp) -> DataSize {
        self.counters.frames += 1;
        let rtp_timestamp = frame.rtp_timestamp.wrapping_add(self.rtp_offset);
        let captured = frame.captured;
        if frame.kind == FrameKind::Key {
            self.counters.key_frames += 1;
            self.picture.on_key_frame(now);
        }
        let importance = match frame.kind {
            FrameKind::Key => Importance::Key,
            _ if frame.discardable => Importance::Other,
            _ => Importance::Reference,
        };
        let packet = QueuedPacket { payload: 0, marker: false, rtp_timestamp, captured, importance };
        self.payloads.clear();
        let added = if self.source.take_payloads(self.packetiser.max_payload, &mut self.payloads) {
            self.enqueue_content(packet, frame)
        } else {
            for p in self.packetiser.split(frame.size) {
                let payload = u16::try_from(p.size.as_bytes()).unwrap_or(u16::MAX);
                self.queue.push(QueuedPacket { payload, marker: p.marker && frame.marker, ..packet });
            }
            frame.size
        };
        self.counters.generated += added.as_bytes();
        added
    }

    /// Queues the payloads of a frame, of which `packet` has what they have in common; gives their size.
    #[inline(never)]
    fn enqueue_content(&mut self, packet: QueuedPacket, frame: &Frame) -> DataSize {
        if self.payloads.iter().any(|(bytes, _)| bytes.len() > usize::from(u16::MAX)) {
            self.counters.oversized_frames += 1;
            return DataSize::ZERO;
        }
        self.picture.on_picture(frame.rtp_timestamp, self.payloads.iter().next().map(|p| p.0));
        let mut left = self.payloads.len();
        for (bytes, discardable) in self.payloads.iter() {
            left -= 1;
            let unneeded = discardable && packet.importance != Importance::Key;
            let importance = if unneeded { Importance::Other } else { packet.importance };
            let (payload, marker) = (bytes.len() as u16, left == 0 && frame.marker);
            self.queue.push_content(QueuedPacket { payload, marker, importance, ..packet }, bytes);
        }
        self.payloads.size()
    }

    /// Another source of frames; gives it the rate that holds.
    pub(crate) fn set_source(&mut self, source: Source, rate: DataRate, now: Timestamp) {
        self.source = source;
        if let Some(r) = &mut self.resilience {
            // It is given the size of slices with the next report.
            r.slice_size = None;
        }
        self.set_rate(rate, now);
    }

    /// Throws away what waits.
    pub(crate) fn discard_all(&mut self) {
        self.queue.discard_all();
        self.repair.discard_all();
        if let Some(r) = &mut self.retransmitter {
            r.discard_all();
        }
    }

    /// Throws away what has waited for too long, by the controller's limit and by the application's.
    pub(super) fn discard_old(&mut self, limit: Option<TimeDelta>, now: Timestamp) {
        if let Some(limit) = limit
            && self.queue.oldest_age(now) > limit
        {
            self.queue.discard_all();
        }
        if let Some(limit) = self.max_queue_age
            && self.queue.discard_before(now - limit)
        {
            self.want_key_frame(now);
        }
    }
}

/// The packet that leaves next, and its payload in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextPacket {
    pub kind: Kind,
    pub payload: u64,
}

impl NextPacket {
    pub(super) const PADDING: Self = Self { kind: Kind::Padding, payload: PADDING_SIZE as u64 };
}
