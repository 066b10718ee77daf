//! The data sender (RFC 5348, section 4; RFC 4342, section 5).

use super::config::Config;
use super::options::Report;
use super::packet_size::{AnySize, PacketSize};
use super::reported::ReportedIntervals;
use super::rtt::Rtt;
use super::schedule::Schedule;
use super::sent::{Sent, SentLog};
use super::smoothed::Smoothed;
use super::window_counter::WindowCounter;
use crate::ccid::{Acknowledgement, CcidSender, Permission, SentPacket, Setup};
use crate::data_dropped::{DropCode, blocks};
use weir_cc::tcp::{AllowedRate, Feedback, MAX_RATE, Terms};
use weir_cc::tcp::TcpFlow;
use weir_cc::tunable::SetupError;
use weir_units::{DataRate, DataSize, Seq48, TimeDelta, Timestamp};

/// Round-trip time before the first sample (RFC 4340, section 3.4), for window counters and credit only.
const DEFAULT_RTT: TimeDelta = TimeDelta::from_millis(200);
/// Number of packets averaged for the mean size: minimum and maximum.
const SIZE_MEMORY: (f64, f64) = (32.0, 4_096.0);
/// Loss intervals that it reaches back over (RFC 5348, section 4.1).
const SIZE_INTERVALS: f64 = 4.0;
/// Maximum Data Dropped blocks processed.
const MAX_BLOCKS: usize = 256;

/// The sender's half of CCID 3 and its relatives. Rates in bits per second.
#[derive(Clone, Debug)]
pub struct Sender<S = AnySize> {
    config: Config,
    packet_size: S,
    sent: SentLog,
    counter: WindowCounter,
    schedule: Schedule,
    intervals: ReportedIntervals,
    rate: AllowedRate,
    x_inst: f64,
    rtt: Option<Rtt>,
    /// s in bytes, and the largest packet that was sent.
    segment: f64,
    largest: DataSize,
    max_packet_size: DataSize,
    /// The last X_recv, and the greatest.
    receive_rate: f64,
    max_receive_rate: f64,
    was_limited: bool,
    /// p as computed by the receiver, if it reports that: for comparison (RFC 4342, section 9.2).
    reported: f64,
    smoothed: Smoothed,
    acknowledged: Option<Seq48>,
    /// Packets dropped in a receive buffer, and whether the receiver was slow, since the last feedback.
    dropped: u64,
    was_slow: bool,
    /// Whether the last acknowledgement carried state that the receiver keeps, and when this end last acknowledged.
    has_state: bool,
    freed_at: Option<Timestamp>,
    nofeedback_at: Option<Timestamp>,
    /// Nothing was sent since the nofeedback timer was set.
    idle: bool,
    /// The nofeedback timer has expired since the last feedback.
    starved: bool,
    feedbacks: u64,
}

impl Sender {
    /// A sender of CCID 3. Errors: see [`Config::set_all`].
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        Ok(Self::with(Config::selected("CCID 3", &setup.params)?, setup, AnySize))
    }
}

impl<S: PacketSize> Sender<S> {
    /// One of CCID 3's relatives.
    pub(in crate::ccid) fn with(config: Config, setup: &Setup, packet_size: S) -> Self {
        let now = setup.now;
        let rtt = setup.rtt.map(Rtt::first);
        let segment = setup.max_packet_size.as_bytes().max(1) as f64;
        let mut sender = Self {
            config,
            sent: SentLog::default(),
            counter: WindowCounter::default(),
            schedule: Schedule::new(now),
            intervals: ReportedIntervals::new(S::COUNTS_LOSSES_OF_SHORT_INTERVALS, config.discounting),
            packet_size,
            // A packet a second (RFC 5348, section 4.2).
            rate: AllowedRate::new(segment * 8.0, now),
            x_inst: segment * 8.0,
            rtt,
            segment,
            largest: DataSize::ZERO,
            max_packet_size: setup.max_packet_size,
            receive_rate: 0.0,
            max_receive_rate: 0.0,
            was_limited: false,
            reported: f64::NAN,
            smoothed: Smoothed::new(&config, now),
            acknowledged: None,
            dropped: 0,
            was_slow: false,
            has_state: false,
            freed_at: None,
            nofeedback_at: None,
            idle: true,
            starved: false,
            feedbacks: 0,
        };
        if sender.rtt.is_some() {
            sender.start(now);
        }
        sender
    }

    pub(in crate::ccid) fn r(&self) -> TimeDelta {
        self.rtt.map_or(DEFAULT_RTT, |r| r.get())
    }

    /// The first round-trip time is known.
    fn start(&mut self, now: Timestamp) {
        let initial = self.initial_rate();
        self.rate.start(now, initial);
        self.smoothed.start(now, initial);
        self.set_x_inst(now);
    }

    /// The TCP flow of the throughput equation.
    fn tcp(&self) -> TcpFlow {
        let segment = DataSize::from_bytes((self.packet_size.segment(self.segment) + 0.5) as u64);
        let flow = TcpFlow::new(segment, self.r());
        TcpFlow { rto: flow.rto.max(self.config.min_rto), packets_per_ack: self.config.packets_per_ack, ..flow }
    }

    /// The maximum rate under the minimum packet spacing.
    fn most(&self) -> f64 {
        self.packet_size.max_rate(self.segment).unwrap_or(MAX_RATE)
    }

    /// s / t_mbi.
    fn least(&self) -> f64 {
        self.segment * 8.0 / self.config.t_mbi.as_secs_f64()
    }

    /// initial_rate (RFC 5348, section 4.2): two to four of the largest packets sent, per round trip.
    fn initial_rate(&self) -> f64 {
        let mss = if self.largest.is_zero() { self.max_packet_size } else { self.largest }.as_bytes();
        let window = (4 * mss).min((2 * mss).max(4_380));
        (window as f64 * 8.0 / self.r().as_secs_f64()).min(MAX_RATE)
    }

    fn terms(&self) -> Terms {
        Terms { tcp: self.tcp(), rtt: self.r(), initial_rate: self.initial_rate(), least: self.least() }
    }

    /// t_delta (RFC 5348, section 8.3).
    pub(in crate::ccid) fn early(&self) -> TimeDelta {
        let interval = TimeDelta::from_secs_f64(self.segment * 8.0 / self.x_inst.max(1.0));
        interval.min(self.config.t_gran).min(self.r()) / 2
    }

    pub(in crate::ccid) fn credit(&self) -> TimeDelta {
        self.rtt.map_or(TimeDelta::ZERO, |r| r.get().mul_f64(self.config.credit))
    }

    /// X_inst (RFC 5348, section 4.5).
    fn set_x_inst(&mut self, now: Timestamp) {
        let before = self.x_inst;
        self.smoothed.update(now, before);
        self.x_inst = (self.rate.get() * self.damping()).max(self.least()).min(MAX_RATE);
        self.schedule.on_rate(now, before, self.x_inst);
    }

    fn damping(&self) -> f64 {
        self.rtt.filter(|_| self.config.damping).map_or(1.0, |r| r.damping())
    }

    /// X_inst.
    pub(in crate::ccid) fn allowed(&self) -> f64 {
        self.x_inst
    }

    /// X_Bps, damped like X_inst, independent of X_recv: after the first loss event and while feedback is received.
    pub(in crate::ccid) fn by_equation(&self) -> Option<f64> {
        let known = self.rate.loss_event_rate() > 0.0 && !self.starved;
        known.then(|| (self.rate.by_equation() * self.damping()).clamp(self.least(), MAX_RATE))
    }

    fn restart_nofeedback_timer(&mut self, now: Timestamp) {
        let packets = TimeDelta::from_secs_f64(2.0 * self.segment * 8.0 / self.rate.get().max(1e-3));
        let least = match self.rtt {
            Some(r) => (r.get() * 4).max(self.config.min_nofeedback),
            None => self.config.initial_nofeedback,
        };
        self.nofeedback_at = Some(now + least.max(packets.min(self.config.t_mbi * 2)));
        self.idle = true;
    }

    /// Applies what Data Dropped and Slow Receiver report, until the next feedback.
    fn take_dropped(&mut self, ack: &Acknowledgement<'_>) {
        self.was_slow |= ack.slow_receiver;
        self.has_state = !ack.data_dropped.is_empty() || !ack.ack_vector.is_empty();
        let Some(before) = self.acknowledged else { return };
        let (now, rtt) = (ack.now, self.r());
        for block in blocks(ack.acknowledged, ack.data_dropped).take(MAX_BLOCKS) {
            let news = block.newest.since(before);
            if news <= 0 {
                break;
            }
            match block.code {
                Some(DropCode::RECEIVE_BUFFER) => self.dropped += block.len.min(news.unsigned_abs()),
                None | Some(DropCode::PROTOCOL_CONSTRAINTS | DropCode::APPLICATION_NOT_LISTENING) => {}
                Some(_) => self.intervals.on_corrupt(now, rtt, block.oldest().max(before.next())),
            }
        }
    }

    /// X_recv after Data Dropped and Slow Receiver (RFC 4342, section 5.2).
    fn heeded(&mut self, x_inrecv: f64) -> f64 {
        let (dropped, was_slow) = (std::mem::take(&mut self.dropped), std::mem::take(&mut self.was_slow));
        if dropped == 0 && !was_slow {
            return x_inrecv;
        }
        let packet = self.segment * 8.0 / self.r().as_secs_f64();
        let x_drop = (x_inrecv - dropped as f64 * packet).max(x_inrecv.min(packet));
        x_inrecv.min(x_drop / 2.0)
    }

    fn on_feedback(
        &mut self,
        ack: &Acknowledgement<'_>,
        report: &Report,
        receive_rate: u32,
        sent: Sent,
        sample: TimeDelta,
    ) {
        let now = ack.now;
        let is_first = self.rtt.is_none();
        self.rtt = Some(self.rtt.map_or(Rtt::first(sample), |r| r.then(sample, &self.config)));
        self.receive_rate = self.heeded(f64::from(receive_rate) * 8.0);
        self.max_receive_rate = self.max_receive_rate.max(f64::from(receive_rate) * 8.0);
        let new_event = self.take_losses(now, report);
        let limited = self.sent.was_data_limited(sent.at, self.r());
        self.was_limited = limited && self.receive_rate > 0.0;
        if is_first {
            self.start(now);
        }
        if !is_first || new_event {
            let feedback = Feedback {
                receive_rate: self.receive_rate,
                loss_event_rate: self.intervals.loss_event_rate(),
                new_event,
                data_limited: self.was_limited,
            };
            let terms = self.terms();
            let limit = self.rate.receive_limit(now, &feedback, terms.rtt);
            // Linux keeps no set of receive rates: the last report alone limits.
            let limit = if self.config.linux { 2.0 * self.receive_rate } else { limit };
            self.rate.set(now, limit, &terms);
            self.set_x_inst(now);
        }
        self.starved = false;
        self.feedbacks += 1;
        self.restart_nofeedback_timer(now);
    }

    /// The effects of a packet other than the next send time; `used_up` states whether no more may be sent now.
    pub(in crate::ccid) fn take_sent(&mut self, packet: &SentPacket, used_up: bool) {
        let at = packet.now;
        if packet.packet_type.has_acknowledgement() {
            self.freed_at = Some(at);
        }
        if !packet.packet_type.is_data() {
            return self.sent.push(packet.sequence, Sent { at, counter: None, used_up: false });
        }
        let counter = self.counter.on_sent(at, self.r());
        self.sent.push(packet.sequence, Sent { at, counter: Some(counter), used_up });
        let size = packet.data.as_bytes() as f64;
        let p = self.rate.loss_event_rate();
        let memory = if p > 0.0 { (SIZE_INTERVALS / p).clamp(SIZE_MEMORY.0, SIZE_MEMORY.1) } else { SIZE_MEMORY.0 };
        let is_first = self.largest.is_zero();
        self.segment = if is_first { size.max(1.0) } else { self.segment + (size - self.segment) / memory };
        self.largest = self.largest.max(packet.data);
        if self.nofeedback_at.is_none() {
            self.restart_nofeedback_timer(at);
        }
        self.idle = false;
    }

    fn take_losses(&mut self, now: Timestamp, report: &Report) -> bool {
        self.reported =
            report.loss_event_rate.map_or(f64::NAN, |n| if n == u32::MAX { 0.0 } else { 1.0 / f64::from(n.max(1)) });
        let (rtt, tcp) = (self.r(), self.tcp());
        let greatest = DataRate::from_bps_f64(self.max_receive_rate);
        match (report.intervals(), report.loss_event_rate) {
            (Some(reported), _) => self.intervals.on_report(now, rtt, reported, || tcp.first_loss_interval(greatest)),
            (None, Some(packets)) => self.intervals.on_rate(packets),
            (None, None) => false,
        }
    }
}

impl<S: PacketSize> CcidSender for Sender<S> {
    fn may_send(&self, now: Timestamp, _: DataSize) -> Permission {
        let at = self.packet_size.earliest(self.schedule.next() - self.early());
        if at <= now { Permission::Now } else { Permission::At(at) }
    }

    fn on_packet_sent(&mut self, packet: &SentPacket) {
        let now = packet.now;
        if packet.packet_type.is_data() {
            self.schedule.on_sent(now, packet.data, self.x_inst, self.credit());
            self.packet_size.on_sent(now);
        }
        self.take_sent(packet, self.schedule.next() > now);
    }

    fn on_acknowledgement(&mut self, ack: &Acknowledgement<'_>) {
        let Some(sent) = self.sent.acknowledge(ack.acknowledged) else { return };
        if let Some(counter) = sent.counter {
            self.counter.on_acknowledged(counter, ack.now);
        }
        self.take_dropped(ack);
        let report = Report::read(ack.acknowledged, &ack.options);
        let by_elapsed = ack.elapsed.map(|held| ack.now - sent.at - held);
        // A sample with a hold time longer than the packet's absence is ignored; one below the units of time is taken
        // as the minimum.
        let sample = ack.echo_rtt.or(by_elapsed).filter(|s| *s >= TimeDelta::ZERO);
        let reports_losses = report.intervals().is_some() || report.loss_event_rate.is_some();
        if let (Some(receive_rate), Some(sample), true) = (report.receive_rate, sample, reports_losses) {
            self.on_feedback(ack, &report, receive_rate, sent, sample);
        }
        self.acknowledged = Some(ack.acknowledged);
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        self.nofeedback_at
    }

    fn on_timeout(&mut self, now: Timestamp) {
        if self.nofeedback_at.is_none_or(|t| t > now) {
            return;
        }
        self.starved = true;
        let terms = self.terms();
        if self.rate.on_nofeedback(now, self.idle, self.rtt.is_some(), &terms) {
            self.set_x_inst(now);
            self.restart_nofeedback_timer(now);
        } else {
            self.nofeedback_at = None;
            self.sent.shrink();
        }
    }

    fn ccval(&mut self, now: Timestamp) -> u8 {
        self.counter.get(now, self.r())
    }

    /// Once per round trip if the receiver keeps Ack Vectors or Data Dropped (RFC 4342, section 6.3).
    fn wants_ack_of_ack(&self, now: Timestamp) -> bool {
        self.has_state && self.freed_at.is_none_or(|t| now - t >= self.r())
    }

    fn rate(&self) -> Option<DataRate> {
        self.rtt.map(|_| DataRate::from_bps_f64(self.x_inst.min(self.most())))
    }

    fn smoothed_rate(&self) -> Option<DataRate> {
        self.rtt.map(|_| DataRate::from_bps_f64(self.smoothed.get().min(self.most())))
    }

    fn rtt(&self) -> Option<TimeDelta> {
        self.rtt.map(|r| r.get())
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let finite = |v: f64| if v.is_finite() { v } else { f64::NAN };
        out("x_bps", self.rate.get());
        out("x_inst_bps", self.x_inst);
        out("x_calc_bps", self.rate.by_equation());
        out("x_recv_bps", self.receive_rate);
        out("recv_limit_bps", finite(2.0 * self.rate.max_receive_rate()));
        out("smoothed_bps", self.smoothed.get());
        out("loss_event_rate", self.rate.loss_event_rate());
        out("reported_loss_event_rate", self.reported);
        out("rtt_ms", self.rtt.map_or(f64::NAN, |r| r.get().as_millis_f64()));
        out("data_limited", f64::from(u8::from(self.was_limited)));
        out("segment_bytes", self.segment);
        out("feedbacks", self.feedbacks as f64);
    }
}
