//! Plain traffic over a link, beside ns-3.

use super::{BenchError, Work};
use crate::ns3::{Beside, Figures};
use crate::report::{Goal, Row, Unit};
use crate::simulator::SCENARIOS;
use weir_units::TimeDelta;

/// Times ns-3 without its flow monitor.
const TIMES_NS3: f64 = 120.0;
/// Bottleneck packets a CPU second.
const GIGABIT_PACKETS: f64 = 1.5e6;
/// The scenario whose speed is one of packets.
const GIGABIT: &str = "gigabit";
/// Simulated seconds at scale 1.
const SECONDS: f64 = 10_000.0;
const GIGABIT_SECONDS: f64 = 5.0;

pub(super) fn rows(work: &Work<'_>, ns3: &[Figures]) -> Result<Vec<Row>, BenchError> {
    let row = |s: crate::simulator::Scenario| {
        let is_gigabit = s.name == GIGABIT;
        let seconds = work.suite.scale * if is_gigabit { GIGABIT_SECONDS } else { SECONDS };
        let (done, cpu_s) = work.best(s.name, || Ok((s.run)(TimeDelta::from_secs_f64(seconds))))?;
        let row = Row::new(s.name.into(), s.summary.into(), seconds, cpu_s).with_packets(done.packets as f64);
        let row = if is_gigabit { row.in_unit(Unit::Packets).with_goal(Some(GIGABIT_PACKETS)) } else { row };
        let beside = Beside::new(ns3, s.name, row.speed, is_gigabit);
        let goal = row.goal.clone().or_else(|| {
            let met = beside.as_ref().map(|b| b.times_bare >= TIMES_NS3);
            Some(Goal { value: TIMES_NS3, times_ns3: true, met })
        });
        Ok(Row { goal, ns3: beside, ..row })
    };
    SCENARIOS.into_iter().map(row).collect()
}
