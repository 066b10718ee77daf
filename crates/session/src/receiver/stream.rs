//! State of an incoming stream: statistics, playout, repair, retransmission and pictures.

mod reports;

use super::lips::SenderClock;
use super::path::ReceivePath;
use super::planned::PlannedPlayout;
use super::resent::ResentStream;
use super::skewed::Skewed;
use crate::allocation::MediaKind;
use crate::arrivals::ArrivalLog;
use crate::config::IncomingConfig;
use crate::content::ContentStore;
use crate::datagram::Kind;
use crate::frames::FrameLedger;
use crate::identity::StreamIdentity;
use crate::ids::IncomingId;
use crate::interval::IntervalLog;
use crate::nack::{NackConfig, Nacker};
use crate::observer::MaybeObserver;
use crate::picture::PictureRequests;
use crate::received_packet::{Jump, ReceivedPacket};
use crate::recovery::{RepairReceiver, RepairReception};
use crate::resilience::ReceiveResilience;
use crate::rtcp::Heard;
use crate::session_params::{Profile, SessionParams, XrBlocks};
use crate::statistics::{ReceiveStatistics, Sequenced};
use crate::timers::earliest;
use std::collections::VecDeque;
use weir_cc::{OneWayDelayMeter, ReportPlan};
use weir_media::audio::{AudioDelay, AudioPlayout, AudioSlot};
use weir_media::{AdaptivePlayout, Playout, PlayoutEvent};
use weir_units::cold_path;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Counters of the receiving direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiveCounters {
    /// RTP packets received and counted on the media stream.
    pub packets: u64,
    /// Their RTP bytes: headers, payload and padding.
    pub bytes: u64,
    /// Copies of packets that had been received before, which count nowhere else.
    pub copies: u64,
    /// Packets not accepted because of an unknown source or an unexplained jump of sequence numbers.
    pub invalid: u64,
    /// Audio payloads that do not parse.
    pub undecodable: u64,
}

impl core::ops::AddAssign for ReceiveCounters {
    fn add_assign(&mut self, o: Self) {
        self.packets += o.packets;
        self.bytes += o.bytes;
        self.copies += o.copies;
        self.invalid += o.invalid;
        self.undecodable += o.undecodable;
    }
}

/// How long packets wait for repair without a playout deadline.
pub(super) const DEFAULT_DEADLINE: TimeDelta = TimeDelta::from_secs(1);

/// Playout of a stream as its configuration says. Only what is played to somebody follows lateness that lasts, if capture times are
/// known: otherwise what is late by them is a result.
#[derive(Clone, Copy)]
struct PlayoutPlan {
    media: MediaKind,
    deadline: Option<TimeDelta>,
    adaptive: Option<AdaptivePlayout>,
    follows: bool,
}

impl PlayoutPlan {
    fn playout(self, skewed: Option<&Skewed>) -> Option<Box<Playout>> {
        let is_video = self.media != MediaKind::Audio;
        let playout = skewed
            .map(Skewed::playout)
            .or(self.adaptive.map(Playout::adaptive))
            .or(self.deadline.map(Playout::new))
            .filter(|_| is_video);
        playout.map(|mut playout| {
            if self.follows {
                playout.follow_lateness();
            }
            Box::new(playout)
        })
    }

    fn audio(self) -> Option<Box<AudioPlayout>> {
        let delay = self.adaptive.map(|a| AudioDelay::up_to(a.max)).or(self.deadline.map(AudioDelay::fixed))?;
        (self.media == MediaKind::Audio).then(|| {
            let mut audio = AudioPlayout::new(delay);
            if self.follows {
                audio.follow_lateness();
            }
            Box::new(audio)
        })
    }
}

/// The last sender reports received from a stream's sources.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderReports {
    pub media: Option<Heard>,
    pub repair: Option<Heard>,
    pub retransmission: Option<Heard>,
}

// Field order: data used by each packet is adjacent, so that few cache lines are touched with many calls.
#[repr(C)]
pub(crate) struct IncomingStream {
    pub identity: StreamIdentity,
    pub id: IncomingId,
    /// Whether it is the only stream: see [`ReceivePath::joint_number`].
    pub(super) is_single: bool,
    pub media: MediaKind,
    pub stats: ReceiveStatistics,
    pub nack: Option<Box<Nacker>>,
    /// Packets since the last report, and their delay, if reports describe them.
    pub interval: Option<Box<IntervalLog>>,
    pub playout: Option<Box<Playout>>,
    /// Audio playout, which replaces [`Self::playout`].
    pub audio: Option<Box<AudioPlayout>>,
    /// Received content of frames waiting for playout, if the application wants it.
    pub content: Option<Box<ContentStore>>,
    pub one_way_delay: Option<Box<OneWayDelayMeter>>,
    pub(super) frames: Option<Box<FrameLedger>>,
    pub repair: Option<Box<RepairReceiver>>,
    pub resilience: Option<Box<ReceiveResilience>>,
    /// The retransmission stream, once it has begun.
    pub resent: Option<Box<ResentStream>>,
    /// Arrivals by the stream's own numbers, if feedback uses them.
    pub log: Option<ArrivalLog>,
    /// RTP timestamp of the newest packet, and when it arrived.
    pub(super) newest: (u32, Timestamp),
    pub source: super::source::Source,
    pub counters: ReceiveCounters,
    pub picture: PictureRequests,
    /// Offset added to sequence numbers, so that the controller does not see a jump as loss, and the next packet's
    /// number after a jump.
    pub(super) ahead: u64,
    pub(super) resume_at: Option<u64>,
    /// The number of this stream's newest packet passed to the controller's receiver half.
    pub(super) newest_reported: Option<u64>,
    pub(super) reception: RepairReception,
    pub(super) deadline: Option<TimeDelta>,
    pub(super) adaptive: Option<AdaptivePlayout>,
    /// Playout by the skew of paths, instead of [`Self::adaptive`].
    pub(super) skewed: Option<Box<Skewed>>,
    /// Playout by a joint plan, within [`Self::adaptive`].
    pub(crate) planned: Option<Box<PlannedPlayout>>,
    pub(super) xr: XrBlocks,
    /// Playout events not yet polled.
    pub(super) events: VecDeque<PlayoutEvent>,
    /// Audio slots not yet polled, if the application wants them.
    pub(super) keeps_slots: bool,
    pub(super) slots: VecDeque<AudioSlot>,
    pub heard: SenderReports,
    /// The other end's clock by the stream's sender reports.
    pub clock: SenderClock,
}

/// State that a stream shares with the other streams of its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared<'a> {
    pub params: &'a SessionParams,
    pub session_bandwidth: DataRate,
}

impl IncomingStream {
    pub(crate) fn new(
        id: IncomingId,
        config: IncomingConfig,
        path: &ReceivePath,
        shared: Shared<'_>,
        now: Timestamp,
    ) -> Self {
        let clock_rate = config.identity.clock_rate;
        let skewed = config.skew_playout.filter(|_| config.media != MediaKind::Audio);
        let skewed = skewed.map(|c| Box::new(Skewed::new(c, clock_rate)));
        let joint = config.joint.filter(|_| skewed.is_none() && config.media != MediaKind::Audio);
        let adaptive = config.skew_playout.map(|c| AdaptivePlayout::up_to(c.max));
        let adaptive = adaptive.or(joint.map(PlannedPlayout::playout)).or(config.adaptive_playout);
        let deadline = adaptive.map(|a| a.max).or(config.playout_deadline);
        let plan = PlayoutPlan { media: config.media, deadline, adaptive, follows: config.content };
        let mut r = Self {
            id,
            identity: config.identity,
            media: config.media,
            stats: ReceiveStatistics::new(clock_rate),
            log: path.stream_log(),
            reception: config.repair,
            deadline,
            adaptive,
            repair: None,
            nack: config
                .nack
                .or(config.resilience.map(|_| NackConfig::default()))
                .map(|c| Box::new(Nacker::new(c, shared.session_bandwidth, now))),
            resilience: config.resilience.map(|c| Box::new(ReceiveResilience::new(c))),
            resent: None,
            frames: deadline.filter(|_| config.media != MediaKind::Audio).map(|d| Box::new(FrameLedger::new(d))),
            xr: XrBlocks::default(),
            interval: None,
            one_way_delay: None,
            events: VecDeque::new(),
            playout: plan.playout(skewed.as_deref()),
            audio: plan.audio(),
            skewed,
            planned: joint.map(|bounds| Box::new(PlannedPlayout::new(bounds))),
            content: deadline.filter(|_| config.content && config.media != MediaKind::Audio).map(|_| Box::default()),
            keeps_slots: config.content,
            slots: VecDeque::new(),
            counters: ReceiveCounters::default(),
            ahead: 0,
            resume_at: None,
            newest: (0, now),
            newest_reported: None,
            picture: PictureRequests::new(config.picture, now),
            heard: SenderReports::default(),
            clock: SenderClock::default(),
            source: super::source::Source::new(now),
            is_single: true,
        };
        if r.reception == RepairReception::Always {
            r.begin_repair(path);
        }
        if r.nack.is_some() {
            r.begin_ledger();
        }
        r.set_params(shared.params, path.reports.as_ref());
        r.follow_resilience();
        r
    }

    /// The stream's current configuration.
    pub(super) fn config(&self) -> IncomingConfig {
        IncomingConfig {
            identity: self.identity,
            media: self.media,
            repair: self.reception,
            nack: self.nack.as_deref().map(Nacker::config),
            resilience: None,
            playout_deadline: self.deadline,
            adaptive_playout: self.adaptive,
            skew_playout: self.skewed.as_ref().map(|s| s.config),
            joint: self.planned.as_ref().map(|p| p.bounds()),
            content: self.content.is_some() || self.keeps_slots,
            picture: self.picture.config(),
        }
    }
    pub(super) fn restart_playout(&mut self) {
        if let Some(skewed) = &mut self.skewed {
            skewed.restart();
        }
        if let Some(planned) = &mut self.planned {
            **planned = PlannedPlayout::new(planned.bounds());
        }
        let plan = PlayoutPlan {
            media: self.media,
            deadline: self.deadline,
            adaptive: self.adaptive,
            follows: self.content.is_some() || self.keeps_slots,
        };
        self.playout = plan.playout(self.skewed.as_deref());
        self.audio = plan.audio();
    }
    /// Applies the session's parameters.
    pub(crate) fn set_params(&mut self, params: &SessionParams, reports: Option<&ReportPlan>) {
        self.xr = params.xr.unwrap_or(XrBlocks::of_plan(reports));
        let follows = self.xr.has_traces() || reports.is_some();
        self.interval = if follows { self.interval.take().or_else(|| Some(Box::default())) } else { None };
        let clock_rate = self.identity.clock_rate;
        let meter = self.one_way_delay.take().or_else(|| Some(Box::new(OneWayDelayMeter::new(clock_rate))));
        self.one_way_delay = meter.filter(|_| self.xr.one_way_delay);
        if let Some(nack) = &mut self.nack {
            nack.allow(params.profile == Profile::Avpf);
            nack.behave_as(params.receiver);
        }
        self.picture.behave_as(params.receiver);
        self.stats.set_max_dropout(params.receiver.max_dropout());
    }

    /// Takes a packet of the media stream.
    pub(crate) fn on_rtp(&mut self, path: &mut ReceivePath, packet: &ReceivedPacket<'_>, observer: &mut MaybeObserver) {
        let (now, rtp_timestamp, ecn) = (packet.now, packet.rtp.timestamp(), packet.datagram.ecn);
        let before = self.stats.highest();
        let Sequenced::Valid(sequence) = self.stats.on_sequence(packet.rtp.sequence()) else {
            cold_path();
            self.counters.invalid += 1;
            path.on_rtp(packet.path_sequence, packet.size, ecn, now);
            self.schedule_feedback(path, now);
            return;
        };
        if self.stats.take_jump() {
            cold_path();
            self.on_jump(Jump { before, sequence }, rtp_timestamp, now);
        }
        self.newest = (rtp_timestamp, now);
        self.stats.on_arrival(now, rtp_timestamp);
        if !self.is_single {
            cold_path();
            self.clock.on_packet(rtp_timestamp, self.identity.clock_rate, now);
        }
        let is_copy = self.stats.is_copy();
        if is_copy {
            self.counters.copies += 1;
        } else {
            self.counters.packets += 1;
            self.counters.bytes += packet.size.as_bytes();
        }
        // A mark on a copy counts too, where feedback says so.
        path.on_rtp(packet.path_sequence, if is_copy { DataSize::ZERO } else { packet.size }, ecn, now);
        if let Some(log) = &mut self.log {
            log.on_packet(sequence, now, ecn);
        } else if packet.path_sequence.is_none() && self.is_single && path.subflow.is_none() {
            // With one stream, its numbers are the path's.
            path.log_packet(sequence, ecn, now);
        }
        self.schedule_feedback(path, now);
        self.follow_skew(path.id, packet);
        self.follow_plan(sequence, packet);
        let discarded = self.play(path, sequence, packet);
        if discarded && let Some(subflow) = &mut path.subflow {
            cold_path();
            subflow.on_discarded(packet.payload_size());
        }
        if let Some(interval) = &mut self.interval {
            cold_path();
            interval.on_packet(sequence, discarded);
        }
        if let Some(meter) = self.one_way_delay.as_mut().filter(|_| packet.has_media() && !is_copy) {
            cold_path();
            meter.on_packet(now, rtp_timestamp);
        }
        if let Some(frames) = &mut self.frames {
            cold_path();
            frames.on_packet(now, sequence, packet.frame(), discarded);
        }
        if let Some(nack) = &mut self.nack {
            cold_path();
            if path.subflow.is_some() {
                nack.on_path(now, path.id.index(), sequence);
            }
            self.look_for_gaps(sequence, packet.part(), false, now);
        }
        if let Some(repair) = &mut self.repair {
            cold_path();
            if packet.kind != Kind::Repair {
                repair.on_media(now, sequence, packet.datagram.bytes, packet.datagram.payload);
            }
            self.recover(path, observer, now);
        }
        // Each path has copies of its own.
        let is_copy = path.subflow.as_ref().map_or(is_copy, |s| s.stats.is_copy());
        if path.controller.is_some() && !is_copy {
            if let Some(next) = self.resume_at.take() {
                cold_path();
                self.ahead = next.wrapping_sub(sequence);
            }
            let sequence = sequence.wrapping_add(self.ahead);
            let number = match &path.subflow {
                Some(subflow) => subflow.number(),
                None if self.is_single => sequence,
                None => {
                    cold_path();
                    self.joint_number(path, sequence)
                }
            };
            path.report_to_controller(number, packet);
        }
    }

    /// The path's number for a packet, if several streams use the path.
    fn joint_number(&mut self, path: &mut ReceivePath, sequence: u64) -> u64 {
        let step = self.newest_reported.map_or(1, |newest| sequence.wrapping_sub(newest) as i64);
        self.newest_reported = self.newest_reported.max(Some(sequence));
        path.joint_number(step)
    }

    /// Packets of this stream received since the last feedback, if they are logged here.
    pub(crate) fn news(&self) -> u32 {
        let repair = self.repair.as_ref().and_then(|r| r.log.as_ref()).map_or(0, ArrivalLog::news);
        let resent = self.resent.as_ref().and_then(|r| r.log.as_ref()).map_or(0, ArrivalLog::news);
        self.log.as_ref().map_or(0, ArrivalLog::news) + repair + resent
    }

    /// Schedules feedback if this stream has received packets.
    #[inline]
    pub(super) fn schedule_feedback(&self, path: &mut ReceivePath, now: Timestamp) {
        if path.wants_schedule() && self.news() + path.log.as_ref().map_or(0, ArrivalLog::news) > 0 {
            path.schedule_feedback(now);
        }
    }

    /// Whether a loss or discard since the last report warrants an early report.
    pub(crate) fn is_urgent(&self) -> bool {
        self.interval.as_deref().is_some_and(IntervalLog::has_news)
    }

    /// Whether the stream needs the round-trip time.
    pub(crate) fn wants_round_trip(&self) -> bool {
        self.xr.reference_time || self.nack.is_some()
    }

    pub(crate) fn on_rtt(&mut self, rtt: TimeDelta) {
        if let Some(meter) = &mut self.one_way_delay {
            meter.on_rtt(rtt);
        }
        if let Some(nack) = &mut self.nack {
            nack.on_rtt(rtt);
        }
        if let Some(planned) = &mut self.planned {
            planned.on_rtt(rtt);
        }
        if let Some(r) = &mut self.resilience {
            r.on_rtt(rtt);
        }
    }

    /// Whether a packet of this stream sets no deadline and requests nothing, beside feedback by the path.
    #[inline]
    pub(crate) const fn is_only_counted(&self, path: &ReceivePath) -> bool {
        self.nack.is_none()
            && self.audio.is_none()
            && self.content.is_none()
            && self.interval.is_none()
            && self.resilience.is_none()
            && !self.picture.is_pending()
            && path.controller.is_none()
    }

    #[inline]
    pub(crate) fn poll_timeout(&self, has_controller: bool) -> Timestamp {
        let mut at = Timestamp::MAX;
        if let Some(nack) = &self.nack {
            cold_path();
            earliest(&mut at, nack.poll_timeout());
        }
        if let Some(audio) = &self.audio {
            cold_path();
            earliest(&mut at, audio.next_event());
        }
        if has_controller || self.content.is_some() {
            earliest(&mut at, self.playout.as_deref().and_then(Playout::next_event));
        }
        at
    }
}
