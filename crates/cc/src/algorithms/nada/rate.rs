//! The reference rate, and the rates derived from it at the sender (RFC 8698, sections 4.3 and 5.2).

use super::config::Config;
use super::signal::warp_threshold;
use crate::controller::{Limits, Target};
use crate::cue::NadaMode;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Greatest adjustment for the rate-shaping buffer, as a share of the reference rate (equations 11 and 12).
const SHAPING_BOUND: f64 = 0.05;

/// r_ref and the state of its update rules.
#[derive(Clone, Debug)]
pub(super) struct ReferenceRate {
    /// r_ref in bit/s, between the limits.
    r_ref: f64,
    /// x_prev in milliseconds.
    x_prev: f64,
    /// t_last.
    updated: Timestamp,
    rtt: TimeDelta,
    limits: Limits,
    /// Factor on PRIO: the share of a group of coupled flows.
    share: f64,
}

impl ReferenceRate {
    pub(super) fn new(start: DataRate, limits: Limits, now: Timestamp) -> Self {
        let r_ref = limits.clamp(start).as_bps_f64();
        Self { r_ref, x_prev: 0.0, updated: now, rtt: TimeDelta::ZERO, limits, share: 1.0 }
    }

    /// r_ref in bit/s.
    pub(super) fn bps(&self) -> f64 {
        self.r_ref
    }
    /// The last reported round-trip time.
    pub(super) fn rtt(&self) -> TimeDelta {
        self.rtt
    }
    pub(super) fn set_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = rtt.max(TimeDelta::ZERO);
    }
    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.clip();
    }
    /// Coupling with other flows has set r_ref (RFC 8699, section 6.1). The increase of a gradual update does not depend
    /// on r_ref, so that each flow adds its share of it.
    pub(super) fn couple(&mut self, rate: Option<DataRate>, share: f64) {
        self.share = share;
        if let Some(rate) = rate {
            self.r_ref = rate.as_bps_f64();
            self.clip();
        }
    }
    /// Delay from which it is warped at r_ref, in milliseconds.
    pub(super) fn warp_threshold(&self, config: &Config) -> f64 {
        warp_threshold(self.r_ref, self.limits.ceiling.as_bps_f64(), config)
    }
    /// Whether half of DELTA has passed since the last update.
    pub(super) fn is_due(&self, now: Timestamp, config: &Config) -> bool {
        now.saturating_since(self.updated) * 2 >= config.delta
    }

    /// Applies a report of x_curr in milliseconds and r_recv in bit/s.
    pub(super) fn update(&mut self, now: Timestamp, mode: NadaMode, x_curr: f64, receive_rate: f64, config: &Config) {
        match mode {
            NadaMode::AcceleratedRampUp => {
                self.r_ref = self.r_ref.max((1.0 + ramp_up_gain(self.rtt, config)) * receive_rate);
            }
            NadaMode::GradualUpdate => {
                let delta = now.saturating_since(self.updated).min(config.tau);
                self.r_ref += self.gradual_change(delta, x_curr, config);
            }
        }
        self.clip();
        self.x_prev = x_curr;
        self.updated = now;
    }

    /// The change of r_ref by equations 5 to 7, in bit/s, rearranged to avoid dividing by r_ref.
    fn gradual_change(&self, delta: TimeDelta, x_curr: f64, config: &Config) -> f64 {
        let tau = config.tau.as_millis_f64();
        let r_max = self.limits.ceiling.as_bps_f64();
        let offset = x_curr * self.r_ref - config.prio * self.share * config.xref.as_millis_f64() * r_max;
        let change = (x_curr - self.x_prev) * self.r_ref;
        -config.kappa * (delta.as_millis_f64() / tau * offset + config.eta * change) / tau
    }

    /// Halves r_ref when feedback is missing.
    pub(super) fn halve(&mut self) {
        self.r_ref *= 0.5;
        self.clip();
    }

    /// Equations 8 and 9.
    fn clip(&mut self) {
        let (floor, ceiling) = (self.limits.floor.as_bps_f64(), self.limits.ceiling.as_bps_f64());
        self.r_ref = self.r_ref.min(ceiling).max(floor);
    }

    /// r_vin and r_send for a rate-shaping buffer that holds `queued` (equations 11 to 14).
    pub(super) fn target(&self, queued: DataSize, config: &Config) -> Target {
        let (r_vin, r_send) = if queued.is_zero() {
            (self.r_ref, self.r_ref)
        } else {
            let drain = queued.as_bits() as f64 * config.fps;
            let bound = SHAPING_BOUND * self.r_ref;
            let r_send = self.r_ref + bound.min(config.beta_s * drain);
            (self.r_ref - bound.min(config.beta_v * drain), r_send.min(self.limits.ceiling.as_bps_f64()))
        };
        let media = self.limits.clamp(DataRate::from_bps_f64(r_vin));
        let age = config.max_queue_age;
        Target {
            // Both rates of the authors' program are of payload (ns3-rmcat 23ceb874, `RmcatSender::SendPacket`).
            paces_payload: true,
            max_queue_age: (age > TimeDelta::ZERO).then_some(age),
            ..Target::paced(media, DataRate::from_bps_f64(r_send * config.pacing_factor).max(media))
        }
    }
}

/// gamma (equation 3).
fn ramp_up_gain(rtt: TimeDelta, config: &Config) -> f64 {
    config.qbound.ratio(rtt + config.delta + config.dfilt).map_or(config.gamma_max, |g| g.min(config.gamma_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(kbps: u64) -> ReferenceRate {
        let limits = Limits { floor: DataRate::from_kbps(150), ceiling: DataRate::from_kbps(3_000) };
        ReferenceRate::new(DataRate::from_kbps(kbps), limits, Timestamp::ZERO)
    }
    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }
    const GRADUAL: NadaMode = NadaMode::GradualUpdate;
    const RAMP: NadaMode = NadaMode::AcceleratedRampUp;

    #[test]
    fn ramps_up_as_equations_3_and_4() {
        let c = Config::default();
        // 50 / (200 + 100 + 120).
        assert!(near(ramp_up_gain(TimeDelta::from_millis(200), &c), 50.0 / 420.0));
        assert!(near(ramp_up_gain(TimeDelta::ZERO, &Config { dfilt: TimeDelta::ZERO, ..c }), 0.5));
        assert!(near(ramp_up_gain(TimeDelta::ZERO, &Config { qbound: TimeDelta::from_millis(200), ..c }), 0.5));
        let mut r = rate(150);
        r.set_rtt(TimeDelta::from_millis(200));
        r.update(Timestamp::from_millis(100), RAMP, 0.0, 1e6, &c);
        assert!(near(r.bps(), 1e6 * (1.0 + 50.0 / 420.0)));
        r.update(Timestamp::from_millis(200), RAMP, 0.0, 1e5, &c);
        assert!(near(r.bps(), 1e6 * (1.0 + 50.0 / 420.0)));
        r.update(Timestamp::from_millis(300), RAMP, 0.0, 9e6, &c);
        assert!(near(r.bps(), 3e6));
    }

    #[test]
    fn changes_gradually_as_equations_5_to_7() {
        let c = Config::default();
        let mut r = rate(1_000);
        r.update(Timestamp::from_millis(100), GRADUAL, 40.0, 0.0, &c);
        // x_offset = 40 - 10 * 3 = 10, x_diff = 40:
        // 1 - 0.5 * 100 / 500 * 10 / 500 - 0.5 * 2 * 40 / 500 = 1 - 0.002 - 0.08.
        assert!(near(r.bps(), 918_000.0), "{}", r.bps());
        r.update(Timestamp::from_millis(300), GRADUAL, 20.0, 0.0, &c);
        // x_offset * r_ref = 20 * 918,000 - 30,000,000 and x_diff = -20.
        let expected = 918_000.0 - 0.5 * 0.4 * (20.0 * 918_000.0 - 30e6) / 500.0 + 0.04 * 918_000.0;
        assert!(near(r.bps(), expected), "{}", r.bps());
    }

    #[test]
    fn stands_still_at_equilibrium() {
        let c = Config { prio: 2.0, ..Config::default() };
        let mut r = rate(1_500);
        r.x_prev = 40.0;
        // PRIO * XREF * RMAX / r_ref = 2 * 10 * 2.
        r.update(Timestamp::from_millis(100), GRADUAL, 40.0, 0.0, &c);
        assert!(near(r.bps(), 1.5e6));
    }

    #[test]
    fn stays_between_the_limits_and_finite() {
        let c = Config::default();
        let mut r = rate(1_000);
        r.update(Timestamp::from_millis(100), GRADUAL, 3_276.7, 0.0, &c);
        assert!(near(r.bps(), 150e3));
        r.update(Timestamp::from_secs(1_000_000), GRADUAL, 0.0, 0.0, &c);
        assert!(r.bps() > 150e3 && r.bps() <= 3e6);
        r.set_limits(Limits { floor: DataRate::ZERO, ceiling: DataRate::from_bps(u64::MAX) });
        (0..2_000).for_each(|_| r.halve());
        assert_eq!(r.bps(), 0.0);
        r.update(Timestamp::MAX, GRADUAL, 0.0, 0.0, &c);
        assert!(r.bps() > 0.0 && r.bps().is_finite());
        r.update(Timestamp::MAX, RAMP, 0.0, f64::MAX, &c);
        assert_eq!(r.target(DataSize::from_bytes(u64::MAX), &c).pacing_rate, DataRate::from_bps(u64::MAX));
    }

    #[test]
    fn shapes_as_equations_11_to_14() {
        let c = Config { max_queue_age: TimeDelta::ZERO, ..Config::default() };
        let kbps = DataRate::from_kbps;
        let paced = |media, pacing| Target { paces_payload: true, ..Target::paced(media, pacing) };
        let r = rate(2_000);
        assert_eq!(r.target(DataSize::ZERO, &c), paced(kbps(2_000), kbps(2_000)));
        // The RFC's own example: 2,000 bytes make 48 kbit/s.
        assert_eq!(r.target(DataSize::from_bytes(2_000), &c), paced(kbps(1_952), kbps(2_048)));
        assert_eq!(r.target(DataSize::from_bytes(1_000_000), &c), paced(kbps(1_900), kbps(2_100)));
        let full = DataSize::from_bytes(1_000_000);
        assert_eq!(rate(150).target(full, &c), paced(kbps(150), DataRate::from_bps(157_500)));
        assert_eq!(rate(3_000).target(full, &c), paced(kbps(2_850), kbps(3_000)));
    }
}
