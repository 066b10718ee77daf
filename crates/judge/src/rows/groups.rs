//! Means over the traces of a folder, and over all traces.

use super::fluid::Fluid;
use super::results::{ControllerScore, FluidScores, MetricScores, RowKind, RowScores};
use super::score::mean_of;
use super::traces::Trace;

/// A row for each group, in the order of the traces, and one for all if there are several. `rows` are the traces' rows.
pub(super) fn groups(traces: &[Trace], rows: &[RowScores]) -> Vec<RowScores> {
    let mut names: Vec<&str> = Vec::new();
    for trace in traces {
        if !names.contains(&trace.group.as_str()) {
            names.push(&trace.group);
        }
    }
    let of = |name: &str| -> Vec<&RowScores> {
        traces.iter().zip(rows).filter(|(t, _)| t.group == name).map(|(_, row)| row).collect()
    };
    let mut out: Vec<RowScores> = names.iter().map(|name| group(name, &of(name))).collect();
    if names.len() > 1 {
        out.push(group("all", &rows.iter().collect::<Vec<_>>()));
    }
    out
}

fn group(name: &str, rows: &[&RowScores]) -> RowScores {
    let count = rows.len() as f64;
    let fluid = |of: fn(&FluidScores) -> Fluid| {
        let all = rows.iter().filter_map(|r| r.fluid.as_ref().map(of));
        let sum = all.fold((0.0, 0.0), |s, f| (s.0 + f.on_time, s.1 + f.extra_delay_p95_ms));
        Fluid { on_time: sum.0 / count, extra_delay_p95_ms: sum.1 / count }
    };
    RowScores {
        key: format!("traces:{name}"),
        title: format!("mean over {} traces", rows.len()),
        kind: RowKind::Group,
        metrics: rows
            .first()
            .map_or(vec![], |first| first.metrics.iter().enumerate().map(|(i, m)| metric(m, i, rows)).collect()),
        fluid: Some(FluidScores { causal: fluid(|f| f.causal), reactive: fluid(|f| f.reactive) }),
    }
}

/// The mean of a metric over traces, run by run, for controllers that were run on all of them.
fn metric(first: &MetricScores, at: usize, rows: &[&RowScores]) -> MetricScores {
    let goals: Vec<Option<f64>> = rows.iter().map(|r| r.metrics[at].goal).collect();
    let goal = first.goal.and_then(|_| mean_of(&goals));
    let values = first.values.iter().filter_map(|score| {
        let same = |r: &&RowScores| r.metrics[at].values.iter().find(|v| v.controller == score.controller).cloned();
        let all: Vec<ControllerScore> = rows.iter().map(same).collect::<Option<_>>()?;
        let runs = all.iter().map(|s| s.runs.len()).min().unwrap_or(0);
        let means = (0..runs).map(|k| mean_of(&all.iter().map(|s| s.runs[k]).collect::<Vec<_>>())).collect();
        Some(ControllerScore::new(&score.controller, means, first.better, goal))
    });
    MetricScores { goal, values: values.collect(), ..first.clone() }
}

#[cfg(test)]
mod tests {
    use super::super::score::Better;
    use super::*;
    use weir_path::TraceFormat;

    #[test]
    fn a_group_is_the_mean_of_its_traces() {
        let capacity = TraceFormat::Table.parse("time_s,rate_bps\n0,2000000\n60,1000000\n", "x.csv").expect("a table");
        let trace = |group: &str| Trace::new("x".into(), group.into(), &capacity).expect("a trace");
        let row = |runs: [f64; 2], goal| {
            let score = ControllerScore::new("gcc", runs.map(Some).to_vec(), Better::High, Some(goal));
            let metric = MetricScores {
                label: "on time".into(),
                unit: String::new(),
                better: Better::High,
                goal: Some(goal),
                values: vec![score],
            };
            let fluid = Fluid { on_time: goal, extra_delay_p95_ms: 10.0 };
            RowScores {
                key: "trace:x".into(),
                title: String::new(),
                kind: RowKind::Trace,
                metrics: vec![metric],
                fluid: Some(FluidScores { causal: fluid, reactive: fluid }),
            }
        };
        let rows = [row([0.5, 0.6], 0.8), row([0.9, 1.0], 0.6), row([0.1, 0.1], 0.7)];
        let groups = groups(&[trace("a"), trace("a"), trace("b")], &rows);
        let keys: Vec<&str> = groups.iter().map(|g| g.key.as_str()).collect();
        assert_eq!(keys, ["traces:a", "traces:b", "traces:all"]);
        let a = &groups[0].metrics[0];
        assert!((a.goal.expect("a goal") - 0.7).abs() < 1e-12);
        assert!((a.values[0].mean.expect("measured") - 0.75).abs() < 1e-12);
        assert_eq!((a.values[0].runs.len(), a.values[0].met), (2, Some(true)));
        assert!((a.values[0].runs[0].expect("measured") - 0.7).abs() < 1e-12);
        assert!((groups[0].fluid.expect("there").causal.on_time - 0.7).abs() < 1e-12);
    }
}
