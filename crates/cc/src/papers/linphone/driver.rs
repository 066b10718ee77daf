//! The rate requested from the encoder (S. Jero, 2013, appendix A.2, bitratedriver.c).

use super::config::Config;
use crate::controller::Limits;

/// Rates in bit/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driver {
    /// Rate requested from the encoder.
    pub nominal: f64,
    /// Samples of the transport's rate since the last change by it.
    hold: u32,
    floor: f64,
    limit: f64,
}

impl Driver {
    pub(super) fn new(start: f64, limits: &Limits, c: &Config) -> Self {
        let mut d = Self { nominal: start, hold: 0, floor: 0.0, limit: 0.0 };
        d.set_limits(limits, c);
        d
    }

    pub(super) fn set_limits(&mut self, limits: &Limits, c: &Config) {
        self.limit = limits.ceiling.min(c.max_rate).max(limits.floor).as_bps_f64();
        self.floor = limits.floor.max(c.min_rate).as_bps_f64().min(self.limit);
        self.nominal = self.nominal.clamp(self.floor, self.limit);
    }

    /// `actual` is the encoder's recent rate, if known.
    pub(super) fn decrease(&mut self, share: f64, actual: Option<f64>, c: &Config) {
        if let Some(actual) = actual {
            // Starts from the actual rate if that is lower than the requested one.
            self.nominal = self.nominal.min(actual);
            self.raise_near(actual, c);
        }
        self.nominal = (self.nominal * (1.0 - share)).max(self.floor);
    }

    /// Returns `false` if the limit is reached.
    pub(super) fn increase(&mut self, share: f64, actual: Option<f64>, c: &Config) -> bool {
        if let Some(actual) = actual {
            self.raise_near(actual, c);
            if self.nominal > actual * c.sanity_factor {
                self.nominal = actual * c.sanity_reset;
            }
        }
        let wanted = self.nominal * (1.0 + share);
        self.nominal = wanted.clamp(self.floor, self.limit);
        (self.floor..=self.limit).contains(&wanted)
    }

    fn raise_near(&mut self, actual: f64, c: &Config) {
        if self.nominal * c.sanity_factor < actual {
            self.nominal = actual / c.sanity_reset;
        }
    }

    /// Takes a sample of the transport's rate; returns whether the encoder's rate was set by it.
    pub(super) fn follow(&mut self, rate: f64, c: &Config) -> bool {
        let proposed = (rate * c.rate_share).clamp(self.floor, self.limit);
        self.hold = self.hold.saturating_add(1);
        let (fall, rise) = (self.nominal - proposed, proposed - self.nominal);
        let acts = fall > self.nominal * c.rate_decrease || rise > self.nominal * c.rate_increase;
        if self.hold > c.rate_hold && acts {
            (self.nominal, self.hold) = (proposed, 0);
            return true;
        }
        false
    }
}
