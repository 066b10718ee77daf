//! Selection among mechanisms.

use super::{Applicability, SliceSizer, SliceSizes};
use crate::video::Capabilities;
use core::ops::BitOr;
use weir_units::{DataSize, TimeDelta};

/// A mechanism that is on stays on this far outside its region, so that it does not toggle at an edge.
const MARGIN: f64 = 0.2;
/// Number of loss reports averaged, as for slices.
const REPORTS: usize = 3;
/// Most pictures that a reference may lie back: H.264 keeps at most 16 (ITU-T H.264, section A.3.1).
const MAX_REFERENCES: f64 = 16.0;
/// Loss below which mechanisms that do not apply are not replaced: half of the least loss in the dissertation's runs.
const HARDLY_ANY_LOSS: f64 = 0.0025;
/// Longest loss burst for which repair packets are dimensioned.
const MAX_BURST: f64 = 5.0;

/// A set of mechanisms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mechanisms(u8);

impl Mechanisms {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// Retransmission of lost packets.
    pub const NACK: Self = Self(1);
    /// Adaptive slice size.
    pub const SLICES: Self = Self(2);
    /// Reference picture selection.
    pub const REFERENCES: Self = Self(4);
    /// Unequal error protection.
    pub const PROTECTION: Self = Self(8);
    /// All of them.
    pub const ALL: Self = Self(15);
    /// Each with its name.
    pub const NAMES: [(&'static str, Self); 4] =
        [("nack", Self::NACK), ("ssa", Self::SLICES), ("rps", Self::REFERENCES), ("uep", Self::PROTECTION)];

    /// The mechanism with this name: `nack`, `ssa`, `rps` or `uep`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|n| n.0 == name).map(|n| n.1)
    }
    /// Whether all of these are among them.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// These if `on`, else none.
    const fn when(self, on: bool) -> Self {
        if on { self } else { Self::NONE }
    }
}

impl BitOr for Mechanisms {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl core::fmt::Debug for Mechanisms {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(Self::NAMES.iter().filter(|n| self.contains(n.1)).map(|n| n.0)).finish()
    }
}

/// The side that selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Choice {
    /// The policy, by the path's conditions.
    #[default]
    Auto,
    /// These, regardless of the path; the encoder must support them nevertheless.
    Pinned(Mechanisms),
}

/// Configuration known to both ends of a call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PolicyConfig {
    /// The side that selects.
    pub choice: Choice,
    /// Longest time from capture to playout. Default: 400 ms, the upper limit of ITU-T G.114 for conversation.
    pub delay_max: TimeDelta,
    /// Frames a second.
    pub frame_rate: f64,
    /// Capabilities of the encoder. Default: none.
    pub capabilities: Capabilities,
    /// The regions of the mechanisms.
    pub applicability: Applicability,
    /// How slice sizes adapt to loss.
    pub slice_sizes: SliceSizes,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            choice: Choice::Auto,
            delay_max: TimeDelta::from_millis(400),
            frame_rate: 30.0,
            capabilities: Capabilities::default(),
            applicability: Applicability::default(),
            slice_sizes: SliceSizes::default(),
        }
    }
}

/// Measurements since the last update.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// Fraction of packets lost on the path, before recovery.
    pub loss: f64,
    /// Mean loss burst, 1 if unknown.
    pub burst: f64,
    /// Round-trip time.
    pub rtt: TimeDelta,
    /// One-way delay, if measured; otherwise half of the round-trip time is used.
    pub one_way_delay: Option<TimeDelta>,
}

impl Default for Conditions {
    fn default() -> Self {
        Self { loss: 0.0, burst: 1.0, rtt: TimeDelta::ZERO, one_way_delay: None }
    }
}

/// Repair for each kind of frame: media packets per repair packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnequalProtection {
    /// For key frames.
    pub key: u8,
    /// For frames that others refer to. Frames without references to them have none.
    pub reference: u8,
    /// Length of loss bursts to be tolerated.
    pub burst: u8,
}

impl UnequalProtection {
    /// Protection at a given loss. For reference frames one repair packet for five is 20 %, in the middle of the 15 to
    /// 25 % of the dissertation's runs; above the figure's range it is one for three. Key frames have twice that, or
    /// each packet twice.
    pub fn at(loss: f64, burst: f64, applicability: &Applicability) -> Self {
        let (key, reference) = match () {
            () if loss < applicability.protection.loss.0 => (4, 8),
            () if loss <= applicability.protection.loss.1 => (2, 5),
            () => (1, 3),
        };
        Self { key, reference, burst: burst.clamp(1.0, MAX_BURST) as u8 }
    }
}

/// The current selection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// The mechanisms.
    pub mechanisms: Mechanisms,
    /// Greatest slice size in bytes, if slices are adapted.
    pub slice_size: Option<DataSize>,
    /// Protection of frames, if on.
    pub protection: Option<UnequalProtection>,
}

/// Selects mechanisms by figure 5.4, with each report.
///
/// Loss is the mean of the last three reports. A mechanism is switched on inside its region, and off a fifth outside
/// its edges.
///
/// Four conditions supplement the figure. Retransmission needs the time for a response: the one-way delay, half a
/// frame interval until the loss is detected, and a round trip. Reference selection replaces it for bursts of losses.
/// References require the encoder to keep the pictures of a round trip. Where retransmission applies nowhere, there are
/// always repair packets, more of them with more loss.
#[derive(Clone, Debug)]
pub struct Policy {
    config: PolicyConfig,
    losses: [f64; REPORTS],
    reports: usize,
    slices: SliceSizer,
    decision: Decision,
}

impl Policy {
    /// A policy for an unknown path, assumed to have neither loss nor delay.
    pub fn new(config: PolicyConfig) -> Self {
        let (losses, reports, slices) = ([0.0; REPORTS], 0, SliceSizer::new(config.slice_sizes));
        let mut p = Self { config, losses, reports, slices, decision: Decision::default() };
        p.decide(0.0, &Conditions::default());
        p
    }

    /// Its configuration.
    pub fn config(&self) -> &PolicyConfig {
        &self.config
    }
    /// The current selection.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }
    /// The encoder has other capabilities than assumed.
    pub fn set_capabilities(&mut self, capabilities: Capabilities) {
        self.config.capabilities = capabilities;
    }

    /// Applies a report on the path.
    pub fn update(&mut self, conditions: &Conditions) -> &Decision {
        let loss = if conditions.loss.is_finite() { conditions.loss.clamp(0.0, 1.0) } else { 0.0 };
        self.losses[self.reports % REPORTS] = loss;
        self.reports += 1;
        self.slices.on_loss(loss);
        let count = self.reports.min(REPORTS);
        let mean = self.losses[..count].iter().sum::<f64>() / count as f64;
        self.decide(mean, conditions);
        &self.decision
    }

    fn decide(&mut self, loss: f64, conditions: &Conditions) {
        let c = &self.config;
        let able = Mechanisms::NACK
            | Mechanisms::PROTECTION
            | Mechanisms::SLICES.when(c.capabilities.slices)
            | Mechanisms::REFERENCES.when(c.capabilities.reference_selection);
        let wanted = match c.choice {
            Choice::Pinned(mechanisms) => mechanisms,
            Choice::Auto => self.by_figure(loss, conditions),
        };
        let mechanisms = Mechanisms(wanted.0 & able.0);
        let burst = if conditions.burst.is_finite() { conditions.burst } else { 1.0 };
        let protection = UnequalProtection::at(loss, burst, &c.applicability);
        self.decision = Decision {
            mechanisms,
            slice_size: mechanisms.contains(Mechanisms::SLICES).then(|| self.slices.size()),
            protection: mechanisms.contains(Mechanisms::PROTECTION).then_some(protection),
        };
    }

    fn by_figure(&self, loss: f64, conditions: &Conditions) -> Mechanisms {
        let (c, a) = (&self.config, &self.config.applicability);
        let before = self.decision.mechanisms;
        let margin = |m| if before.contains(m) { MARGIN } else { 0.0 };
        let one_way = conditions.one_way_delay.unwrap_or(conditions.rtt / 2).max(TimeDelta::ZERO).as_secs_f64();
        let (rtt, most) = (conditions.rtt.as_secs_f64().max(1e-3), c.delay_max.as_secs_f64().max(1e-3));
        let frame_interval = 1.0 / c.frame_rate.max(1.0);
        let delay = one_way / most;

        let left = most - one_way - frame_interval / 2.0;
        let retransmissions = (left / rtt).max(0.0);
        let region = super::Region { loss: (a.nack.loss.0, a.nack_loss(libm::floor(retransmissions))), ..a.nack };
        let is_bursty = conditions.burst > a.nack_burst * (1.0 + margin(Mechanisms::REFERENCES));
        let nack = region.contains(loss, delay, margin(Mechanisms::NACK))
            && retransmissions >= 1.0
            && !(is_bursty && c.capabilities.reference_selection);

        let pictures_back = rtt / frame_interval + 2.0;
        let references = c.capabilities.reference_selection
            && a.references.contains(loss, delay, margin(Mechanisms::REFERENCES))
            && pictures_back <= MAX_REFERENCES;

        let open = |region: super::Region| match a.extended {
            true => super::Region { loss: (region.loss.0, 1.0), ..region },
            false => region,
        };
        let slices = open(a.slices).contains(loss, delay, margin(Mechanisms::SLICES));
        let by_region = open(a.protection).contains(loss, delay, margin(Mechanisms::PROTECTION));
        // A packet that nobody can request is lost for good, also the first of it.
        let is_needed = loss >= HARDLY_ANY_LOSS || !a.retransmits();
        let stands_in = a.extended && !nack && !references && is_needed;

        Mechanisms::NACK.when(nack)
            | Mechanisms::REFERENCES.when(references)
            | Mechanisms::SLICES.when(slices)
            | Mechanisms::PROTECTION.when(by_region || stands_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CAPABLE: Capabilities = Capabilities { slices: true, reference_selection: true };

    fn figure() -> PolicyConfig {
        PolicyConfig { applicability: Applicability::FIGURE, capabilities: CAPABLE, ..PolicyConfig::default() }
    }

    fn path(loss: f64, one_way_ms: i64) -> Conditions {
        let one_way_delay = Some(TimeDelta::from_millis(one_way_ms));
        Conditions { loss, rtt: TimeDelta::from_millis(one_way_ms * 2), one_way_delay, ..Conditions::default() }
    }

    /// The selection of a new policy for a path.
    fn picked(config: PolicyConfig, conditions: Conditions) -> String {
        let mut p = Policy::new(PolicyConfig { choice: Choice::Pinned(Mechanisms::NONE), ..config });
        p.config.choice = config.choice;
        format!("{:?}", p.update(&conditions).mechanisms)
    }

    /// Points of the figure, read from the drawing, with a delay_max of 400 ms.
    #[test]
    fn the_figure_is_followed() {
        for (loss, one_way, expected) in [
            (0.005, 20, r#"{"nack", "ssa", "rps"}"#),
            (0.019, 125, r#"{"nack", "ssa", "rps"}"#),
            (0.021, 125, r#"{"ssa", "rps"}"#),
            (0.005, 140, r#"{"ssa", "rps"}"#),
            (0.040, 40, r#"{"ssa", "rps"}"#),
            (0.040, 70, r#"{"ssa", "rps", "uep"}"#),
            (0.044, 200, r#"{"ssa", "rps", "uep"}"#),
            (0.050, 200, r#"{"ssa", "uep"}"#),
            (0.040, 320, r#"{"ssa", "uep"}"#),
            (0.010, 320, r#"{"ssa"}"#),
            (0.070, 200, r#"{"ssa"}"#),
            (0.050, 50, r#"{"ssa"}"#),
            (0.090, 200, "{}"),
            (0.010, 410, "{}"),
        ] {
            assert_eq!(picked(figure(), path(loss, one_way)), expected, "{loss} {one_way}");
        }
    }

    #[test]
    fn a_rule_without_a_result_has_a_fallback() {
        let config = PolicyConfig { applicability: Applicability::default(), frame_rate: 15.0, ..figure() };
        let unable = PolicyConfig { capabilities: Capabilities::default(), ..config };
        // One retransmission at 10 % leaves too much loss, five leave little: 0.02^2 = p^6 is 27 %.
        assert_eq!(picked(config, path(0.10, 125)), r#"{"ssa", "uep"}"#);
        assert_eq!(picked(unable, path(0.10, 36)), r#"{"nack"}"#);
        assert_eq!(picked(unable, path(0.26, 33)), r#"{"nack"}"#);
        assert_eq!(picked(unable, path(0.28, 33)), r#"{"uep"}"#);
        // Nobody requests packets.
        let applicability = Applicability::default().without_retransmission();
        let config = PolicyConfig { applicability, ..unable };
        assert!([0.0, 0.01, 0.5].iter().all(|loss| picked(config, path(*loss, 20)) == r#"{"uep"}"#));
        let least = UnequalProtection { key: 4, reference: 8, burst: 1 };
        assert_eq!(Policy::new(config).decision().protection, Some(least));
        // An encoder without references on a long path.
        assert_eq!(picked(unable, path(0.01, 200)), r#"{"uep"}"#);
        assert_eq!(picked(unable, path(0.001, 200)), "{}");
    }

    #[test]
    fn bursts_frame_rate_and_deadline_count() {
        let bursty = Conditions { burst: 4.0, ..path(0.01, 50) };
        assert_eq!(picked(figure(), bursty), r#"{"ssa", "rps"}"#);
        assert_eq!(picked(PolicyConfig { capabilities: Capabilities::default(), ..figure() }, bursty), r#"{"nack"}"#);
        // 60 frames per second over a round trip of 400 ms are 24 pictures.
        let at = |frame_rate| picked(PolicyConfig { frame_rate, ..figure() }, path(0.01, 200));
        assert_eq!((at(15.0).as_str(), at(60.0).as_str()), (r#"{"ssa", "rps"}"#, r#"{"ssa"}"#));
        // 132 ms, half of 100 ms and 264 ms are more than 400 ms; with half of 10 ms they are not quite.
        let slow = PolicyConfig { capabilities: Capabilities::default(), ..figure() };
        let at = |frame_rate| picked(PolicyConfig { frame_rate, ..slow }, path(0.01, 131));
        assert_eq!((at(10.0).as_str(), at(100.0).as_str()), ("{}", r#"{"nack"}"#));
    }

    #[test]
    fn mechanisms_do_not_come_and_go_at_an_edge() {
        let mut p = Policy::new(figure());
        let mut changes = 0;
        let mut before = p.update(&path(0.018, 50)).mechanisms;
        for i in 0..200 {
            let now = p.update(&path(0.02 + 0.0035 * f64::from(i % 7 - 3) / 3.0, 50)).mechanisms;
            changes += u32::from(now != before);
            before = now;
        }
        assert_eq!(changes, 0, "{before:?}");
        // A changed path is followed after as many reports as are averaged.
        for _ in 0..3 {
            p.update(&path(0.03, 50));
        }
        assert!(!p.decision().mechanisms.contains(Mechanisms::NACK));
        // Switching on again requires the region itself.
        (0..3).for_each(|_| _ = p.update(&path(0.022, 50)));
        assert!(!p.decision().mechanisms.contains(Mechanisms::NACK));
        (0..3).for_each(|_| _ = p.update(&path(0.015, 50)));
        assert!(p.decision().mechanisms.contains(Mechanisms::NACK));
    }

    #[test]
    fn pinned_measures_stay_if_the_encoder_supports_them() {
        let choice = Choice::Pinned(Mechanisms::SLICES | Mechanisms::PROTECTION);
        let mut p = Policy::new(PolicyConfig { choice, ..figure() });
        for loss in [0.0, 0.05, 0.3, 0.05, 0.05, 0.05] {
            let d = *p.update(&path(loss, 390));
            assert!(d.mechanisms == Mechanisms::SLICES | Mechanisms::PROTECTION && d.slice_size.is_some(), "{d:?}");
        }
        assert_eq!(p.decision().protection, Some(UnequalProtection { key: 2, reference: 5, burst: 1 }));
        p.set_capabilities(Capabilities::default());
        let d = *p.update(&path(0.05, 100));
        assert_eq!((d.mechanisms, d.slice_size), (Mechanisms::PROTECTION, None));
        assert_eq!(Mechanisms::by_name("rps"), Some(Mechanisms::REFERENCES));
        assert_eq!(Mechanisms::by_name("fec"), None);
    }

    proptest! {
        /// For any measurements the selection is supported by the encoder, and its values are valid.
        #[test]
        fn anything_may_be_measured(
            paths in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<i32>(), any::<Option<i32>>()), 1..40),
            extended: bool, able: bool, fps in any::<f64>(),
        ) {
            let capabilities = Capabilities { slices: able, reference_selection: able };
            let applicability = Applicability { extended, ..Applicability::FIGURE };
            let mut p = Policy::new(PolicyConfig { capabilities, applicability, frame_rate: fps, ..figure() });
            for (loss, burst, rtt, one_way) in paths {
                let rtt = TimeDelta::from_micros(rtt.into());
                let one_way_delay = one_way.map(|d| TimeDelta::from_micros(d.into()));
                let d = *p.update(&Conditions { loss, burst, rtt, one_way_delay });
                prop_assert!(able || !d.mechanisms.contains(Mechanisms::SLICES) && !d.mechanisms.contains(Mechanisms::REFERENCES));
                prop_assert_eq!(d.mechanisms.contains(Mechanisms::PROTECTION), d.protection.is_some());
                prop_assert_eq!(d.mechanisms.contains(Mechanisms::SLICES), d.slice_size.is_some());
                if let Some(u) = d.protection {
                    prop_assert!((1..=5).contains(&u.burst) && u.key >= 1 && u.reference > u.key);
                }
            }
        }
    }
}
