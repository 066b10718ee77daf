//! Unresponsive traffic: constant-rate and on-off sources, and counting sinks.

use crate::agent::Agent;
use crate::distribution::{Distribution, DistributionError, Random};
use crate::packet::Packet;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// Distributions of the times of an on-off source.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OnOff {
    /// Sending time in seconds.
    pub on: Distribution,
    /// Silent time in seconds.
    pub off: Distribution,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// A source of packets of one size at one rate, continuous or in talk spurts; a spurt begins with a packet.
#[derive(Clone, Debug)]
pub struct Source {
    size: DataSize,
    ecn: Ecn,
    pace: Pace,
    next: Option<Timestamp>,
    spurts: Option<Spurts>,
    sent: u64,
    /// Whether the last call left nothing to send before `next`.
    settled: bool,
}

#[derive(Clone, Debug)]
struct Spurts {
    config: OnOff,
    random: Random,
    /// End of the current spurt.
    until: Timestamp,
}

/// The time between packets without drift: whole nanoseconds, with the remainder carried over.
#[derive(Clone, Copy, Debug)]
struct Pace {
    whole: TimeDelta,
    rest: u64,
    carry: u64,
    rate: u64,
}

impl Pace {
    fn new(rate: DataRate, size: DataSize) -> Option<Self> {
        let rate = rate.as_bps();
        let ns = u128::from(size.as_bits()) * 1_000_000_000;
        let whole = ns.checked_div(u128::from(rate)).filter(|&w| w > 0)?;
        let rest = (ns % u128::from(rate)) as u64;
        Some(Self { whole: TimeDelta::from_nanos(i64::try_from(whole).ok()?), rest, carry: 0, rate })
    }
    #[inline]
    fn step(&mut self) -> TimeDelta {
        self.carry += self.rest;
        if self.carry >= self.rate {
            self.carry -= self.rate;
            self.whole + TimeDelta::from_nanos(1)
        } else {
            self.whole
        }
    }
}

impl Source {
    /// A continuous source of `rate` in packets of `size` bytes on the wire. A rate of zero, or with packets less than
    /// a nanosecond apart, sends nothing.
    pub fn constant(rate: DataRate, size: DataSize) -> Self {
        let pace = Pace::new(rate, size);
        let stopped = Pace { whole: TimeDelta::MAX, rest: 0, carry: 0, rate: 1 };
        Self {
            size,
            ecn: Ecn::NotEct,
            next: pace.map(|_| Timestamp::ZERO),
            pace: pace.unwrap_or(stopped),
            spurts: None,
            sent: 0,
            settled: false,
        }
    }

    /// The same in spurts; it begins with a silent time.
    ///
    /// Errors: as for [`Distribution::check`].
    pub fn on_off(rate: DataRate, size: DataSize, config: OnOff) -> Result<Self, DistributionError> {
        config.on.check()?;
        config.off.check()?;
        let spurts = Spurts { config, random: Random::new(config.seed), until: Timestamp::ZERO };
        Ok(Self { spurts: Some(spurts), ..Self::constant(rate, size) })
    }

    /// Sets the ECN field of every packet.
    #[must_use]
    pub fn with_ecn(mut self, ecn: Ecn) -> Self {
        self.ecn = ecn;
        self
    }

    /// Packets sent so far.
    pub const fn packets(&self) -> u64 {
        self.sent
    }

    /// Moves the next packet from the end of a spurt to the beginning of the next one.
    fn skip_silence(&mut self) {
        let (Some(s), Some(next)) = (&mut self.spurts, &mut self.next) else { return };
        // Repeated draws of zero for both times must not stall the simulation.
        for _ in 0..1_000 {
            if *next < s.until {
                return;
            }
            *next = s.until.max(*next) + TimeDelta::from_secs_f64(s.config.off.sample(&mut s.random));
            s.until = *next + TimeDelta::from_secs_f64(s.config.on.sample(&mut s.random));
        }
        self.next = None;
    }
}

impl Agent for Source {
    fn on_start(&mut self, now: Timestamp) {
        if let Some(next) = &mut self.next {
            *next = now;
            if let Some(s) = &mut self.spurts {
                s.until = now;
            }
            self.skip_silence();
        }
    }
    fn on_packet(&mut self, _now: Timestamp, _packet: &Packet) {}
    fn on_timeout(&mut self, _now: Timestamp) {}
    #[inline]
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        self.next
    }
    #[inline]
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        let Some(next) = self.next.filter(|&t| t <= now) else { return false };
        packet.size = self.size;
        packet.ecn = self.ecn;
        self.sent += 1;
        let following = next + self.pace.step();
        self.next = Some(following);
        self.settled = following > now;
        if self.spurts.is_some() {
            self.skip_silence();
        }
        true
    }
    #[inline]
    fn is_settled(&self) -> bool {
        self.settled
    }
}

/// Counts packets of any kind, and responds to none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sink {
    packets: u64,
    size: DataSize,
    marked: u64,
    delay_sum_ns: u128,
    delay_range: Option<(TimeDelta, TimeDelta)>,
}

impl Sink {
    /// Packets received.
    pub const fn packets(&self) -> u64 {
        self.packets
    }
    /// Their bytes on the wire.
    pub const fn size(&self) -> DataSize {
        self.size
    }
    /// Packets received with a CE mark.
    pub const fn marked(&self) -> u64 {
        self.marked
    }
    /// The mean one-way delay.
    pub fn mean_delay(&self) -> Option<TimeDelta> {
        let mean = self.delay_sum_ns.checked_div(u128::from(self.packets))?;
        Some(TimeDelta::from_nanos(i64::try_from(mean).unwrap_or(i64::MAX)))
    }
    /// The minimum and maximum one-way delay.
    pub const fn delay_range(&self) -> Option<(TimeDelta, TimeDelta)> {
        self.delay_range
    }
}

impl Agent for Sink {
    #[inline]
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        self.packets += 1;
        self.size += packet.size;
        self.marked += u64::from(packet.ecn == Ecn::Ce);
        let delay = now.saturating_since(packet.sent);
        self.delay_sum_ns += u128::from(delay.as_nanos().unsigned_abs());
        self.delay_range = Some(match self.delay_range {
            Some((low, high)) => (low.min(delay), high.max(delay)),
            None => (delay, delay),
        });
    }
    fn on_timeout(&mut self, _now: Timestamp) {}
    fn is_silent(&self) -> bool {
        true
    }
    #[inline]
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        None
    }
    #[inline]
    fn poll_transmit(&mut self, _now: Timestamp, _packet: &mut Packet) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times at which a source sends, up to `end`.
    fn times(mut source: Source, start: Timestamp, end: Timestamp) -> Vec<Timestamp> {
        source.on_start(start);
        let (mut sent, mut packet) = (vec![], Packet::blank());
        while let Some(at) = source.poll_timeout().filter(|&t| t <= end) {
            source.on_timeout(at);
            while source.poll_transmit(at, &mut packet) {
                sent.push(at);
            }
        }
        sent
    }

    #[test]
    fn a_constant_rate_does_not_drift() {
        // 1,000-byte packets at 3 Mbit/s are 2,666,666.67 ns apart: exactly 375 a second.
        let source = Source::constant(DataRate::from_mbps(3), DataSize::from_bytes(1_000));
        let sent = times(source, Timestamp::from_secs(1), Timestamp::from_nanos(101_000_000_000 - 1));
        assert_eq!(sent.len(), 37_500);
        assert_eq!(sent[3], Timestamp::from_nanos(1_008_000_000));
    }

    #[test]
    fn nothing_is_sent_at_rate_zero_or_without_end_at_once() {
        for (rate, size) in
            [(DataRate::ZERO, 1_000), (DataRate::from_bps(u64::MAX), 1_000), (DataRate::from_mbps(1), 0)]
        {
            let source = Source::constant(rate, DataSize::from_bytes(size));
            assert_eq!(times(source, Timestamp::ZERO, Timestamp::from_secs(10)), []);
        }
    }

    /// The Hurst parameter of bytes in equal intervals, by the variance of means over 2^k of them (a variance-time plot: Leland and
    /// others, 1994): it falls as 2^(k (2H - 2)). From 2^`least` on, as long as there are 100 means.
    fn hurst(counts: &[f64], least: usize) -> f64 {
        let mut points = vec![];
        for k in (least..).take_while(|k| counts.len() >> k >= 100) {
            let means: Vec<f64> =
                counts.chunks_exact(1 << k).map(|c| c.iter().sum::<f64>() / (1u32 << k) as f64).collect();
            let mean = means.iter().sum::<f64>() / means.len() as f64;
            let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / means.len() as f64;
            points.push((k as f64, libm::log2(variance)));
        }
        let n = points.len() as f64;
        let (x, y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
        let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
            / points.iter().map(|p| (p.0 - x) * (p.0 - x)).sum::<f64>();
        1.0 + slope / 2.0
    }

    #[test]
    fn many_sources_with_pareto_times_are_self_similar_and_with_exponential_ones_are_not() {
        // 40 sources of 20 packets a second while on, for four hours, in intervals of 100 ms.
        let (seconds, sources) = (14_400, 40);
        let estimate = |times_of: &dyn Fn() -> Distribution| {
            let mut counts = vec![0.0; seconds as usize * 10];
            for seed in 0..sources {
                let config = OnOff { on: times_of(), off: times_of(), seed };
                let source = Source::on_off(DataRate::from_kbps(16), DataSize::from_bytes(100), config).expect("valid");
                for at in times(source, Timestamp::ZERO, Timestamp::from_secs(seconds)) {
                    if let Some(count) = counts.get_mut((at.as_nanos() / 100_000_000) as usize) {
                        *count += 1.0;
                    }
                }
            }
            // From 6.4 s on, beyond the times' own mean.
            hurst(&counts, 6)
        };
        for h in [0.7, 0.8, 0.9] {
            let pareto = || Distribution::pareto_with_mean(0.5, 3.0 - 2.0 * h).expect("valid");
            let found = estimate(&pareto);
            eprintln!("Hurst parameter {h}: {found:.3}");
            assert!((found - h).abs() < 0.1, "{h}: {found}");
        }
        let poisson = estimate(&|| Distribution::Exponential { mean: 0.5 });
        eprintln!("exponential times: {poisson:.3}");
        assert!((poisson - 0.5).abs() < 0.1, "{poisson}");
    }

    #[test]
    fn an_on_off_source_is_on_for_its_share() {
        let config = OnOff {
            on: Distribution::Exponential { mean: 1.0 },
            off: Distribution::Exponential { mean: 3.0 },
            seed: 3,
        };
        let source = Source::on_off(DataRate::from_kbps(80), DataSize::from_bytes(100), config).expect("valid");
        // 100 packets per second while on, a quarter of the time.
        let n = times(source, Timestamp::ZERO, Timestamp::from_secs(20_000)).len();
        assert!((485_000..515_000).contains(&n), "{n}");
    }

    #[test]
    fn times_of_zero_do_not_hold_up_the_simulation() {
        let zero = Distribution::Constant { value: 0.0 };
        let config = OnOff { on: zero, off: zero, seed: 1 };
        let source = Source::on_off(DataRate::from_mbps(1), DataSize::from_bytes(100), config).expect("valid");
        assert_eq!(times(source, Timestamp::ZERO, Timestamp::from_secs(1)), []);
    }
}
