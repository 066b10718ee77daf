//! How near a run comes to a recording.

use super::{Column, Row, Twin};
use serde::Serialize;
use weir_lab::results::RunResult;
use weir_lab::series::{FlowSeries, Series};

/// Greatest area between the curves, as a share of the area under the recording's, of a twin that is near.
const NEAR_AREA: f64 = 0.10;
/// Greatest difference of times, as a share of the recording's, of a twin that is near, or in s where that is more. Times of
/// both are those of a recording's rows, half seconds.
const NEAR_TIME: f64 = 0.20;
const LEAST_TIME_S: f64 = 0.3;
/// Length of a recording's rows.
const ROW_S: f64 = 0.5;
/// A target has fallen once it is below this multiple of the new capacity, and has risen once it is above the second.
const FALLEN: f64 = 1.1;
const RISEN: f64 = 0.8;

/// A twin's score.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Score {
    /// The twin.
    pub twin: String,
    /// The controller.
    pub controller: String,
    /// The flows, in the order of their starts.
    pub flows: Vec<FlowScore>,
    /// Times to follow the changes of capacity, if there is one flow.
    pub changes: Vec<Change>,
    /// Whether every area is at most 10 %, with several flows that of the program's ten starts, or of the sorted rates if it has
    /// one, and every time differs by at most 20 %, or 0.3 s where that is more.
    pub near: bool,
}

/// One flow's score.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowScore {
    /// Area between the rate curves, in means over whole seconds, as a share of the area under the recording's.
    pub area: f64,
    /// The same with the flows of each second sorted by their rates, the highest for the first flow, and Weir's the mean of ten
    /// starts: the order in which flows find their shares is chance. Absent with one flow.
    pub sorted_area: Option<f64>,
    /// The same as `sorted_area` with the mean of the program's own ten starts in place of the one recording. Absent where the
    /// program's starts have not been recorded.
    pub starts_area: Option<f64>,
    /// One-way delays of the recording.
    pub recorded_delay_ms: Delays,
    /// One-way delays of Weir's run.
    pub delay_ms: Delays,
}

impl FlowScore {
    /// The area by which the flow is judged.
    fn judged(&self) -> f64 {
        self.starts_area.or(self.sorted_area).unwrap_or(self.area)
    }
}

/// Percentiles of the mean one-way delays of half seconds, in ms.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delays {
    /// The median.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
}

/// Times to follow a change of capacity: until the target is below 1.1 times a lower capacity, or above 0.8 times a higher
/// one.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// When the capacity changed, in s.
    pub at_s: f64,
    /// Whether it rose.
    pub rose: bool,
    /// Time of the recording, in s; absent if it never followed.
    pub recorded_s: Option<f64>,
    /// Time of Weir's run, in s.
    pub followed_s: Option<f64>,
}

impl Change {
    fn is_near(&self) -> bool {
        self.recorded_s.is_none_or(|recorded| {
            let most = (NEAR_TIME * recorded).max(LEAST_TIME_S);
            self.followed_s.is_some_and(|followed| (followed - recorded).abs() <= most)
        })
    }
}

pub(super) fn score(twin: &Twin, runs: &[RunResult]) -> Option<Score> {
    let run = runs.first()?;
    let series = run.series.as_ref()?;
    let seconds = run.duration_s.round() as usize;
    let rows = |i: usize| twin.rows.iter().filter(move |r| r.flow == i);
    let recorded: Vec<_> = (0..series.flows.len()).map(|i| recorded(twin, rows(i), seconds)).collect();
    let curves = |run: &RunResult| -> Option<Vec<Vec<f64>>> {
        let series = run.series.as_ref()?;
        Some(series.flows.iter().map(|f| measured(twin, series, f, seconds)).collect())
    };
    let first = curves(run)?;
    let areas = |recorded: &[Vec<f64>], mean: &[Vec<f64>]| -> Vec<f64> {
        recorded.iter().zip(mean).map(|(a, b)| area(a, b)).collect()
    };
    let (mut of_draw, mut of_starts) = (None, None);
    if first.len() > 1 {
        let all: Vec<_> = runs.iter().map(|r| curves(r).map(sorted)).collect::<Option<_>>()?;
        let own = mean(&all);
        of_draw = Some(areas(&sorted(recorded.clone()), &own));
        let starts = twin.program_starts.as_ref();
        of_starts = starts.map(|s| areas(&mean(&s.iter().cloned().map(sorted).collect::<Vec<_>>()), &own));
    }
    let score = |(i, flow): (usize, &FlowSeries)| FlowScore {
        area: area(&recorded[i], &first[i]),
        sorted_area: of_draw.as_ref().and_then(|s| s.get(i).copied()),
        starts_area: of_starts.as_ref().and_then(|s| s.get(i).copied()),
        recorded_delay_ms: delays(rows(i).map(|r| r.delay_ms)),
        delay_ms: delays(flow.delay_ms.iter().copied()),
    };
    let flows: Vec<_> = series.flows.iter().enumerate().map(score).collect();
    let changes = match (&series.flows[..], &run.flows[..]) {
        ([flow], [summary]) => {
            let mut before = twin.scenario.links[twin.scenario.bottleneck]
                .config
                .capacity
                .rate_at(weir_units::Timestamp::ZERO)
                .as_bps_f64();
            let settling = summary.settling.iter();
            settling
                .map(|s| {
                    change(twin, s.at_s, core::mem::replace(&mut before, s.capacity_bps), s.capacity_bps, series, flow)
                })
                .collect()
        }
        _ => Vec::new(),
    };
    let near = flows.iter().all(|f| f.judged() <= NEAR_AREA) && changes.iter().all(Change::is_near);
    Some(Score { twin: twin.name.clone(), controller: twin.program.controller.clone(), flows, changes, near })
}

/// A flow's recorded rate in each second.
fn recorded<'a>(twin: &Twin, rows: impl Iterator<Item = &'a Row>, seconds: usize) -> Vec<f64> {
    let rate = |r: &Row| match twin.program.column {
        Column::Target => r.target_bps,
        Column::Goodput => r.goodput_bps,
    };
    means(rows.map(|r| (r.time_s, rate(r))), seconds)
}

/// The same of a run of Weir's.
fn measured(twin: &Twin, series: &Series, flow: &FlowSeries, seconds: usize) -> Vec<f64> {
    let rates = match twin.program.column {
        Column::Target => &flow.target_bps,
        Column::Goodput => &flow.goodput_bps,
    };
    means(series.time_s.iter().copied().zip(rates.iter().map(|v| v * twin.program.factor)), seconds)
}

/// Area between two curves as a share of that under the first.
fn area(recorded: &[f64], measured: &[f64]) -> f64 {
    let between: f64 = recorded.iter().zip(measured).map(|(a, b)| (a - b).abs()).sum();
    between / recorded.iter().sum::<f64>().max(1.0)
}

/// The flows' rates in each second, the highest first.
fn sorted(mut flows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for second in 0..flows.iter().map(Vec::len).min().unwrap_or(0) {
        let mut rates: Vec<f64> = flows.iter().map(|f| f[second]).collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        flows.iter_mut().zip(rates).for_each(|(f, rate)| f[second] = rate);
    }
    flows
}

/// The mean of several runs' curves.
fn mean(runs: &[Vec<Vec<f64>>]) -> Vec<Vec<f64>> {
    let Some(first) = runs.first() else { return Vec::new() };
    let at = |flow: usize, second: usize| {
        runs.iter().filter_map(|r| r.get(flow)?.get(second)).sum::<f64>() / runs.len() as f64
    };
    first.iter().enumerate().map(|(i, f)| (0..f.len()).map(|s| at(i, s)).collect()).collect()
}

/// Means over whole seconds; 0 where there is no value. A row at a second's end belongs to it.
fn means(values: impl Iterator<Item = (f64, f64)>, seconds: usize) -> Vec<f64> {
    means_over(1.0, values, seconds)
}

/// The same over spans of this many seconds.
fn means_over(span_s: f64, values: impl Iterator<Item = (f64, f64)>, spans: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); spans];
    for (time, value) in values {
        let span = ((time - 0.001) / span_s).max(0.0) as usize;
        if let Some(sum) = sums.get_mut(span) {
            *sum = (sum.0 + if value.is_nan() { 0.0 } else { value }, sum.1 + 1.0);
        }
    }
    sums.into_iter().map(|(sum, count)| if count > 0.0 { sum / count } else { 0.0 }).collect()
}

fn delays(values: impl Iterator<Item = f64>) -> Delays {
    let mut sorted: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let percentile = |share: f64| sorted.get(((sorted.len() as f64 - 1.0) * share).round().max(0.0) as usize).copied();
    Delays { p50: percentile(0.5), p95: percentile(0.95) }
}

fn change(twin: &Twin, at_s: f64, before: f64, after: f64, series: &Series, flow: &FlowSeries) -> Change {
    let rose = after > before;
    let limit = after * if rose { RISEN } else { FALLEN };
    let crossing = |mut values: Box<dyn Iterator<Item = (f64, f64)> + '_>| {
        values.find(|(time, target)| *time > at_s && (*target > limit) == rose).map(|(time, _)| time - at_s)
    };
    // In rows as the recording's, which are means.
    let rows = (series.time_s.last().copied().unwrap_or(0.0) / ROW_S).round().max(0.0) as usize;
    let means = means_over(ROW_S, series.time_s.iter().copied().zip(flow.target_bps.iter().copied()), rows);
    let rowed = means.into_iter().enumerate().map(|(i, target)| ((i + 1) as f64 * ROW_S, target));
    Change {
        at_s,
        rose,
        recorded_s: crossing(Box::new(twin.rows.iter().map(|r| (r.time_s, r.target_bps)))),
        followed_s: crossing(Box::new(rowed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_take_whole_seconds() {
        let values = [(0.5, 2.0), (1.0, 4.0), (1.5, 6.0), (2.0, f64::NAN), (9.0, 1.0)];
        assert_eq!(means(values.into_iter(), 3), [3.0, 3.0, 0.0]);
    }

    #[test]
    fn times_are_near_within_a_fifth_or_a_third_of_a_second() {
        let near = |recorded_s, followed_s| Change { at_s: 0.0, rose: true, recorded_s, followed_s }.is_near();
        assert!(near(Some(10.0), Some(12.0)) && !near(Some(10.0), Some(12.1)));
        assert!(near(Some(1.0), Some(1.25)) && !near(Some(1.0), Some(1.5)) && !near(Some(1.0), None));
        assert!(near(None, None) && near(None, Some(3.0)));
    }

    #[test]
    fn rates_are_sorted_in_each_second_and_runs_averaged() {
        let run = |a: f64, b: f64| vec![vec![a, 3.0], vec![b, 1.0]];
        assert_eq!(sorted(run(1.0, 2.0)), run(2.0, 1.0));
        assert_eq!(mean(&[sorted(run(1.0, 2.0)), run(4.0, 3.0)]), run(3.0, 2.0));
        assert_eq!(area(&[2.0, 2.0], &[1.0, 3.0]), 0.5);
    }

    #[test]
    fn starts_of_both_sides_decide_before_the_draw() {
        let none = Delays { p50: None, p95: None };
        let flow = |sorted_area, starts_area| FlowScore {
            area: 0.3,
            sorted_area,
            starts_area,
            recorded_delay_ms: none,
            delay_ms: none,
        };
        assert_eq!(flow(Some(0.2), Some(0.1)).judged(), 0.1);
        assert_eq!(flow(Some(0.2), None).judged(), 0.2);
        assert_eq!(flow(None, None).judged(), 0.3);
    }

    #[test]
    fn percentiles_leave_out_what_is_missing() {
        let d = delays([f64::NAN, 10.0, 30.0, 20.0, 0.0].into_iter());
        assert_eq!((d.p50, d.p95), (Some(20.0), Some(30.0)));
        assert_eq!(delays([].into_iter()), Delays { p50: None, p95: None });
    }
}
