//! The data sender (RFC 5348, section 4), which also derives the receiver's part from feedback.

use super::config::Config;
use super::loss_events::LossDetector;
use crate::controller::{Controller, Coupled, Limits, Target, TimeoutReason};
use crate::cue::{Cue, SentPacket, TransportFeedback};
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tcp::friendly::{AllowedRate, Feedback, LossIntervals, MAX_RATE, ReceiveRate, Terms};
use crate::tcp::throughput::TcpFlow;
use crate::tunable::SetupError;
use weir_units::{DataRate, DataSize, Gain, TimeDelta, Timestamp};

/// Bytes per packet by which the pacer may exceed X, which excludes headers (RFC 5348, section 3.1): RTP's header with
/// extensions, and as much again, so that the queue behind the pacer drains.
const PACING_ROOM: f64 = 40.0;
/// Round-trip time assumed before the first sample, for loss events only.
const UNKNOWN_RTT: TimeDelta = TimeDelta::from_millis(100);
/// Bounds of a round-trip time sample.
const MIN_RTT: TimeDelta = TimeDelta::from_micros(100);
const MAX_RTT: TimeDelta = TimeDelta::from_secs(60);
/// Weight of a packet in the mean size: about the last 32 packets (RFC 5348, section 4.1, does not specify the
/// average).
const SIZE_WEIGHT: f64 = 1.0 / 32.0;
/// An interval is data-limited if less than this share of the allowed bytes was sent. It replaces the heuristic of
/// RFC 5348, section 8.2.1, which checks for times at which all credit is used up and so depends on the pacer.
const NOT_LIMITED: f64 = 0.9;

/// The round-trip time.
#[derive(Clone, Copy, Debug)]
struct Rtt {
    /// R.
    mean: TimeDelta,
    /// The square root of the last sample, and R_sqmean, both of seconds.
    sample_root: f64,
    root_mean: f64,
}

/// TFRC's sender.
#[derive(Clone, Debug)]
pub struct Tfrc {
    config: Config,
    limits: Limits,
    /// X, and X_inst in bit/s.
    rate: AllowedRate,
    x_inst: f64,
    /// s in bytes.
    segment: f64,
    mss: DataSize,
    rtt: Option<Rtt>,
    last_sample: Option<TimeDelta>,
    detector: LossDetector,
    intervals: LossIntervals,
    new_event: bool,
    receive: ReceiveRate,
    receive_rate: DataRate,
    max_receive_rate: DataRate,
    updated_at: Timestamp,
    /// The span over which X_recv is measured: R, or the time between updates if feedback is less frequent.
    span: TimeDelta,
    sent_since_update: u64,
    data_limited: bool,
    nofeedback_at: Option<Timestamp>,
    /// Whether nothing was sent since the nofeedback timer was set.
    idle: bool,
}

impl Tfrc {
    /// A sender at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("tfrc")?;
        let x = start.rate.as_bps_f64().min(MAX_RATE);
        Ok(Self {
            config,
            limits: start.limits,
            rate: AllowedRate::new(x, start.now),
            x_inst: x,
            segment: config.mss.as_bytes() as f64,
            mss: config.mss,
            rtt: None,
            last_sample: None,
            detector: LossDetector::new(),
            intervals: LossIntervals::new(),
            new_event: false,
            receive: ReceiveRate::new(),
            receive_rate: DataRate::ZERO,
            max_receive_rate: DataRate::ZERO,
            updated_at: start.now,
            span: UNKNOWN_RTT,
            sent_since_update: 0,
            data_limited: false,
            nofeedback_at: None,
            idle: true,
        })
    }

    fn r(&self) -> TimeDelta {
        self.rtt.map_or(UNKNOWN_RTT, |r| r.mean)
    }

    /// The TCP flow of the throughput equation.
    fn tcp(&self) -> TcpFlow {
        let segment = DataSize::from_bytes((self.segment + 0.5) as u64);
        let flow = TcpFlow::new(segment, self.r());
        TcpFlow { rto: flow.rto.max(self.config.min_rto), packets_per_ack: self.config.packets_per_ack, ..flow }
    }

    /// s / t_mbi.
    fn least(&self) -> f64 {
        self.segment * 8.0 / self.config.t_mbi.as_secs_f64()
    }

    /// initial_rate (RFC 5348, section 4.2).
    fn initial_rate(&self) -> f64 {
        let mss = self.mss.as_bytes();
        let window = (4 * mss).min((2 * mss).max(4_380));
        window as f64 * 8.0 / self.r().as_secs_f64()
    }

    fn terms(&self) -> Terms {
        Terms { tcp: self.tcp(), rtt: self.r(), initial_rate: self.initial_rate(), least: self.least() }
    }

    fn on_feedback(&mut self, feedback: &TransportFeedback<'_>) {
        if feedback.packets.is_empty() {
            return;
        }
        let now = feedback.now;
        if let Some(sample) = feedback.rtt {
            self.last_sample = Some(sample.max(MIN_RTT).min(MAX_RTT));
        }
        let first = self.rtt.is_none() && self.last_sample.is_some();
        if first {
            self.on_first_rtt(now);
        }
        self.take_in(feedback);
        if first {
            self.updated_at = now;
        } else if self.rtt.is_some() && (self.new_event || now - self.updated_at >= self.r()) {
            self.update(now);
        }
        self.restart_nofeedback_timer(now);
    }

    fn on_first_rtt(&mut self, now: Timestamp) {
        self.sample_rtt();
        self.span = self.r();
        self.rate.start(now, self.initial_rate());
        self.x_inst = self.rate.get();
    }

    /// The receiver's part: arrivals, losses and marks.
    fn take_in(&mut self, feedback: &TransportFeedback<'_>) {
        let (rtt, span, tcp, max) = (self.r(), self.span, self.tcp(), self.max_receive_rate);
        let Self { config, detector, intervals, receive, new_event, .. } = self;
        for p in feedback.packets {
            if let Some(at) = p.arrival {
                receive.on_arrival(at, p.size, span);
            }
            detector.on_packet(p, rtt, config.ndupack, |sequence| {
                *new_event = true;
                let before_all = intervals.is_empty().then(|| tcp.first_loss_interval(max.max(receive.get(span))));
                intervals.on_event(sequence, before_all, config.discounting);
            });
        }
    }

    fn sample_rtt(&mut self) {
        let Some(sample) = self.last_sample else { return };
        let sample_root = libm::sqrt(sample.as_secs_f64());
        let (q, q2) = (self.config.q, self.config.q2);
        self.rtt = Some(match self.rtt {
            None => Rtt { mean: sample, sample_root, root_mean: sample_root },
            Some(r) => Rtt {
                mean: r.mean.mul_f64(q) + sample.mul_f64(1.0 - q),
                sample_root,
                root_mean: q2 * r.root_mean + (1.0 - q2) * sample_root,
            },
        });
    }

    /// Handles the equivalent of a feedback packet (section 4.3), once per round-trip time or at a new loss event.
    fn update(&mut self, now: Timestamp) {
        self.sample_rtt();
        let allowed = self.x_inst * now.saturating_since(self.updated_at).as_secs_f64();
        let sent = self.sent_since_update as f64 * 8.0 + self.segment * 8.0;
        // Packets reported now were sent in the interval before this one.
        let data_limited = std::mem::replace(&mut self.data_limited, sent < NOT_LIMITED * allowed);
        self.span = self.r().max(now.saturating_since(self.updated_at)).min(MAX_RTT);
        self.receive_rate = self.receive.get(self.span);
        self.max_receive_rate = self.max_receive_rate.max(self.receive_rate);
        let feedback = Feedback {
            receive_rate: self.receive_rate.as_bps_f64(),
            loss_event_rate: self.intervals.loss_event_rate(self.detector.highest(), self.config.discounting),
            new_event: self.new_event,
            data_limited,
        };
        self.rate.on_feedback(now, &feedback, &self.terms());
        self.damp();
        (self.updated_at, self.sent_since_update, self.new_event) = (now, 0, false);
    }

    /// X_inst (RFC 5348, section 4.5).
    fn damp(&mut self) {
        let factor = self.rtt.filter(|_| self.config.damping).map_or(1.0, |r| r.root_mean / r.sample_root);
        self.x_inst = (self.rate.get() * factor).max(self.least()).min(MAX_RATE);
    }

    fn restart_nofeedback_timer(&mut self, now: Timestamp) {
        let packets = TimeDelta::from_secs_f64(2.0 * self.segment * 8.0 / self.rate.get().max(1.0));
        let least = match self.rtt {
            Some(r) => (r.mean * 4).max(self.config.min_nofeedback),
            None => self.config.initial_nofeedback,
        };
        self.nofeedback_at = Some(now + least.max(packets.min(self.config.t_mbi * 2)));
        self.idle = true;
    }

    /// Expiration of the nofeedback timer (RFC 5348, section 4.4).
    fn on_nofeedback(&mut self, now: Timestamp) {
        let terms = self.terms();
        if !self.rate.on_nofeedback(now, self.idle, self.rtt.is_some(), &terms) {
            self.nofeedback_at = None;
            return;
        }
        self.damp();
        self.restart_nofeedback_timer(now);
    }
}

impl Algorithm for Tfrc {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            feedback: Some(FeedbackPlan {
                format: FeedbackFormat::CongestionControl,
                min_interval: TimeDelta::from_millis(10),
                max_interval: TimeDelta::from_millis(100),
                bandwidth_share: 0.05,
            }),
            params: Config::params(),
            ..Spec::new("tfrc", "TFRC at the sender, from per-packet feedback", "RFC 5348")
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for Tfrc {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        let size = packet.size.as_bytes();
        self.segment += SIZE_WEIGHT * (size as f64 - self.segment);
        self.mss = self.mss.max(packet.size);
        self.sent_since_update = self.sent_since_update.saturating_add(size);
        if self.nofeedback_at.is_none() {
            self.restart_nofeedback_timer(packet.now);
        }
        self.idle = false;
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::TransportFeedback(feedback) = cue {
            self.on_feedback(feedback);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }
    /// X, without the damping of X_inst.
    fn coupled_rate(&self) -> Option<DataRate> {
        Some(self.limits.clamp(DataRate::from_bps_f64(self.rate.get())))
    }
    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        let x = coupled.rate.map(|rate| self.limits.clamp(rate).as_bps_f64());
        self.rate.couple(x, coupled.increase);
        self.damp();
    }
    fn on_timeout(&mut self, now: Timestamp) {
        if self.nofeedback_at.is_some_and(|t| t <= now) {
            self.on_nofeedback(now);
        }
    }
    fn target(&self) -> Target {
        let media = self.limits.clamp(DataRate::from_bps_f64(self.x_inst));
        let room = Gain::new(1.0 + PACING_ROOM / self.segment.max(PACING_ROOM)).unwrap_or(Gain::ONE);
        Target::paced(media, media * room)
    }
    #[inline]
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.nofeedback_at?, TimeoutReason::FeedbackMissing))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let finite = |v: f64| if v.is_finite() { v } else { f64::NAN };
        out("x_bps", self.rate.get());
        out("x_inst_bps", self.x_inst);
        out("x_calc_bps", self.rate.by_equation());
        out("x_recv_bps", self.receive_rate.as_bps_f64());
        out("recv_limit_bps", finite(2.0 * self.rate.max_receive_rate()));
        out("loss_event_rate", self.rate.loss_event_rate());
        out("rtt_ms", self.rtt.map_or(f64::NAN, |r| r.mean.as_millis_f64()));
        out("data_limited", f64::from(u8::from(self.data_limited)));
        out("segment_bytes", self.segment);
    }
}
