//! Every controller over every row: the runs, their means, and how near each is to its goal.

use super::fluid;
use super::reading::Reading;
use super::results::{Board, ControllerScore, FluidScores, Furthest, MetricScores, RowKind, RowScores, Tally};
use super::row::{Row, Source};
use super::traces::Trace;
use std::path::Path;
use weir_cc::Registry;
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, Task, run, run_each};
use weir_lab::scenario::{InputError, Scenario, ScenarioFile, split_parameters, with_parameters};

/// Suffix of a controller's name whose runs are not simulated but made by [`Order::live`].
pub const LIVE: &str = "@live";

/// Makes a run in another way than by simulation.
pub type Maker<'a> = dyn Fn(&Scenario, u64, &RunOptions<'_>) -> Result<RunResult, RunError> + Sync + 'a;

/// Rows, traces and controllers to run.
pub struct Order<'a> {
    /// Rows beyond the traces.
    pub rows: &'a [Row],
    /// Recorded capacities.
    pub traces: &'a [Trace],
    /// Controllers by name, with parameters if wanted: `gcc:loss_v2=1:beta=0.9`.
    pub controllers: &'a [String],
    /// Runs of each, with seeds from 1 on.
    pub runs: u32,
    /// Makes the runs of controllers whose name ends in [`LIVE`], and how many; they are simulated too if absent.
    pub live: Option<(&'a Maker<'a>, u32)>,
}

/// One scenario of the order, its row and controller by number, and the values of its runs: by run, then by metric.
struct Place {
    row: usize,
    controller: usize,
    scenario: Scenario,
    values: Vec<Vec<Option<f64>>>,
}

/// Runs without values.
struct Outcome {
    /// Runs that failed, and why.
    failed: Vec<String>,
    /// Rows that the testbed cannot make, and why.
    not_run: Vec<String>,
    /// Number of runs that a stop left undone.
    undone: usize,
}

impl Order<'_> {
    /// Makes all runs. `begun` is called as one begins. Errors: a controller or a parameter that does not exist.
    pub fn measure(
        &self,
        threads: usize,
        options: &RunOptions<'_>,
        begun: &(dyn Fn(&str) + Sync),
    ) -> Result<Board, InputError> {
        let traced: Vec<Row> = self.traces.iter().map(Trace::row).collect();
        let rows: Vec<&Row> = self.rows.iter().chain(&traced).collect();
        let mut places = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            for (controller, name) in self.controllers.iter().enumerate() {
                let name = name.strip_suffix(LIVE).unwrap_or(name);
                if row.only.is_none_or(|only| only.contains(&name)) {
                    let scenario = scenario(row, name, options.registry)?;
                    places.push(Place { row: at, controller, scenario, values: Vec::new() });
                }
            }
        }
        let Outcome { failed, not_run, undone } = self.run(&rows, &mut places, threads, options, begun);
        let mut scores: Vec<RowScores> = (rows.iter().enumerate())
            .map(|(at, row)| {
                let kind = if at < self.rows.len() { RowKind::Scenario } else { RowKind::Trace };
                let trace = at.checked_sub(self.rows.len()).map(|i| &self.traces[i]);
                RowScores {
                    key: row.key.clone(),
                    title: row.title.clone(),
                    kind,
                    metrics: self.metrics(row, &places, at),
                    fluid: trace.map(|t| FluidScores { causal: fluid::causal(t), reactive: fluid::reactive(t) }),
                }
            })
            .collect();
        let groups = super::groups::groups(self.traces, &scores[self.rows.len()..]);
        let traces = scores.split_off(self.rows.len());
        scores.extend(groups);
        scores.extend(traces);
        let tallies = self.controllers.iter().map(|c| tally(c, &scores)).collect();
        Ok(Board {
            controllers: self.controllers.to_vec(),
            runs: self.runs,
            rows: scores,
            tallies,
            not_run,
            failed,
            undone,
        })
    }

    /// Makes the runs and reads their values.
    fn run(
        &self,
        rows: &[&Row],
        places: &mut [Place],
        threads: usize,
        options: &RunOptions<'_>,
        begun: &(dyn Fn(&str) + Sync),
    ) -> Outcome {
        let is_live: Vec<bool> = places.iter().map(|p| self.controllers[p.controller].ends_with(LIVE)).collect();
        let runs_of = |place: usize| match self.live {
            Some((_, runs)) if is_live[place] => runs,
            _ => self.runs,
        };
        let runs: Vec<u32> = (0..places.len()).map(runs_of).collect();
        let total = runs.iter().map(|n| *n as usize).sum::<usize>();
        let most = runs.iter().copied().max().unwrap_or(0);
        let scenarios: Vec<Scenario> = places.iter().map(|p| p.scenario.clone()).collect();
        let tasks = (1..=most).flat_map(|seed| {
            let made = scenarios.iter().zip(&runs).enumerate().filter(move |(_, (_, runs))| seed <= **runs);
            made.map(move |(id, (scenario, _))| Task { scenario, seed: seed.into(), series: true, id })
        });
        let make = |task: &Task<'_>, options: &RunOptions<'_>| -> Result<RunResult, RunError> {
            begun(&format!("{}, seed {}", task.scenario.label(), task.seed));
            match self.live.filter(|_| is_live[task.id]) {
                Some((live, _)) => live(task.scenario, task.seed, options),
                None => run(task.scenario, task.seed, options),
            }
        };
        let (mut failed, mut not_run, mut done) = (Vec::new(), Vec::new(), 0);
        run_each(tasks, total as u64, threads, options, &make, &mut |task, result| {
            let place = &mut places[task.id];
            let (row, controller) = (rows[place.row], &self.controllers[place.controller]);
            match result {
                Ok(result) => {
                    done += 1;
                    if let Some(reading) = Reading::of(&result) {
                        place.values.push(row.metrics.iter().map(|m| m.read(&reading)).collect());
                    }
                }
                Err(RunError::Stopped { .. }) => {}
                Err(RunError::NotLive { what }) => {
                    done += 1;
                    let line = format!("{} {controller}: {what}", row.key);
                    if !not_run.contains(&line) {
                        not_run.push(line);
                    }
                }
                Err(e) => {
                    done += 1;
                    failed.push(format!("{} {controller}, seed {}: {e}", row.key, task.seed));
                }
            }
        });
        Outcome { failed, not_run, undone: total - done }
    }

    fn metrics(&self, row: &Row, places: &[Place], at: usize) -> Vec<MetricScores> {
        let there: Vec<&Place> = places.iter().filter(|p| p.row == at && !p.values.is_empty()).collect();
        (row.metrics.iter().enumerate())
            .map(|(i, m)| MetricScores {
                label: m.label.clone(),
                unit: m.unit.into(),
                better: m.better,
                goal: m.goal,
                values: (there.iter())
                    .map(|p| {
                        let runs = p.values.iter().map(|v| v[i]).collect();
                        ControllerScore::new(&self.controllers[p.controller], runs, m.better, m.goal)
                    })
                    .collect(),
            })
            .collect()
    }
}

fn tally(controller: &str, rows: &[RowScores]) -> Tally {
    let mut tally = Tally { controller: controller.into(), goals: 0, met: 0, whole: vec![], worst: None };
    for row in rows.iter().filter(|r| r.kind != RowKind::Trace) {
        let (mut goals, mut met) = (0, 0);
        for metric in &row.metrics {
            let score = metric.values.iter().find(|v| v.controller == controller);
            let (Some(goal), Some(score)) = (metric.goal, score) else { continue };
            goals += 1;
            met += usize::from(score.met == Some(true));
            let closeness = score.closeness.unwrap_or(0.0);
            if closeness < tally.worst.as_ref().map_or(1.0, |w| w.closeness) {
                let (row, metric, unit) = (row.key.clone(), metric.label.clone(), metric.unit.clone());
                tally.worst = Some(Furthest { row, metric, unit, mean: score.mean, goal, closeness });
            }
        }
        tally.goals += goals;
        tally.met += met;
        if goals > 0 && met == goals {
            tally.whole.push(row.key.clone());
        }
    }
    tally
}

/// A row's scenario under a controller, `NAME` or `NAME:PARAMETER=VALUE:...`. Errors: the name, a parameter or its value.
pub fn scenario(row: &Row, controller: &str, registry: &Registry) -> Result<Scenario, InputError> {
    let (name, params) = split_parameters(controller, registry);
    let with = |text: &str, params| with_parameters(text, name, params);
    let file = match (&row.source, params) {
        (Source::BuiltIn(built_in), None) => ScenarioFile::builtin(built_in, registry)?,
        (Source::BuiltIn(built_in), Some(params)) => {
            let text = with(ScenarioFile::builtin(built_in, registry)?.text(), params)?;
            ScenarioFile::edited(built_in, &text, registry)?
        }
        (Source::Text(text, files), _) => {
            let text = params.map_or_else(|| Ok(text.clone()), |params| with(text, params))?;
            ScenarioFile::parse_with_files(&format!("row {}", row.key), &text, files.clone(), registry)?
        }
    };
    file.scenario(None, Some(name), registry)
}

/// A file's scenarios, one a variant, under a controller as of [`scenario`]. Errors: likewise.
pub(crate) fn variants(
    file: &ScenarioFile,
    controller: &str,
    registry: &Registry,
) -> Result<Vec<Scenario>, InputError> {
    let (name, params) = split_parameters(controller, registry);
    let name = [name.to_owned()];
    let Some(params) = params else { return file.scenarios(Some(&name), registry) };
    let text = with_parameters(file.text(), &name[0], params)?;
    file.with_text(file.name(), &text, registry)?.scenarios(Some(&name), registry)
}

/// Writes the rows' scenarios and what they name into a folder, for `weir run`: one folder a row.
pub fn write_rows(rows: &[Row], folder: &Path) -> std::io::Result<()> {
    for row in rows {
        let Source::Text(text, files) = &row.source else { continue };
        let folder = folder.join(row.key.replace(':', "-"));
        std::fs::create_dir_all(&folder)?;
        let all = files.iter().map(|(name, data)| (name.as_str(), data.as_slice()));
        for (name, data) in all.chain([("scenario.toml", text.as_bytes())]) {
            weir_report::atomic_write::write_atomically(&folder.join(name), |out| out.write_all(data))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn every_row_is_a_sound_scenario() {
        let registry = Registry::builtin();
        let mut goals = 0;
        for row in rows() {
            let s = scenario(&row, "gcc", &registry).unwrap_or_else(|e| panic!("{}: {e}", row.key));
            assert!(s.links.iter().any(|l| l.name == super::super::text::LINK) || row.key == "a0", "{}", row.key);
            goals += row.metrics.iter().filter(|m| m.goal.is_some()).count();
        }
        assert_eq!(goals, 114);
        for row in rows() {
            let own = scenario(&row, "gcc:beta=0.9", &registry).unwrap_or_else(|e| panic!("{}: {e}", row.key));
            assert_ne!(
                format!("{own:?}"),
                format!("{:?}", scenario(&row, "gcc", &registry).expect("sound")),
                "{}",
                row.key
            );
            let error = scenario(&row, "gcc:no_such=1", &registry).expect_err("no such parameter").to_string();
            assert!(error.contains("no_such"), "{}: {error}", row.key);
        }
        assert!(scenario(&rows()[0], "nobody", &registry).is_err());
        let error = scenario(&rows()[0], "gcc:beta", &registry).expect_err("no value").to_string();
        assert!(error.contains("`beta` is no PARAMETER=VALUE"), "{error}");
    }

    #[test]
    fn the_board_is_the_same_at_one_thread_and_at_two() {
        let registry = Registry::builtin();
        let stop = AtomicBool::new(false);
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        let all = rows();
        let chosen: Vec<Row> = all.into_iter().filter(|r| r.key == "j1").collect();
        let controllers = ["sluice".to_owned(), "fixed".to_owned()];
        let order = Order { rows: &chosen, traces: &[], controllers: &controllers, runs: 2, live: None };
        let once = order.measure(1, &options, &|_| {}).expect("measured");
        assert_eq!(once, order.measure(2, &options, &|_| {}).expect("measured"));
        assert_eq!((once.undone, once.failed.len()), (0, 0));
        let used = &once.rows[0].metrics[0];
        // The fixed rate of 300 kbit/s of 4 Mbit/s.
        let fixed = used.values[1].mean.expect("a share");
        assert!((0.07..0.08).contains(&fixed), "{fixed}");
        assert_eq!(used.values[1].met, Some(false));
        let worst = once.tallies[1].worst.as_ref().expect("a goal not met");
        assert_eq!((worst.row.as_str(), worst.metric.as_str(), once.tallies[1].goals), ("j1", "use 10-60 s", 2));
        assert!((worst.closeness - fixed / 0.95).abs() < 1e-9);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let stopped = order.measure(2, &options, &|_| {}).expect("nothing measured");
        assert_eq!((stopped.undone, stopped.rows[0].metrics[0].values.len()), (4, 0));
    }

    #[test]
    fn runs_of_a_live_controller_are_made_by_the_maker() {
        let registry = Registry::builtin();
        let stop = AtomicBool::new(false);
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        let chosen: Vec<Row> = rows().into_iter().filter(|r| r.key == "j1").collect();
        let controllers = ["fixed".to_owned(), format!("fixed{LIVE}")];
        let asked = std::sync::atomic::AtomicU64::new(0);
        let live = |s: &Scenario, seed: u64, o: &RunOptions<'_>| {
            asked.fetch_add(seed, std::sync::atomic::Ordering::Relaxed);
            match seed {
                1 => run(s, seed, o),
                2 => Err(RunError::Live { what: "no namespace".into() }),
                _ => Err(RunError::NotLive { what: "no clock".into() }),
            }
        };
        let order = Order { rows: &chosen, traces: &[], controllers: &controllers, runs: 4, live: Some((&live, 4)) };
        let board = order.measure(1, &options, &|_| {}).expect("measured");
        assert_eq!(board.failed, ["j1 fixed@live, seed 2: no namespace"]);
        assert_eq!((board.not_run, board.undone), (vec!["j1 fixed@live: no clock".to_owned()], 0));
        let p95 = &board.rows[0].metrics[1].values;
        assert_eq!((p95[0].runs.len(), p95[1].runs.len()), (4, 1));
        assert_eq!(
            (p95[1].controller.as_str(), asked.load(std::sync::atomic::Ordering::Relaxed)),
            ("fixed@live", 10),
            "once for each seed"
        );
    }

    #[test]
    fn rows_can_be_written_and_read_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let chosen: Vec<Row> = rows().into_iter().filter(|r| r.key == "j2" || r.key == "a0").collect();
        write_rows(&chosen, dir.path()).expect("written");
        let registry = Registry::builtin();
        let file = ScenarioFile::read(&dir.path().join("j2/scenario.toml"), &registry).expect("sound");
        let read = file.scenario(None, Some("sluice"), &registry).expect("resolves");
        let direct = scenario(&chosen[1], "sluice", &registry).expect("resolves");
        assert_eq!(read.links, direct.links);
        assert!(!dir.path().join("a0").exists(), "built-in scenarios have a name already");
    }
}
