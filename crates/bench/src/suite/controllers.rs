//! Controllers with only the sent history around them.

use super::{BenchError, Work};
use crate::report::{Row, Unit};
use weir_cc::drive::{Drive, PACKETS_PER_STEP};

/// Steps of 100 ms of media at scale 1.
const STEPS: f64 = 20_000.0;
/// Goals in nanoseconds a media packet, the sent history included.
const GOALS: [(&str, f64); 3] = [("nada", 60.0), ("scream", 250.0), ("gcc", 300.0)];

pub(super) fn rows(work: &Work<'_>) -> Result<Vec<Row>, BenchError> {
    let registry = work.suite.registry;
    let steps = (STEPS * work.suite.scale).ceil() as u64;
    let row = |name: &str| {
        let mut drive = Drive::new(registry, name, None).map_err(BenchError::failed)?;
        let row = format!("controller-{name}");
        let ((), cpu_s) = work.best(&row, || {
            (0..steps).for_each(|_| drive.step());
            Ok(())
        })?;
        std::hint::black_box(drive.checksum());
        let summary = format!("{name} and the sent history alone, for each media packet, feedback included");
        let row = Row::new(row, summary, steps as f64 * 0.1, cpu_s).with_packets((steps * PACKETS_PER_STEP) as f64);
        Ok(row.in_unit(Unit::Nanoseconds).with_goal(GOALS.iter().find(|g| g.0 == name).map(|g| g.1)))
    };
    registry.specs().map(|spec| row(&spec.name)).collect()
}
