//! The half at the media receiver.

use super::config::Config;
use super::lateness::Lateness;
use crate::controller::{Limits, ReceiverController, Report};
use crate::cue::{FramePlayout, ReceivedPacket};
use crate::parts::frames::{Framed, Frames};
use crate::parts::incoming_rate::IncomingRate;
use crate::parts::receiver_estimate::{Convergence, DEFAULT_RTT, Growth, ReportTimer};
use crate::parts::rtt;
use crate::spec::Start;
use crate::tunable::SetupError;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Weight of a packet in the mean size.
const SIZE_WEIGHT: f64 = 1.0 / 16.0;
/// Weight of the previous average of the rate at which frames were late.
const KEPT: f64 = 0.8;
/// Standard deviations around that average that count as near it.
const NEAR: f64 = 3.0;
/// A fall of the estimate below this share of the last report is reported at once.
const REPORTED_AT_ONCE: f64 = 0.97;

/// Estimates the path's rate from the arrival of frames and whether they can be played.
#[derive(Clone, Debug)]
pub struct CnaduReceiver {
    config: Config,
    limits: Limits,
    frames: Frames,
    lateness: Lateness,
    incoming: IncomingRate,
    incoming_bps: Option<f64>,
    /// Mean packet size in bytes.
    packet: f64,
    /// The estimate in bit/s.
    estimate: f64,
    /// Incoming rate while frames were late, an estimate of the path's rate. Kept until the queue has drained.
    congested_at: Option<f64>,
    convergence: Option<Convergence>,
    growth: Growth,
    updated: Timestamp,
    decreased: Option<Timestamp>,
    /// Timestamp of the last discarded frame, until the estimate has reacted to it.
    discarded: Option<u32>,
    discards_pending: bool,
    rtt: TimeDelta,
    /// Time between two reports at this round-trip time.
    interval: TimeDelta,
    report: ReportTimer,
}

impl CnaduReceiver {
    /// A receiver in its initial state; the estimate is the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("cnadu")?;
        Ok(Self {
            config,
            limits: start.limits,
            frames: Frames::new(config.clock_rate),
            lateness: Lateness::new(config.base_window),
            incoming: IncomingRate::new(config.rate_window),
            incoming_bps: None,
            packet: 0.0,
            estimate: start.limits.clamp(start.rate).as_bps_f64(),
            congested_at: None,
            convergence: None,
            growth: Growth::new(),
            updated: start.now,
            decreased: None,
            discarded: None,
            discards_pending: false,
            rtt: DEFAULT_RTT,
            interval: interval(DEFAULT_RTT, &config),
            report: ReportTimer::new(start.now),
        })
    }

    fn on_frame(&mut self, now: Timestamp) {
        let passed = now.saturating_since(self.updated);
        self.updated = now;
        let Some(incoming) = self.incoming_bps else { return };
        // The effect of a decrease shows after a round trip and a report interval.
        let answered = self.decreased.is_some_and(|t| now - t < self.rtt + self.interval);
        let late = self.lateness.row() >= self.config.late_frames;
        if self.discards_pending || (late && self.lateness.is_rising()) {
            self.congested_at = Some(incoming);
            if !answered {
                self.decrease(incoming, now);
            }
        } else if late {
            // The queue drains at the path's rate.
            self.congested_at = Some(incoming);
        } else if self.lateness.row() == 0 && !answered {
            self.increase(incoming, passed);
        }
        self.estimate = self.limits.clamp_bps(self.estimate);
    }

    fn decrease(&mut self, incoming: f64, now: Timestamp) {
        let config = &self.config;
        let most = if self.discards_pending { config.discard_beta } else { config.beta };
        let drained = 1.0 - self.lateness.late_by().ratio(config.drain_time).unwrap_or(1.0);
        let share = drained.min(most).max(config.least_beta.min(most));
        self.estimate = self.estimate.min(share * incoming);
        self.convergence = Some(Convergence::after(self.convergence, incoming * 1e-3, KEPT));
        self.decreased = Some(now);
        self.discards_pending = false;
    }

    fn increase(&mut self, incoming: f64, passed: TimeDelta) {
        if let Some(capacity) = self.congested_at.take() {
            // The queue has drained: undo the reduction that drained it.
            self.estimate = self.estimate.max(self.config.beta * capacity);
            return;
        }
        let deviations = self.convergence.map(|k| k.deviations(incoming * 1e-3));
        if deviations.is_some_and(|d| d > NEAR) {
            self.convergence = None;
        }
        let seconds = passed.as_secs_f64().min(1.0);
        let raised = if deviations.is_some_and(|d| d.abs() <= NEAR) {
            let response = (self.rtt + self.interval).as_secs_f64();
            self.estimate + self.config.near_increase * 8.0 * self.packet * seconds / response
        } else {
            self.estimate * self.growth.factor(1.0 + self.config.increase, seconds)
        };
        self.estimate = raised.min(self.config.incoming_bound * incoming).max(self.estimate);
    }

    fn fell(&self) -> bool {
        self.report.reported_bps().is_some_and(|reported| self.estimate < REPORTED_AT_ONCE * reported)
    }
}

/// Time between two reports.
fn interval(rtt: TimeDelta, config: &Config) -> TimeDelta {
    rtt.mul_f64(config.report_round_trips).min(config.max_interval).max(config.min_interval)
}

impl ReceiverController for CnaduReceiver {
    fn on_packet_received(&mut self, packet: &ReceivedPacket) {
        self.incoming.on_packet(packet.size, packet.now);
        self.incoming_bps = self.incoming.bps(packet.now);
        self.report.on_packet();
        let size = packet.size.as_bytes().min(1 << 16) as f64;
        self.packet += if self.packet == 0.0 { size } else { SIZE_WEIGHT * (size - self.packet) };
        match self.frames.on_packet(packet) {
            Framed::Nothing => {}
            Framed::Restart => self.lateness = Lateness::new(self.config.base_window),
            Framed::Step(step) => {
                self.lateness.on_frame(step.delay(), self.config.late_margin, packet.now);
                self.on_frame(packet.now);
            }
        }
    }
    fn on_rtt(&mut self, rtt: TimeDelta, _: Timestamp) {
        self.rtt = rtt::bounded(rtt);
        self.interval = interval(self.rtt, &self.config);
    }
    fn on_playout(&mut self, frame: &FramePlayout) {
        // Frames incomplete because of loss are left to the sender.
        if frame.discarded > 0 && self.discarded != Some(frame.rtp_timestamp) {
            self.discarded = Some(frame.rtp_timestamp);
            self.discards_pending = true;
        }
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        self.report.due_at(self.interval)
    }
    fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        if !self.report.is_due(now, self.interval, self.fell()) {
            return None;
        }
        self.report.on_report(self.estimate, now);
        Some(Report::NextDataUnit { rate: DataRate::from_bps_f64(self.estimate) })
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("estimate_bps", self.estimate);
        out("incoming_bps", self.incoming_bps.unwrap_or(f64::NAN));
        out("known_bps", self.convergence.map_or(f64::NAN, |k| k.average * 1e3));
        out("late_by_ms", self.lateness.late_by().as_millis_f64());
        out("late_frames", f64::from(self.lateness.row()));
        out("rtt_ms", self.rtt.as_millis_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::frames::tests::packet;
    use crate::testing::Kbps;

    fn receiver() -> CnaduReceiver {
        Kbps { floor: 32, start: 240, ceiling: 3_000 }.receiver::<super::super::Cnadu>(&[])
    }
    /// Frames of 1,000 bytes at 30 a second, each `late` ms late; returns the kbit/s reported after each, if any.
    fn run(r: &mut CnaduReceiver, frames: core::ops::Range<u64>, late: impl Fn(u64) -> f64) -> Vec<(u64, f64)> {
        let mut reported = Vec::new();
        for k in frames {
            let sent = k as f64 * 100.0 / 3.0;
            let arrival = sent + 50.0 + late(k);
            r.on_packet_received(&packet(k, sent, arrival, 1_000, true));
            if let Some(report) = r.poll_report(Timestamp::from_secs_f64(arrival * 1e-3)) {
                let Report::NextDataUnit { rate } = report else { panic!("{report:?} is no NADU") };
                reported.push((k, rate.as_kbps_f64()));
            }
        }
        reported
    }

    #[test]
    fn raises_while_frames_are_on_time() {
        let mut r = receiver();
        let reported = run(&mut r, 0..150, |k| if k % 7 == 0 { 30.0 } else { 0.0 });
        assert!(reported.windows(2).all(|w| (5..=8).contains(&(w[1].0 - w[0].0))), "every 200 ms: {reported:?}");
        // 5 % a second for 5 s, less the time to measure the incoming rate; jitter below the margin has no effect.
        let last = reported.last().expect("reported").1;
        assert!((240.0 * 1.05f64.powf(4.5)..=240.0 * 1.05f64.powi(5)).contains(&last), "{last}");
        // No further than 1.5 times the incoming rate.
        let last = run(&mut r, 150..600, |_| 0.0).last().expect("reported").1;
        assert!((355.0..=375.0).contains(&last), "{last}");
    }

    #[test]
    fn a_late_frame_or_two_are_no_congestion() {
        let mut r = receiver();
        let reported = run(&mut r, 0..150, |k| if k % 30 < 2 { 30.0 * (k % 30 + 1) as f64 } else { 0.0 });
        assert!(reported.windows(2).all(|w| w[1].1 >= w[0].1), "{reported:?}");
    }

    #[test]
    fn lowers_on_the_third_late_frame_and_comes_back_after_the_queue() {
        let mut r = receiver();
        let before = run(&mut r, 0..90, |_| 0.0).last().expect("reported").1;
        assert!((270.0..=279.0).contains(&before));
        // From frame 90 on each is 20 ms later than its predecessor: at frame 93 or 94 the third is beyond 40 ms.
        let reported = run(&mut r, 90..96, |k| 20.0 * (k - 89) as f64);
        let &(k, low) = reported.last().expect("reported");
        assert!((93..=94).contains(&k), "{reported:?}");
        // The incoming rate is 240 kbit/s over the window and falling; 0.9 of it.
        assert!((185.0..=217.0).contains(&low), "{reported:?}");
        // It holds while the queue shrinks, and returns to 0.9 of the incoming rate once it is empty.
        let reported = run(&mut r, 96..102, |k| (120.0 - 15.0 * (k - 95) as f64).max(0.0));
        assert!(reported.iter().all(|t| t.1 <= low + 1e-9), "{reported:?}");
        let reported = run(&mut r, 102..140, |_| 0.0);
        let last = reported.last().expect("reported").1;
        assert!((low..=280.0).contains(&last) && last > 200.0, "{reported:?}");
    }

    #[test]
    fn a_long_queue_takes_more_off_and_discards_are_congestion_by_themselves() {
        let mut r = receiver();
        run(&mut r, 0..90, |_| 0.0);
        // 1 s of queue at once, to drain in 2 s: half of the incoming rate, measured from three frames in two
        // intervals.
        let reported = run(&mut r, 90..96, |_| 1_000.0);
        let low = reported.iter().map(|t| t.1).fold(f64::MAX, f64::min);
        assert!((175.0..=185.0).contains(&low), "{reported:?}");

        let mut r = receiver();
        run(&mut r, 0..90, |_| 0.0);
        let now = Timestamp::from_secs(3);
        let mut frame =
            FramePlayout { now, rtp_timestamp: 1, complete: false, discarded: 0, buffered: TimeDelta::ZERO };
        r.on_playout(&frame);
        assert!(run(&mut r, 90..92, |_| 0.0).iter().all(|t| t.1 > 270.0), "missing, and not for being late");
        frame.discarded = 2;
        r.on_playout(&frame);
        let low = run(&mut r, 92..94, |_| 0.0).last().expect("reported at once").1;
        assert!((180.0..=205.0).contains(&low), "0.8 of 240: {low}");
    }
}
