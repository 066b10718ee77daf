//! Losses that a token bucket makes: the packets' sizes and times tell which ones.
//!
//! A policer drops what is beyond a rate and a burst (RFC 2697, RFC 2698), whatever waits elsewhere. For a bucket of the right rate and size each
//! packet's fate follows from those before it; losses by chance, in bursts or in a full queue follow from no bucket.

use super::passage::{Fate, Passage};

/// Rates that are tried, over the rate that arrives where packets are lost, beside which a burst arrives.
const RATES: (f64, f64) = (0.75, 1.3);
const RATE_STEP: f64 = 1.01;
/// Sizes that are tried, in bytes: from five packets to a second of 2 Mbit/s.
const SIZES: (f64, f64) = (6_000.0, 250_000.0);
const SIZE_STEP: f64 = 1.35;
/// Least losses that a bucket is looked for in, and most packets: beyond, the first ones tell enough.
const LEAST: usize = 10;
const MOST: usize = 6_000;
/// Headers of IP and UDP, which count in a bucket, in bytes.
const HEADERS: f64 = 28.0;

/// A bucket that predicts losses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Bucket {
    /// Its rate in kbit/s, and its size in bytes.
    pub(super) kbps: f64,
    pub(super) size: f64,
    /// Fates that contradict it, as a share of the losses.
    pub(super) wrong: f64,
}

/// Fates that contradict a bucket of this rate in bytes a second and this size. What it holds is known within bounds: less than a packet that is
/// lost, and no less than one that arrives.
fn wrong(packets: &[Passage], rate: f64, size: f64) -> usize {
    let (mut low, mut high, mut last, mut wrong) = (0.0, size, packets[0].at, 0);
    for p in packets {
        let (more, needs) = (rate * (p.at - last), p.size + HEADERS);
        (low, high, last) = (size.min(low + more), size.min(high + more), p.at);
        match p.fate {
            Fate::Lost => {
                if low >= needs {
                    (wrong, low) = (wrong + 1, 0.0);
                }
                high = high.min(needs);
            }
            Fate::Arrived(_) => {
                if high < needs {
                    (wrong, high) = (wrong + 1, needs);
                }
                (low, high) = (low.max(needs) - needs, high - needs);
            }
            Fate::Unknown => {}
        }
    }
    wrong
}

/// The bucket that predicts losses best, for losses at which `arrived` kbit/s arrive.
pub(super) fn bucket(packets: &[Passage], arrived: f64) -> Option<Bucket> {
    let packets = &packets[..packets.len().min(MOST)];
    let lost = packets.iter().filter(|p| p.fate == Fate::Lost).count();
    if lost < LEAST || arrived <= 0.0 {
        return None;
    }
    let mut best: Option<Bucket> = None;
    let mut kbps = arrived * RATES.0;
    while kbps <= arrived * RATES.1 {
        let mut size = SIZES.0;
        while size <= SIZES.1 {
            let wrong = wrong(packets, kbps * 125.0, size) as f64 / lost as f64;
            if best.is_none_or(|b| wrong < b.wrong) {
                best = Some(Bucket { kbps, size, wrong });
            }
            size *= SIZE_STEP;
        }
        kbps *= RATE_STEP;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1,000 bytes in frames of 8, 30 a second, whose fates `lost` decides by their number and time.
    fn sent(mut lost: impl FnMut(usize, f64) -> bool) -> Vec<Passage> {
        let packet = |i: usize| {
            let at = (i / 8) as f64 / 30.0 + (i % 8) as f64 * 0.001;
            let fate = if lost(i, at) { Fate::Lost } else { Fate::Arrived(20.0) };
            Passage { at, size: 1000.0, ssrc: 1, timestamp: 0, marker: false, fate }
        };
        (0..2400).map(packet).collect()
    }

    #[test]
    fn a_bucket_is_found_by_its_losses_and_chance_is_none() {
        let (mut tokens, mut last) = (20_000.0, 0.0);
        let policed = sent(|_, at| {
            tokens = f64::min(20_000.0, tokens + 150_000.0 * (at - last));
            last = at;
            let passes = tokens >= 1000.0;
            tokens -= if passes { 1000.0 } else { 0.0 };
            !passes
        });
        let found = bucket(&policed, 1200.0).expect("losses");
        assert!(found.wrong < 0.2 && (1_100.0..1_350.0).contains(&found.kbps), "{found:?}");
        // A multiplicative generator's upper bits: 37 % of the packets, as in the bucket.
        let mut state = 1u64;
        let random = sent(|_, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 32 < 0x6000_0000
        });
        let found = bucket(&random, 1200.0).expect("losses");
        assert!(found.wrong > 0.6, "{found:?}");
        let bursts = bucket(&sent(|i, _| i % 100 < 37), 1200.0).expect("losses");
        assert!(bursts.wrong > 0.6, "{bursts:?}");
        assert_eq!(bucket(&sent(|_, _| false), 1200.0), None);
    }
}
