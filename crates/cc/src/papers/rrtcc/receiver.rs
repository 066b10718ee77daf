//! The half at the media receiver (section 3).

use super::config::Config;
use super::detector::Detector;
use super::filter::ChannelFilter;
use super::rate_control::{PathMeasures, RateControl, Region};
use crate::controller::{Limits, ReceiverController, Report};
use crate::cue::ReceivedPacket;
use crate::parts::frames::{Framed, Frames};
use crate::parts::incoming_rate::IncomingRate;
use crate::parts::receiver_estimate::{DEFAULT_RTT, ReportTimer};
use crate::parts::rtt;
use crate::spec::Start;
use crate::tunable::SetupError;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Estimates the available bandwidth from the arrival of frames and reports it in TMMBR messages.
#[derive(Clone, Debug)]
pub struct RrtccReceiver {
    config: Config,
    limits: Limits,
    frames: Frames,
    filter: ChannelFilter,
    detector: Detector,
    incoming: IncomingRate,
    rate: RateControl,
    rtt: TimeDelta,
    incoming_bps: Option<f64>,
    report: ReportTimer,
}

impl RrtccReceiver {
    /// A receiver in its initial state; the estimate is the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("rrtcc")?;
        Ok(Self {
            config,
            limits: start.limits,
            frames: Frames::new(config.clock_rate),
            filter: ChannelFilter::new(&config),
            detector: Detector::new(),
            incoming: IncomingRate::new(config.rate_window),
            rate: RateControl::new(start.limits.clamp(start.rate).as_bps_f64(), start.now),
            rtt: DEFAULT_RTT,
            incoming_bps: None,
            report: ReportTimer::new(start.now),
        })
    }

    fn on_frame(&mut self, framed: Framed, now: Timestamp) {
        let config = &self.config;
        match framed {
            Framed::Nothing => return,
            Framed::Restart => {
                self.filter = ChannelFilter::new(config);
                self.detector = Detector::new();
            }
            Framed::Step(step) => {
                let size = step.frame.size as f64 - step.previous_size as f64;
                self.filter.update(step.delay().as_millis_f64(), size, step.departure.as_millis_f64(), config);
                let offset = self.filter.gained_offset(config);
                self.detector.update(offset, self.rate.region(), now, config);
            }
        }
        let channel = PathMeasures { incoming: self.incoming_bps, rtt: self.rtt, noise: self.filter.noise() };
        self.rate.run(now, self.detector.signal(), &channel, config);
        self.rate.clamp(self.limits.floor.as_bps_f64(), self.limits.ceiling.as_bps_f64());
    }

    fn fell(&self) -> bool {
        self.config.early && self.report.reported_bps().is_some_and(|reported| self.rate.bps() < reported)
    }
}

impl ReceiverController for RrtccReceiver {
    fn on_packet_received(&mut self, packet: &ReceivedPacket) {
        // As in libwebrtc of 2012: its estimators took payload sizes, and the requested rate is a media rate.
        self.incoming.on_packet(packet.payload, packet.now);
        self.incoming_bps = self.incoming.bps(packet.now);
        let framed = self.frames.on_packet(packet);
        self.on_frame(framed, packet.now);
        self.report.on_packet();
    }
    fn on_rtt(&mut self, rtt: TimeDelta, _: Timestamp) {
        self.rtt = rtt::bounded(rtt);
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        self.report.due_at(self.config.interval)
    }
    fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        if !self.report.is_due(now, self.config.interval, self.fell()) {
            return None;
        }
        self.report.on_report(self.rate.bps(), now);
        Some(Report::Tmmbr { rate: DataRate::from_bps_f64(self.rate.bps()) })
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("a_hat_bps", self.rate.bps());
        out("r_hat_bps", self.incoming_bps.unwrap_or(f64::NAN));
        out("kalman_m_ms", self.filter.offset());
        out("kalman_offset_ms", self.filter.gained_offset(&self.config));
        out("kalman_slope", self.filter.slope());
        out("kalman_noise", self.filter.noise());
        out("threshold_ms", Detector::threshold(self.rate.region(), &self.config));
        out("signal", self.detector.signal().number());
        out("state", self.rate.state().number());
        // Maximum unknown 0, above it 1, near it 2.
        let region = match self.rate.region() {
            Region::MaxUnknown => 0.0,
            Region::AboveMax => 1.0,
            Region::NearMax => 2.0,
        };
        out("region", region);
        out("rtt_ms", self.rtt.as_millis_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::frames::tests::packet;
    use crate::testing::Kbps;

    fn receiver(params: &[(&str, f64)]) -> RrtccReceiver {
        Kbps { floor: 32, start: 240, ceiling: 3_000 }.receiver::<super::super::Rrtcc>(params)
    }
    /// 240 kbit/s at 30 frames per second; from 5 s on each frame takes 3 ms longer. Times in ms and reported kbit/s.
    fn reported(r: &mut RrtccReceiver) -> Vec<(f64, f64)> {
        let mut reported = Vec::new();
        for k in 0..300 {
            let sent = f64::from(k) * 100.0 / 3.0;
            let arrival = sent + 50.0 + 3.0 * f64::from((k - 150).max(0));
            r.on_packet_received(&packet(k as u64, sent, arrival, 1_000, true));
            if let Some(Report::Tmmbr { rate }) = r.poll_report(Timestamp::from_secs_f64(arrival * 1e-3)) {
                reported.push((arrival, rate.as_kbps_f64()));
            }
        }
        reported
    }

    #[test]
    fn reports_every_second() {
        let mut r = receiver(&[]);
        assert_eq!(r.poll_timeout(), None);
        let reported = reported(&mut r);
        // Once a second, rounded up to the next frame.
        assert!(reported.windows(2).all(|w| (999.0..=1_040.0).contains(&(w[1].0 - w[0].0))), "{reported:?}");
        // About 3.5 % and 1 kbit/s a second up, except for the first 62 ms.
        assert!((246.0..=250.5).contains(&reported[0].1) && (281.0..=290.0).contains(&reported[4].1), "{reported:?}");
        // Frames every 36.3 ms: 220 kbit/s incoming; 0.9 of it, then about 0.95 of 0.9.
        let last = reported.last().expect("reported").1;
        assert!((185.0..=215.0).contains(&last), "{reported:?}");
    }

    #[test]
    fn may_report_a_decrease_at_once() {
        let late = reported(&mut receiver(&[])).iter().find(|t| t.1 < 230.0).expect("a decrease").0;
        let early = reported(&mut receiver(&[("early", 1.0)])).iter().find(|t| t.1 < 230.0).expect("a decrease").0;
        assert!((5_100.0..=5_800.0).contains(&early) && early <= late && late <= early + 1_040.0, "{early} {late}");
    }
}
