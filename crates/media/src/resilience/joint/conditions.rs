//! A path as a joint plan sees it: losses and their bursts over some seconds, frames and their packets.

use weir_units::{TimeDelta, Timestamp};

/// Time after which a packet counts 1/e: 10 s, chosen here. It holds some outages that are seconds apart, and a path that has changed
/// is followed within some seconds.
const MEMORY: TimeDelta = TimeDelta::from_secs(10);
/// Weight of a new interval between frames in its mean, chosen here: about ten frames.
const INTERVAL_WEIGHT: f64 = 0.1;
/// Bounds of intervals between frames that count: 120 to 2 frames a second. Longer ones are pauses.
const INTERVALS: (TimeDelta, TimeDelta) = (TimeDelta::from_micros(8_333), TimeDelta::from_millis(500));
/// Interval between frames before one is measured: 30 a second.
const FIRST_INTERVAL: TimeDelta = TimeDelta::from_nanos(33_333_333);
/// Most packets of a burst that is no outage, whatever a frame has.
const SHORT: u64 = 4;
/// Packets of a frame before one is counted.
const FIRST_PACKETS: f64 = 4.0;

/// The inputs of a plan.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// Share of packets lost on the path one by one and in short bursts, before repair.
    pub loss: f64,
    /// Mean number of packets of such a burst.
    pub burst: f64,
    /// Share of packets lost in outages: bursts of more packets than a frame has, and of more than four.
    pub outages: f64,
    /// Mean number of packets of an outage.
    pub outage: f64,
    /// Round-trip time; half of it is taken as the delay of each way.
    pub rtt: TimeDelta,
    /// Packets that go with a frame, repair packets included.
    pub packets: f64,
    /// From frame to frame.
    pub interval: TimeDelta,
}

/// Packets, losses and frames, older ones with less weight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    packets: f64,
    /// In bursts, and their number.
    lost: f64,
    bursts: f64,
    /// In outages, and their number.
    out: f64,
    outages: f64,
    /// Packets lost since the last that arrived: of a kind that is not known yet.
    run: u64,
    media: f64,
    frames: f64,
    interval: Option<TimeDelta>,
    last_frame: Option<Timestamp>,
    aged: Option<Timestamp>,
}

impl Tally {
    /// The next packets in order have arrived, or are lost.
    pub fn on_packets(&mut self, count: u64, is_lost: bool) {
        if is_lost {
            self.run = self.run.saturating_add(count);
            return;
        }
        let run = core::mem::take(&mut self.run);
        self.packets += count as f64 + run as f64;
        if run > SHORT.max(self.packets_of_a_frame().ceil() as u64) {
            (self.out, self.outages) = (self.out + run as f64, self.outages + 1.0);
        } else if run > 0 {
            (self.lost, self.bursts) = (self.lost + run as f64, self.bursts + 1.0);
        }
    }

    /// A packet that was counted as lost has arrived.
    pub fn on_late(&mut self) {
        self.lost = (self.lost - 1.0).max(0.0);
        self.bursts = self.bursts.min(self.lost);
    }

    fn packets_of_a_frame(&self) -> f64 {
        if self.frames > 0.0 { (self.media / self.frames).max(1.0) } else { FIRST_PACKETS }
    }

    /// A report has this fraction of so many packets as lost, and says nothing of bursts.
    pub fn on_fraction(&mut self, lost: f64, packets: u64) {
        let (lost, packets) = (if lost.is_finite() { lost.clamp(0.0, 1.0) } else { 0.0 }, packets as f64);
        self.packets += packets;
        self.lost += lost * packets;
        self.bursts += lost * packets;
    }

    /// Packets of media, and the repair packets for each of them.
    pub fn on_media(&mut self, packets: u64, share: f64) {
        self.media += packets as f64 * (1.0 + share);
    }

    /// A frame of this capture time, by any clock.
    pub fn on_frame(&mut self, captured: Timestamp) {
        self.frames += 1.0;
        if let Some(last) = self.last_frame.replace(captured) {
            let apart = captured - last;
            if (INTERVALS.0..=INTERVALS.1).contains(&apart) {
                let mean = self.interval.unwrap_or(apart);
                self.interval = Some(mean + (apart - mean).mul_f64(INTERVAL_WEIGHT));
            }
        }
    }

    /// Takes weight off what is counted, by the time since the last call.
    pub fn age(&mut self, now: Timestamp) {
        let since = self.aged.replace(now).map_or(TimeDelta::ZERO, |last| now.saturating_since(last));
        let kept = libm::exp(-(since.as_secs_f64() / MEMORY.as_secs_f64()));
        let Self { packets, lost, bursts, out, outages, media, frames, .. } = self;
        for count in [packets, lost, bursts, out, outages, media, frames] {
            *count *= kept;
        }
    }

    /// The conditions on a path of this round trip.
    pub fn conditions(&self, rtt: TimeDelta) -> Conditions {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Conditions {
            loss: share(self.lost, self.packets).clamp(0.0, 1.0),
            burst: share(self.lost, self.bursts).max(1.0),
            outages: share(self.out, self.packets).clamp(0.0, 1.0),
            outage: share(self.out, self.outages).max(1.0),
            rtt: rtt.max(TimeDelta::ZERO),
            packets: self.packets_of_a_frame(),
            interval: self.interval.unwrap_or(FIRST_INTERVAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_bursts_are_those_of_the_last_seconds() {
        let mut t = Tally::default();
        let at = |ms| Timestamp::from_millis(ms);
        t.age(at(0));
        for frame in 0..100 {
            t.on_frame(at(frame * 40));
            t.on_media(4, 0.5);
            for (count, is_lost) in [(14, false), (1, true), (2, true), (1, false), (9, true), (3, false)] {
                t.on_packets(count, is_lost);
            }
        }
        let c = t.conditions(TimeDelta::from_millis(50));
        assert!((c.loss - 0.1).abs() < 1e-9 && (c.burst - 3.0).abs() < 1e-9 && (c.packets - 6.0).abs() < 1e-9, "{c:?}");
        assert!((c.outages - 0.3).abs() < 1e-9 && (c.outage - 9.0).abs() < 1e-9, "{c:?}");
        assert_eq!(c.interval, TimeDelta::from_millis(40));
        // Reordered packets are not lost.
        (0..150).for_each(|_| t.on_late());
        assert!((t.conditions(TimeDelta::ZERO).loss - 0.05).abs() < 1e-9);
        // 10 s later a packet counts 1/e, so that as many without a loss take more than half of the weight.
        t.age(at(10_000));
        t.on_packets(3_000, false);
        let loss = t.conditions(TimeDelta::ZERO).loss;
        assert!((loss - 0.05 / (1.0 + core::f64::consts::E)).abs() < 1e-4, "{loss}");
    }

    #[test]
    fn anything_may_be_reported() {
        let mut t = Tally::default();
        for lost in [f64::NAN, f64::INFINITY, -3.0, 7.0, 0.5] {
            t.on_fraction(lost, u64::MAX);
            t.on_packets(u64::MAX, true);
            t.on_packets(u64::MAX, true);
            t.on_packets(1, false);
            t.on_late();
            t.on_frame(Timestamp::MAX);
            t.on_frame(Timestamp::from_nanos(i64::MIN));
            t.age(Timestamp::MAX);
            let c = t.conditions(TimeDelta::from_nanos(i64::MIN));
            assert!(
                (0.0..=1.0).contains(&c.loss) && (0.0..=1.0).contains(&c.outages) && c.rtt >= TimeDelta::ZERO,
                "{c:?}"
            );
            assert!(c.burst >= 1.0 && c.outage >= 1.0 && c.packets >= 1.0, "{c:?}");
        }
    }
}
