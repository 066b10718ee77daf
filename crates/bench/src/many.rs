//! Many calls over one link: the cost of a packet by number of calls, and the memory of a call.
//!
//! Data used by each packet is adjacent. With many calls, cache misses dominate, not instructions: parts that most
//! streams lack are boxed, and the structures used by every packet have their fields in order of use (`repr(C)`). The
//! recorder samples only flows whose sending agent has run since the sample before; the crates on a packet's path are
//! compiled as one unit each.

use weir_cc::Registry;
use weir_lab::run::{BareRun, RunError, RunOptions, run};
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};
use weir_units::{TimeDelta, Timestamp};

/// Numbers of calls measured.
pub const NUMBERS: [u32; 4] = [10, 100, 1_000, 10_000];

/// `calls` calls of 500 kbit/s under GCC, whose frames are all made at the same times, over a link with sufficient
/// capacity, for this simulated time. Errors: the registry has no such controller.
pub fn scenario(calls: u32, duration: TimeDelta, registry: &Registry) -> Result<Scenario, InputError> {
    let text = format!(
        "title = \"Many calls over one link\"\nduration = \"{} s\"\n\
         [links.bottleneck]\nrate = \"{} kbps\"\ndelay = \"25 ms\"\nqueue = \"100 ms\"\n\
         [rtp.call]\ncount = {calls}\ncontroller = \"gcc\"\nsource = \"perfect-frames\"\n\
         [controllers.gcc]\nfloor = \"100 kbps\"\nceiling = \"500 kbps\"\nstart_rate = \"500 kbps\"\n",
        duration.as_secs_f64(),
        u64::from(calls) * 600 + 1_000,
    );
    ScenarioFile::parse("many-calls", &text, std::path::Path::new(""), registry)?.scenario(None, None, registry)
}

/// Runs it with all metrics, as `weir run` does; returns the number of packets sent by the calls. Errors: as for
/// [`run`].
pub fn packets(scenario: &Scenario, options: &RunOptions<'_>) -> Result<u64, RunError> {
    Ok(run(scenario, 1, options)?.flows.iter().map(|f| f.packets.sent).sum())
}

/// Runs it without metrics; returns by how much `held`, the process's memory in bytes, has grown per call. Errors: as
/// for [`BareRun`]; `None` if `held` returns `None`.
pub fn bytes_a_call(
    scenario: &Scenario,
    registry: &Registry,
    held: impl Fn() -> Option<u64>,
) -> Result<Option<u64>, RunError> {
    let before = held();
    let mut bare = BareRun::new(scenario, 1, registry)?;
    bare.run_until(Timestamp::ZERO + scenario.duration)?;
    let after = held();
    let calls = bare.calls().count().max(1) as u64;
    Ok(before.zip(after).map(|(before, after)| after.saturating_sub(before) / calls))
}
