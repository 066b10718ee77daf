//! TFRC from RTCP receiver reports (V. Singh's dissertation, sections 3.4 and 4.1.1): "TFRC using information in RTCP RR". The throughput
//! equation gets the average packet size, the round-trip time and the share of packets lost, as that section lists them.
//!
//! The dissertation cites its mapping of TFRC's timing to RTCP and does not describe it. This is the plain one: a report takes the place
//! of the feedback packet of RFC 3448, section 4.3, and rules in round-trip times are in intervals of reports. [`Tfrc`](crate::algorithms::tfrc::Tfrc) is
//! RFC 5348 by feedback on each packet instead, with loss events.

use crate::controller::{Controller, Limits, Target, TimeoutReason};
use crate::cue::{Cue, ReportBlock, SentPacket};
use crate::parts::mean_size::MeanSize;
use crate::parts::rtt;
use crate::spec::{Algorithm, NoReceiver, Pair, ReportPlan, Setup, Spec, Start};
use crate::tcp::throughput::{Equation, TcpFlow};
use crate::tunable::SetupError;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// The interval of reports (a choice): figure 4.2 (b) draws TFRC's goodput in steps of 2.0 s on average, each of 1 to 3 s, and those of the other
/// controllers in steps of a quarter of a second.
const REPORTS: ReportPlan = ReportPlan::every(TimeDelta::from_secs(2));
/// Most packets that one report counts for, whatever its numbers say.
const MOST_PACKETS: u64 = 100_000;

crate::tunables! {
    /// Configuration, with the RFC's names where it has them.
    pub struct Config {
        /// q: weight of the previous round-trip time against a new sample (RFC 3448, section 4.3: 0.9).
        q: f64 = 0.9, 0.0 => 0.999;
        /// Weight of a report's share of lost packets in p: 1 takes the last report's alone (the dissertation gives none).
        loss_weight: f64 = 1.0, 0.01 => 1.0;
        /// Nofeedback timer in intervals of reports, which takes the place of 4 round-trip times (RFC 3448, section 4.3); it is never shorter
        /// than those. 0 leaves the RFC's.
        nofeedback_reports: f64 = 4.0, 0.0 => 64.0;
        /// t_mbi: the longest time between packets (RFC 3448, section 4.3: 64 s).
        t_mbi: TimeDelta = 64_000.0, 100.0 => 1_000_000.0;
    }
}

/// A report as it was counted.
#[derive(Clone, Copy, Debug)]
struct Counted {
    at: Timestamp,
    highest: u64,
    lost: i64,
}

/// The sender half; there is no receiver half.
#[derive(Clone, Debug)]
pub struct TfrcRtcp {
    config: Config,
    limits: Limits,
    /// X in bit/s.
    x: f64,
    /// X_recv in bit/s, by the last report.
    x_recv: f64,
    /// p.
    p: f64,
    /// R.
    rtt: Option<TimeDelta>,
    size: MeanSize,
    counted: Option<Counted>,
    /// The time between the last two reports, not below the interval that is asked for.
    interval: TimeDelta,
    nofeedback_at: Option<Timestamp>,
}

impl TfrcRtcp {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("tfrc-rtcp")?;
        Ok(Self {
            config,
            limits: start.limits,
            x: start.limits.clamp(start.rate).as_bps_f64(),
            x_recv: 0.0,
            p: 0.0,
            rtt: None,
            size: MeanSize::default(),
            counted: None,
            interval: REPORTS.max_interval,
            nofeedback_at: None,
        })
    }

    /// s in bits.
    fn segment(&self) -> f64 {
        self.size.get().as_bits() as f64
    }
    /// s / t_mbi.
    fn least(&self) -> f64 {
        self.segment() / self.config.t_mbi.as_secs_f64()
    }
    fn clip(&mut self) {
        self.x = self.x.max(self.least()).min(self.limits.ceiling.as_bps_f64().max(self.limits.floor.as_bps_f64()));
    }

    /// The feedback packet of RFC 3448, section 4.3.
    fn on_block(&mut self, block: &ReportBlock) {
        if let Some(sample) = block.rtt.map(rtt::bounded) {
            let q = self.config.q;
            self.rtt = Some(self.rtt.map_or(sample, |r| r.mul_f64(q) + sample.mul_f64(1.0 - q)));
        }
        let highest = block.highest_sequence;
        // RFC 3448, section 6.2: no feedback without new data. A report that came twice would show that nothing arrives.
        if self.counted.is_some_and(|before| before.highest == highest) {
            return;
        }
        let now = Counted { at: block.now, highest, lost: block.cumulative_lost };
        let before = self.counted.replace(now);
        let Some(before) = before.filter(|b| b.highest < highest && b.at < block.now) else {
            self.restart_nofeedback_timer(block.now);
            return;
        };
        let time = block.now - before.at;
        // Totals also cover reports that were lost.
        let expected = (highest - before.highest).min(MOST_PACKETS) as f64;
        let lost = (block.cumulative_lost.saturating_sub(before.lost) as f64).clamp(0.0, expected);
        self.interval = time.max(REPORTS.min_interval);
        self.x_recv = (expected - lost) * self.segment() / time.as_secs_f64();
        self.p += self.config.loss_weight * (lost / expected - self.p);
        self.update();
        self.restart_nofeedback_timer(block.now);
    }

    /// Step 4: X by the equation, or twice as much as before, both up to twice what was received.
    fn update(&mut self) {
        let Some(rtt) = self.rtt.filter(|r| *r > TimeDelta::ZERO) else { return };
        let limit = 2.0 * self.x_recv;
        let by_equation = TcpFlow::new(self.size.get(), rtt).throughput(Equation::Full, self.p);
        self.x = match by_equation {
            Some(rate) => rate.as_bps_f64().min(limit),
            None => (2.0 * self.x).min(limit).max(self.segment() / rtt.as_secs_f64()),
        };
        self.clip();
    }

    fn restart_nofeedback_timer(&mut self, now: Timestamp) {
        let round_trips = self.rtt.unwrap_or(TimeDelta::ZERO) * 4;
        let intervals = self.interval.mul_f64(self.config.nofeedback_reports);
        let packets =
            TimeDelta::from_secs_f64((2.0 * self.segment() / self.x.max(1.0)).min(self.config.t_mbi.as_secs_f64()));
        let wait = round_trips.max(intervals).max(packets);
        self.nofeedback_at = (wait > TimeDelta::ZERO).then(|| now + wait);
    }
}

impl Algorithm for TfrcRtcp {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            reports: Some(REPORTS),
            params: Config::params(),
            ..Spec::new(
                "tfrc-rtcp",
                "TFRC by the loss and round-trip time of RTCP reports",
                "V. Singh's dissertation, sections 3.4 and 4.1.1, and RFC 3448",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for TfrcRtcp {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.size.on_packet(packet);
        if self.nofeedback_at.is_none() {
            self.restart_nofeedback_timer(packet.now);
        }
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::ReportBlock(block) = cue {
            self.on_block(block);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.clip();
    }
    fn on_timeout(&mut self, now: Timestamp) {
        if self.nofeedback_at.is_some_and(|at| at <= now) {
            // RFC 3448, section 4.4.
            self.x /= 2.0;
            self.clip();
            self.restart_nofeedback_timer(now);
        }
    }
    fn target(&self) -> Target {
        Target::paced(self.limits.clamp(DataRate::from_bps_f64(self.x)), Target::UNPACED)
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.nofeedback_at?, TimeoutReason::FeedbackMissing))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("x_bps", self.x);
        out("x_recv_bps", self.x_recv);
        out("loss_ratio", self.p);
        out("rtt_ms", self.rtt.map_or(f64::NAN, |r| r.as_millis_f64()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kbps, REPORT};
    use weir_units::DataSize;

    const LIMITS: Kbps = Kbps { floor: 32, start: 128, ceiling: 500 };

    /// 1,000 bytes on average, 200 ms of round trip, a report each 2 s of this many packets received and lost.
    fn after(c: &mut TfrcRtcp, reports: &[(u64, i64)]) -> Vec<f64> {
        let (mut at, mut highest, mut lost) = (0, 0, 0);
        let start = ReportBlock { rtt: Some(TimeDelta::from_millis(200)), ..REPORT };
        c.on_packet_sent(&SentPacket::media(Timestamp::ZERO, 0, DataSize::from_bytes(1_000)));
        c.on_cue(&Cue::ReportBlock(start));
        let rates = reports.iter().map(|(received, missing)| {
            at += 2;
            highest += received + *missing as u64;
            lost += missing;
            let now = Timestamp::from_secs(at);
            c.on_cue(&Cue::ReportBlock(ReportBlock { now, highest_sequence: highest, cumulative_lost: lost, ..start }));
            c.target().media_rate.as_kbps_f64()
        });
        rates.collect()
    }

    #[test]
    fn follows_the_equation_with_the_share_lost_and_doubles_without_losses() {
        let mut c: TfrcRtcp = LIMITS.sender(&[]);
        // 32 packets in 2 s are 128 kbit/s: twice that is allowed, from 128.
        assert_eq!(after(&mut c, &[(32, 0)]), [256.0]);
        // 10 of 100 lost: 8,000 / (0.2 sqrt(0.2 / 3) + 0.8 * 3 sqrt(0.3 / 8) * 0.1 * 1.32) = 8,000 / (0.05164 + 0.06135).
        let mut c: TfrcRtcp = LIMITS.sender(&[]);
        let rates = after(&mut c, &[(90, 10), (16, 0), (1, 0)]);
        assert!((rates[0] - 70.80).abs() < 0.05, "{rates:?}");
        // Then none lost: twice the rate, up to twice the 64 kbit/s that arrived, and at least a packet in a round trip: 40 kbit/s.
        assert_eq!(rates[1..], [128.0, 40.0]);
    }

    #[test]
    fn missing_reports_halve_the_rate_to_the_floor() {
        for (reports, seconds) in [(4.0, 8.0), (0.0, 0.8)] {
            let mut c: TfrcRtcp = LIMITS.sender(&[("nofeedback_reports", reports)]);
            after(&mut c, &[(32, 0)]);
            let (mut rates, mut waits) = (vec![], vec![]);
            let mut last = Timestamp::from_secs(2);
            for _ in 0..5 {
                let (at, _) = c.poll_timeout().expect("a timer");
                waits.push((at - last).as_secs_f64());
                last = at;
                c.on_timeout(at);
                rates.push(c.target().media_rate.as_kbps_f64());
            }
            assert_eq!(rates, [128.0, 64.0, 32.0, 32.0, 32.0]);
            assert!((waits[0] - seconds).abs() < 1e-9 && (waits[2] - seconds).abs() < 1e-9, "{waits:?}");
        }
    }

    #[test]
    fn a_report_that_comes_twice_changes_nothing() {
        let mut c: TfrcRtcp = LIMITS.sender(&[]);
        assert_eq!(after(&mut c, &[(32, 0)]), [256.0]);
        let timer = c.poll_timeout();
        let now = Timestamp::from_millis(2_001);
        c.on_cue(&Cue::ReportBlock(ReportBlock { now, highest_sequence: 32, ..REPORT }));
        assert_eq!((c.target().media_rate.as_kbps_f64(), c.poll_timeout()), (256.0, timer));
    }

    #[test]
    fn forged_totals_leave_the_rate_in_bounds() {
        let mut c: TfrcRtcp = LIMITS.sender(&[]);
        for (highest, lost) in [(u64::MAX, i64::MIN), (0, i64::MAX), (5, -7), (u64::MAX, i64::MAX)] {
            after(&mut c, &[(1, 0)]);
            let now = Timestamp::from_secs(9);
            let block = ReportBlock { now, highest_sequence: highest, cumulative_lost: lost, ..REPORT };
            c.on_cue(&Cue::ReportBlock(block));
            let rate = c.target().media_rate.as_kbps_f64();
            assert!((32.0..=500.0).contains(&rate), "{rate}");
            assert!(c.p.is_finite() && (0.0..=1.0).contains(&c.p));
        }
    }
}
