//! A member's call: its session, what it sends to the room, and what it gets.

use super::feed::{Coded, Feed};
use super::places::{Place, Places, Stream};
use super::uplink::Uplink;
use super::{Member, Membership, RoomView};
use crate::sdp::{Negotiated, Section, further_ssrc};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_cc::{FeedbackPlan, Limits, Sender as Controller, circuit_breaker, feedback_guard};
use weir_live::clock::Clock;
use weir_media::{Packetiser, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    EndConfig, EndPlan, Endpoint, HeaderExtensions, IncomingConfig, IncomingId, Label, NackConfig, OutgoingConfig,
    OutgoingId, OutgoingOptions, ParityFormat, PathConfig, ReceivingPath, RetransmissionConfig, SendingPath,
    StreamError, StreamIdentity,
};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

/// Longest RTP payload, as in calls, less the MID that streams carry at first.
const PAYLOAD: DataSize = DataSize::from_bytes(1_140);
/// Longest time in the queue of the pacer. What has waited longer is dropped, and a key frame is asked for: an encoding that fits has been
/// chosen by then.
const QUEUE: TimeDelta = TimeDelta::from_secs(1);
const AUDIO_QUEUE: TimeDelta = TimeDelta::from_millis(300);
/// Amount that a stream keeps for retransmission: three times libwebrtc's least second, as it does, and as much as three seconds of 1.5 Mbit/s.
const KEPT: TimeDelta = TimeDelta::from_secs(3);
const KEPT_SIZE: DataSize = DataSize::from_bytes(600_000);
/// Greatest rate of a stream of audio, where the session allocates for retransmission.
const MOST_AUDIO: DataRate = DataRate::from_kbps(128);
/// Interval at which what this member sends is published.
const INTERVAL: TimeDelta = TimeDelta::from_millis(250);
/// A member that is not heard for so long is not shown to the others: its browser has been ended, or its network is away. Browsers check
/// their connection every 2.5 s (libwebrtc) to 6 s (RFC 7675, section 5.1: 5 s, up to a fifth more).
const SILENCE: TimeDelta = TimeDelta::from_secs(8);
/// Sources of retransmissions that are remembered.
const MAX_REPAIRED: usize = 8;
/// A payload type that no offer can give to other formats.
const UNUSED: u8 = 1;

/// Configuration of a member's call.
pub(crate) struct MemberCallPlan {
    pub(crate) membership: Membership,
}

/// Configuration of a session.
pub(crate) struct Session<'a> {
    pub(crate) negotiated: &'a Negotiated,
    pub(crate) limits: Limits,
    /// Whether the controller adapts.
    pub(crate) adapts: bool,
    pub(crate) ssrc: u32,
    pub(crate) cname: &'a str,
    pub(crate) seed: u64,
    pub(crate) controller: Controller,
    pub(crate) clock: Clock,
    pub(crate) header_overhead: u32,
}

/// A member while its call runs.
pub(crate) struct MemberCall {
    membership: Membership,
    others: Vec<Arc<Member>>,
    changes: Option<u64>,
    inbox: VecDeque<(u64, Arc<Coded>)>,
    uplink: Uplink,
    places: Places,
    published: Timestamp,
    overflows: u64,
    /// Payload type and header extension of retransmissions of encodings, and their sources by those of the media.
    rtx: Option<(u8, u8)>,
    encodings: Vec<(Label, IncomingId)>,
    repaired: Vec<(u32, u32)>,
}

/// A section with its source at this end.
struct Numbered {
    section: Section,
    ssrc: u32,
}

impl Numbered {
    fn outgoing(&self, with_mid: bool) -> StreamIdentity {
        let s = &self.section;
        StreamIdentity {
            ssrc: self.ssrc,
            payload_type: s.payload_type,
            clock_rate: s.media.clock_hz(),
            parity_payload_type: UNUSED,
            parity_format: ParityFormat::default(),
            reed_solomon_payload_type: UNUSED,
            rlc_payload_type: UNUSED,
            retransmission_payload_type: s.rtx.unwrap_or(UNUSED),
            repair_ssrc: None,
            retransmission_ssrc: None,
            mid: with_mid.then_some(s.mid),
            rid: None,
        }
    }
    fn repairs(&self) -> bool {
        self.section.nack && self.section.rtx.is_some()
    }
    fn retransmission(&self) -> Option<RetransmissionConfig> {
        let config = RetransmissionConfig { kept: KEPT, max_size: KEPT_SIZE, ..RetransmissionConfig::default() };
        self.repairs().then_some(config)
    }
    fn demand(&self) -> Demand {
        match self.section.media {
            MediaKind::Audio => Demand { most: MOST_AUDIO, media: MediaKind::Audio, ..Demand::default() },
            MediaKind::Video => Demand::default(),
        }
    }
    fn queue(&self) -> TimeDelta {
        if self.section.media == MediaKind::Audio { AUDIO_QUEUE } else { QUEUE }
    }
}

impl MemberCall {
    /// Begins the session of a member whose keys are there.
    ///
    /// # Errors
    /// The negotiated sources of two streams are the same.
    pub(crate) fn begin(plan: MemberCallPlan, s: Session<'_>) -> Result<(Endpoint, Self), StreamError> {
        let n = s.negotiated;
        let now = s.clock.now();
        let further = n.further.iter().enumerate().map(|(k, f)| (f.clone(), further_ssrc(s.ssrc, k)));
        let all: Vec<Numbered> = std::iter::once((n.first(), s.ssrc))
            .chain(further)
            .map(|(section, ssrc)| Numbered { section, ssrc })
            .collect();
        let codec = n.codec;
        let with_mid = n.mid_extension.is_some();
        let sent: Vec<&Numbered> = all.iter().filter(|x| x.section.direction.sends).collect();
        let received = |kind| all.iter().find(|x| x.section.direction.receives && x.section.media == kind);
        let (camera, microphone) = (received(MediaKind::Video), received(MediaKind::Audio));
        let rid_extension = n.rid_extensions.0;
        let mut incoming: Vec<(StreamIdentity, Option<Label>)> = Vec::new();
        if let Some(camera) = camera {
            let (ssrc, retransmission_ssrc) = camera.section.sources;
            let own = StreamIdentity { retransmission_ssrc, ssrc: ssrc.unwrap_or(0), ..camera.outgoing(with_mid) };
            let rids = camera.section.rids.iter().filter(|_| rid_extension.is_some());
            incoming.extend(rids.map(|rid| {
                (StreamIdentity { ssrc: 0, retransmission_ssrc: None, rid: Some(*rid), ..own }, Some(*rid))
            }));
            if incoming.is_empty() {
                incoming.push((own, None));
            }
        }
        let audio_in =
            microphone.map(|m| StreamIdentity { ssrc: m.section.sources.0.unwrap_or(0), ..m.outgoing(with_mid) });
        let first_in = incoming.first().map(|i| i.0).or(audio_in);
        let config = EndConfig {
            ssrc: sent.first().map_or(all[0].ssrc, |x| x.ssrc),
            remote_ssrc: first_in.map_or(0, |i| i.ssrc),
            cname: s.cname.to_owned(),
            seed: s.seed,
            session_bandwidth: s.limits.ceiling,
            extensions: HeaderExtensions {
                mid_id: n.mid_extension.unwrap_or(9),
                rid_id: rid_extension.unwrap_or(10),
                transport_sequence_id: n.transport_sequence.unwrap_or(1),
                transport_sequence: n.transport_sequence.is_some(),
                ..HeaderExtensions::default()
            },
            ntp_epoch: s.clock.ntp_epoch(),
            header_overhead: s.header_overhead,
            ..EndConfig::default()
        };
        let mut feeds = Vec::new();
        let mut source = |x: &Numbered| {
            let (feed, pusher) = Feed::new((x.section.media == MediaKind::Video).then_some(codec));
            feeds.push(pusher);
            Source::Custom(Box::new(feed))
        };
        let mut end = EndPlan::new(config);
        for x in &sent {
            let options = OutgoingOptions {
                packetiser: Packetiser { max_payload: PAYLOAD, ..Packetiser::default() },
                retransmission: x.retransmission(),
                max_queue_age: Some(x.queue()),
                ..OutgoingOptions::default()
            };
            end.outgoing.push(OutgoingConfig::new(x.outgoing(with_mid), source(x), x.demand()).with(options));
        }
        let nack = camera.filter(|c| c.repairs()).map(|_| NackConfig::default());
        for (identity, _) in &incoming {
            end.incoming.push(IncomingConfig { nack, ..IncomingConfig::new(*identity, MediaKind::Video) });
        }
        end.incoming.extend(audio_in.map(|identity| IncomingConfig::new(identity, MediaKind::Audio)));
        let sending = SendingPath {
            per_packet_feedback: true,
            circuit_breaker: Some(circuit_breaker::Config::default()),
            feedback_guard: s.adapts.then(|| feedback_guard::Config::to_floor(s.limits.floor)),
            ..SendingPath::new(s.controller)
        };
        let feedback = n.reports.map(|format| FeedbackPlan { format, ..FeedbackPlan::LIBWEBRTC });
        let receiving = ReceivingPath { feedback, ..ReceivingPath::default() };
        let path = PathConfig { sending: Some(sending), receiving: Some(receiving), number: None };
        let mut endpoint = end.on(path).make(now)?;
        let ids: Vec<OutgoingId> = endpoint.stats().outgoing_ids().collect();
        let mut encodings: Vec<IncomingId> = endpoint.stats().incoming_ids().collect();
        let audio_id = audio_in.and_then(|_| encodings.pop());
        let streams = sent.iter().zip(ids).zip(feeds).map(|((x, id), feed)| {
            let (mid, clock) = (x.section.mid, x.section.media.clock_hz());
            (x.section.media, Stream { id, mid, feed, clock })
        });
        let (video, audio): (Vec<_>, Vec<_>) = streams.partition(|(media, _)| *media == MediaKind::Video);
        let (mut video, mut audio) = (video.into_iter().map(|v| v.1), audio.into_iter().map(|a| a.1));
        let places = std::iter::from_fn(|| {
            let place = (video.next(), audio.next());
            (place.0.is_some() || place.1.is_some()).then(|| Place::new(place.0, place.1))
        });
        let places = Places::new(places.collect(), &mut endpoint, now);
        let uplink = Uplink::new(codec, &encodings, audio_id, &mut endpoint);
        let named = incoming.iter().zip(&encodings).filter_map(|((_, rid), id)| Some(((*rid)?, *id)));
        let rtx = camera.and_then(|c| c.section.rtx).zip(n.rid_extensions.1);
        plan.membership.enter();
        let member_call = Self {
            membership: plan.membership,
            others: Vec::new(),
            changes: None,
            inbox: VecDeque::new(),
            uplink,
            places,
            published: Timestamp::ZERO,
            overflows: 0,
            rtx,
            encodings: named.collect(),
            repaired: Vec::new(),
        };
        Ok((endpoint, member_call))
    }

    /// Gives a retransmission of an encoding the source that the session expects: its sender names the encoding in a header extension (RFC 8852,
    /// section 3), since the description has no sources of encodings.
    pub(crate) fn prepare(&mut self, bytes: &mut [u8], endpoint: &mut Endpoint) {
        let Some((payload_type, extension)) = self.rtx else { return };
        let Ok(view) = PacketView::parse_header(bytes) else { return };
        if view.payload_type() != payload_type || self.encodings.is_empty() {
            return;
        }
        let ssrc = view.ssrc();
        let known = self.repaired.iter().find(|r| r.0 == ssrc).map(|r| r.1);
        let media = known.or_else(|| {
            let rid = view.extension(extension)?;
            let id = self.encodings.iter().find(|(r, _)| r.as_bytes() == rid)?.1;
            let media = endpoint.incoming(id)?.identity().ssrc;
            if media != 0 && self.repaired.len() < MAX_REPAIRED {
                self.repaired.push((ssrc, media));
            }
            (media != 0).then_some(media)
        });
        if let (Some(media), Some(place)) = (media, bytes.get_mut(8..12)) {
            place.copy_from_slice(&(media ^ (1 << 30)).to_be_bytes());
        }
    }

    /// The session has taken a datagram.
    pub(crate) fn on_datagram(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let (membership, others) = (&self.membership, &self.others);
        self.uplink.on_datagram(now, endpoint, |frame| membership.publish(others, frame));
    }

    /// When the other end was last heard: media, reports or checks.
    pub(crate) fn on_heard(&self, last: Timestamp, now: Timestamp) {
        self.membership.set_silent(now >= last + SILENCE);
    }

    /// Before the session's turn.
    pub(crate) fn on_turn(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        let changes = self.membership.changes();
        if self.changes != Some(changes) {
            self.changes = Some(changes);
            self.others = self.membership.others();
            self.places.assign(&self.others, endpoint, now);
        }
        if self.membership.member.take(&mut self.inbox) {
            self.overflows += 1;
            self.places.on_overflow();
        }
        while let Some((from, frame)) = self.inbox.pop_front() {
            self.places.take(from, &frame, now);
        }
        let wanted = self.membership.member.key_wanted.swap(0, Ordering::Relaxed);
        self.uplink.ask(wanted, now, endpoint);
        if now >= self.published + INTERVAL {
            self.published = now;
            let (membership, others) = (&self.membership, &self.others);
            self.uplink.on_timeout(now, endpoint, |frame| membership.publish(others, frame));
            let member = &self.membership.member;
            *super::lock(&member.encodings) = self.uplink.encodings(now);
            member.audio_bps.store(self.uplink.audio(now).0 as u64, Ordering::Relaxed);
        }
        self.places.on_turn(endpoint, now);
    }

    pub(crate) fn poll_timeout(&self) -> Timestamp {
        self.places.poll_timeout()
    }

    pub(crate) fn view(&mut self, now: Timestamp) -> RoomView {
        RoomView {
            member: self.membership.member.name.clone(),
            members: 1 + self.others.len(),
            encodings: self.uplink.encodings(now),
            audio_packets: self.uplink.audio(now).1,
            frames_lost: self.uplink.lost(),
            overflows: self.overflows,
            key_frames_requested: self.uplink.key_frames_requested,
            places: self.places.views(),
        }
    }
}
