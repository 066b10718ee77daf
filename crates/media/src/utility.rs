//! An application's utility: what a call gives up first where its rate is short of all that it could use.
//!
//! M. Nagy et al., "Congestion Control using FEC for Conversational Multimedia Communication", section 6 (AMuSys), puts one unit
//! between application, codec and network, and leaves its rule open. Here it has three parts, each a pure function of rate, time and
//! what is in force, within the rate that the controller allows:
//!
//! - [`Preference::sound`]: the share of the sound, by which its packet time and bit rate follow ([`audio::choose`](crate::audio::choose));
//! - [`ShapeChoice`]: size and frame rate of the pictures, so that the encoder's quantiser stays near one level; small changes of
//!   the rate are left to the quantiser;
//! - [`Preference::protects`]: whether pictures have repair packets beside retransmissions.
//!
//! | preferred | the pictures give up | the sound gives up |
//! |---|---|---|
//! | motion | size, then frame rate | all but a tenth of the rate |
//! | sharpness | frame rate, then size | all but a tenth of the rate |
//! | sound | both in turn, then all | nothing before the pictures are off |

mod choice;

pub use crate::shape::Shape;
pub use choice::ShapeChoice;

use crate::resilience::{Decision, Mechanisms};
use core::fmt;
use weir_units::DataRate;

/// Coded bits per sample of luma of a picture among thirty a second below which it is not worth its samples: 150 kbit/s for 640x360 and
/// 600 kbit/s for 1280x720, the least useful rates of libwebrtc's encodings ([`useful_rates`](crate::useful_rates)). Pictures that are
/// easy to code could do with less.
const BITS_PER_SAMPLE: f64 = 0.0217;
/// The frame rate that it counts for.
const USUAL_FRAME_RATE: f64 = 30.0;
/// Exponent of the frame rate in the rate at one quantiser: pictures further apart differ more. Z. Ma, M. Xu and Y. Wang, "Modeling of
/// rate and perceptual quality of compressed video as functions of frame rate and quantization stepsize", 2012, model the rate as a
/// power of the frame rate; the value is chosen here.
const FRAME_RATE_EXPONENT: f64 = 0.6;
/// Width and height as quarters of the camera's. Chosen here.
const QUARTERS: [u32; 4] = [4, 3, 2, 1];
/// One of this many pictures is coded: 30, 15, 10 and 5 a second of 30. Chosen here; below 5 a second lips are not followed.
const STRIDES: [u32; 4] = [1, 2, 3, 6];
/// Least side of a smaller picture, in samples.
const LEAST_SIDE: u32 = 64;
/// Frame rate below which no pictures are left out.
const LEAST_FRAME_RATE: f64 = 4.9;
/// The sound's part of the rate where another medium is preferred.
const PART_OF_SOUND: u64 = 10;

/// The last that a call gives up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Preference {
    /// Smooth pictures: sports, gestures.
    Motion,
    /// Pictures of full size: a shared screen, documents.
    Sharpness,
    /// The sound: talk, music.
    Sound,
}

impl Preference {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Motion, Self::Sharpness, Self::Sound];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Motion => "motion",
            Self::Sharpness => "sharpness",
            Self::Sound => "sound",
        }
    }
    /// The preference of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }

    /// The least and the greatest share of a sound, headers included, at this rate of the call, of `least` and `most` that it can use.
    pub fn sound(self, rate: DataRate, least: DataRate, most: DataRate) -> (DataRate, DataRate) {
        if self == Self::Sound {
            return (most, most);
        }
        (least, DataRate::from_bps(rate.as_bps() / PART_OF_SOUND).min(most).max(least))
    }

    /// Whether pictures are to have the repair packets of this decision of the policy for error resilience. They are taken out of the
    /// pictures' rate: only for motion, where a late picture is as bad as none, are there such packets beside retransmissions.
    pub fn protects(self, decision: &Decision) -> bool {
        self == Self::Motion || !decision.mechanisms.contains(Mechanisms::NACK)
    }
}

impl fmt::Display for Preference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A call's preference, and the pictures that it begins with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Utility {
    /// The last that it gives up.
    pub preference: Preference,
    /// Width and height of the camera's pictures.
    pub size: (u32, u32),
    /// The camera's pictures a second.
    pub frame_rate: f64,
}

impl Utility {
    /// The rate at which a shape is worth its samples; below it the quantiser is coarser than that of the next smaller one would be.
    pub fn need(&self, shape: Shape) -> DataRate {
        let samples = f64::from(shape.width) * f64::from(shape.height);
        let rate = (self.frame_rate / f64::from(shape.stride)).max(0.0) / USUAL_FRAME_RATE;
        let bits = samples * BITS_PER_SAMPLE * USUAL_FRAME_RATE;
        DataRate::from_bps_f64(bits * libm::pow(rate, FRAME_RATE_EXPONENT))
    }

    /// The least rate that pictures are sent at: half the need of the last shape, whose quantiser is then coarse.
    pub fn least(&self) -> DataRate {
        let last = self.shapes().last().map_or(DataRate::ZERO, |s| self.need(*s));
        DataRate::from_bps(last.as_bps() / 2)
    }

    /// The shapes in the order in which they are given up; each needs no more samples, pictures a second and bits than the one before.
    pub fn shapes(&self) -> Vec<Shape> {
        let sizes: Vec<(u32, u32)> = QUARTERS
            .into_iter()
            .filter_map(|q| {
                let side = |full: u32| if q == 4 { full } else { (full / 4 * q) & !1 };
                let size = (side(self.size.0), side(self.size.1));
                (q == 4 || size.0.min(size.1) >= LEAST_SIDE).then_some(size)
            })
            .collect();
        let strides: Vec<u32> =
            STRIDES.into_iter().filter(|s| *s == 1 || self.frame_rate / f64::from(*s) >= LEAST_FRAME_RATE).collect();
        let (last_size, last_stride) = (sizes.len() - 1, strides.len() - 1);
        let mut at = (0, 0);
        let mut all = Vec::new();
        loop {
            let ((width, height), stride) = (sizes[at.0], strides[at.1]);
            all.push(Shape { width, height, stride });
            let smaller = at.0 < last_size;
            let slower = at.1 < last_stride;
            let size_first = match self.preference {
                Preference::Motion => true,
                Preference::Sharpness => false,
                // The one of which less has been given up.
                Preference::Sound => at.0 <= at.1,
            };
            match (smaller, slower) {
                (true, true) if size_first => at.0 += 1,
                (_, true) => at.1 += 1,
                (true, false) => at.0 += 1,
                (false, false) => return all,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::{AudioLimits, choose};
    use proptest::prelude::*;
    use weir_units::DataSize;

    pub(super) fn of(preference: Preference) -> Utility {
        Utility { preference, size: (640, 480), frame_rate: 30.0 }
    }

    #[test]
    fn shapes_are_given_up_in_the_order_of_the_preference() {
        let list = |p| {
            let all = of(p).shapes();
            all.into_iter().map(|s| (s.width, s.stride)).collect::<Vec<_>>()
        };
        let motion = [(640, 1), (480, 1), (320, 1), (160, 1), (160, 2), (160, 3), (160, 6)];
        assert_eq!(list(Preference::Motion), motion);
        let sharpness = [(640, 1), (640, 2), (640, 3), (640, 6), (480, 6), (320, 6), (160, 6)];
        assert_eq!(list(Preference::Sharpness), sharpness);
        let both = [(640, 1), (480, 1), (480, 2), (320, 2), (320, 3), (160, 3), (160, 6)];
        assert_eq!(list(Preference::Sound), both);
        let small = Utility { size: (176, 144), frame_rate: 12.0, ..of(Preference::Motion) };
        let small: Vec<_> = small.shapes().into_iter().map(|s| (s.width, s.height, s.stride)).collect();
        assert_eq!(small, [(176, 144, 1), (132, 108, 1), (88, 72, 1), (88, 72, 2)]);
    }

    #[test]
    fn needs_are_those_of_the_model() {
        let u = of(Preference::Motion);
        let need = |width, height, stride| u.need(Shape { width, height, stride }).as_bps();
        // 0.0217 bits of 640 x 480 samples 30 times a second; a quarter of it for half the sides; 2^-0.6 for half the pictures.
        assert!(need(640, 480, 1).abs_diff(199_987) <= 1);
        assert!(need(320, 240, 1).abs_diff(49_997) <= 1);
        assert!(need(640, 480, 2).abs_diff(131_942) <= 2);
        // 6^-0.6 of 12,499, and half of it.
        assert!(need(160, 120, 6).abs_diff(4_265) <= 2 && u.least().as_bps().abs_diff(2_133) <= 1);
    }

    #[test]
    fn a_sound_that_is_preferred_has_all_and_another_a_tenth() {
        let kbps = DataRate::from_kbps;
        let (least, most) = (kbps(12), kbps(50));
        assert_eq!(Preference::Sound.sound(kbps(20), least, most), (most, most));
        for p in [Preference::Motion, Preference::Sharpness] {
            assert_eq!(p.sound(kbps(50), least, most), (least, least));
            assert_eq!(p.sound(kbps(300), least, most), (least, kbps(30)));
            assert_eq!(p.sound(kbps(3_000), least, most), (least, most));
        }
    }

    #[test]
    fn repair_packets_beside_retransmissions_are_for_motion() {
        let both = Decision { mechanisms: Mechanisms::NACK | Mechanisms::PROTECTION, ..Decision::default() };
        let alone = Decision { mechanisms: Mechanisms::PROTECTION, ..Decision::default() };
        for p in Preference::ALL {
            assert_eq!((p.protects(&both), p.protects(&alone)), (p == Preference::Motion, true), "{p}");
            assert_eq!(Preference::by_name(p.name()), Some(p));
        }
        assert_eq!(Preference::by_name("colour"), None);
    }

    proptest! {
        #[test]
        fn what_is_preferred_is_the_last_given_up(width in 2u32..4_000, height in 2u32..4_000, fps in 1.0f64..120.0) {
            for preference in Preference::ALL {
                let u = Utility { preference, size: (width, height), frame_rate: fps };
                let all = u.shapes();
                let last = all[all.len() - 1];
                prop_assert_eq!(all[0], Shape { width, height, stride: 1 });
                for s in &all {
                    match preference {
                        Preference::Motion => prop_assert!(s.stride == 1 || s.width == last.width),
                        Preference::Sharpness => prop_assert!(s.width == width || s.stride == last.stride),
                        Preference::Sound => {}
                    }
                }
                for w in all.windows(2) {
                    prop_assert!(w[1].width <= w[0].width && w[1].height <= w[0].height && w[1].stride >= w[0].stride);
                    prop_assert!(u.need(w[1]) <= u.need(w[0]));
                }
                prop_assert!(u.least() <= u.need(last));
            }
        }

        /// Sound and pictures together take no more than the rate, and neither takes less of a greater one.
        #[test]
        fn never_above_the_rate_and_no_less_with_more_of_it(a in 0u64..5_000_000, b in 0u64..5_000_000) {
            let (limits, headers) = (AudioLimits::default(), DataSize::from_bytes(52));
            let (least, most) = (limits.least(headers), limits.most(headers));
            for p in Preference::ALL {
                let at = |bps| {
                    let rate = DataRate::from_bps(bps);
                    let share = p.sound(rate, least, most).1.min(rate);
                    (share, rate.saturating_sub(share))
                };
                let (less, more) = (at(a.min(b)), at(a.max(b)));
                prop_assert!(less.0 <= more.0 && less.1 <= more.1);
                let rate = DataRate::from_bps(a.min(b));
                prop_assert!(less.0 + less.1 <= rate);
                if less.0 >= least {
                    let sound = choose(less.0, headers, &limits, None);
                    prop_assert!(sound.with_headers(headers) + less.1 <= rate);
                }
                if p == Preference::Sound && less.1 > DataRate::ZERO {
                    prop_assert_eq!(less.0, most);
                }
            }
        }
    }
}
