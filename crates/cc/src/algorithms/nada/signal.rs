//! The aggregated congestion signal (RFC 8698's receiver, sections 4.2 and 5.1), at either end.

use super::config::Config;
use super::loss_intervals::LossIntervals;
use super::window::{Arrival, Window};
use crate::cue::NadaMode;
use crate::parts::base_delay::BaseDelay;
use crate::parts::delay_correction::DelayCorrection;
use weir_units::TimeDelta;

/// A delay this far from the baseline, or an arrival this much before another, shows that a clock has changed:
/// measurement restarts.
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(10);

/// The values of one report.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct CongestionSignal {
    /// rmode.
    pub(super) mode: NadaMode,
    /// x_curr in milliseconds.
    pub(super) x_curr: f64,
    /// r_recv in bit/s.
    pub(super) receive_rate: f64,
    /// d_queue in milliseconds.
    pub(super) d_queue: f64,
    /// d_tilde in milliseconds.
    pub(super) d_tilde: f64,
    /// p_loss.
    pub(super) p_loss: f64,
    /// p_mark.
    pub(super) p_mark: f64,
    /// loss_int in packets, NaN before the first loss.
    pub(super) loss_interval: f64,
}

impl Default for CongestionSignal {
    fn default() -> Self {
        Self {
            mode: NadaMode::AcceleratedRampUp,
            x_curr: 0.0,
            receive_rate: 0.0,
            d_queue: 0.0,
            d_tilde: 0.0,
            p_loss: 0.0,
            p_mark: 0.0,
            loss_interval: f64::NAN,
        }
    }
}

/// Computes the aggregated signal from packets' fates in send order.
#[derive(Clone, Debug)]
pub(super) struct Aggregator {
    window: Window,
    pub(super) correction: DelayCorrection,
    base: BaseDelay,
    losses: LossIntervals,
    /// Packets missing since the last in-order arrival.
    missing: u32,
    rtt: TimeDelta,
    signal: CongestionSignal,
}

impl Aggregator {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            window: Window::new(),
            correction: DelayCorrection::new(config.follows_path),
            base: BaseDelay::default(),
            losses: LossIntervals::default(),
            missing: 0,
            rtt: TimeDelta::ZERO,
            signal: CongestionSignal::default(),
        }
    }

    /// The last report.
    pub(super) fn signal(&self) -> &CongestionSignal {
        &self.signal
    }

    /// r_recv in bit/s.
    pub(super) fn receive_rate(&self, config: &Config) -> f64 {
        self.window.receive_rate(config.delta)
    }

    /// The round-trip time, for merging losses to loss events.
    pub(super) fn set_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = rtt.max(TimeDelta::ZERO);
    }

    /// `packets` are missing after the last arrival.
    pub(super) fn on_lost(&mut self, packets: u32) {
        self.missing = self.missing.saturating_add(packets);
    }

    /// A packet has arrived; `lost_before` is filled in here.
    pub(super) fn on_arrival(&mut self, mut arrival: Arrival, config: &Config) {
        if self.window.newest().is_some_and(|n| n - arrival.at > CLOCK_JUMP) {
            self.window.clear();
            self.base = BaseDelay::default();
        }
        if let Some(delay) = arrival.delay {
            if self.base.get().is_some_and(|b| (delay - b).abs() > CLOCK_JUMP) {
                self.window.clear();
                self.base = BaseDelay::default();
            }
            self.base.observe(delay, arrival.at, config.base_window);
        }
        if !arrival.late {
            arrival.lost_before = core::mem::take(&mut self.missing);
            let merge = if config.merge_losses { self.rtt } else { TimeDelta::from_nanos(-1) };
            self.losses.on_packet(arrival.lost_before, arrival.at, merge);
        }
        self.window.push(arrival, config.logwin);
    }

    /// Drops arrivals that are too old at `now`, by the receiver's clock.
    pub(super) fn advance(&mut self, now: TimeDelta, config: &Config) {
        self.window.expire(now - config.logwin);
    }

    /// Computes a report, with delays warped from `qth` milliseconds on ([`warp_threshold`]). Call it once per feedback interval, since each
    /// call smooths the ratios.
    pub(super) fn report(&mut self, qth: f64, config: &Config) -> &CongestionSignal {
        let lost = self.window.lost() + u64::from(self.missing);
        let sent = (self.window.sent() + u64::from(self.missing)) as f64;
        let s = &mut self.signal;
        if sent > 0.0 {
            s.p_loss += config.alpha * (lost as f64 / sent - s.p_loss);
            s.p_mark += config.alpha * ((self.window.marked() as f64 / sent).min(1.0) - s.p_mark);
        }
        s.receive_rate = self.window.receive_rate(config.delta);
        let base = self.base.get().unwrap_or(TimeDelta::ZERO);
        if let Some(least) = least_delay(&self.window, config) {
            s.d_queue = (least - base).as_millis_f64().max(0.0);
        }
        let built_up = |a: &Arrival| a.delay.is_some_and(|d| d - base >= config.qeps);
        let marked = config.marks_end_ramp_up && self.window.marked() > 0;
        s.mode = if lost > 0 || marked || self.window.newest_first().any(built_up) {
            NadaMode::GradualUpdate
        } else {
            NadaMode::AcceleratedRampUp
        };
        let loss_interval = self.losses.mean(config.open_loss_interval);
        s.loss_interval = loss_interval.unwrap_or(f64::NAN);
        s.d_tilde = match (loss_interval, self.losses.open()) {
            (Some(mean), Some(open)) => {
                let warped = warp(s.d_queue, qth, config);
                // Full warping until loss_exp, then a transition to the plain delay within one loss_int.
                let plain_share = ((open - config.multiloss * mean) / mean).clamp(0.0, 1.0);
                warped + plain_share * (s.d_queue - warped)
            }
            _ => s.d_queue,
        };
        s.x_curr = aggregate(s.d_tilde, s.p_mark, s.p_loss, config);
        s
    }
}

/// The minimum filter of section 5.1.1.
fn least_delay(window: &Window, config: &Config) -> Option<TimeDelta> {
    let from = match (window.newest(), config.filter_span) {
        (Some(newest), span) if span > TimeDelta::ZERO => newest - span,
        _ => -TimeDelta::MAX,
    };
    let taps = config.filter_taps as usize;
    window.newest_first().take(taps).take_while(|a| a.at >= from).filter_map(|a| a.delay).min()
}

/// Delay from which it is warped at this rate, in milliseconds: QTH, or a multiple of the delay at which the gradual update stands still,
/// PRIO XREF RMAX / rate by equation 5. With losses remembered and a QTH below that delay, no delay lowers the rate: it rises until the queue
/// overflows, again and again.
pub(super) fn warp_threshold(rate: f64, r_max: f64, config: &Config) -> f64 {
    let still = config.prio * config.xref.as_millis_f64() * r_max / rate.max(1.0);
    config.qth.as_millis_f64().max((config.qth_headroom * still).min(config.xmax.as_millis_f64()))
}

/// Equation 1, in milliseconds.
fn warp(d_queue: f64, qth: f64, config: &Config) -> f64 {
    if d_queue < qth { d_queue } else { qth * libm::exp(-config.lambda * (d_queue - qth) / qth) }
}

/// Equation 2, in milliseconds.
fn aggregate(d_tilde: f64, p_mark: f64, p_loss: f64, config: &Config) -> f64 {
    let square = |x: f64| x * x;
    let x = d_tilde
        + config.dmark.as_millis_f64() * square(p_mark / config.pmrref)
        + config.dloss.as_millis_f64() * square(p_loss / config.plrref);
    x.min(config.xmax.as_millis_f64())
}

/// rmode as the RFC numbers it.
pub(super) fn mode_number(mode: NadaMode) -> f64 {
    match mode {
        NadaMode::AcceleratedRampUp => 0.0,
        NadaMode::GradualUpdate => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }
    fn arrival(ms: i64, delay_ms: i64) -> Arrival {
        let ms_of = TimeDelta::from_millis;
        Arrival { at: ms_of(ms), delay: Some(ms_of(delay_ms)), size: 1_000, ..Arrival::default() }
    }

    #[test]
    fn warps_delay_as_equation_1() {
        let c = Config::default();
        assert!(near(warp(49.999, 50.0, &c), 49.999));
        assert!(near(warp(50.0, 50.0, &c), 50.0));
        // 50 exp(-0.5 * 100 / 50) = 50 / e.
        assert!(near(warp(150.0, 50.0, &c), 18.393_972_058_572));
        assert!(near(warp(250.0, 50.0, &c), 50.0 * libm::exp(-2.0)));
    }

    /// At a twelfth of RMAX the rate stands still at a delay of 120 ms, which losses warp to a fifth of it.
    #[test]
    fn the_delay_of_the_equilibrium_is_not_warped_if_so_configured() {
        let table_2 = Config::default();
        assert!(near(warp_threshold(100e3, 1.2e6, &table_2), 50.0) && warp(120.0, 50.0, &table_2) < 25.0);
        let c = Config { qth_headroom: 1.5, ..table_2 };
        let at = |rate| warp_threshold(rate, 1.2e6, &c);
        assert!(near(at(1.2e6), 50.0) && near(at(360e3), 50.0) && near(at(100e3), 180.0), "{}", at(100e3));
        assert_eq!((at(1e3), at(0.0), at(f64::NAN)), (500.0, 500.0, 500.0), "XMAX");
        assert!(near(warp(120.0, at(100e3), &c), 120.0));
    }

    #[test]
    fn aggregates_as_equation_2() {
        let c = Config::default();
        // 7 + 2 * 0.5^2 + 10 * 3^2.
        assert!(near(aggregate(7.0, 0.005, 0.03, &c), 97.5));
        assert!(near(aggregate(0.0, 0.0, 1.0, &c), 500.0));
        let wide = Config { xmax: TimeDelta::from_micros(3_276_700), ..c };
        assert!(near(aggregate(0.0, 1.0, 0.0, &wide), 3_276.7));
    }

    #[test]
    fn smooths_ratios_as_equation_10() {
        let c = Config::default();
        let mut a = Aggregator::new(&Config::default());
        for k in 0..50 {
            if k % 5 == 4 {
                a.on_lost(1);
            }
            let marked = k % 10 == 0;
            a.on_arrival(Arrival { marked, ..arrival(k * 10, 20) }, &c);
        }
        // 10 of 60 sent are missing and 5 marked.
        let s = *a.report(50.0, &c);
        assert!(near(s.p_loss, 0.1 / 6.0) && near(s.p_mark, 0.1 / 12.0), "{s:?}");
        let s = *a.report(50.0, &c);
        assert!(near(s.p_loss, 0.19 / 6.0) && near(s.p_mark, 0.19 / 12.0), "{s:?}");
        assert_eq!(s.mode, NadaMode::GradualUpdate);
    }

    #[test]
    fn filters_delay_over_15_packets_or_less() {
        let feed = |c: &Config| {
            let mut a = Aggregator::new(&Config::default());
            a.on_arrival(arrival(0, -40), c);
            (1..=20).for_each(|k| a.on_arrival(arrival(20 * k, if k == 10 { -15 } else { 10 }), c));
            *a.report(50.0, c)
        };
        let c = Config::default();
        // The packet of -15 ms is the 11th from the end, 200 ms before it.
        assert!(near(feed(&c).d_queue, 25.0));
        assert!(near(feed(&Config { filter_taps: 10, ..c }).d_queue, 50.0));
        assert!(near(feed(&Config { filter_span: TimeDelta::from_millis(120), ..c }).d_queue, 50.0));
        assert!(near(feed(&Config { filter_taps: 10, ..c }).x_curr, 50.0));
    }

    #[test]
    fn ramps_up_only_on_an_idle_path() {
        let c = Config::default();
        let mut a = Aggregator::new(&Config::default());
        a.on_arrival(arrival(0, 0), &c);
        a.on_arrival(arrival(10, 9), &c);
        assert_eq!(a.report(50.0, &c).mode, NadaMode::AcceleratedRampUp);
        a.on_arrival(arrival(20, 10), &c);
        assert_eq!(a.report(50.0, &c).mode, NadaMode::GradualUpdate);
        a.on_arrival(arrival(521, 0), &c);
        assert_eq!(a.report(50.0, &c).mode, NadaMode::AcceleratedRampUp);
        a.on_lost(1);
        assert_eq!(a.report(50.0, &c).mode, NadaMode::GradualUpdate);
        a.on_arrival(arrival(522, 0), &c);
        assert_eq!(a.report(50.0, &c).mode, NadaMode::GradualUpdate);
        a.on_arrival(arrival(1_023, 0), &c);
        assert_eq!(a.report(50.0, &c).mode, NadaMode::AcceleratedRampUp);
    }

    #[test]
    fn marks_end_the_ramp_up_where_asked() {
        let mode = |c: &Config| {
            let mut a = Aggregator::new(&Config::default());
            a.on_arrival(Arrival { marked: true, ..arrival(0, 0) }, c);
            a.on_arrival(arrival(500, 0), c);
            let first = a.report(50.0, c).mode;
            a.on_arrival(arrival(501, 0), c);
            (first, a.report(50.0, c).mode)
        };
        let c = Config::default();
        assert_eq!(mode(&c), (NadaMode::GradualUpdate, NadaMode::AcceleratedRampUp));
        let without = Config { marks_end_ramp_up: false, ..c };
        assert_eq!(mode(&without), (NadaMode::AcceleratedRampUp, NadaMode::AcceleratedRampUp));
    }

    #[test]
    fn warping_fades_out_within_one_loss_interval() {
        let c = Config { open_loss_interval: false, multiloss: 2.0, dloss: TimeDelta::ZERO, ..Config::default() };
        let mut a = Aggregator::new(&Config::default());
        (0..100).for_each(|k| a.on_arrival(arrival(k, 0), &c));
        a.on_lost(1);
        // loss_int = 100, loss_exp = 200: the delay of 150 ms is warped to 50 / e until 200 packets after the loss,
        // is half-way back at 250 and plain from 300.
        let warped = 50.0 * libm::exp(-1.0);
        for n in 2..=320i64 {
            a.on_arrival(arrival(100 + n, 150), &c);
            let d = a.report(50.0, &c).d_tilde;
            match n {
                20..=200 => assert!(near(d, warped), "{n}: {d}"),
                250 => assert!(near(d, (warped + 150.0) / 2.0), "{n}: {d}"),
                300.. => assert!(near(d, 150.0), "{n}: {d}"),
                _ => {}
            }
        }
    }

    #[test]
    fn another_clock_restarts() {
        let c = Config::default();
        let mut a = Aggregator::new(&Config::default());
        (0..50).for_each(|k| a.on_arrival(arrival(k * 10, 5), &c));
        a.on_arrival(arrival(i64::MAX / 1_000_000, i64::MIN / 1_000_000), &c);
        assert!(a.report(50.0, &c).x_curr.is_finite());
        (50..100).for_each(|k| a.on_arrival(arrival(k * 10, 5), &c));
        let s = a.report(50.0, &c);
        assert!(near(s.d_queue, 0.0) && near(s.receive_rate, 800e3), "{s:?}");
    }

    #[test]
    fn a_late_packet_stays_lost_but_counts_as_received() {
        let c = Config::default();
        let mut a = Aggregator::new(&Config::default());
        (0..10).for_each(|k| a.on_arrival(arrival(k * 20, 0), &c));
        a.on_lost(1);
        a.on_arrival(arrival(200, 0), &c);
        a.on_arrival(Arrival { late: true, ..arrival(201, 0) }, &c);
        let s = a.report(50.0, &c);
        assert!(near(s.p_loss, 0.1 / 12.0), "{s:?}");
        assert!(near(s.receive_rate, 11.0 * 8_000.0 / 0.201), "{s:?}");
    }
}
