//! A forecast of capacity around any controller: `NAME+map`.
//!
//! V. Singh, "Protocols and Algorithms for Adaptive Multimedia Systems" (Aalto University, 2015), section 7.2: an end asks
//! a map of network coverage for the capacity along its way and "chooses the minimum" of what congestion control, the
//! other end and the map allow; section 3.4 lets an endpoint ignore cues that seem erroneous. The thesis does not say how
//! early to follow a fall nor how to find an error; both are choices made here.

mod postponed;

use crate::controller::{Controller, Coupled, Limits, ProbeCluster, RepairPlan, Target, TimeoutReason};
use crate::cue::{CapacityForecast, Cue, Fate, ForecastSegment, QueueState, SentPacket};
use crate::spec::{Setup, Spec, Start};
use crate::tunable::SetupError;
use postponed::Postponed;
use weir_units::{DataRate, DataSize, RemoteTimestamp, TimeDelta, Timestamp};

/// Suffix of a controller's name that adds a forecast.
pub const SUFFIX: &str = "+map";

/// Segments of a forecast that are kept: more than an hour in segments of 20 s.
const MAX_SEGMENTS: usize = 256;
/// Time over which delivery is compared with the forecast.
const WINDOW: TimeDelta = TimeDelta::from_secs(1);
/// Delay below which a queue counts as empty.
const EMPTY: TimeDelta = TimeDelta::from_millis(20);
/// Rise of the least delay in a window: clocks differ by less than 200 ppm.
const DRIFT: TimeDelta = TimeDelta::from_micros(200);
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
        /// Where between the median (0) and the lower quartile (1) the bound is. The lower quartile of a stretch holds a hole that is
        /// shorter than the stretch, and its median does not (measured on scenario coverage/bus-ride: docs/coverage.md).
        map_caution: f64 = 1.0, 0.0 => 1.0;
        /// Power of confidence × trust by which the bound is divided: 0 takes the forecast as it is until its weight is too low
        /// (measured there).
        map_doubt: f64 = 0.5, 0.0 => 1.0;
        /// Share of the forecast that media and their repair may use; the rest is for headers and variation of the encoder's
        /// rate, as with TMMBR-A (guess: 0.95).
        map_share: f64 = 0.95, 0.1 => 1.0;
        /// Growth of the bound in a second in which it held the controller back, nothing was lost and the path's queue was
        /// empty at times, so that a forecast that is too low is found out (guess: 0.25).
        map_growth: f64 = 0.25, 0.0 => 1.0;
        /// Share of its trust that a forecast loses in a second in which more than the tolerance was delivered
        /// (guess: 0.3).
        map_distrust: f64 = 0.3, 0.0 => 1.0;
        /// Trust that it regains in a second in which it was right (guess: 0.05).
        map_recovery: f64 = 0.05, 0.0 => 1.0;
        /// Ratio of delivered to forecast median up to which the forecast was right (guess: 1.1).
        map_tolerance: f64 = 1.1, 1.0 => 10.0;
    }
}

/// A controller whose rate a forecast bounds.
///
/// - Media and repair together are at most a share of the least capacity forecast from now to the horizon, divided by a power of
///   confidence × trust: a doubtful forecast bounds less. Media and pacing rate fall alike.
/// - The bound of the present grows while it holds the controller back, nothing is lost and the queue is empty at times. A loss
///   ends that growth, and so does a forecast that falls.
/// - A fall that is foretold within the horizon and has not come a second after it is postponed: the bound is that of the present until
///   it comes.
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
    /// Factor on the bound of the present segment, at least 1, and that segment's rates.
    growth: f64,
    grown: Option<(DataRate, DataRate)>,
    bound: Option<DataRate>,
    postponed: Postponed,
    delay: Delay,
    /// Whether the feedback has packets: without, what was sent and not reported lost counts as delivered.
    by_packet: bool,
    window: Window,
}

/// Delivery since its beginning.
#[derive(Clone, Copy, Default)]
struct Window {
    begin: Option<Timestamp>,
    delivered: DataSize,
    sent: DataSize,
    lost: u64,
    /// Whether there was any report.
    is_reported: bool,
    /// Whether the bound held the controller back at any time: one that follows what it sends comes back below it.
    is_held: bool,
    /// Least delay in the queue.
    queue: Option<TimeDelta>,
}

/// One-way delay above the least.
#[derive(Clone, Copy, Default)]
struct Delay {
    /// Departure and arrival of the first packet, from which delays count.
    first: Option<(Timestamp, RemoteTimestamp)>,
    least: Option<TimeDelta>,
}

impl Delay {
    fn of_packet(&mut self, departure: Timestamp, arrival: RemoteTimestamp) -> TimeDelta {
        let (from, to) = *self.first.get_or_insert((departure, arrival));
        (arrival - to) - (departure - from)
    }
    /// The delay in the queue, by a delay against any fixed offset.
    fn queue(&mut self, delay: TimeDelta) -> TimeDelta {
        let least = self.least.map_or(delay, |least| least.min(delay));
        self.least = Some(least);
        delay - least
    }
    /// Forgets the least delay slowly, since clocks drift.
    fn creep(&mut self) {
        self.least = self.least.map(|least| least + DRIFT);
    }
}

/// The registry entry of a controller with a forecast around it.
pub(crate) fn spec(inner: &Spec) -> Spec {
    let source = "V. Singh's thesis, section 7.2";
    Spec { foresees: true, ..inner.wrapped(SUFFIX, "bounded by a forecast of capacity", source, Config::params()) }
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
            grown: None,
            bound: None,
            postponed: Postponed::default(),
            delay: Delay::default(),
            by_packet: false,
            window: Window::default(),
        })
    }

    fn on_forecast(&mut self, forecast: &CapacityForecast<'_>) {
        if self.segments.is_empty() {
            // Arrivals before there was a forecast say nothing of it.
            self.window = Window::default();
        }
        self.segments.clear();
        self.segments.extend(forecast.segments.iter().filter(|s| s.from < s.to).take(MAX_SEGMENTS));
        self.since = forecast.now;
    }

    /// Stretches between two times from now.
    fn within(&self, from: TimeDelta, to: TimeDelta) -> impl Iterator<Item = &ForecastSegment> {
        let age = self.now.saturating_since(self.since);
        let (from, to) = (age + from, age + to);
        self.segments.iter().filter(move |s| s.from <= to && s.to > from)
    }

    /// The rate of a stretch in bit/s between its quartile and its median, and its weight; `None` if that is too low.
    fn weighed(&self, s: &ForecastSegment) -> Option<(f64, f64)> {
        let weight = weight(s.confidence) * self.trust;
        let is_weighty = weight >= self.config.map_least_weight && weight > 0.0;
        let (low, median) = (s.low.as_bps_f64().min(s.median.as_bps_f64()), s.median.as_bps_f64());
        is_weighty.then_some((median - self.config.map_caution * (median - low), weight))
    }

    /// Least rate that the forecast allows between two times from now, doubt included; `None` if it says nothing of them.
    fn allowed(&self, from: TimeDelta, to: TimeDelta) -> Option<DataRate> {
        let age = self.now.saturating_since(self.since);
        let growth = |s: &ForecastSegment| if s.from <= age && s.to > age { self.growth } else { 1.0 };
        let allows = |s: &ForecastSegment| {
            let (rate, weight) = self.weighed(s)?;
            let doubt = libm::pow(weight, self.config.map_doubt);
            Some(DataRate::from_bps_f64(self.config.map_share * rate * growth(s) / doubt))
        };
        self.within(from, to).filter_map(allows).min()
    }

    /// Least rate in bit/s that is forecast between now and a time from now.
    fn forecast_until(&self, to: TimeDelta) -> Option<f64> {
        self.within(TimeDelta::ZERO, to).filter_map(|s| Some(self.weighed(s)?.0)).reduce(f64::min)
    }

    /// Follows the forecast at `now`.
    fn follow(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        if !self.segments.is_empty() {
            self.judge();
        }
        let mut horizon = self.config.map_horizon;
        let (present, least) = (self.forecast_until(TimeDelta::ZERO), self.forecast_until(horizon));
        if self.postponed.is_next((present, least), horizon, self.now) {
            horizon = TimeDelta::ZERO;
        }
        self.bound = self.allowed(TimeDelta::ZERO, horizon);
    }

    /// Compares the last window with the forecast.
    fn judge(&mut self) {
        let wanted = self.inner.target().media_rate;
        let w = &mut self.window;
        let begin = *w.begin.get_or_insert(self.now);
        w.is_held |= self.bound.is_some_and(|bound| wanted > bound);
        // The median of now alone: what is forecast to fall later is not wrong yet.
        let age = self.now.saturating_since(self.since);
        let current = self.segments.iter().find(|s| s.from <= age && s.to > age);
        let rates = current.map(|s| (s.low, s.median));
        if self.grown != rates {
            // The growth learned where the map was too low holds for a rate that is no lower, and not for the next hole.
            let falls = self.grown.zip(rates).is_none_or(|(old, new)| new.1 < old.1);
            (self.grown, self.growth) = (rates, if falls { 1.0 } else { self.growth });
        }
        let time = self.now.saturating_since(begin);
        if time < WINDOW {
            return;
        }
        let done = core::mem::replace(w, Window { begin: Some(self.now), ..Window::default() });
        self.delay.creep();
        let arrived = match self.by_packet {
            true => done.delivered,
            false if done.is_reported && done.lost == 0 => done.sent,
            false => DataSize::ZERO,
        };
        let Some(median) = current.filter(|s| s.from + time <= age).map(|s| s.median.as_bps_f64()) else { return };
        if done.lost > 0 {
            self.growth = 1.0;
        } else if done.is_held && !arrived.is_zero() && done.queue.is_none_or(|queue| queue < EMPTY) {
            self.growth *= 1.0 + self.config.map_growth;
        }
        let delivered = DataRate::from_size_over(arrived, time).map_or(0.0, DataRate::as_bps_f64);
        if delivered > self.config.map_tolerance * median {
            self.trust = (self.trust * (1.0 - self.config.map_distrust)).max(LEAST_TRUST);
        } else {
            self.trust = (self.trust + self.config.map_recovery).min(1.0);
        }
    }

    fn on_delay(&mut self, delay: TimeDelta) {
        let queue = self.delay.queue(delay);
        self.window.queue = Some(self.window.queue.map_or(queue, |least| least.min(queue)));
    }

    /// The media rate that the bound leaves beside the repair.
    fn bounded(&self, rate: DataRate, repair: RepairPlan) -> DataRate {
        let media = match repair {
            RepairPlan::Off | RepairPlan::Standby { .. } | RepairPlan::BlockStandby { .. } => 1.0,
            RepairPlan::Parity { interval } => f64::from(interval) / (f64::from(interval) + 1.0),
            RepairPlan::ReedSolomon { block, repair } => 1.0 - f64::from(repair) / f64::from(block.max(1)),
        };
        let left = |bound: DataRate| DataRate::from_bps_f64(bound.as_bps_f64() * media).max(self.limits.floor);
        self.bound.map_or(rate, |bound| rate.min(left(bound)))
    }
}

impl<C: Controller> Controller for MapGuided<C> {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.window.sent += packet.size;
        self.inner.on_packet_sent(packet);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::CapacityForecast(forecast) => self.on_forecast(forecast),
            Cue::TransportFeedback(f) => {
                self.by_packet = true;
                for p in f.packets {
                    let Some(arrival) = p.arrival else {
                        self.window.lost += 1;
                        continue;
                    };
                    self.window.delivered += p.size;
                    let delay = self.delay.of_packet(p.departure, arrival);
                    self.on_delay(delay);
                }
            }
            Cue::IntervalReport(r) => {
                self.by_packet = true;
                for p in r.packets {
                    match p.fate {
                        Fate::Lost => self.window.lost += 1,
                        Fate::Received | Fate::Discarded => self.window.delivered += p.size,
                    }
                }
                if let Some(delay) = r.one_way_delay {
                    self.on_delay(delay.min);
                }
            }
            Cue::ReportBlock(b) => {
                self.window.is_reported = true;
                self.window.lost += u64::from(b.fraction_lost > 0.0);
            }
            _ => {}
        }
        self.inner.on_cue(cue);
        self.follow(cue.now());
    }
    fn on_rtcp(&mut self, datagram: &[u8], now: Timestamp) -> bool {
        self.inner.on_rtcp(datagram, now)
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
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        self.inner.on_queue(queue);
        self.follow(queue.now);
        true
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.inner.on_timeout(now);
        self.follow(now);
    }
    fn target(&self) -> Target {
        let inner = self.inner.target();
        let media_rate = self.bounded(inner.media_rate, inner.repair);
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
