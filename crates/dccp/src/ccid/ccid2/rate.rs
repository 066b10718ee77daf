use super::Config;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Weight of a packet in the mean size: about the last 32 packets, as for TFRC's segment size.
const SIZE_WEIGHT: f64 = 1.0 / 32.0;

/// The rate that the window allows: window times mean packet size by round-trip time (S. Jero, 2013, section 5.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Mean application data of a packet, in bytes.
    size: Option<f64>,
    /// In bits per second, and its time.
    smoothed: Option<(f64, Timestamp)>,
    time_constant: TimeDelta,
}

impl Rate {
    pub(super) const fn new(config: &Config) -> Self {
        Self { size: None, smoothed: None, time_constant: config.rate_time_constant }
    }
    pub(super) fn on_sent(&mut self, data: DataSize) {
        let bytes = data.as_bytes() as f64;
        self.size = Some(self.size.map_or(bytes, |s| s + (bytes - s) * SIZE_WEIGHT));
    }
    fn bps(&self, cwnd: u32, rtt: Option<TimeDelta>) -> Option<f64> {
        let seconds = rtt?.as_secs_f64();
        (seconds > 0.0).then_some(f64::from(cwnd) * self.size? * 8.0 / seconds)
    }
    /// To be called whenever the window may have changed.
    pub(super) fn update(&mut self, now: Timestamp, cwnd: u32, rtt: Option<TimeDelta>) {
        let Some(bps) = self.bps(cwnd, rtt) else { return };
        let (old, at) = self.smoothed.unwrap_or((bps, now));
        let dt = now.saturating_since(at);
        let share = dt.ratio(dt + self.time_constant).unwrap_or(1.0);
        self.smoothed = Some((old + (bps - old) * share, now));
    }
    pub(super) fn now(&self, cwnd: u32, rtt: Option<TimeDelta>) -> Option<DataRate> {
        self.bps(cwnd, rtt).map(DataRate::from_bps_f64)
    }
    pub(super) fn smoothed(&self) -> Option<DataRate> {
        self.smoothed.map(|(bps, _)| DataRate::from_bps_f64(bps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_a_round_trip_and_its_low_pass() {
        let mut r = Rate::new(&Config::default());
        let rtt = Some(TimeDelta::from_millis(100));
        assert_eq!((r.now(10, rtt), r.smoothed()), (None, None));
        r.on_sent(DataSize::from_bytes(1_000));
        // 10 packets of 8,000 bits in 0.1 s.
        assert_eq!(r.now(10, rtt), Some(DataRate::from_kbps(800)));
        r.update(Timestamp::ZERO, 10, rtt);
        assert_eq!(r.smoothed(), Some(DataRate::from_kbps(800)));
        // The window halves; with frequent updates the remainder of the old value decays as e^(-t / 1 s).
        for ms in 1..=3_000 {
            r.update(Timestamp::from_millis(ms), 5, rtt);
            if ms == 1_000 {
                let kbps = r.smoothed().expect("known").as_kbps_f64();
                assert!((kbps - (400.0 + 400.0 * libm::exp(-1.0))).abs() < 1.0, "{kbps}");
            }
        }
        let kbps = r.smoothed().expect("known").as_kbps_f64();
        assert!((kbps - (400.0 + 400.0 * libm::exp(-3.0))).abs() < 1.0, "{kbps}");
    }
}
