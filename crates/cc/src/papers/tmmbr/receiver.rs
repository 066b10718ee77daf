//! The half at the media receiver, which controls the rate.

use super::config::Config;
use crate::controller::{Limits, ReceiverController, Report};
use crate::cue::ReceivedPacket;
use crate::parts::frames::{Framed, Frames, Step};
use crate::parts::incoming_rate::IncomingRate;
use crate::parts::receiver_estimate::ReportTimer;
use crate::spec::Start;
use crate::tunable::SetupError;
use weir_units::{DataRate, Timestamp};

/// Weight of a frame in the mean size.
const WEIGHT: f64 = 1.0 / 32.0;

/// Estimates the path's rate from the mean time between frames.
#[derive(Clone, Debug)]
pub struct TmmbrReceiver {
    config: Config,
    limits: Limits,
    frames: Frames,
    incoming: IncomingRate,
    incoming_bps: Option<f64>,
    /// Mean frame in bytes.
    size: f64,
    /// Lateness of I-frames in s, by which the following frames may be early.
    excused: f64,
    /// The observation period: its start, and the actual and expected time between frames in s.
    begun: Timestamp,
    observed: f64,
    expected: f64,
    /// Ratio of the mean to the expected time between frames in the last period.
    ratio: f64,
    over: u32,
    /// The estimate in bit/s.
    estimate: f64,
    report: ReportTimer,
}

impl TmmbrReceiver {
    /// A receiver in its initial state; the estimate is the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("tmmbr")?;
        Ok(Self {
            config,
            limits: start.limits,
            frames: Frames::new(config.clock_rate),
            incoming: IncomingRate::new(config.rate_window),
            incoming_bps: None,
            size: 0.0,
            excused: 0.0,
            begun: start.now,
            observed: 0.0,
            expected: 0.0,
            ratio: f64::NAN,
            over: 0,
            estimate: start.limits.clamp(start.rate).as_bps_f64(),
            report: ReportTimer::new(start.now),
        })
    }

    fn on_step(&mut self, step: &Step, now: Timestamp) {
        let size = step.frame.size as f64;
        let is_large = self.size > 0.0 && size > self.config.large_frame * self.size;
        self.size += if self.size == 0.0 { size } else { WEIGHT * (size - self.size) };
        let departure = step.departure.as_secs_f64();
        // Missing packets lengthen the mean as if that share of a frame were missing.
        let expected =
            departure * f64::from(step.packets) / (f64::from(step.packets) + f64::from(step.missing)).max(1.0);
        let late = step.arrival.as_secs_f64() - departure;
        let excused = if is_large { late.max(0.0) } else { late.max(-self.excused).min(0.0) };
        self.excused += excused;
        self.observed += step.arrival.as_secs_f64() - excused;
        self.expected += expected;
        if now.saturating_since(self.begun) >= self.config.period {
            self.conclude(now);
        }
    }

    /// Ends the observation period.
    fn conclude(&mut self, now: Timestamp) {
        let passed = now.saturating_since(self.begun).as_secs_f64().min(1.0);
        self.ratio = if self.expected > 0.0 { self.observed / self.expected } else { f64::NAN };
        (self.begun, self.observed, self.expected) = (now, 0.0, 0.0);
        // Until about the next I-frame at most.
        self.excused = if self.over == 0 { self.excused } else { 0.0 };
        let Some(incoming) = self.incoming_bps else { return };
        if self.ratio > 1.0 + self.config.over_margin {
            self.over = self.over.saturating_add(1);
            if self.over >= self.config.periods {
                self.estimate = self.estimate.min(self.config.beta * incoming);
            }
        } else {
            // A path with spare capacity delivers frames on time, not earlier.
            self.over = 0;
            let raised = self.estimate * libm::pow(1.0 + self.config.increase, passed);
            self.estimate = raised.min(self.config.incoming_bound * incoming).max(self.estimate);
        }
        self.estimate = self.limits.clamp_bps(self.estimate);
    }
}

impl ReceiverController for TmmbrReceiver {
    fn on_packet_received(&mut self, packet: &ReceivedPacket) {
        self.incoming.on_packet(packet.size, packet.now);
        self.incoming_bps = self.incoming.bps(packet.now);
        self.report.on_packet();
        match self.frames.on_packet(packet) {
            Framed::Nothing => {}
            Framed::Restart => {
                (self.excused, self.over) = (0.0, 0);
                (self.begun, self.observed, self.expected) = (packet.now, 0.0, 0.0);
            }
            Framed::Step(step) => self.on_step(&step, packet.now),
        }
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        self.report.due_at(self.config.interval)
    }
    fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        let fell = self.report.reported_bps().is_some_and(|reported| self.estimate < reported);
        if !self.report.is_due(now, self.config.interval, fell) {
            return None;
        }
        self.report.on_report(self.estimate, now);
        Some(Report::Tmmbr { rate: DataRate::from_bps_f64(self.estimate) })
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("estimate_bps", self.estimate);
        out("incoming_bps", self.incoming_bps.unwrap_or(f64::NAN));
        out("interval_ratio", self.ratio);
        out("overuse_periods", f64::from(self.over));
        out("mean_frame_bytes", self.size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::frames::tests::packet;
    use crate::testing::Kbps;

    fn receiver() -> TmmbrReceiver {
        Kbps { floor: 32, start: 240, ceiling: 3_000 }.receiver::<super::super::Tmmbr>(&[])
    }
    /// Frames at 30 a second, 1,000 bytes by default, each `late` ms late. Returns times in ms and reported kbit/s.
    fn run(frames: u64, late: impl Fn(u64) -> f64, size: impl Fn(u64) -> u64) -> Vec<(f64, f64)> {
        let mut r = receiver();
        let mut requested = Vec::new();
        for k in (0..frames).filter(|&k| size(k) > 0) {
            let sent = k as f64 * 100.0 / 3.0;
            let arrival = sent + 50.0 + late(k);
            r.on_packet_received(&packet(k, sent, arrival, size(k), true));
            if let Some(Report::Tmmbr { rate }) = r.poll_report(Timestamp::from_secs_f64(arrival * 1e-3)) {
                requested.push((arrival, rate.as_kbps_f64()));
            }
        }
        requested
    }

    #[test]
    fn requests_more_while_frames_arrive_as_expected() {
        let requested = run(150, |_| 0.0, |_| 1_000);
        assert!(requested.windows(2).all(|w| (999.0..=1_040.0).contains(&(w[1].0 - w[0].0))), "{requested:?}");
        let last = requested.last().expect("requested").1;
        assert!((240.0 * 1.08f64.powf(3.4)..=240.0 * 1.08f64.powf(5.1)).contains(&last), "{requested:?}");
        // Early frames have no other effect: 1 ms more with each frame, at first late.
        let early = run(150, |k| 150.0 - k as f64, |_| 1_000);
        assert!(early.last().expect("requested").1 >= 0.96 * last, "{early:?}");
    }

    #[test]
    fn asks_for_less_when_frames_stay_late_for_two_periods() {
        // 10 % late: 3.3 ms more with each frame, from 3 s on.
        let late = |k: u64| 3.34 * k.saturating_sub(90) as f64;
        let requested = run(180, late, |_| 1_000);
        let &(at, kbps) = requested.iter().find(|t| t.1 < 240.0).expect("a decrease");
        assert!((4_000.0..=4_700.0).contains(&at), "{requested:?}");
        // 0.75 of 240 / 1.1 kbit/s, measured over a second.
        assert!((160.0..=176.0).contains(&kbps), "{requested:?}");
        // Late for 0.4 s and then on time: a transient. And 4 % is no over-use.
        for requested in [
            run(180, |k| 3.34 * k.clamp(90, 102).saturating_sub(90) as f64, |_| 1_000),
            run(180, |k| 1.3 * k.saturating_sub(90) as f64, |_| 1_000),
        ] {
            assert!(requested.windows(2).all(|w| w[1].1 >= w[0].1), "{requested:?}");
        }
    }

    #[test]
    fn an_i_frame_and_the_frames_after_it_do_not_count() {
        // Every second an I-frame of six times the size, 100 ms late; the next 20 frames are less and less late.
        let late = |k: u64| if k > 0 { 100.0 - 5.0 * (k % 30).min(20) as f64 } else { 0.0 };
        let size = |k: u64| if k.is_multiple_of(30) { 6_000 } else { 1_000 };
        let requested = run(300, late, size);
        assert!(requested.windows(2).all(|w| w[1].1 >= w[0].1), "{requested:?}");
        assert!(requested.last().expect("requested").1 > 300.0, "{requested:?}");
    }

    #[test]
    fn missing_packets_make_the_mean_longer() {
        let requested = run(300, |_| 0.0, |k| if k > 100 && k.is_multiple_of(5) { 0 } else { 1_000 });
        let last = requested.last().expect("requested").1;
        // 192 kbit/s still arrive.
        assert!((135.0..=150.0).contains(&last), "{requested:?}");
    }
}
