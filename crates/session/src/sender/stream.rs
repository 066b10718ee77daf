//! State of an outgoing stream: source, packetiser, queue, repair, retransmission and pictures.

use super::counters::SendCounters;
use super::key_frames::{self, PictureState};
use super::{LEAST_PADDING, PADDING_SIZE};
use crate::allocation::{Demand, Share};
use crate::config::OutgoingConfig;
use crate::datagram::Kind;
use crate::identity::StreamIdentity;
use crate::ids::OutgoingId;
use crate::protection::{RepairChoice, RepairPacket, RepairSender};
use crate::queue::{QueuedPacket, RtpQueue};
use crate::resilience::{Room, SendResilience};
use crate::retransmission::Retransmitter;
use crate::sender_model::SenderModel;
use crate::sent::{Intervals, SentStream};
use weir_cc::RepairPlan;
use weir_fec::{Importance, Protection};
use weir_media::utility::ShapeChoice;
use weir_media::{Frame, FrameKind, Packetiser, Payloads, Source};
use weir_units::cold_path;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// First sequence numbers and timestamp of a stream; random (RFC 3550, section 5.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstNumbers {
    pub media: u64,
    pub repair: u64,
    pub retransmission: u64,
    pub timestamp: u32,
}

/// Age of the oldest queued frame from which pictures are left out. Chosen here: SCReAM discards its queue at 100 ms (RFC 8298,
/// section 4.1.3.3).
const SKIP_AFTER: TimeDelta = TimeDelta::from_millis(100);

// Field order: data used by each packet is adjacent, so that few cache lines are touched with many calls.
#[repr(C)]
pub(crate) struct OutgoingStream {
    pub(super) source: Source,
    pub(super) queue: RtpQueue,
    /// The media stream, padding included.
    pub media: SentStream,
    pub retransmitter: Option<Box<Retransmitter>>,
    pub resilience: Option<Box<SendResilience>>,
    pub share: Share,
    /// The rate set by the application instead of the share.
    pub(super) held: Option<DataRate>,
    pub(super) max_queue_age: Option<TimeDelta>,
    /// Bytes of RTP header and extensions before every payload.
    pub overhead: u32,
    pub last_rtp_timestamp: u32,
    pub(super) rtp_offset: u32,
    /// Whether the application has paused the source.
    pub is_paused: bool,
    /// Whether MID and RID are sent with each packet, until a report shows that the other end knows the stream.
    pub is_labelled: bool,
    pub id: OutgoingId,
    pub identity: StreamIdentity,
    pub counters: SendCounters,
    /// The share of the rate used by error resilience.
    pub(super) room: Option<Room>,
    /// Whether media is reduced for the repair packets of a fixed scheme.
    pub(super) repair_within_rate: bool,
    pub repair: RepairSender,
    pub picture: PictureState,
    packetiser: Packetiser,
    /// The frame being packetised, if it has content.
    payloads: Payloads,
    pub demand: Demand,
    /// Its longest payload, if the transport allows it.
    wanted_payload: DataSize,
    pub(super) intervals: Intervals,
    /// When it was made.
    since: Timestamp,
    /// Whether its source limits key frames and leaves pictures out, so that no frame has to be discarded.
    is_economical: bool,
    /// The highest sequence number in the previous report block.
    pub prior_highest: Option<u32>,
    pub(super) model: SenderModel,
    /// Size and number of the source's pictures, if the application has a preference.
    pub(super) shape: Option<Box<ShapeChoice>>,
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
        let (demand, source, config) = (config.demand, config.source, config.options);
        let by_policy = config.resilience.filter(|c| c.applicability.retransmits());
        let retransmission = config.retransmission.or(by_policy.map(|_| config.sender.retransmission()));
        let fixed = match config.repair {
            RepairChoice::Fixed(Protection::Equal(scheme)) if config.repair_within_rate => scheme.overhead(),
            _ => 0.0,
        };
        let by_choice = matches!(config.repair, RepairChoice::Fixed(_) | RepairChoice::ByFrames(_));
        let repair_within_rate = config.repair_within_rate && by_choice;
        let has_extra = retransmission.is_some() || config.resilience.is_some() || repair_within_rate;
        let max_payload = config.packetiser.max_payload;
        let shape = config.utility.map(|u| Box::new(ShapeChoice::new(u)));
        let resilience = config.resilience.map(|c| {
            let preference = config.utility.map(|u| u.preference);
            SendResilience::new(c, max_payload, config.repair).with_preference(preference)
        });
        Self {
            id,
            identity,
            demand,
            share: Share::new(),
            source,
            wanted_payload: max_payload,
            packetiser: config.packetiser,
            queue: RtpQueue::default(),
            payloads: Payloads::default(),
            max_queue_age: config.max_queue_age,
            media: SentStream::new(first.media, keeps),
            intervals: Intervals::default(),
            repair: RepairSender::new(config.repair, first.repair, identity.ssrc).with_parity(identity.parity_format),
            room: has_extra.then(|| Room::new(now, fixed / (1.0 + fixed))),
            repair_within_rate,
            retransmitter: retransmission.map(|c| Box::new(Retransmitter::new(c, first.retransmission))),
            resilience: resilience.map(Box::new),
            picture: PictureState::new(config.picture),
            last_rtp_timestamp: first.timestamp,
            rtp_offset: first.timestamp,
            counters: SendCounters::default(),
            prior_highest: None,
            shape,
            model: config.sender,
            since: now,
            is_economical: false,
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
            discarded_packets: self.queue.dropped(),
            ..self.counters
        }
    }
    /// Packets in run-length reports that were never sent, or are no longer remembered.
    pub(crate) fn unknown_reports(&self) -> u64 {
        self.intervals.unknown
    }
    /// Packets of the retransmission stream, and their payload, for sender reports.
    pub(crate) fn retransmitted(&self) -> (u64, u64) {
        self.retransmitter.as_ref().map_or((0, 0), |r| (r.counters.packets, r.counters.payload))
    }

    /// Limits payloads to this size and their configured size, from the next frame on.
    pub(crate) fn limit_payload(&mut self, max: DataSize) {
        self.packetiser.max_payload = self.wanted_payload.min(max);
    }

    /// The RTP timestamp at a time, for sender reports.
    pub(crate) fn rtp_timestamp_at(&self, now: Timestamp) -> u32 {
        let ticks = i128::from(now.as_nanos()) * i128::from(self.identity.clock_rate) / 1_000_000_000;
        self.rtp_offset.wrapping_add(ticks as u32)
    }

    /// See [`RtcpControl::move_media_clock`](crate::RtcpControl::move_media_clock).
    pub(crate) fn move_media_clock(&mut self, by: TimeDelta) {
        let ticks = i128::from(by.as_nanos()) * i128::from(self.identity.clock_rate) / 1_000_000_000;
        self.rtp_offset = self.rtp_offset.wrapping_add(ticks as u32);
    }

    /// Sets the source's rate, less the share of error resilience.
    pub(crate) fn set_rate(&mut self, rate: DataRate, now: Timestamp) {
        self.repair.set_rate(rate);
        let rate = self.room.map_or(rate, |room| room.within(rate));
        self.source.on_target(rate, now);
        self.picture.budget.set_rate(rate, now);
        let largest = key_frames::largest(rate, now.saturating_since(self.since));
        self.is_economical = self.source.limit_key_frames(largest);
        self.set_shape_rate(rate, now);
    }

    /// The rate for the source: as fixed by the application, or its share.
    pub(crate) fn rate(&self) -> DataRate {
        self.held.unwrap_or(self.share.rate)
    }

    /// Applies repair planned by a controller; if it plans any, a policy of error resilience leaves protection to it.
    pub(crate) fn follow_plan(&mut self, plan: RepairPlan, now: Timestamp) {
        self.repair.follow(plan);
        if plan != RepairPlan::Off && self.resilience.as_ref().is_some_and(|r| !r.yields) {
            self.yield_protection(now);
        }
    }

    /// Whether any packet is queued.
    #[inline]
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
            || self.repair.front().is_some()
            || self.retransmitter.as_deref().is_some_and(Retransmitter::is_waiting)
    }

    /// Bytes queued, repair and retransmissions included.
    #[inline]
    pub(crate) fn waiting_size(&self) -> DataSize {
        let beside = self.retransmitter.as_deref().map_or(0, Retransmitter::waiting_size);
        self.queue.size() + DataSize::from_bytes(self.repair.waiting_size() + beside)
    }

    /// Packets of media and retransmissions that are queued, and the sum of the times that they have been.
    pub(super) fn queued_ages(&self, now: Timestamp) -> (usize, TimeDelta) {
        let (packets, ages) = self.queue.ages(now);
        let (beside, more) = self.retransmitter.as_deref().map_or((0, TimeDelta::ZERO), |r| r.ages(now));
        (packets + beside, ages + more)
    }

    /// Payload of the next packet: a retransmission, a repair packet right after the media packet that completed it, or
    /// media.
    #[inline(always)]
    pub(crate) fn next_packet(&self) -> Option<NextPacket> {
        if let Some(payload) = self.retransmitter.as_deref().and_then(Retransmitter::front_size) {
            return Some(NextPacket { kind: Kind::Retransmission, payload });
        }
        if let Some(packet) = self.repair.front().map(RepairPacket::size).filter(|_| !self.holds_repair()) {
            cold_path();
            return Some(NextPacket { kind: Kind::Repair, payload: packet });
        }
        let red = u64::from(self.is_in_red());
        self.queue.front().map(|p| NextPacket { kind: Kind::Media, payload: u64::from(p.payload) + red })
    }

    /// Whether media and repair packets are in RED, on one source.
    #[inline]
    pub(crate) fn is_in_red(&self) -> bool {
        self.identity.parity_format.red().is_some()
    }

    /// Whether repair packets wait for the end of a frame.
    fn holds_repair(&self) -> bool {
        self.is_in_red() && self.is_amid_a_frame()
    }

    /// Takes the packet being sent, of the kind returned by [`Self::next_packet`], or padding.
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
                c.padding_bytes += size.as_bytes();
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

    /// Whether some packets of a frame have been sent, and others are queued.
    pub(super) fn is_amid_a_frame(&self) -> bool {
        self.counters.packets > 0 && self.queue.front().is_some_and(|p| p.rtp_timestamp == self.last_rtp_timestamp)
    }

    /// The source has made a frame: queues it, and returns its size.
    #[inline]
    pub(super) fn enqueue(&mut self, frame: &Frame, now: Timestamp) -> DataSize {
        self.counters.frames += 1;
        let rtp_timestamp = frame.rtp_timestamp.wrapping_add(self.rtp_offset);
        let captured = frame.captured;
        if frame.kind == FrameKind::Key {
            cold_path();
            self.counters.key_frames += 1;
            self.picture.on_key_frame(frame.size, now);
            // Pictures change their size with a key frame alone.
            if let Some(pixels) = self.source.pixels() {
                self.repair.set_pixels(pixels);
            }
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
        } else if frame.size <= self.packetiser.max_payload {
            let payload = u16::try_from(frame.size.as_bytes()).unwrap_or(u16::MAX);
            self.queue.push(QueuedPacket { payload, marker: frame.marker, ..packet });
            frame.size
        } else {
            self.enqueue_parts(packet, frame);
            frame.size
        };
        self.counters.generated += added.as_bytes();
        added
    }

    /// Queues a frame in several packets; `packet` has their common fields.
    #[inline(never)]
    fn enqueue_parts(&mut self, packet: QueuedPacket, frame: &Frame) {
        for p in self.packetiser.split(frame.size) {
            let payload = u16::try_from(p.size.as_bytes()).unwrap_or(u16::MAX);
            self.queue.push(QueuedPacket { payload, marker: p.marker && frame.marker, ..packet });
        }
    }

    /// Queues a frame's payloads; `packet` has their common fields. Returns their size.
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

    /// Replaces the source of frames and sets its rate.
    pub(crate) fn set_source(&mut self, source: Source, rate: DataRate, now: Timestamp) {
        self.source = source;
        if let Some(r) = &mut self.resilience {
            // It gets the size of slices with the next report.
            r.slice_size = None;
        }
        self.forget_shape();
        self.set_rate(rate, now);
    }

    /// Discards all queued packets.
    pub(crate) fn discard_all(&mut self) {
        self.queue.discard_all();
        self.repair.discard_all();
        if let Some(r) = &mut self.retransmitter {
            r.discard_all();
        }
    }

    /// Leaves the picture due out if earlier ones wait too long: what is never coded breaks no reference. Returns whether it did.
    #[inline]
    pub(super) fn skip_picture(&mut self, now: Timestamp) -> bool {
        self.is_economical && self.skip_if_late(now)
    }
    #[inline(never)]
    fn skip_if_late(&mut self, now: Timestamp) -> bool {
        self.queue.oldest_age(now) > SKIP_AFTER && self.source.skip_picture(now)
    }

    /// Discards packets above the age limits of the controller and the application. Of a source that leaves pictures out instead
    /// only the application's applies.
    pub(super) fn discard_old(&mut self, limit: Option<TimeDelta>, now: Timestamp) {
        if let Some(limit) = limit
            && !self.is_economical
            && self.queue.oldest_age(now) > limit
        {
            cold_path();
            self.queue.discard_all();
        }
        if let Some(limit) = self.max_queue_age
            && self.queue.discard_before(now - limit)
        {
            cold_path();
            self.want_key_frame(now);
        }
    }
}

/// The next packet, and its payload in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextPacket {
    pub kind: Kind,
    pub payload: u64,
}

impl NextPacket {
    const PADDING: Self = Self { kind: Kind::Padding, payload: PADDING_SIZE as u64 };
    const LEAST_PADDING: Self = Self { kind: Kind::Padding, payload: LEAST_PADDING as u64 };

    /// Padding, as small as possible or as large.
    pub(super) const fn padding(is_little: bool) -> Self {
        if is_little { Self::LEAST_PADDING } else { Self::PADDING }
    }
}
