//! A controller where `rtc-interceptor` takes an estimator.

use crate::core::{Core, Report};
use crate::{Rates, Refused, Settings};
use rtc_interceptor::{BandwidthEstimator, EstimatorStats, PacketReport};
use std::time::{Duration, Instant};
use weir_units::TimeDelta;

/// A controller by name as a [`BandwidthEstimator`]: its target is the media rate.
///
/// That interface shows packets only when they are reported, so that the controller sees no bytes in flight: for controllers
/// with a congestion window (scream, scream2) take [`CongestionControl`](crate::CongestionControl). It needs transport-wide
/// feedback. Of RFC 8888's reports rtc-interceptor 0.21.1 passes on how long before the report a packet arrived
/// (`convert_ccfb`), and not when; they are ignored here.
#[derive(Clone)]
pub struct Estimator(Rates);

impl Estimator {
    /// A controller by name.
    ///
    /// # Errors
    /// An unknown name or parameter, a value outside its range, or a controller that needs more than per-packet feedback.
    pub fn new(name: &str, settings: &Settings) -> Result<Self, Refused> {
        Core::new(name, settings).map(|core| Self(Rates::new(core)))
    }
    /// The rates that the application reads.
    pub fn rates(&self) -> Rates {
        self.0.clone()
    }
}

impl BandwidthEstimator for Estimator {
    fn on_reports(&mut self, now: Instant, reports: &[PacketReport]) {
        let wide = reports.iter().filter(|r| r.is_twcc);
        let reported: Vec<Report> = wide.map(|r| Report::transport_wide(r.id, r.arrived, r.arrival)).collect();
        let mut core = self.0.core();
        core.catch_up(now, reports);
        core.on_reports(now, &reported, Duration::ZERO);
    }
    fn target_bitrate(&self) -> f64 {
        self.0.media_rate().as_bps_f64()
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.0.core().on_timeout(now);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.0.core().poll_timeout()
    }
    fn stats(&self) -> EstimatorStats {
        let mut stats = EstimatorStats::default();
        let nanos = |t: TimeDelta| u64::try_from(t.as_nanos()).unwrap_or(0);
        stats.round_trip_time = self.0.rtt().map(|t| Duration::from_nanos(nanos(t)));
        stats
    }
}
