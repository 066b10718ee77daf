//! Parameters of a receiver of layers. Sources: the paper of 1996, and the program of its authors in ns-2 (`tcl/rlm/rlm.tcl`), whose
//! defaults these are; it has several for some.

use weir_units::TimeDelta;

/// Most layers.
pub const MAX_LAYERS: u8 = 16;

/// Configuration of a [`LayeredReceiver`](super::LayeredReceiver).
#[derive(Clone, PartialEq, Debug)]
pub struct LayeredConfig {
    /// Layers of the stream, 1 to [`MAX_LAYERS`]; more are as many.
    pub layers: u8,
    /// Mean time before a layer is tried, at first and at least (5 s).
    pub join_min: TimeDelta,
    /// The same at most, after failures (60 s; the program also has 600 s).
    pub join_max: TimeDelta,
    /// By what a failure lengthens it (2; the program also has 4).
    pub back_off: f64,
    /// By what a time without loss shortens that of the layer joined last (0.75).
    pub relax: f64,
    /// Time from an experiment to its loss before any was measured, and its deviation (5 s and 2 s).
    pub detection: TimeDelta,
    /// See [`Self::detection`].
    pub detection_deviation: TimeDelta,
    /// Weight of a measured one (1/4 for both).
    pub gain: f64,
    /// Share of packets lost in the state of measurement from which on the layer is dropped (25 %).
    pub loss_threshold: f64,
    /// Packets received before that share counts (10).
    pub least_packets: u64,
    /// Whether receivers learn from each other's experiments.
    pub learns: bool,
    /// How often in succession an experiment is put off for those of others. Own choice: 4.
    pub patience: u32,
    /// Seed of the join times.
    pub seed: u64,
}

impl LayeredConfig {
    /// For a stream of this number of layers.
    pub fn new(layers: u8, seed: u64) -> Self {
        Self {
            layers: layers.clamp(1, MAX_LAYERS),
            join_min: TimeDelta::from_secs(5),
            join_max: TimeDelta::from_secs(60),
            back_off: 2.0,
            relax: 0.75,
            detection: TimeDelta::from_secs(5),
            detection_deviation: TimeDelta::from_secs(2),
            gain: 0.25,
            loss_threshold: 0.25,
            least_packets: 10,
            learns: true,
            patience: 4,
            seed,
        }
    }
}
