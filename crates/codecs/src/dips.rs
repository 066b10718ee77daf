//! Short dips of the target, in which a library keeps its rate and pictures are skipped instead.
//!
//! A controller asks for its least rate for 200 to 300 ms to let a queue drain. Rate controls take that for the new rate: their model of the
//! decoder's buffer is in units of it, so that its level is cut, and afterwards pictures are dropped or coarse until the level is back.
//! Coded of the mean target, and mean PSNR in dB, with dips of 300 ms in each 1.5 s from 1.5 Mbit/s, 640x360 (longer runs of
//! `the_rate_after_a_dip_of_the_target_is_that_of_before` in `tests/encoders.rs`, every rate passed on to the library):
//!
//! | dip to | OpenH264 2.6 | x264 | VP8, libvpx 1.12 | VP9 |
//! |---|---|---|---|---|
//! | no dips | 1.00, 41.4 | 1.00, 42.8 | 1.01, 42.1 | 1.04, 43.0 |
//! | 3 % | 0.71, 32.0 | 0.99, 38.7 | 0.62, 38.5 | 0.85, 40.8 |
//! | 10 % | 0.97, 40.8 | 0.85, 40.9 | 0.67, 38.9 | 0.99, 42.7 |
//! | 20 % | 1.00, 41.2 | 0.89, 41.4 | 0.71, 41.6 | 1.04, 42.9 |
//! | 25 % | 1.00, 41.2 | 0.92, 41.9 | 0.76, 41.7 | 1.05, 42.9 |
//! | 40 % | 1.00, 41.3 | 0.98, 42.7 | 0.87, 41.9 | 1.05, 42.9 |
//! | 50 % | 1.00, 41.3 | 0.99, 42.7 | 0.94, 42.0 | 1.15, 43.0 |
//!
//! A skipped picture is the last one once more: it costs more quality than a coarse one, so that only dips are skipped whose loss of rate is
//! large ([`Depth`]), and x264 gets each rate.

use weir_media::{EncoderConfig, RateChange};
use weir_units::DataRate;

/// Ticks per second, as in RTP.
const CLOCK: f64 = 90_000.0;
/// Longest dip in ticks, 400 ms; then the library follows. Chosen here: above the time for which controllers let a queue drain, and a still
/// picture of this length passes for a stall of the link.
const LONGEST: u64 = 36_000;

/// Share of the library's rate with which a dip is over: a target that grows back in steps would cut the buffer's level at the first of them.
const OVER: f64 = 0.5;

/// Share of the library's rate below which a target is a dip.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Depth(f64);

impl Depth {
    /// Of OpenH264 and VP9, which lose little at 10 %.
    pub(crate) const TENTH: Self = Self(0.1);
    /// Of VP8.
    #[cfg(any(feature = "vpx", test))]
    pub(crate) const QUARTER: Self = Self(0.25);
}

/// Whether the target of such an encoder is set with each picture: rates of layers, and those of an encoder that restarts, are not.
pub(crate) fn follows(config: &EncoderConfig) -> bool {
    config.layering.is_single() && config.rate_change == RateChange::Seamless
}

#[derive(Clone, Copy, Debug)]
struct Dip {
    /// Time of its first picture, in ticks.
    began: u64,
    /// That of its last picture.
    at: u64,
    /// Bits of the target not used since it began; below zero after a picture that took more.
    left: f64,
}

/// The rate that the library is given.
#[derive(Debug)]
pub(crate) struct Dips {
    depth: Depth,
    /// The library's rate; `None` before the first coded picture, which no dip delays.
    library: Option<DataRate>,
    dip: Option<Dip>,
}

impl Dips {
    pub(crate) const fn new(depth: Depth) -> Self {
        Self { depth, library: None, dip: None }
    }

    /// The library's rate for the picture at `ticks` under the target of `config`; `None` if the target has no bits for it, and it is to be
    /// skipped.
    pub(crate) fn next(&mut self, config: &EncoderConfig, ticks: u64) -> Option<DataRate> {
        let target = config.bit_rate;
        let Some(library) = self.library.filter(|_| config.may_drop && follows(config)) else { return Some(target) };
        let (asked, kept) = (target.as_bps_f64(), library.as_bps_f64());
        let end = if self.dip.is_some() { OVER } else { self.depth.0 };
        if asked >= end * kept {
            self.dip = None;
            return Some(target);
        }
        let dip = self.dip.get_or_insert(Dip { began: ticks, at: ticks, left: 0.0 });
        if ticks.saturating_sub(dip.began) >= LONGEST {
            self.dip = None;
            return Some(target);
        }
        dip.left += asked * ticks.saturating_sub(dip.at) as f64 / CLOCK;
        dip.at = ticks;
        // A picture takes its share of the library's rate.
        (dip.left * config.frame_rate >= kept).then_some(library)
    }

    /// A picture was coded with this rate of the library, into so many bytes.
    pub(crate) fn coded(&mut self, rate: DataRate, bytes: usize) {
        self.library = Some(rate);
        if let Some(dip) = &mut self.dip {
            dip.left -= bytes as f64 * 8.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: u64 = 3_000;
    const HIGH: DataRate = DataRate::from_kbps(2_000);

    fn kbps(n: u64) -> DataRate {
        DataRate::from_kbps(n)
    }

    fn next(d: &mut Dips, n: u64, bit_rate: DataRate) -> Option<DataRate> {
        d.next(&EncoderConfig { bit_rate, ..EncoderConfig::live(640, 360) }, n * FRAME)
    }

    /// Passes a picture of the library's share; whether it is coded.
    fn pass(d: &mut Dips, n: u64, target: DataRate) -> bool {
        let Some(rate) = next(d, n, target) else { return false };
        d.coded(rate, (rate.as_bps() / 240) as usize);
        true
    }

    #[test]
    fn a_short_dip_skips_pictures_and_the_library_keeps_its_rate() {
        let mut d = Dips::new(Depth::QUARTER);
        assert!((0..10).all(|n| pass(&mut d, n, HIGH)));
        // 50 kbit/s for 300 ms are 15 kbit, and a picture takes 67.
        assert!((10..19).all(|n| !pass(&mut d, n, kbps(50))));
        assert_eq!(next(&mut d, 19, kbps(900)), None);
        assert_eq!(next(&mut d, 20, kbps(1_000)), Some(kbps(1_000)));
    }

    #[test]
    fn pictures_that_fit_are_coded_at_the_rate_kept() {
        let mut d = Dips::new(Depth::QUARTER);
        assert!((0..10).all(|n| pass(&mut d, n, HIGH)));
        // A fifth of the rate: each fifth picture.
        let coded: Vec<u64> = (10..22).filter(|&n| pass(&mut d, n, kbps(400))).collect();
        assert_eq!((coded, d.library), (vec![15, 20], Some(HIGH)));
    }

    #[test]
    fn a_lasting_low_target_is_the_library_s_after_400_ms() {
        let mut d = Dips::new(Depth::QUARTER);
        assert!(pass(&mut d, 0, HIGH));
        let coded: Vec<u64> = (1..20).filter(|&n| pass(&mut d, n, kbps(50))).collect();
        assert_eq!((coded, d.library), ((13..20).collect(), Some(kbps(50))));
    }

    #[test]
    fn no_other_change_is_a_dip() {
        let mut d = Dips::new(Depth::QUARTER);
        // The first picture is coded whatever the configured rate was.
        for (n, target) in (0..).zip([50, 2_000, 501, 130, 4_000, 2_000, 1_000].map(kbps)) {
            assert_eq!(next(&mut d, n, target), Some(target));
            d.coded(target, 1_000);
        }
        assert_eq!(next(&mut d, 8, kbps(249)), None);
        // Nor is one of an encoder that may not leave pictures out.
        let all = EncoderConfig { may_drop: false, bit_rate: kbps(50), ..EncoderConfig::live(640, 360) };
        assert_eq!(d.next(&all, 9 * FRAME), Some(kbps(50)));
    }
}
