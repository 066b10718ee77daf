//! A forecast of capacity around any controller: `NAME+map`.
//!
//! V. Singh, "Protocols and Algorithms for Adaptive Multimedia Systems" (Aalto University, 2015), section 7.2: an end asks
//! a map of network coverage for the capacity along its way and "chooses the minimum" of what congestion control, the
//! other end and the map allow; section 3.4 lets an endpoint ignore cues that seem erroneous. The thesis does not say how
//! early to follow a fall nor how to find an error; both are choices made here.

use crate::controller::{Controller, Coupled, Limits, ProbeCluster, Target, TimeoutReason};
use crate::cue::{CapacityForecast, Cue, ForecastSegment, QueueState, SentPacket};
use crate::spec::{Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Suffix of a controller's name that adds a forecast.
pub const SUFFIX: &str = "+map";

/// Segments of a forecast that are kept: more than an hour in segments of 20 s.
const MAX_SEGMENTS: usize = 256;
/// Time over which delivery is compared with the forecast.
const WINDOW: TimeDelta = TimeDelta::from_secs(1);
/// Least trust: from here it can recover.
const LEAST_TRUST: f64 = 0.01;

crate::tunables! {
    /// Configuration of the bound; the inner controller has its own.
    pub struct Config {
        /// How early the rate falls before the capacity does (guess: 1.5 s, in which a queue of a second drains into the
        /// link while it still has capacity).
        map_horizon: TimeDelta = 1_500.0, 0.0 => 60_000.0;
        /// Product of confidence and trust below which the forecast is ignored (guess: 0.2).
        map_least_weight: f64 = 0.2, 0.0 => 1.0;
        /// Growth of the bound in a second in which it held the controller back and nothing was lost, so that a forecast
        /// that is too low is found out (guess: 0.1).
        map_growth: f64 = 0.1, 0.0 => 1.0;
        /// Share of its trust that a forecast loses in a second in which more than the tolerance was delivered
        /// (guess: 0.3).
        map_distrust: f64 = 0.3, 0.0 => 1.0;
        /// Trust that it regains in a second in which it was right (guess: 0.05).
        map_recovery: f64 = 0.05, 0.0 => 1.0;
        /// Ratio of delivered to forecast rate up to which the forecast was right (guess: 1.5).
        map_tolerance: f64 = 1.5, 1.0 => 10.0;
    }
}

/// A controller whose rate a forecast bounds.
///
/// - The media rate is at most the least median of the capacity forecast from now to the horizon, divided by
///   confidence × trust: a doubtful forecast bounds less. Media and pacing rate fall alike.
/// - The bound of the present grows slowly while it holds the controller back and nothing is lost. A controller whose rate
///   falls below it, or a loss, ends that growth.
/// - Trust is 1 at first. In each second in which more than the tolerance times the present median was delivered, the
///   forecast loses a share of its trust; in others it regains some.
/// - Below the least weight, after its end, and where it knows nothing, the forecast changes nothing.
///
/// A forecast never raises the rate: see [`start_rate`] for a call's beginning.
pub struct MapGuided<C> {
    inner: C,
    config: Config,
    limits: Limits,
    /// The latest forecast, from its beginning.
    segments: Vec<ForecastSegment>,
    since: Timestamp,
    now: Timestamp,
    trust: f64,
    /// Factor on the bound of the present segment, at least 1, and that segment's begin.
    growth: f64,
    grown: TimeDelta,
    bound: Option<DataRate>,
    window: Window,
}

/// Delivery since its beginning.
#[derive(Clone, Copy)]
struct Window {
    begin: Option<Timestamp>,
    delivered: DataSize,
    lost: u64,
    /// Whether the bound held the controller back at all times.
    is_held: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self { begin: None, delivered: DataSize::ZERO, lost: 0, is_held: true }
    }
}

/// The registry entry of a controller with a forecast around it.
pub(crate) fn spec(inner: &Spec) -> Spec {
    inner.wrapped(SUFFIX, "bounded by a forecast of capacity", "V. Singh's thesis, section 7.2", Config::params())
}

/// Separates the parameters of [`Config`] from a setup; the rest are the inner controller's.
pub(crate) fn split(setup: &Setup) -> Result<(Config, Setup), SetupError> {
    let (own, inner) = setup.split(&Config::params());
    Ok((Config::from_params(SUFFIX, &own)?, inner))
}

/// The rate at which a call may begin by a forecast: its lower quartile over the first two seconds, times its confidence,
/// within the limits; `fallback` where it knows nothing or less than the fallback. A controller reaches the capacity from
/// there sooner than from a rate that fits every network.
pub fn start_rate(segments: &[ForecastSegment], limits: Limits, fallback: DataRate) -> DataRate {
    let horizon = TimeDelta::from_secs(2);
    let first = segments.iter().filter(|s| s.from < horizon && s.to > TimeDelta::ZERO);
    let careful = |s: &ForecastSegment| DataRate::from_bps_f64(s.low.as_bps_f64() * weight(s.confidence));
    let least = first.map(careful).min();
    least.map_or(fallback, |rate| limits.clamp(rate.max(fallback)))
}

/// A confidence within 0 to 1; NaN is none.
fn weight(confidence: f64) -> f64 {
    if confidence.is_nan() { 0.0 } else { confidence.clamp(0.0, 1.0) }
}

impl<C: Controller> MapGuided<C> {
    /// Wraps a controller made from the same start. Errors: see [`Config::check`].
    pub fn new(config: Config, inner: C, start: &Start) -> Result<Self, SetupError> {
        config.check(SUFFIX)?;
        Ok(Self {
            inner,
            config,
            limits: start.limits,
            segments: Vec::new(),
            since: start.now,
            now: start.now,
            trust: 1.0,
            growth: 1.0,
            grown: TimeDelta::ZERO,
            bound: None,
            window: Window::default(),
        })
    }

    fn on_forecast(&mut self, forecast: &CapacityForecast<'_>) {
        self.segments.clear();
        (self.growth, self.grown) = (1.0, TimeDelta::ZERO);
        self.segments.extend(forecast.segments.iter().filter(|s| s.from < s.to).take(MAX_SEGMENTS));
        self.since = forecast.now;
    }

    /// What the forecast allows between two times from now, with doubt; `None` if nothing.
    fn allowed(&self, from: TimeDelta, to: TimeDelta) -> Option<DataRate> {
        let age = self.now.saturating_since(self.since);
        let (from, to) = (age + from, age + to);
        let within = self.segments.iter().filter(|s| s.from <= to && s.to > from);
        let growth = |s: &ForecastSegment| if s.from <= age && self.grown == s.from { self.growth } else { 1.0 };
        let allows = |s: &ForecastSegment| {
            let weight = weight(s.confidence) * self.trust;
            let is_weighty = weight >= self.config.map_least_weight && weight > 0.0;
            is_weighty.then(|| DataRate::from_bps_f64(s.median.as_bps_f64() * growth(s) / weight))
        };
        within.filter_map(allows).min()
    }

    /// Follows the forecast at `now`.
    fn follow(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        if !self.segments.is_empty() {
            self.judge();
        }
        self.bound = self.allowed(TimeDelta::ZERO, self.config.map_horizon);
    }

    /// Compares the last window with the forecast.
    fn judge(&mut self) {
        let wanted = self.inner.target().media_rate;
        let w = &mut self.window;
        let begin = *w.begin.get_or_insert(self.now);
        w.is_held &= self.bound.is_some_and(|bound| wanted > bound);
        let time = self.now.saturating_since(begin);
        if time < WINDOW {
            return;
        }
        let done = core::mem::replace(w, Window { begin: Some(self.now), is_held: true, ..Window::default() });
        // The median of now alone: what is forecast to fall later is not wrong yet.
        let age = self.now.saturating_since(self.since);
        let current = self.segments.iter().find(|s| s.from <= age - time && s.to > age);
        let Some((begin, median)) = current.map(|s| (s.from, s.median.as_bps_f64())) else { return };
        if self.grown != begin || done.lost > 0 || !done.is_held {
            (self.grown, self.growth) = (begin, 1.0);
        } else {
            self.growth *= 1.0 + self.config.map_growth;
        }
        let delivered = DataRate::from_size_over(done.delivered, time).map_or(0.0, DataRate::as_bps_f64);
        if delivered > self.config.map_tolerance * median {
            self.trust = (self.trust * (1.0 - self.config.map_distrust)).max(LEAST_TRUST);
        } else {
            self.trust = (self.trust + self.config.map_recovery).min(1.0);
        }
    }

    fn bounded(&self, rate: DataRate) -> DataRate {
        self.bound.map_or(rate, |bound| rate.min(bound.max(self.limits.floor)))
    }
}

impl<C: Controller> Controller for MapGuided<C> {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.inner.on_packet_sent(packet);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::CapacityForecast(forecast) => self.on_forecast(forecast),
            Cue::TransportFeedback(f) => {
                for p in f.packets {
                    match p.arrival {
                        Some(_) => self.window.delivered += p.size,
                        None => self.window.lost += 1,
                    }
                }
            }
            Cue::ReportBlock(b) => self.window.lost += u64::from(b.fraction_lost > 0.0),
            _ => {}
        }
        self.inner.on_cue(cue);
        self.follow(cue.now());
    }
    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.inner.on_limits(limits, now);
        self.limits = limits;
        self.follow(now);
    }
    fn coupled_rate(&self) -> Option<DataRate> {
        self.inner.coupled_rate()
    }
    fn on_coupled(&mut self, coupled: &Coupled, now: Timestamp) {
        self.inner.on_coupled(coupled, now);
    }
    fn on_queue(&mut self, queue: &QueueState) {
        self.inner.on_queue(queue);
        self.follow(queue.now);
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.inner.on_timeout(now);
        self.follow(now);
    }
    fn target(&self) -> Target {
        let inner = self.inner.target();
        let media_rate = self.bounded(inner.media_rate);
        let Some(share) = media_rate.ratio(inner.media_rate).filter(|share| *share < 1.0) else { return inner };
        // The queue leaves faster than the media enter it, as under the inner controller.
        let pacing_rate = DataRate::from_bps_f64(inner.pacing_rate.as_bps_f64() * share);
        Target { media_rate, pacing_rate, padding_rate: inner.padding_rate.min(media_rate), ..inner }
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.inner.poll_timeout()
    }
    fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> {
        let probe = self.inner.poll_probe(now);
        // A probe above what the map allows would fill the queue that the bound avoids.
        probe.filter(|p| self.bound.is_none_or(|bound| p.rate <= bound))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.inner.metrics(out);
        out("map_bound_bps", self.bound.map_or(f64::NAN, DataRate::as_bps_f64));
        out("map_trust", self.trust);
    }
}

#[cfg(test)]
mod tests;
