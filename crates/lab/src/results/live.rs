use serde::{Deserialize, Serialize};

/// Accuracy of a run in real time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Live {
    /// How much later than planned packets left the links, in ms: mean.
    pub delay_error_mean_ms: f64,
    /// The 99th percentile.
    pub delay_error_p99_ms: f64,
    /// The maximum.
    pub delay_error_max_ms: f64,
    /// Packets sent more than 1 ms late.
    pub late_packets: u64,
    /// Packets that the kernel dropped because the emulator did not read them in time.
    pub overruns: u64,
    /// Rate of the bottleneck while packets waited for it, over its capacity; `None` if none ever waited.
    pub rate_ratio: Option<f64>,
    /// CPU time of the emulator's thread over the run's time.
    pub emulator_cpu: f64,
    /// The machine's load average over a minute when the run ended.
    pub load: Option<f64>,
    /// Whether threads were scheduled in real time.
    pub realtime: bool,
    /// Deviations from the scenario, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}
