//! Network congestion control: from feedback to the window (RFC 8298, section 4.1.2), independent of streams.

use super::super::base_delay::BaseDelay;
use super::super::loss::LossDetector;
use super::config::Config;
use super::events::{Congestion, EventGate};
use super::target_delay::TargetDelay;
use super::trend::QueueDelayTrend;
use super::window::{Acknowledged, Window};
use crate::cue::{SentPacket, TransportFeedback};
use crate::parts::delay_correction::DelayCorrection;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// Spacing of the queue-delay samples (RFC 8298, section 4.1.2).
const SAMPLE_INTERVAL: TimeDelta = TimeDelta::from_millis(50);
/// Most samples that one feedback message can fill in: the whole history, 10 s.
const MAX_SAMPLES: i64 = 200;
/// Upper bound of a round-trip time.
const LONGEST_RTT: TimeDelta = TimeDelta::from_secs(60);

/// Share of the target above which the least queue delays mean a wrong base delay, and the weight of one of them (C++).
const WRONG_SHARE: f64 = 0.25;
const LEAST_WEIGHT: f64 = 0.001;

/// Finds a base delay that is too low, since the queue is never empty by it.
#[derive(Clone, Debug)]
struct BaseCheck {
    /// The least queue delay since the last sample, and what such samples come to: it falls at once and rises slowly.
    least: TimeDelta,
    usual: TimeDelta,
    since: Timestamp,
}

impl BaseCheck {
    fn new(now: Timestamp) -> Self {
        Self { least: TimeDelta::MAX, usual: TimeDelta::ZERO, since: now }
    }

    /// Whether the base delay is to be forgotten. If so, it begins again.
    fn is_wrong(&mut self, queue_delay: TimeDelta, target: TimeDelta, config: &Config, now: Timestamp) -> bool {
        self.least = self.least.min(queue_delay);
        let after = config.base_delay_reset;
        let wrong = after > TimeDelta::ZERO && self.usual > target.mul_f64(WRONG_SHARE) && now - self.since > after;
        if wrong {
            (self.usual, self.since) = (TimeDelta::ZERO, now);
        }
        wrong
    }

    fn sample(&mut self) {
        let least = core::mem::replace(&mut self.least, TimeDelta::MAX);
        if least < self.usual {
            self.usual = least;
        } else if least < TimeDelta::MAX {
            self.usual += (least - self.usual).mul_f64(LEAST_WEIGHT);
        }
    }
}

/// The result of a feedback message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// bytes_newly_acked.
    pub(super) acknowledged: DataSize,
    pub(super) congestion: Option<Congestion>,
}

/// Window, queue delay and events of one path, shared by its streams.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) window: Window,
    pub(super) trend: QueueDelayTrend,
    pub(super) target_delay: TargetDelay,
    pub(super) losses: LossDetector,
    pub(super) events: EventGate,
    correction: DelayCorrection,
    base_delay: BaseDelay,
    base_check: BaseCheck,
    queue_delay: TimeDelta,
    srtt: Option<TimeDelta>,
    in_flight: DataSize,
    sampled_at: Timestamp,
}

impl Network {
    pub(super) fn new(config: &Config, now: Timestamp) -> Self {
        Self {
            window: Window::new(config, now),
            trend: QueueDelayTrend::default(),
            target_delay: TargetDelay::new(config),
            losses: LossDetector::new(config.reordering_window),
            events: EventGate::new(now),
            correction: DelayCorrection::new(config.follows_path),
            base_delay: BaseDelay::new(config.base_delay_interval, config.base_delay_history, now),
            base_check: BaseCheck::new(now),
            queue_delay: TimeDelta::ZERO,
            srtt: None,
            in_flight: DataSize::ZERO,
            sampled_at: now,
        }
    }

    /// qdelay.
    pub(super) fn queue_delay(&self) -> TimeDelta {
        self.queue_delay
    }
    /// s_rtt, once there is one.
    pub(super) fn srtt(&self) -> Option<TimeDelta> {
        self.srtt
    }
    /// bytes_in_flight.
    pub(super) fn in_flight(&self) -> DataSize {
        self.in_flight
    }
    /// Bytes that may be in flight.
    pub(super) fn limit(&self) -> DataSize {
        self.window.limit(self.queue_delay, self.target_delay.get())
    }
    /// pace_bitrate without its lower bound, once there is a round-trip time.
    pub(super) fn pacing_rate(&self, head_room: f64) -> Option<DataRate> {
        Some(self.window.pacing_rate(self.srtt?, head_room))
    }

    /// Records a packet. Returns whether the window has changed.
    pub(super) fn on_packet_sent(&mut self, packet: &SentPacket) -> bool {
        self.in_flight = packet.bytes_in_flight;
        self.window.on_sent(packet.size, packet.bytes_in_flight, packet.now)
    }

    pub(super) fn on_feedback(&mut self, feedback: &TransportFeedback<'_>, config: &Config) -> Outcome {
        let now = feedback.now;
        // By the RFC everything that leaves the flight is acknowledged, including lost packets.
        let acknowledged = self.in_flight.saturating_sub(feedback.bytes_in_flight);
        self.in_flight = feedback.bytes_in_flight;
        if let Some(rtt) = feedback.rtt {
            self.on_rtt(rtt);
        }
        let srtt = self.srtt.unwrap_or(TimeDelta::ZERO);
        let (mut lost, mut marked, mut latest) = (false, false, None);
        self.correction.on_feedback(feedback);
        for p in feedback.packets {
            let Some(delay) = self.correction.of(p) else {
                lost |= self.losses.on_missing(p.sequence, now);
                continue;
            };
            self.base_delay.update(delay, now);
            marked |= p.ecn == Ecn::Ce;
            if p.was_lost {
                self.losses.on_late_arrival(p.sequence, now, srtt);
            }
            latest = Some(delay);
        }
        if let Some(delay) = latest {
            self.queue_delay = self.base_delay.queue_delay(delay);
            if self.base_check.is_wrong(self.queue_delay, self.target_delay.get(), config, now) {
                self.base_delay = BaseDelay::new(config.base_delay_interval, config.base_delay_history, now);
                self.queue_delay = TimeDelta::ZERO;
            }
        }
        lost |= self.losses.judge(now);
        let congestion = self.events.admit(lost, marked, now, srtt);
        if feedback.packets.is_empty() {
            return Outcome { acknowledged, congestion };
        }
        self.sample(now, config);
        match congestion {
            Some(Congestion::Loss) => self.window.on_congestion(config.beta_loss, now),
            Some(Congestion::Ecn) => self.window.on_congestion(config.beta_ecn, now),
            None => self.window.on_acknowledgement(
                &Acknowledged {
                    now,
                    newly: acknowledged,
                    in_flight: self.in_flight,
                    queue_delay: self.queue_delay,
                    queue_delay_target: self.target_delay.get(),
                    trend: self.trend.trend(),
                },
                config,
            ),
        }
        Outcome { acknowledged, congestion }
    }

    /// RFC 6298, section 2, smoothing only.
    fn on_rtt(&mut self, rtt: TimeDelta) {
        let rtt = rtt.max(TimeDelta::ZERO).min(LONGEST_RTT);
        self.srtt = Some(self.srtt.map_or(rtt, |s| s + (rtt - s) / 8));
    }

    /// Extends the histories up to `now`; sparse feedback fills in every sample in between, as in the C++.
    fn sample(&mut self, now: Timestamp, config: &Config) {
        let fraction = self.queue_delay.ratio(self.target_delay.get()).unwrap_or(0.0);
        self.trend.average_in(fraction, config.qdelay_weight);
        let due = (now - self.sampled_at).as_nanos() / SAMPLE_INTERVAL.as_nanos();
        if due <= 0 {
            return;
        }
        self.base_check.sample();
        for _ in 0..due.min(MAX_SAMPLES) {
            self.trend.sample(fraction);
            self.target_delay.sample(self.queue_delay, self.events.loss_event_rate());
        }
        self.sampled_at += SAMPLE_INTERVAL * due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::PacketResult;
    use weir_units::RemoteTimestamp;

    const fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }
    const fn at(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }
    const fn bytes(n: u64) -> DataSize {
        DataSize::from_bytes(n)
    }
    fn sent(now: i64, in_flight: u64) -> SentPacket {
        SentPacket { bytes_in_flight: bytes(in_flight), ..SentPacket::media(at(now), 0, bytes(1_000)) }
    }
    fn packet(sequence: u64, departure: i64, arrival: Option<i64>) -> PacketResult {
        PacketResult {
            sequence,
            departure: at(departure),
            arrival: arrival.map(RemoteTimestamp::from_millis),
            size: bytes(1_000),
            ecn: Ecn::Ect0,
            probe: 0,
            was_lost: false,
        }
    }
    fn feedback(now: i64, packets: &[PacketResult], in_flight: u64, rtt: Option<i64>) -> TransportFeedback<'_> {
        TransportFeedback { now: at(now), packets, bytes_in_flight: bytes(in_flight), rtt: rtt.map(ms) }
    }

    #[test]
    fn a_base_delay_that_is_always_too_low_is_forgotten_where_that_is_asked_for() {
        let c = Config { base_delay_reset: ms(20_000), ..Config::default() };
        let forgotten_at = |c: &Config, queue: i64| {
            let mut check = BaseCheck::new(at(0));
            (0..4_000).map(|i| at(i * 50)).find(|&now| {
                check.sample();
                check.is_wrong(ms(queue), ms(100), c, now)
            })
        };
        // It reaches a quarter of the target after ln 2 of a thousand samples at twice that, and not below it.
        let first = forgotten_at(&c, 50).expect("forgotten");
        assert!((at(34_000)..at(35_500)).contains(&first), "{first}");
        assert_eq!(forgotten_at(&c, 25), None);
        assert_eq!(forgotten_at(&c, 1_000), Some(at(20_050)), "not before its time");
        assert_eq!(forgotten_at(&Config::default(), 50), None);
    }

    #[test]
    fn the_latest_packet_gives_the_queue_delay_over_the_base() {
        let (mut n, c) = (Network::new(&Config::default(), at(0)), Config::default());
        // The receiver's clock is an hour ahead.
        let h = 3_600_000;
        n.on_feedback(&feedback(250, &[packet(1, 0, Some(h + 100)), packet(2, 20, Some(h + 135))], 0, Some(200)), &c);
        assert_eq!(n.queue_delay(), ms(15));
        assert_eq!(n.srtt(), Some(ms(200)));
        n.on_feedback(&feedback(300, &[packet(3, 40, Some(h + 130))], 0, Some(280)), &c);
        assert_eq!(n.queue_delay(), ms(0));
        assert_eq!(n.srtt(), Some(ms(210)));
    }

    #[test]
    fn packets_that_leave_the_flight_are_acknowledged_lost_or_not() {
        let (mut n, c) = (Network::new(&Config::default(), at(0)), Config::default());
        n.on_packet_sent(&sent(0, 3_000));
        let o = n.on_feedback(&feedback(200, &[packet(1, 0, Some(100)), packet(2, 0, None)], 1_000, Some(200)), &c);
        assert_eq!(o.acknowledged, bytes(2_000));
        assert_eq!(o.congestion, Some(Congestion::Loss));
    }

    #[test]
    fn a_mark_scales_the_window_less_than_a_loss() {
        let c = Config { initial_cwnd: bytes(10_000), ..Config::default() };
        let window = |p: PacketResult| {
            let mut n = Network::new(&c, at(0));
            n.on_feedback(&feedback(200, &[p], 0, Some(200)), &c);
            n.window.cwnd()
        };
        assert_eq!(window(PacketResult { ecn: Ecn::Ce, ..packet(1, 0, Some(100)) }), bytes(9_000));
        assert_eq!(window(packet(1, 0, None)), bytes(8_000));
    }

    #[test]
    fn sparse_feedback_stands_for_each_sample_that_it_spans() {
        let c = Config::default();
        let mut n = Network::new(&c, at(0));
        n.on_feedback(&feedback(40, &[packet(1, 0, Some(0))], 0, None), &c);
        // Ten samples of 250 ms after none: qdelay_fraction 2.5 and its average 0.25, coefficient 0.85.
        n.on_feedback(&feedback(549, &[packet(2, 0, Some(250))], 0, None), &c);
        assert!((n.trend.trend() - 0.85 * 0.25).abs() < 1e-12);
    }
}
