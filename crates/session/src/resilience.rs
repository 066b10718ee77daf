//! Error resilience beside the controller: the mechanisms in use at each end, and their share of the rate.
//!
//! Each mechanism is controlled at one end only. The receiver decides whether lost packets and reference pictures are
//! requested; a sender with support always responds. The sender decides on slice sizes and unequal protection, to which
//! a receiver adapts. Both apply the same policy to the same values: the fraction lost in each report, as written by
//! the receiver and read by the sender, and the round-trip time.

use crate::nack::GapCounts;
use crate::protection::RepairChoice;
use weir_cc::cue::{Fate, IntervalPacket};
use weir_fec::{Protection, Scheme};
use weir_media::resilience::{Conditions, Decision, Policy, PolicyConfig, UnequalProtection};
use weir_media::utility::Preference;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Configuration of error resilience; the same at both ends.
pub type ResilienceConfig = PolicyConfig;

/// Time over which one share is measured.
const WINDOW: TimeDelta = TimeDelta::from_millis(200);
/// Weight of a new share: a mean over about a second.
const WEIGHT: f64 = 0.25;
/// Least change of the share that is applied to the source, so that small changes do not disturb it.
const STEP: f64 = 0.01;
/// Greatest share of the rate for resilience.
const MOST: f64 = 0.5;

/// The share of the sending rate used by error resilience, by which the media rate is reduced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    since: Timestamp,
    media: u64,
    extra: u64,
    mean: f64,
    /// The share applied to the source.
    applied: f64,
}

impl Room {
    /// Room for a share that is known beforehand, or none.
    pub(crate) fn new(now: Timestamp, share: f64) -> Self {
        let share = share.clamp(0.0, MOST);
        Self { since: now, media: 0, extra: 0, mean: share, applied: share }
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, bytes: u64, is_extra: bool) {
        *if is_extra { &mut self.extra } else { &mut self.media } += bytes;
    }

    /// Whether the source needs a new rate. `least` is the share that is known to be used from now on.
    pub(crate) fn update(&mut self, now: Timestamp, least: f64) -> bool {
        if now - self.since < WINDOW || self.media + self.extra == 0 {
            return false;
        }
        let share = self.extra as f64 / (self.media + self.extra) as f64;
        self.mean = (self.mean + WEIGHT * (share - self.mean)).max(least);
        (self.since, self.media, self.extra) = (now, 0, 0);
        let changed = (self.mean - self.applied).abs() > STEP;
        if changed {
            self.applied = self.mean.min(MOST);
        }
        changed
    }

    /// The rate left for media.
    pub(crate) fn within(&self, rate: DataRate) -> DataRate {
        DataRate::from_bps_f64(rate.as_bps_f64() * (1.0 - self.applied))
    }
}

/// Error resilience of the sending direction.
#[derive(Clone, Debug)]
pub(crate) struct SendResilience {
    policy: Policy,
    rtt: TimeDelta,
    /// Mean length of loss bursts, if reports include it.
    burst: f64,
    /// The size last set at the source.
    pub slice_size: Option<DataSize>,
    /// The protection of media set by this policy.
    pub protection: Option<UnequalProtection>,
    /// Source of repair packets while this policy sets no protection.
    pub otherwise: RepairChoice,
    /// Whether the controller plans repair itself, which disables unequal protection.
    pub yields: bool,
    /// The last that the call gives up, by which there may be no repair packets beside retransmissions.
    preference: Option<Preference>,
}

impl SendResilience {
    pub(crate) fn new(config: ResilienceConfig, max_payload: DataSize, otherwise: RepairChoice) -> Self {
        let mut slice_sizes = config.slice_sizes;
        slice_sizes.max = slice_sizes.max.min(max_payload).max(slice_sizes.min);
        Self {
            policy: Policy::new(ResilienceConfig { slice_sizes, ..config }),
            rtt: TimeDelta::ZERO,
            burst: 1.0,
            slice_size: None,
            protection: None,
            otherwise,
            yields: false,
            preference: None,
        }
    }

    /// By what the call gives up last.
    pub(crate) fn with_preference(self, preference: Option<Preference>) -> Self {
        Self { preference, ..self }
    }

    /// A report of this fraction lost was received.
    pub(crate) fn on_loss(&mut self, loss: f64, rtt: Option<TimeDelta>) {
        self.rtt = rtt.unwrap_or(self.rtt);
        self.policy.update(&Conditions { loss, burst: self.burst, rtt: self.rtt, one_way_delay: None });
    }

    /// The fates of an interval's packets, if reported.
    pub(crate) fn on_interval(&mut self, packets: &[IntervalPacket]) {
        let (mut lost, mut runs, mut last) = (0u32, 0u32, Fate::Received);
        for p in packets {
            if p.fate == Fate::Lost {
                lost += 1;
                runs += u32::from(last != Fate::Lost);
            }
            last = p.fate;
        }
        if runs > 0 {
            self.burst = f64::from(lost) / f64::from(runs);
        }
    }

    /// The source does not support slices of a given size.
    pub(crate) fn without_slices(&mut self) {
        let mut capabilities = self.policy.config().capabilities;
        capabilities.slices = false;
        self.policy.set_capabilities(capabilities);
    }

    pub(crate) fn decision(&self) -> Decision {
        *self.policy.decision()
    }

    /// How media is to be protected, unless the controller does it or the application prefers the rate.
    pub(crate) fn wanted_protection(&self) -> Option<UnequalProtection> {
        let decision = self.decision();
        let is_wanted = !self.yields && self.preference.is_none_or(|p| p.protects(&decision));
        decision.protection.filter(|_| is_wanted)
    }
}

/// The code for a kind of frame: parity, spread over as many groups as the length of loss bursts to be tolerated.
fn scheme(interval: u8, burst: u8) -> Scheme {
    if burst > 1 { Scheme::Interleaved { columns: burst, rows: interval } } else { Scheme::Parity { interval } }
}

/// Unequal protection as codes. Frames that nothing refers to are not protected.
pub(crate) fn unequal(p: UnequalProtection) -> RepairChoice {
    // A key frame has few packets, so its groups are not spread.
    let key = Some(scheme(p.key, 1));
    RepairChoice::Fixed(Protection::ByImportance { key, reference: Some(scheme(p.reference, p.burst)), other: None })
}

/// Error resilience of the receiving direction.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveResilience {
    policy: Policy,
    rtt: TimeDelta,
    /// Losses at the previous report.
    reported: GapCounts,
}

impl ReceiveResilience {
    pub(crate) fn new(config: ResilienceConfig) -> Self {
        Self { policy: Policy::new(config), rtt: TimeDelta::ZERO, reported: GapCounts::default() }
    }

    pub(crate) fn on_rtt(&mut self, rtt: TimeDelta) {
        self.rtt = rtt;
    }

    /// A report of this fraction lost is sent; `total` are all losses so far.
    pub(crate) fn on_loss(&mut self, loss: f64, total: GapCounts) {
        let missing = total.missing.saturating_sub(self.reported.missing);
        let gaps = total.gaps.saturating_sub(self.reported.gaps);
        self.reported = total;
        let burst = if gaps > 0 { missing as f64 / gaps as f64 } else { 1.0 };
        self.policy.update(&Conditions { loss, burst, rtt: self.rtt, one_way_delay: None });
    }

    pub(crate) fn decision(&self) -> Decision {
        *self.policy.decision()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_makes_room_for_what_is_sent_beside_it_and_takes_it_back() {
        let rate = DataRate::from_mbps(1);
        let mut room = Room::new(Timestamp::ZERO, 0.0);
        let mut run = |from: i64, to: i64, extra: u64| {
            for t in from..to {
                room.on_sent(800, false);
                room.on_sent(extra, true);
                room.update(Timestamp::from_millis(t * 10), 0.0);
            }
            room.within(rate).as_kbps_f64()
        };
        assert_eq!(run(0, 500, 0), 1_000.0);
        // A fifth of the sending rate.
        let left = run(500, 1_000, 200);
        assert!((790.0..815.0).contains(&left), "{left}");
        let left = run(1_000, 1_500, 0);
        assert!((985.0..=1_000.0).contains(&left), "{left}");
        assert_eq!(run(1_500, 2_000, 90_000), 500.0);
    }
}
