//! Loss-based control by maximum likelihood (libwebrtc's default since December 2022: `LossBasedBweV2`).
//!
//! The model: a channel loses an inherent share p of the packets and everything above a bandwidth B. Among a few
//! candidates for B, each with its most likely p, the one with the highest likelihood of the recent losses is chosen,
//! with a bias towards more bandwidth. All constants are libwebrtc's defaults as of 2025.

use super::observations::{Below, ChannelParameters, Observations};
use crate::controller::Limits;
use crate::cue::PacketResult;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Least duration of an observation.
const MIN_DURATION: TimeDelta = TimeDelta::from_millis(250);
/// Observations needed for a result.
const MIN_OBSERVATIONS: u64 = 3;
/// Candidate bandwidths as multiples of the estimate; the acknowledged rate and the delay-based estimate are further
/// candidates.
const FACTORS: [f64; 3] = [1.02, 1.0, 0.95];
/// Bias towards higher bandwidth: per kbit/s, and per natural logarithm of it.
const BIAS: f64 = 0.0002;
const LOG_BIAS: f64 = 0.02;
/// Above this loss share the bias is reversed, smoothly over the width given second.
const BIAS_TURN: (f64, f64) = (0.2, 0.002);
/// Least inherent loss, and its initial value.
const MIN_INHERENT: f64 = 1e-3;
const INITIAL_INHERENT: f64 = 0.01;
/// Greatest inherent loss: an offset and a part that falls with the bandwidth (in bit/s).
const INHERENT_OFFSET: f64 = 0.05;
const INHERENT_BALANCE: f64 = 100e3;
/// With more loss than the offset, the bandwidth is at most the balance (in bit/s) divided by the excess.
const BOUND_OFFSET: f64 = 0.05;
const BOUND_BALANCE: f64 = 100e3;
const NEWTON_STEP: f64 = 0.75;
/// While loss limits the rate, the estimate grows to at most this multiple of the acknowledged rate; in a hold to the
/// second multiple if the acknowledged rate is below the third times the held rate ...
const RAMP_UP: f64 = 1.5;
const RAMP_UP_IN_HOLD: f64 = 1.2;
const HOLD_THRESHOLD: f64 = 1.3;
/// ... and by at most this factor in this time.
const MAX_INCREASE: f64 = 1.3;
const INCREASE_WINDOW: TimeDelta = TimeDelta::from_millis(300);
/// After a decrease the rate is held; each hold is longer by the factor.
const HOLD: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(300), TimeDelta::from_secs(60));
const HOLD_FACTOR: f64 = 2.0;
/// How long padding supports growth.
const PADDING_DURATION: TimeDelta = TimeDelta::from_secs(2);
/// The packets of one feedback message that are reported for the first time, and those lost of them: their number and
/// bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    pub(super) packets: u64,
    pub(super) size: u64,
    pub(super) lost: u64,
    pub(super) lost_size: u64,
}

/// The limit of the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LossState {
    /// Delay only.
    DelayBased,
    /// Loss, and the rate does not grow.
    Decreasing,
    /// Loss, and the rate grows while padding fills up the media.
    Increasing,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Option<Timestamp>,
    duration: TimeDelta,
    rate: f64,
}
const NO_HOLD: Hold = Hold { until: None, duration: HOLD.0, rate: f64::MAX };

/// The controller. The kernel computes in bit/s and kilobytes; `f64::MAX` means unbounded.
#[derive(Clone, Debug)]
pub(super) struct LossV2 {
    floor: f64,
    ceiling: f64,
    observations: Observations,
    overhead: u64,
    size: u64,
    lost: u64,
    /// Departure of the last packet of the newest observation.
    last_sent: Option<Timestamp>,
    best: Option<ChannelParameters>,
    acked: Option<f64>,
    loss: f64,
    upper_bound: f64,
    recovering_since: Option<Timestamp>,
    window_limit: f64,
    hold: Hold,
    padding: Option<(f64, Timestamp)>,
    result: f64,
    state: LossState,
}

impl LossV2 {
    /// A controller that counts `overhead` bytes in each packet beside its size.
    pub(super) fn new(limits: Limits, overhead: DataSize) -> Self {
        let mut c = Self {
            floor: 0.0,
            ceiling: 0.0,
            observations: Observations::default(),
            overhead: overhead.as_bytes(),
            size: 0,
            lost: 0,
            last_sent: None,
            best: None,
            acked: None,
            loss: 0.0,
            upper_bound: f64::MAX,
            recovering_since: None,
            window_limit: f64::MAX,
            hold: NO_HOLD,
            padding: None,
            result: 0.0,
            state: LossState::DelayBased,
        };
        c.set_limits(limits);
        c
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.floor = limits.floor.as_bps_f64();
        self.ceiling = limits.ceiling.as_bps_f64();
    }

    /// The rate was changed by this factor from outside: the bandwidth that losses are explained by moves along.
    pub(super) fn scale(&mut self, factor: f64) {
        if let Some(best) = &mut self.best {
            best.bandwidth *= factor;
        }
        self.result *= factor;
        for bound in [&mut self.window_limit, &mut self.hold.rate] {
            *bound = (*bound * factor).min(f64::MAX);
        }
    }

    /// The upper bound in bit/s, once there are enough observations.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.best.is_some() && self.observations.count() >= MIN_OBSERVATIONS).then_some(self.result)
    }
    pub(super) fn state(&self) -> LossState {
        if self.rate().is_some() { self.state } else { LossState::DelayBased }
    }

    /// Takes one feedback message, with its sums if nothing in it was reported lost earlier; rates in bit/s.
    pub(super) fn update(
        &mut self,
        packets: &[PacketResult],
        sums: Option<Sums>,
        acked: Option<f64>,
        delay: Option<f64>,
        in_alr: bool,
    ) {
        self.acked = acked.or(self.acked);
        let Some(now) = self.observe(packets, sums) else { return };
        let Some(current) = self.best.or(delay.map(|d| ChannelParameters { bandwidth: d, inherent: INITIAL_INHERENT }))
        else {
            return;
        };
        if self.best.is_none() {
            self.result = current.bandwidth;
        }
        let delay = delay.unwrap_or(f64::MAX);
        let mut best = self.choose(current, delay, in_alr, now);
        if self.loss > best.inherent && best.bandwidth > current.bandwidth {
            best.bandwidth = current.bandwidth;
        }
        if self.is_limited() {
            self.bound_growth(&mut best, current, now);
        }
        let bounded = best.bandwidth.min(self.upper_bound).min(delay).max(self.lower_bound());
        self.best = Some(if bounded < best.bandwidth {
            ChannelParameters { bandwidth: bounded, inherent: 0.0 }
        } else {
            ChannelParameters { bandwidth: best.bandwidth.max(self.lower_bound()), inherent: best.inherent }
        });
        if !self.holds(bounded, delay, now) {
            self.change_state(bounded, delay, now);
            self.result = bounded;
            if self.is_limited() && self.recovering_since.is_none_or(|t| t + INCREASE_WINDOW < now) {
                self.window_limit = self.best.map_or(f64::MAX, |b| b.bandwidth * MAX_INCREASE).max(5_000.0);
                self.recovering_since = Some(now);
            }
        }
    }

    fn is_limited(&self) -> bool {
        self.state != LossState::DelayBased
    }
    fn lower_bound(&self) -> f64 {
        self.acked.unwrap_or(0.0).max(self.floor)
    }

    /// Adds to the current interval; returns its end if it is long enough.
    fn observe(&mut self, packets: &[PacketResult], sums: Option<Sums>) -> Option<Timestamp> {
        let (first, last) = (packets.first()?.departure, packets.last()?.departure);
        match sums {
            Some(sums) => {
                self.size += sums.size + sums.packets * self.overhead;
                self.lost += sums.lost_size + sums.lost * self.overhead;
            }
            None => packets.iter().for_each(|p| self.add(p)),
        }
        let since = *self.last_sent.get_or_insert(first);
        let duration = last - since;
        if duration < MIN_DURATION {
            return None;
        }
        self.last_sent = Some(last);
        let (size, lost) = (self.size as f64 / 1e3, self.lost.min(self.size) as f64 / 1e3);
        let rate = size * 8e3 / duration.as_secs_f64();
        self.observations.push(size, lost, rate);
        (self.size, self.lost) = (0, 0);
        self.loss = self.observations.average_loss();
        let excess = self.loss - BOUND_OFFSET;
        self.upper_bound = if excess > 0.0 { BOUND_BALANCE / excess } else { self.ceiling };
        Some(last)
    }

    fn add(&mut self, p: &PacketResult) {
        let size = p.size.as_bytes() + self.overhead;
        match (p.arrival.is_some(), p.was_lost) {
            (true, true) => self.lost = self.lost.saturating_sub(size),
            (received, false) => {
                self.size += size;
                self.lost += if received { 0 } else { size };
            }
            (false, true) => {}
        }
    }

    fn choose(&self, current: ChannelParameters, delay: f64, in_alr: bool, now: Timestamp) -> ChannelParameters {
        let bound = if self.is_limited() { self.window_limit } else { self.ceiling }.max(current.bandwidth);
        let padding = self.padding.is_some_and(|(_, t)| t + PADDING_DURATION >= now);
        let acked = self.acked.filter(|_| !in_alr || padding);
        let delay = (delay > current.bandwidth && delay < f64::MAX).then_some(delay);
        let rates = FACTORS.map(|f| Some(f * current.bandwidth)).into_iter().chain([acked, delay]).flatten();
        let mut best = (f64::MIN, current);
        let mut below = Below::default();
        for rate in rates {
            let mut c = ChannelParameters { bandwidth: rate.min(bound), inherent: current.inherent };
            let excess = self.observations.excess(c.bandwidth);
            c.inherent = feasible(c);
            let slope = match &excess {
                Some(excess) => self.observations.slope(excess, c.inherent),
                None => below.slope(&self.observations, c.inherent),
            };
            c.inherent = newton(c, slope);
            let bias = self.bias(c.bandwidth);
            let objective = match &excess {
                Some(excess) => self.observations.objective(excess, c.inherent, bias),
                None => below.objective(&self.observations, c.inherent, bias),
            };
            // Of equal candidates the greater (libwebrtc, since 2026).
            if objective > best.0 || (objective == best.0 && c.bandwidth > best.1.bandwidth) {
                best = (objective, c);
            }
        }
        best.1
    }

    /// Bias a kilobyte towards a bandwidth.
    fn bias(&self, bandwidth: f64) -> f64 {
        let kbps = bandwidth / 1e3;
        let turn = (BIAS_TURN.0 - self.loss) / (BIAS_TURN.1 + (BIAS_TURN.0 - self.loss).abs());
        turn * (BIAS * kbps + LOG_BIAS * libm::log(1.0 + kbps))
    }

    /// While loss limits the rate, bounds growth over time and by the acknowledged rate.
    fn bound_growth(&self, best: &mut ChannelParameters, current: ChannelParameters, now: Timestamp) {
        if self.recovering_since.is_some_and(|t| t + INCREASE_WINDOW > now) {
            best.bandwidth = best.bandwidth.min(self.window_limit);
        }
        let grows = self.grows(current.bandwidth, best.bandwidth);
        if let Some(acked) = self.acked.filter(|_| grows) {
            let held = self.hold.rate < f64::MAX && acked < HOLD_THRESHOLD * self.hold.rate;
            let factor = if held { RAMP_UP_IN_HOLD } else { RAMP_UP };
            best.bandwidth = best.bandwidth.min(factor * acked).max(current.bandwidth);
            // Grows a little, so that the state changes and padding starts.
            if self.state == LossState::Decreasing && best.bandwidth == current.bandwidth {
                best.bandwidth += 1.0;
            }
        }
    }

    fn grows(&self, old: f64, new: f64) -> bool {
        self.is_limited() && (old < new || (old == new && self.state == LossState::Increasing))
    }

    /// After a decrease the rate does not exceed the held rate until the hold ends.
    fn holds(&mut self, bounded: f64, delay: f64, now: Timestamp) -> bool {
        let holds = self.state == LossState::Decreasing && self.hold.until.is_some_and(|t| t > now) && bounded < delay;
        if holds {
            self.hold.rate = self.hold.rate.max(self.lower_bound());
            self.result = self.hold.rate.min(bounded);
        }
        holds
    }

    fn change_state(&mut self, bounded: f64, delay: f64, now: Timestamp) {
        let limited = bounded < delay && bounded < self.ceiling;
        let keeps = self.state != LossState::Increasing
            || self.padding.is_none_or(|(rate, t)| t + PADDING_DURATION >= now || rate < bounded);
        if limited && keeps && self.grows(self.result, bounded) {
            if self.padding.is_none_or(|(rate, _)| bounded > rate) {
                self.padding = Some((bounded, now));
            }
            self.state = LossState::Increasing;
        } else if limited {
            if self.state != LossState::Decreasing {
                let duration = self.hold.duration;
                self.hold = Hold {
                    until: Some(now + duration),
                    duration: duration.mul_f64(HOLD_FACTOR).min(HOLD.1),
                    rate: bounded,
                };
            }
            self.padding = None;
            self.state = LossState::Decreasing;
        } else {
            self.hold = NO_HOLD;
            self.padding = None;
            self.state = LossState::DelayBased;
        }
    }
}

/// One Newton step towards the most likely inherent loss, by the first and second derivative.
fn newton(c: ChannelParameters, (first, second): (f64, f64)) -> f64 {
    let second = if second < 0.0 { second } else { -1e-6 };
    feasible(ChannelParameters { inherent: c.inherent - NEWTON_STEP * first / second, ..c })
}

fn feasible(c: ChannelParameters) -> f64 {
    let most = if c.bandwidth > 0.0 { (INHERENT_OFFSET + INHERENT_BALANCE / c.bandwidth).min(1.0) } else { 1.0 };
    c.inherent.max(MIN_INHERENT).min(most)
}

#[cfg(test)]
mod tests;
