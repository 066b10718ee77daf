//! The grid, its runs, and what is read from them.

use serde::Serialize;
use std::path::Path;
use weir_cc::Registry;
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, Task, run, run_each};
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};
use weir_lab::series::Series;

/// Length of a run and of its judged end, s.
const RUN: f64 = 40.0;
const JUDGED: f64 = 20.0;
/// Window of the rate's means, s, and at least so many round trips.
const WINDOW: f64 = 2.0;
const ROUNDS: f64 = 2.0;
/// Greatest swing, and queueing delay in ms and in packets, that is no oscillation; least use that is no starvation.
const MOST_SWING: f64 = 0.3;
const MOST_DELAY: f64 = 100.0;
const MOST_PACKETS: f64 = 12.0;
const LEAST_USE: f64 = 0.8;
/// Payload of a packet in bits.
const PACKET_BITS: f64 = 9_600.0;

/// The values of each dimension.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grid {
    /// Round-trip times in ms.
    pub rtt_ms: Vec<f64>,
    /// Capacities in bit/s.
    pub rate_bps: Vec<f64>,
    /// Feedback intervals in ms.
    pub feedback_ms: Vec<f64>,
}

impl Grid {
    /// The whole range: 5 to 600 ms, 50 kbit/s to 500 Mbit/s, feedback every 20 to 400 ms.
    pub fn whole() -> Self {
        Self {
            rtt_ms: vec![5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 600.0],
            rate_bps: vec![50e3, 100e3, 200e3, 500e3, 1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6, 200e6, 500e6],
            feedback_ms: vec![20.0, 50.0, 100.0, 200.0, 400.0],
        }
    }

    /// Few cells, for tests.
    pub fn coarse() -> Self {
        Self {
            rtt_ms: vec![10.0, 50.0, 200.0, 600.0],
            rate_bps: vec![100e3, 500e3, 2e6, 5e6, 50e6],
            feedback_ms: vec![20.0, 50.0, 200.0, 400.0],
        }
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.rtt_ms.len() * self.rate_bps.len() * self.feedback_ms.len()
    }
}

/// One link.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "StabilityLink"))]
pub struct Cell {
    /// Round-trip time in ms.
    pub rtt_ms: f64,
    /// Capacity in bit/s.
    pub rate_bps: f64,
    /// Feedback interval in ms.
    pub feedback_ms: f64,
    /// Peak-to-trough of the rate sent over its mean.
    pub swing: f64,
    /// 95th percentile of the link's queueing delay in ms.
    pub queue_p95_ms: f64,
    /// Goodput over capacity.
    #[serde(rename = "use")]
    pub used: f64,
    /// Whether it oscillates.
    pub oscillates: bool,
    /// Whether it uses too little of the link.
    pub starved: bool,
}

impl Cell {
    fn read(rtt_ms: f64, rate_bps: f64, feedback_ms: f64, run: &RunResult) -> Option<Self> {
        let series = run.series.as_ref()?;
        let end = series.time_s.last()?;
        let judged: Vec<usize> = (0..series.time_s.len()).filter(|&i| series.time_s[i] > end - JUDGED + 1e-9).collect();
        let window = WINDOW.max(ROUNDS * rtt_ms / 1e3);
        let (swing, used) = Self::swing(series, &judged, window, rate_bps)?;
        let mut queues: Vec<f64> =
            judged.iter().filter_map(|&i| series.links.first()?.queue_delay_ms.get(i).copied()).collect();
        queues.retain(|q| !q.is_nan());
        queues.sort_by(f64::total_cmp);
        let queue_p95_ms = queues.get((0.95 * queues.len() as f64) as usize).copied().unwrap_or(0.0);
        let most = MOST_DELAY.max(MOST_PACKETS * PACKET_BITS / rate_bps * 1e3);
        Some(Self {
            rtt_ms,
            rate_bps,
            feedback_ms,
            swing,
            queue_p95_ms,
            used,
            oscillates: swing > MOST_SWING || queue_p95_ms > most,
            starved: used < LEAST_USE,
        })
    }

    /// Peak-to-trough over mean of the windows' rates, and the share of the capacity that arrived.
    fn swing(series: &Series, judged: &[usize], window: f64, capacity: f64) -> Option<(f64, f64)> {
        let flow = series.flows.first()?;
        let rows = ((window / series.interval_s).round() as usize).clamp(1, judged.len().max(1));
        let mean = |part: &[usize], of: &[f64]| {
            part.iter().map(|&i| of[i]).filter(|v| !v.is_nan()).sum::<f64>() / part.len() as f64
        };
        let rates: Vec<f64> = judged.windows(rows).map(|part| mean(part, &flow.sent_bps)).collect();
        let (most, least) = rates.iter().fold((0.0, f64::INFINITY), |(a, b): (f64, f64), r| (a.max(*r), b.min(*r)));
        let whole = mean(judged, &flow.sent_bps);
        (whole > 0.0).then(|| ((most - least) / whole, mean(judged, &flow.goodput_bps) / capacity))
    }
}

/// A part of the grid that is stated to be stable.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Region {
    /// Longest round-trip time in ms.
    pub rtt_ms: f64,
    /// Least and greatest capacity in bit/s.
    pub rate_bps: (f64, f64),
    /// Shortest and longest feedback interval in ms.
    pub feedback_ms: (f64, f64),
}

impl Region {
    /// The region that `docs/sluice.md` states for Sluice.
    pub const SLUICE: Self = Self { rtt_ms: 600.0, rate_bps: (50e3, 500e6), feedback_ms: (20.0, 400.0) };

    /// Whether a cell lies inside.
    pub fn contains(&self, cell: &Cell) -> bool {
        cell.rtt_ms <= self.rtt_ms
            && (self.rate_bps.0..=self.rate_bps.1).contains(&cell.rate_bps)
            && (self.feedback_ms.0..=self.feedback_ms.1).contains(&cell.feedback_ms)
    }
}

/// A controller's map.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Map {
    /// The controller.
    pub controller: String,
    /// The grid.
    pub grid: Grid,
    /// The cells that were run: by feedback interval, then round-trip time, then capacity.
    pub cells: Vec<Cell>,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    /// Cells that a stop left undone.
    pub undone: usize,
}

impl Map {
    /// Runs a controller over a grid. Errors: the controller does not exist.
    pub fn measure(
        controller: &str,
        grid: Grid,
        threads: usize,
        options: &RunOptions<'_>,
        begun: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, InputError> {
        let mut places = Vec::with_capacity(grid.cells());
        for &feedback in &grid.feedback_ms {
            for &rtt in &grid.rtt_ms {
                for &rate in &grid.rate_bps {
                    places.push(((rtt, rate, feedback), scenario(controller, rtt, rate, feedback, options.registry)?));
                }
            }
        }
        let tasks = places.iter().enumerate().map(|(id, (_, scenario))| Task { scenario, seed: 1, series: true, id });
        let make = |task: &Task<'_>, options: &RunOptions<'_>| -> Result<RunResult, RunError> {
            begun(&task.scenario.label());
            run(task.scenario, task.seed, options)
        };
        let (mut cells, mut failed) = (Vec::new(), Vec::new());
        run_each(tasks, places.len() as u64, threads, options, &make, &mut |task, result| {
            let (rtt, rate, feedback) = places[task.id].0;
            match result {
                Ok(run) => cells.extend(Cell::read(rtt, rate, feedback, &run)),
                Err(RunError::Stopped { .. }) => {}
                Err(e) => failed.push(format!("{}: {e}", task.scenario.label())),
            }
        });
        let undone = places.len() - cells.len() - failed.len();
        Ok(Self { controller: controller.into(), grid, cells, failed, undone })
    }

    /// The cell of a round-trip time, a capacity and a feedback interval.
    pub fn cell(&self, rtt_ms: f64, rate_bps: f64, feedback_ms: f64) -> Option<&Cell> {
        self.cells.iter().find(|c| (c.rtt_ms, c.rate_bps, c.feedback_ms) == (rtt_ms, rate_bps, feedback_ms))
    }
}

/// The run of a cell: equal frames, 30 a second, a queue of 300 ms and 60 kB at least, a start at 0.3 of the capacity.
fn scenario(controller: &str, rtt: f64, rate: f64, feedback: f64, registry: &Registry) -> Result<Scenario, InputError> {
    let queue = (0.3 * rate / 8.0).max(60e3);
    let name = format!("{} kbit/s, {rtt} ms, feedback {feedback} ms", rate / 1e3);
    let text = format!(
        "title = \"{name}\"\nduration = \"{RUN} s\"\nsample_interval = \"50 ms\"\n\
         [links.b]\nrate = \"{rate:.0} bps\"\ndelay = \"{:.3} ms\"\nqueue = \"{queue:.0} B\"\n\
         [rtp.v]\ncontroller = \"$controller\"\nsource = {{ model = \"perfect-frames\", fps = 30 }}\n\
         payload = \"1200 B\"\nheader_overhead = \"0 B\"\nfloor = \"{:.0} bps\"\nceiling = \"{:.0} bps\"\n\
         start_rate = \"{:.0} bps\"\nfeedback = {{ interval = \"{feedback} ms\" }}\n",
        rtt / 2.0,
        0.1 * rate,
        1.5 * rate,
        0.3 * rate,
    );
    ScenarioFile::parse(&name, &text, Path::new("."), registry)?.scenario(None, Some(controller), registry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn map(controller: &str, grid: Grid) -> Map {
        let registry = Registry::builtin();
        let stop = AtomicBool::new(false);
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        let map = Map::measure(controller, grid, 2, &options, &|_| {}).expect("measured");
        assert_eq!((map.cells.len() + map.failed.len(), map.undone), (map.grid.cells(), 0));
        assert!(map.failed.is_empty(), "{:?}", map.failed);
        map
    }

    #[test]
    fn sluice_oscillates_nowhere_inside_the_stated_region() {
        let map = map("sluice", Grid::coarse());
        let inside: Vec<&Cell> = map.cells.iter().filter(|c| Region::SLUICE.contains(c)).collect();
        assert!(inside.len() == 80, "{} cells", inside.len());
        let bad: Vec<&&Cell> = inside.iter().filter(|c| c.oscillates || c.starved).collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }

    #[test]
    fn an_oscillation_is_seen_and_a_steady_rate_is_none() {
        let one = |controller: &str, rate| {
            let grid = Grid { rtt_ms: vec![100.0], rate_bps: vec![rate], feedback_ms: vec![100.0] };
            map(controller, grid).cells[0]
        };
        // A fixed rate of 0.3 of the link.
        let fixed = one("fixed", 1e6);
        assert!(fixed.swing < 0.05 && !fixed.oscillates && fixed.starved, "{fixed:?}");
        assert!((0.28..0.32).contains(&fixed.used), "{fixed:?}");
        // TFRC fills the queue of 300 ms.
        let tfrc = one("tfrc", 2e6);
        assert!(tfrc.oscillates && tfrc.queue_p95_ms > 100.0, "{tfrc:?}");
    }
}
