//! Video layers: which frames can be dropped, and what each costs.
//!
//! A picture is coded as one *layer frame* per spatial layer; upper ones refine it. Pictures of upper temporal layers
//! are not referred to by lower ones. A middlebox can therefore drop everything above some [`LayerId`], and the rest is
//! decodable. Simulcast differs: it has several encodings of the same pictures, each a separate stream.
//!
//! A layer frame is a frame. Those of one picture share capture time and timestamp and the last has the marker, so
//! models and encoders, queues and middleboxes treat them alike. VP9's layers use flexible mode: each frame states its
//! references, so dropped layers are no loss to a receiver.

use crate::MediaError;
use core::fmt;
use core::str::FromStr;
use weir_units::DataRate;

/// Most spatial layers, as made by real-time encoders (the VP9 payload descriptor has room for eight).
pub const MAX_SPATIAL_LAYERS: u8 = 3;
/// Most temporal layers, as made by real-time encoders (the VP8 payload descriptor has room for four).
pub const MAX_TEMPORAL_LAYERS: u8 = 3;
const SPATIAL: usize = MAX_SPATIAL_LAYERS as usize;
const TEMPORAL: usize = MAX_TEMPORAL_LAYERS as usize;

/// A frame's layer, counted from the base layer (SID and TID of RFC 9628, section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LayerId {
    /// Spatial layer.
    pub spatial: u8,
    /// Temporal layer.
    pub temporal: u8,
}

impl LayerId {
    /// The layer to which all others refer.
    pub const BASE: Self = Self { spatial: 0, temporal: 0 };
    /// A layer.
    pub const fn new(spatial: u8, temporal: u8) -> Self {
        Self { spatial, temporal }
    }
    /// Whether a receiver of all layers up to `top` needs frames of this layer.
    pub const fn is_within(self, top: Self) -> bool {
        self.spatial <= top.spatial && self.temporal <= top.temporal
    }
}

impl fmt::Display for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S{}T{}", self.spatial, self.temporal)
    }
}

/// Number of layers of a stream. Each spatial layer has twice the width and height of the one below, each temporal
/// layer doubles the frame rate (scalability modes L1T1 to L3T3 of W3C webrtc-svc).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layering {
    spatial: u8,
    temporal: u8,
}

impl Default for Layering {
    fn default() -> Self {
        Self::SINGLE
    }
}

/// The role of a picture in the pattern of temporal layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TemporalStep {
    /// Its temporal layer.
    pub temporal: u8,
    /// Whether it refers to pictures of the base layer only, so that its layer can be decoded from here (Y of RFC 7741,
    /// U of RFC 9628).
    pub sync: bool,
    /// Whether no other picture refers to it.
    pub discardable: bool,
}

impl Layering {
    /// One layer.
    pub const SINGLE: Self = Self { spatial: 1, temporal: 1 };

    /// These numbers of spatial and temporal layers.
    ///
    /// # Errors
    /// One is zero, above [`MAX_SPATIAL_LAYERS`] or above [`MAX_TEMPORAL_LAYERS`].
    pub fn new(spatial: u8, temporal: u8) -> Result<Self, MediaError> {
        for (field, value, most) in
            [("spatial", spatial, MAX_SPATIAL_LAYERS), ("temporal", temporal, MAX_TEMPORAL_LAYERS)]
        {
            if !(1..=most).contains(&value) {
                return Err(MediaError::new("layers", field, value, format!("1 to {most}")));
            }
        }
        Ok(Self { spatial, temporal })
    }
    /// Spatial layers.
    pub const fn spatial(self) -> u8 {
        self.spatial
    }
    /// Temporal layers.
    pub const fn temporal(self) -> u8 {
        self.temporal
    }
    /// Whether there is one layer.
    pub const fn is_single(self) -> bool {
        self.spatial == 1 && self.temporal == 1
    }
    /// The layer to which no other refers.
    pub const fn top(self) -> LayerId {
        LayerId { spatial: self.spatial - 1, temporal: self.temporal - 1 }
    }
    /// All layers, those of the lowest spatial layer first.
    pub fn layers(self) -> impl Iterator<Item = LayerId> {
        (0..self.spatial).flat_map(move |s| (0..self.temporal).map(move |t| LayerId::new(s, t)))
    }

    /// The role of the `n`th picture after a key frame, which is number 0: layers 0, 1 or 0, 2, 1, 2 in turn. Pictures
    /// of layer 1 refer to the base layer only; of layer 2 the picture after one of layer 1 also refers to that.
    pub const fn step(self, n: u64) -> TemporalStep {
        match (self.temporal, n % 4) {
            (2, 1 | 3) => TemporalStep { temporal: 1, sync: true, discardable: true },
            (3, 1) => TemporalStep { temporal: 2, sync: true, discardable: true },
            (3, 2) => TemporalStep { temporal: 1, sync: true, discardable: false },
            (3, 3) => TemporalStep { temporal: 2, sync: false, discardable: true },
            _ => TemporalStep { temporal: 0, sync: false, discardable: false },
        }
    }

    /// Width and height of a spatial layer if the top one has this size: halved for each layer below, rounded up.
    pub const fn size_of(self, spatial: u8, width: u32, height: u32) -> (u32, u32) {
        let shift = self.spatial.saturating_sub(spatial + 1);
        (width.div_ceil(1 << shift), height.div_ceil(1 << shift))
    }

    /// A bit rate split over the layers: 60 % of a spatial layer's rate to the base of two temporal layers; 40, 20 and
    /// 40 % to three. A spatial layer has 1/0.55 times the rate of the one below (libwebrtc, as of 2024:
    /// `vp8_temporal_layers` and `SvcRateAllocator`). The remainder of divisions goes to the top layer.
    pub fn share_out(self, rate: DataRate) -> LayerRates {
        /// Shares of the base layer and those above, in percent.
        const TEMPORAL_SHARES: [[u64; TEMPORAL]; TEMPORAL] = [[100, 0, 0], [60, 40, 0], [40, 20, 40]];
        const SPATIAL_RATIO: f64 = 0.55;
        let mut rates = LayerRates::default();
        let weights: Vec<f64> =
            (0..i32::from(self.spatial)).rev().map(|k| libm::pow(SPATIAL_RATIO, f64::from(k))).collect();
        let sum: f64 = weights.iter().sum();
        let mut left = rate.as_bps();
        for layer in self.layers() {
            let share = weights[usize::from(layer.spatial)] / sum;
            let percent = TEMPORAL_SHARES[usize::from(self.temporal - 1)][usize::from(layer.temporal)];
            let part = ((rate.as_bps_f64() * share) as u64 * percent / 100).min(left);
            let part = if layer == self.top() { left } else { part };
            left -= part;
            rates.set(layer, DataRate::from_bps(part));
        }
        rates
    }
}

impl fmt::Display for Layering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{}T{}", self.spatial, self.temporal)
    }
}

impl FromStr for Layering {
    type Err = MediaError;
    /// A scalability mode of W3C webrtc-svc whose spatial layers have a ratio of 2 and refer to each other in all
    /// pictures: `L1T2`, `L3T3`.
    fn from_str(text: &str) -> Result<Self, MediaError> {
        let read = || {
            let (spatial, temporal) = text.strip_prefix('L')?.split_once('T')?;
            Self::new(spatial.parse().ok()?, temporal.parse().ok()?).ok()
        };
        read()
            .ok_or_else(|| MediaError::new("layers", "scalability mode", format!("{text:?}"), "L1T1 to L3T3, as L1T2"))
    }
}

/// The bit rate of each layer, excluding those below it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LayerRates {
    rates: [[DataRate; TEMPORAL]; SPATIAL],
}

impl LayerRates {
    /// The rate of a layer alone; zero for a layer out of range.
    pub fn get(&self, layer: LayerId) -> DataRate {
        let row = self.rates.get(usize::from(layer.spatial));
        row.and_then(|r| r.get(usize::from(layer.temporal))).copied().unwrap_or(DataRate::ZERO)
    }
    /// Sets the rate of a layer alone; no effect for a layer out of range.
    pub fn set(&mut self, layer: LayerId, rate: DataRate) {
        let row = self.rates.get_mut(usize::from(layer.spatial));
        if let Some(r) = row.and_then(|r| r.get_mut(usize::from(layer.temporal))) {
            *r = rate;
        }
    }
    /// The rate of a layer and all that it refers to.
    pub fn up_to(&self, top: LayerId) -> DataRate {
        let within = |s: &usize, t: &usize| LayerId::new(*s as u8, *t as u8).is_within(top);
        let all = (0..SPATIAL).flat_map(|s| (0..TEMPORAL).map(move |t| (s, t)));
        all.filter(|(s, t)| within(s, t)).fold(DataRate::ZERO, |sum, (s, t)| sum + self.rates[s][t])
    }
    /// The rate of all layers.
    pub fn total(&self) -> DataRate {
        self.up_to(LayerId::new(u8::MAX, u8::MAX))
    }
}

/// Layer signalling of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LayerInfo {
    /// Its layer.
    pub id: LayerId,
    /// Whether a receiver can switch up here: in VP8 (Y of RFC 7741) to this layer, since the frame refers to the base
    /// layer only; in VP9 (U of RFC 9628) to the layers above this one, since no later frame refers to their earlier
    /// frames.
    pub sync: bool,
    /// Number of the picture of temporal layer 0, modulo 256 (TL0PICIDX); `None` if not signalled.
    pub tl0_pic_idx: Option<u8>,
    /// Whether it refers to the spatial layer below it (D of RFC 9628).
    pub inter_layer: bool,
    /// Distances to the pictures that it refers to (P_DIFF of RFC 9628, 1 to 127); zeros after the last. `None` if not
    /// signalled, as in VP8.
    pub references: Option<[u8; 3]>,
    /// Number of spatial layers of the stream, on key pictures that signal it (N_S + 1 of RFC 9628).
    pub spatial_layers: Option<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for s in 1..=MAX_SPATIAL_LAYERS {
            for t in 1..=MAX_TEMPORAL_LAYERS {
                let l = Layering::new(s, t).unwrap();
                assert_eq!(l.to_string().parse(), Ok(l));
                assert_eq!(l.layers().count(), usize::from(s * t));
            }
        }
        for wrong in ["", "L1", "L0T1", "L4T1", "L1T4", "L2T2_KEY", "S2T1", "l1t1", "L-1T1"] {
            assert!(wrong.parse::<Layering>().unwrap_err().to_string().contains("scalability mode"), "{wrong}");
        }
        assert!(Layering::new(1, 4).unwrap_err().to_string().contains("temporal is 4: expected 1 to 3"));
    }

    #[test]
    fn patterns_have_the_stated_layers() {
        let temporal = |t, n: u64| (0..n).map(|i| Layering::new(1, t).unwrap().step(i).temporal).collect::<Vec<_>>();
        assert_eq!(
            (temporal(1, 3), temporal(2, 5), temporal(3, 9)),
            (vec![0; 3], vec![0, 1, 0, 1, 0], vec![0, 2, 1, 2, 0, 2, 1, 2, 0])
        );
        for t in 1..=3 {
            let l = Layering::new(1, t).unwrap();
            // The top of several layers is discardable, the base never is.
            for s in (0..8).map(|n| l.step(n)) {
                assert_eq!(s.discardable, t > 1 && s.temporal == t - 1);
                assert!(!(s.sync && s.temporal == 0));
            }
        }
    }

    #[test]
    fn spatial_layers_halve_the_size() {
        let l = Layering::new(3, 1).unwrap();
        assert_eq!([0, 1, 2].map(|s| l.size_of(s, 641, 360)), [(161, 90), (321, 180), (641, 360)]);
        assert_eq!(Layering::SINGLE.size_of(0, 640, 360), (640, 360));
    }

    proptest! {
        #[test]
        fn shares_sum_up_to_the_whole_and_lower_layers_cost_less(s in 1u8..=3, t in 1u8..=3, bps in 0u64..100_000_000) {
            let l = Layering::new(s, t).unwrap();
            let rates = l.share_out(DataRate::from_bps(bps));
            prop_assert_eq!(rates.total().as_bps(), bps);
            prop_assert_eq!(rates.up_to(l.top()).as_bps(), bps);
            for layer in l.layers() {
                prop_assert!(rates.get(layer) <= rates.up_to(layer));
            }
            if t == 2 && s == 1 {
                prop_assert_eq!(rates.get(LayerId::BASE).as_bps(), bps * 60 / 100);
            }
            if s == 2 && t == 1 {
                let base = rates.get(LayerId::BASE).as_bps_f64();
                prop_assert!((base - bps as f64 * 0.55 / 1.55).abs() <= 1.0);
            }
        }
    }
}
