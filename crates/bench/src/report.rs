//! Measurements, as `weir bench --json` prints them.

use crate::ns3::Beside;
use serde::Serialize;

/// The unit of a row's speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Unit {
    /// Simulated seconds a CPU second.
    #[serde(rename = "simulated_s_per_cpu_s")]
    Seconds,
    /// Packets a CPU second.
    #[serde(rename = "packets_per_cpu_s")]
    Packets,
    /// CPU nanoseconds a packet.
    #[serde(rename = "ns_per_packet")]
    Nanoseconds,
}

impl Unit {
    /// The unit for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Seconds => "s/CPU s",
            Self::Packets => "packets/CPU s",
            Self::Nanoseconds => "ns/packet",
        }
    }
}

/// Speed that a row should reach.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Goal {
    /// In the row's unit, or times ns-3.
    pub value: f64,
    /// Whether it is in times ns-3's speed.
    pub times_ns3: bool,
    /// Absent if ns-3 was not measured.
    pub met: Option<bool>,
}

/// One benchmark.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Benchmark"))]
pub struct Row {
    /// Its name.
    pub name: String,
    /// The workload.
    pub summary: String,
    /// In `unit`.
    pub speed: f64,
    /// The speed's unit.
    pub unit: Unit,
    /// Simulated time in s.
    pub simulated_s: f64,
    /// Least CPU time of the runs in s.
    pub cpu_s: f64,
    /// The first over the second.
    pub simulated_s_per_cpu_s: f64,
    /// Packets that the simulation sent a second of CPU time.
    pub packets_per_cpu_s: Option<f64>,
    /// Memory of the process per call, without metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_call: Option<u64>,
    /// Speed that the row should reach.
    pub goal: Option<Goal>,
    /// The same in ns-3, where it was measured.
    pub ns3: Option<Beside>,
}

impl Row {
    /// A row of work that took `cpu_s` for `simulated_s`, whose speed is the ratio of the two.
    pub(crate) fn new(name: String, summary: String, simulated_s: f64, cpu_s: f64) -> Self {
        let speed = simulated_s / cpu_s;
        Self {
            name,
            summary,
            speed,
            unit: Unit::Seconds,
            simulated_s,
            cpu_s,
            simulated_s_per_cpu_s: speed,
            packets_per_cpu_s: None,
            bytes_per_call: None,
            goal: None,
            ns3: None,
        }
    }

    /// The row with the packets of the same work.
    pub(crate) fn with_packets(self, packets: f64) -> Self {
        Self { packets_per_cpu_s: Some(packets / self.cpu_s), ..self }
    }

    /// The row with a speed of packets in the place of time; to be called after [`Self::with_packets`].
    pub(crate) fn in_unit(self, unit: Unit) -> Self {
        let packets = self.packets_per_cpu_s.unwrap_or(f64::NAN);
        let speed = match unit {
            Unit::Seconds => self.simulated_s_per_cpu_s,
            Unit::Packets => packets,
            Unit::Nanoseconds => 1e9 / packets,
        };
        Self { speed, unit, ..self }
    }

    /// The row with a goal in its unit, if there is one.
    pub(crate) fn with_goal(self, goal: Option<f64>) -> Self {
        let met = |value| if self.unit == Unit::Nanoseconds { self.speed <= value } else { self.speed >= value };
        let goal = goal.map(|value| Goal { value, times_ns3: false, met: Some(met(value)) });
        Self { goal, ..self }
    }
}

/// One transport over the loopback device.
#[cfg(target_os = "linux")]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Loopback {
    /// The transport.
    pub name: &'static str,
    /// Its speed.
    #[serde(flatten)]
    pub speed: crate::loopback::Speed,
    /// Goodput over that of the kernel's TCP with segments as long as the datagrams.
    pub times_tcp: f64,
}

/// All that one call measures.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Weir's version.
    pub version: &'static str,
    /// Whether this is a debug build, whose speed says little.
    pub debug_build: bool,
    /// Share of the usual simulated time.
    pub scale: f64,
    /// Runs of which the fastest counts.
    pub best_of: u32,
    /// The benchmarks.
    pub rows: Vec<Row>,
    /// Datagrams over the loopback device, by the clock.
    #[cfg(target_os = "linux")]
    pub loopback: Vec<Loopback>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_in_their_unit_and_goals_on_the_right_side() {
        let row = || Row::new("x".into(), String::new(), 10.0, 2.0).with_packets(1_000.0);
        assert_eq!((row().speed, row().in_unit(Unit::Packets).speed), (5.0, 500.0));
        let packet = row().in_unit(Unit::Nanoseconds);
        assert_eq!(packet.speed, 2e6);
        let met = |row: Row, goal| row.with_goal(Some(goal)).goal.and_then(|g| g.met);
        assert_eq!((met(row(), 5.0), met(row(), 5.1)), (Some(true), Some(false)));
        assert_eq!((met(packet.clone(), 2e6), met(packet, 1.9e6)), (Some(true), Some(false)));
        assert!(row().with_goal(None).goal.is_none());
    }
}
