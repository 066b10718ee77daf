//! The delay-based half, at the media receiver.

use super::arrival_filter::ArrivalFilter;
use super::config::Config;
use super::inter_arrival::{Grouped, InterArrival};
use super::overuse::OveruseDetector;
use super::rate_control::RateControl;
use crate::controller::{Limits, ReceiverController, Report};
use crate::cue::ReceivedPacket;
use crate::parts::incoming_rate::IncomingRate;
use crate::parts::receiver_estimate::{DEFAULT_RTT, ReportTimer};
use crate::parts::rtt;
use crate::spec::Start;
use crate::tunable::SetupError;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Estimates the available bandwidth from arrivals and reports it in REMB messages.
///
/// Packets without a departure time count for the incoming rate only. Without any departure times the estimate is
/// limited only by a multiple of that rate.
#[derive(Clone, Debug)]
pub struct GccRembReceiver {
    config: Config,
    limits: Limits,
    groups: InterArrival,
    filter: ArrivalFilter,
    detector: OveruseDetector,
    incoming: IncomingRate,
    rate: RateControl,
    rtt: TimeDelta,
    incoming_bps: Option<f64>,
    report: ReportTimer,
}

impl GccRembReceiver {
    /// A receiver in its initial state; the estimate is the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("gcc-remb")?;
        Ok(Self {
            config,
            limits: start.limits,
            groups: InterArrival::default(),
            filter: ArrivalFilter::new(&config),
            detector: OveruseDetector::new(&config),
            incoming: IncomingRate::new(config.rate_window),
            rate: RateControl::new(start.limits.clamp(start.rate).as_bps_f64(), start.now),
            rtt: DEFAULT_RTT,
            incoming_bps: None,
            report: ReportTimer::new(start.now),
        })
    }

    fn estimate(&self) -> DataRate {
        DataRate::from_bps_f64(self.rate.bps())
    }

    fn fell(&self) -> bool {
        let keep = 1.0 - self.config.remb_decrease;
        self.report.reported_bps().is_some_and(|reported| self.rate.bps() < keep * reported)
    }
}

impl ReceiverController for GccRembReceiver {
    fn on_packet_received(&mut self, packet: &ReceivedPacket) {
        let (now, config) = (packet.now, &self.config);
        self.incoming.on_packet(packet.size, now);
        let grouped = match packet.departure {
            Some(departure) => self.groups.on_packet(departure, now, config.burst_time),
            None => Grouped::Nothing,
        };
        match grouped {
            Grouped::Nothing => {}
            Grouped::Restart => {
                self.filter = ArrivalFilter::new(config);
                self.detector = OveruseDetector::new(config);
            }
            Grouped::Variation(v) => {
                self.filter.update(v.delay.as_millis_f64(), v.departure.as_millis_f64(), config);
                self.detector.update(self.filter.offset(config), now, config);
            }
        }
        self.incoming_bps = self.incoming.bps(now);
        self.rate.run(now, self.detector.signal(), self.incoming_bps, self.rtt, config);
        self.rate.clamp(self.limits.floor.as_bps_f64(), self.limits.ceiling.as_bps_f64());
        self.report.on_packet();
    }
    fn on_rtt(&mut self, rtt: TimeDelta, _: Timestamp) {
        self.rtt = rtt::bounded(rtt);
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        self.report.due_at(self.config.remb_interval)
    }
    fn poll_report(&mut self, now: Timestamp) -> Option<Report> {
        if !self.report.is_due(now, self.config.remb_interval, self.fell()) {
            return None;
        }
        let rate = self.estimate();
        self.report.on_report(rate.as_bps_f64(), now);
        Some(Report::Remb { rate })
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("a_hat_bps", self.rate.bps());
        out("r_hat_bps", self.incoming_bps.unwrap_or(f64::NAN));
        out("kalman_m_ms", self.filter.mean());
        out("kalman_offset_ms", self.filter.offset(&self.config));
        out("kalman_noise", self.filter.noise());
        out("threshold_ms", self.detector.threshold());
        out("signal", self.detector.signal().number());
        out("state", self.rate.state().number());
        out("rtt_ms", self.rtt.as_millis_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Kbps;
    use weir_units::{DataSize, Ecn, RemoteTimestamp};

    fn receiver() -> GccRembReceiver {
        Kbps { floor: 50, start: 1_000, ceiling: 3_000 }.receiver::<super::super::GccRemb>(&[])
    }
    fn arrive(r: &mut GccRembReceiver, departure_ms: f64, arrival_ms: f64) {
        r.on_packet_received(&ReceivedPacket {
            now: Timestamp::from_secs_f64(arrival_ms * 1e-3),
            departure: Some(RemoteTimestamp::from_secs_f64(departure_ms * 1e-3)),
            size: DataSize::from_bytes(1_250),
            payload: DataSize::from_bytes(1_250),
            sequence: 0,
            rtp_timestamp: 0,
            marker: false,
            ecn: Ecn::NotEct,
        });
    }
    fn rate(report: Option<Report>) -> Option<f64> {
        report.map(|r| match r {
            Report::Remb { rate } => rate.as_kbps_f64(),
            other => panic!("{other:?} is no REMB"),
        })
    }

    #[test]
    fn reports_every_second_and_at_once_after_a_decrease() {
        let mut r = receiver();
        assert_eq!(r.poll_timeout(), None);
        let mut reported = Vec::new();
        // 1 Mbit/s arrives as it was sent for 3 s; afterwards the delay grows by 2 ms with each packet of 10 ms.
        for k in 0..600 {
            let departure = 10.0 * f64::from(k);
            let arrival = departure + 50.0 + 2.0 * f64::from((k - 300).max(0));
            arrive(&mut r, departure, arrival);
            if let Some(kbps) = rate(r.poll_report(Timestamp::from_secs_f64(arrival * 1e-3))) {
                reported.push((arrival, kbps));
                assert_eq!(r.poll_timeout(), None);
            }
        }
        let times: Vec<_> = reported.iter().take(3).map(|t| t.0).collect();
        assert_eq!(times, [1_000.0, 2_000.0, 3_000.0]);
        // At most 8 % a second.
        assert!((1_200.0..=1_260.0).contains(&reported[2].1), "{reported:?}");
        let (at, kbps) = reported[3];
        assert!((3_060.0..=3_400.0).contains(&at), "{reported:?}");
        assert!((800.0..=850.0).contains(&kbps), "{reported:?}");
        assert!(reported.iter().skip(3).all(|t| (600.0..=860.0).contains(&t.1)), "{reported:?}");
    }

    #[test]
    fn lives_without_departures() {
        let mut r = receiver();
        for k in 0..2_000 {
            r.on_packet_received(&ReceivedPacket {
                now: Timestamp::from_millis(10 * k),
                departure: None,
                size: DataSize::from_bytes(1_250),
                payload: DataSize::from_bytes(1_250),
                sequence: 0,
                rtp_timestamp: 0,
                marker: false,
                ecn: Ecn::NotEct,
            });
        }
        let kbps = rate(r.poll_report(Timestamp::from_secs(20))).expect("due");
        assert!((1_400.0..=1_550.0).contains(&kbps), "{kbps}");
    }
}
