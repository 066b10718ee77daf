//! The sender half of both variants.

use super::config::Config;
use super::rate::ReferenceRate;
use super::receiver::NadaReceiver;
use super::signal::{Aggregator, CongestionSignal, mode_number};
use super::window::Arrival;
use crate::controller::{Controller, Coupled, Limits, Target, TimeoutReason};
use crate::cue::{Cue, NadaReport, QueueState, SentPacket, TransportFeedback};
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

const SENDER_SIDE: &str = "nada";
const RECEIVER_SIDE: &str = "nada-receiver";

/// NADA's sender.
#[derive(Clone, Debug)]
pub struct Nada {
    config: Config,
    rate: ReferenceRate,
    /// `None` if the receiver computes the signal.
    aggregator: Option<Box<Aggregator>>,
    last: CongestionSignal,
    /// The largest packet sent. One that waits for the pacer is no backlog.
    largest: DataSize,
    /// Departure of the first packet since the last feedback.
    waiting_since: Option<Timestamp>,
    /// Cached [`Controller::target`], and the backlog that it allows for: computed on each change, read with each packet.
    target: Target,
    /// Whether it was written since the last frame.
    has_news: bool,
    backlog: DataSize,
}

impl Nada {
    /// The variant that computes the signal here, from per-packet feedback. Errors: see [`Config::check`].
    pub fn sender_side(config: Config, start: &Start) -> Result<Self, SetupError> {
        Self::new(config, start, Some(Box::new(Aggregator::new(&config))))
    }

    /// The variant that acts on the receiver's reports. Errors: see [`Config::check`].
    pub fn receiver_side(config: Config, start: &Start) -> Result<Self, SetupError> {
        Self::new(config, start, None)
    }

    fn new(config: Config, start: &Start, aggregator: Option<Box<Aggregator>>) -> Result<Self, SetupError> {
        config.check(if aggregator.is_some() { SENDER_SIDE } else { RECEIVER_SIDE })?;
        let rate = ReferenceRate::new(start.rate, start.limits, start.now);
        let backlog = DataSize::ZERO;
        Ok(Self {
            config,
            target: rate.target(backlog, &config),
            has_news: true,
            backlog,
            rate,
            aggregator,
            last: CongestionSignal {
                receive_rate: f64::NAN,
                d_queue: f64::NAN,
                d_tilde: f64::NAN,
                ..CongestionSignal::default()
            },
            largest: DataSize::ZERO,
            waiting_since: None,
        })
    }

    fn on_feedback(&mut self, feedback: &TransportFeedback<'_>) {
        let Some(aggregator) = &mut self.aggregator else { return };
        if let Some(rtt) = feedback.rtt {
            self.rate.set_rtt(rtt);
            aggregator.set_rtt(rtt);
        }
        if feedback.packets.is_empty() {
            return;
        }
        self.waiting_since = None;
        aggregator.correction.on_feedback(feedback);
        for p in feedback.packets {
            match aggregator.correction.of(p) {
                None => aggregator.on_lost(1),
                Some(delay) => {
                    let at = p.departure - Timestamp::ZERO + delay;
                    let arrival = Arrival {
                        at,
                        delay: Some(delay),
                        size: u32::try_from(p.size.as_bytes()).unwrap_or(u32::MAX),
                        lost_before: 0,
                        late: p.was_lost,
                        marked: p.ecn == Ecn::Ce,
                    };
                    aggregator.on_arrival(arrival, &self.config);
                }
            }
        }
        if self.rate.is_due(feedback.now, &self.config) {
            let s = *aggregator.report(self.rate.warp_threshold(&self.config), &self.config);
            self.rate.update(feedback.now, s.mode, s.x_curr, s.receive_rate, &self.config);
            self.last = s;
        }
    }

    fn on_report(&mut self, report: &NadaReport) {
        if self.aggregator.is_some() {
            return;
        }
        if let Some(rtt) = report.rtt {
            self.rate.set_rtt(rtt);
        }
        self.waiting_since = None;
        if !self.rate.is_due(report.now, &self.config) {
            return;
        }
        self.last.mode = report.mode;
        self.last.x_curr = report.aggregate_delay.max(TimeDelta::ZERO).min(self.config.xmax).as_millis_f64();
        self.last.receive_rate = report.receive_rate.as_bps_f64();
        self.rate.update(report.now, report.mode, self.last.x_curr, self.last.receive_rate, &self.config);
    }

    /// The rate has changed.
    fn refresh(&mut self) {
        self.target = self.rate.target(self.backlog, &self.config);
        self.has_news = true;
    }

    /// The RTP queue has changed.
    #[inline]
    fn follow_queue(&mut self, queued: DataSize) {
        let backlog = queued.saturating_sub(self.largest);
        if backlog != self.backlog {
            self.backlog = backlog;
            self.refresh();
        }
    }

    #[inline]
    fn patience(&self) -> Option<TimeDelta> {
        let timeout = self.config.feedback_timeout;
        (timeout > TimeDelta::ZERO).then(|| timeout + self.rate.rtt())
    }
}

impl Algorithm for Nada {
    type Receiver = NadaReceiver;
    fn specs() -> Vec<Spec> {
        let interval = Config::default().delta;
        let feedback = FeedbackPlan {
            format: FeedbackFormat::CongestionControl,
            min_interval: interval,
            max_interval: interval,
            bandwidth_share: 1.0,
        };
        let spec = |name, summary| Spec { params: Config::params(), ..Spec::new(name, summary, "RFC 8698") };
        vec![
            Spec {
                feedback: Some(feedback),
                ..spec(SENDER_SIDE, "NADA, signal computed at the sender from per-packet feedback")
            },
            spec(RECEIVER_SIDE, "NADA, signal computed at the receiver and reported every 100 ms"),
        ]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NadaReceiver>, SetupError> {
        let (config, start) = (Config::from_params(name, &setup.params)?, setup.start());
        if name == SENDER_SIDE {
            return Ok(Pair::alone(Self::sender_side(config, &start)?));
        }
        Ok(Pair::both(Self::receiver_side(config, &start)?, NadaReceiver::new(config, &start)?))
    }
}

impl Controller for Nada {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.largest = self.largest.max(packet.size);
        self.follow_queue(packet.queued);
        if self.waiting_since.is_none() {
            self.waiting_since = Some(packet.now);
        }
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::TransportFeedback(feedback) => self.on_feedback(feedback),
            Cue::NadaReport(report) => self.on_report(report),
            _ => return,
        }
        self.refresh();
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.rate.set_limits(limits);
        self.refresh();
    }
    fn coupled_rate(&self) -> Option<DataRate> {
        Some(DataRate::from_bps_f64(self.rate.bps()))
    }
    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        self.rate.couple(coupled.rate, coupled.increase);
        self.refresh();
    }
    #[inline]
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.follow_queue(queue.queued);
        std::mem::take(&mut self.has_news)
    }
    fn on_timeout(&mut self, now: Timestamp) {
        let Some((at, _)) = self.poll_timeout() else { return };
        if at <= now {
            self.rate.halve();
            self.refresh();
            self.waiting_since = Some(now);
        }
    }
    fn target(&self) -> Target {
        self.target
    }
    #[inline]
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.waiting_since? + self.patience()?, TimeoutReason::FeedbackMissing))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let s = &self.last;
        let at_sender = |v: f64| if self.aggregator.is_some() { v } else { f64::NAN };
        out("r_ref_bps", self.rate.bps());
        out("x_curr_ms", s.x_curr);
        out("rmode", mode_number(s.mode));
        out("r_recv_bps", s.receive_rate);
        out("rtt_ms", self.rate.rtt().as_millis_f64());
        out("d_queue_ms", at_sender(s.d_queue));
        out("d_tilde_ms", at_sender(s.d_tilde));
        out("p_loss", at_sender(s.p_loss));
        out("p_mark", at_sender(s.p_mark));
        out("loss_interval", at_sender(s.loss_interval));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::{NadaMode, PacketResult};
    use crate::testing::{Kbps, metric};
    use weir_units::RemoteTimestamp;

    const KBPS: Kbps = Kbps { floor: 150, start: 1_000, ceiling: 3_000 };
    /// Delays here grow at the cost of feedback's, as with a clock that is set.
    fn still() -> Config {
        Config { follows_path: false, ..Config::default() }
    }
    fn sent(ms: i64, queued: u64) -> SentPacket {
        SentPacket {
            queued: DataSize::from_bytes(queued),
            ..SentPacket::media(Timestamp::from_millis(ms), ms as u64, DataSize::from_bytes(1_000))
        }
    }
    /// Packets every 10 ms from `from` to before `to`, the last one delayed by `delay_ms`, reported at `to`.
    fn feedback(n: &mut Nada, from: i64, to: i64, delay_ms: i64) {
        let packet = |ms: i64| PacketResult {
            sequence: ms as u64 / 10,
            departure: Timestamp::from_millis(ms),
            arrival: Some(RemoteTimestamp::from_millis(ms + if from > 0 { delay_ms } else { 0 } - 5_000)),
            size: DataSize::from_bytes(1_000),
            ecn: Ecn::Ect0,
            probe: 0,
            was_lost: false,
        };
        let packets: Vec<_> = (from..to).step_by(10).map(packet).collect();
        n.on_cue(&Cue::TransportFeedback(TransportFeedback {
            now: Timestamp::from_millis(to),
            packets: &packets,
            bytes_in_flight: DataSize::ZERO,
            rtt: Some(TimeDelta::from_millis(80)),
        }));
    }

    #[test]
    fn joins_signal_and_rate() {
        let mut n = Nada::sender_side(still(), &KBPS.start()).expect("valid");
        feedback(&mut n, 0, 100, 0);
        // 9 packets of 8,000 bits over at least DELTA; gamma = 50 / (80 + 100 + 120).
        assert_eq!(metric(&n, "r_recv_bps"), 720e3);
        assert_eq!(n.target().media_rate, DataRate::from_kbps(1_000));
        feedback(&mut n, 100, 200, 0);
        assert!((metric(&n, "r_recv_bps") - 800e3).abs() < 1.0);
        feedback(&mut n, 200, 400, 40);
        // 20 packets delayed by 40 ms: x_offset = 40 - 30, x_diff = 40, delta = 200.
        assert_eq!((metric(&n, "x_curr_ms"), metric(&n, "rmode"), metric(&n, "rtt_ms")), (40.0, 1.0, 80.0));
        assert_eq!(n.target().media_rate, DataRate::from_kbps(916));
    }

    /// Two coupled flows of half the rate change together as one would.
    #[test]
    fn a_coupled_flow_takes_its_share_of_one_flows_change() {
        let changed = |rate: u64, increase: f64| {
            let mut n = Nada::sender_side(still(), &KBPS.start()).expect("valid");
            let rate = DataRate::from_kbps(rate);
            n.on_coupled(&Coupled { rate: Some(rate), increase }, Timestamp::ZERO);
            assert_eq!(n.coupled_rate(), Some(rate));
            feedback(&mut n, 0, 100, 0);
            feedback(&mut n, 100, 200, 0);
            let before = metric(&n, "r_ref_bps");
            feedback(&mut n, 200, 400, 40);
            metric(&n, "r_ref_bps") - before
        };
        assert!((changed(2_000, 1.0) - 2.0 * changed(1_000, 0.5)).abs() < 1.0);
    }

    #[test]
    fn feedback_in_pieces_counts_once() {
        let mut n = Nada::sender_side(still(), &KBPS.start()).expect("valid");
        feedback(&mut n, 0, 100, 0);
        feedback(&mut n, 100, 110, 40);
        assert_eq!(metric(&n, "x_curr_ms"), 0.0);
        feedback(&mut n, 110, 270, 40);
        assert_eq!(metric(&n, "x_curr_ms"), 40.0);
    }

    #[test]
    fn halves_where_feedback_stays_away() {
        let mut n = Nada::sender_side(Config::default(), &KBPS.start()).expect("valid");
        assert_eq!(n.poll_timeout(), None);
        n.on_packet_sent(&sent(50, 0));
        n.on_packet_sent(&sent(60, 0));
        assert_eq!(n.poll_timeout(), Some((Timestamp::from_millis(1_050), TimeoutReason::FeedbackMissing)));
        n.on_timeout(Timestamp::from_millis(1_049));
        assert_eq!(n.target().media_rate, DataRate::from_kbps(1_000));
        n.on_timeout(Timestamp::from_millis(1_060));
        assert_eq!(n.target().media_rate, DataRate::from_kbps(500));
        assert_eq!(n.poll_timeout().map(|t| t.0), Some(Timestamp::from_millis(2_060)));
        feedback(&mut n, 0, 100, 0);
        assert_eq!(n.poll_timeout(), None);
        let mut never =
            Nada::sender_side(Config { feedback_timeout: TimeDelta::ZERO, ..Config::default() }, &KBPS.start())
                .expect("valid");
        never.on_packet_sent(&sent(50, 0));
        assert_eq!(never.poll_timeout(), None);
    }

    #[test]
    fn shapes_by_the_last_reported_queue() {
        let mut n = Nada::sender_side(Config::default(), &KBPS.start()).expect("valid");
        n.on_packet_sent(&sent(0, 1_000));
        assert_eq!(n.target().media_rate, DataRate::from_kbps(1_000), "one packet waits for the pacer");
        n.on_packet_sent(&sent(10, 2_000));
        assert_eq!(n.target().media_rate, DataRate::from_kbps(976));
        let queue = |queued| QueueState {
            now: Timestamp::ZERO,
            added: DataSize::ZERO,
            queued: DataSize::from_bytes(queued),
            oldest_age: TimeDelta::ZERO,
        };
        n.on_queue(&queue(3_000));
        assert_eq!(n.target().media_rate, DataRate::from_kbps(952));
        n.on_queue(&queue(0));
        assert_eq!(n.target().media_rate, DataRate::from_kbps(1_000));
    }

    #[test]
    fn acts_on_the_reports_of_its_own_variant() {
        let report = |aggregate_delay| {
            Cue::NadaReport(NadaReport {
                now: Timestamp::from_millis(100),
                mode: NadaMode::GradualUpdate,
                aggregate_delay,
                receive_rate: DataRate::from_kbps(900),
                rtt: None,
            })
        };
        let mut n = Nada::receiver_side(Config::default(), &KBPS.start()).expect("valid");
        feedback(&mut n, 0, 100, 90);
        assert_eq!(n.target().media_rate, DataRate::from_kbps(1_000));
        n.on_cue(&report(TimeDelta::from_millis(40)));
        assert_eq!(n.target().media_rate, DataRate::from_kbps(918));
        assert!(metric(&n, "d_queue_ms").is_nan());
        let mut forged = Nada::receiver_side(Config::default(), &KBPS.start()).expect("valid");
        forged.on_cue(&report(-TimeDelta::MAX));
        assert_eq!(forged.target().media_rate, DataRate::from_kbps(1_006));
        let mut deaf = Nada::sender_side(Config::default(), &KBPS.start()).expect("valid");
        deaf.on_cue(&report(TimeDelta::from_millis(40)));
        assert_eq!(deaf.target().media_rate, DataRate::from_kbps(1_000));
    }
}
