//! The share of packets with L4S's marks (draft, section 4.2.1.3).

use super::config::Config;
use weir_units::{TimeDelta, Timestamp};

/// Greatest interval of the updates (draft, section 4.2.1.3).
const UPDATE_INTERVAL: TimeDelta = TimeDelta::from_millis(10);

/// l4s_alpha: averaged share of marked packets, quick to rise and slow to fall.
#[derive(Clone, Debug)]
pub(super) struct MarkedShare {
    alpha: f64,
    delivered: u32,
    marked: u32,
    /// last_fraction_marked.
    latest: f64,
    updated_at: Timestamp,
}

impl MarkedShare {
    pub(super) fn new(config: &Config, now: Timestamp) -> Self {
        Self { alpha: config.l4s_alpha, delivered: 0, marked: 0, latest: 0.0, updated_at: now }
    }

    pub(super) fn on_packet(&mut self, is_marked: bool) {
        self.delivered = self.delivered.saturating_add(1);
        self.marked = self.marked.saturating_add(u32::from(is_marked));
    }

    pub(super) fn update(&mut self, now: Timestamp, srtt: TimeDelta, config: &Config) {
        if now - self.updated_at < srtt.min(UPDATE_INTERVAL) || self.delivered == 0 {
            return;
        }
        self.updated_at = now;
        self.latest = f64::from(self.marked) / f64::from(self.delivered);
        self.alpha = if self.latest >= self.alpha {
            self.alpha + config.l4s_avg_g_up * (self.latest - self.alpha)
        } else {
            self.alpha * (1.0 - config.l4s_avg_g_down)
        };
        (self.delivered, self.marked) = (0, 0);
    }

    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }
    /// Whether every packet of the last update had the mark.
    pub(super) fn are_all_marked(&self) -> bool {
        self.latest >= 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_by_an_eighth_and_falls_by_a_128th() {
        let c = Config { l4s_alpha: 0.0, ..Config::default() };
        let mut m = MarkedShare::new(&c, Timestamp::ZERO);
        let mut update = |ms, marks: &[bool]| {
            marks.iter().for_each(|&k| m.on_packet(k));
            m.update(Timestamp::from_millis(ms), TimeDelta::from_millis(50), &c);
            m.alpha()
        };
        assert_eq!(update(9, &[true, true]), 0.0, "not within 10 ms");
        assert_eq!(update(10, &[false, false]), 0.0625, "an eighth of a half");
        assert_eq!(update(30, &[]), 0.0625, "nothing delivered");
        assert_eq!(update(40, &[false]), 0.0625 * 127.0 / 128.0);
        assert!(!m.are_all_marked());
    }
}
