//! All numbers of all runs as CSV, for the page's download.

use super::ScenarioReport;
use super::contenders::ranked_flows;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use weir_lab::results::{FlowKind, FlowSummary, RunResult};

/// Largest table that a page contains.
const MAX_BYTES: usize = 500_000;
/// Maximum flows of a run with rows.
const MAX_FLOWS: usize = 24;

/// A row for each flow of each run with unrounded numbers; if that is too much for a page, only the media flows, and `None` if
/// that is still too much.
pub(super) fn table(scenarios: &[ScenarioReport]) -> Option<String> {
    let every = |r: &RunResult| (0..r.flows.len().min(MAX_FLOWS)).collect();
    let ranked = |r: &RunResult| ranked_flows(r).into_iter().take(MAX_FLOWS).collect();
    let flows: [Choose<'_>; 2] = [&every, &ranked];
    flows.into_iter().find_map(|flows| text(scenarios, flows))
}

/// Indices of the flows of a run with rows.
type Choose<'f> = &'f dyn Fn(&RunResult) -> Vec<usize>;

fn text(scenarios: &[ScenarioReport], flows: Choose<'_>) -> Option<String> {
    let runs = || scenarios.iter().flat_map(|s| &s.controllers).flat_map(|c| c.runs());
    let names = |of: &dyn Fn(&RunResult) -> Vec<&'static str>| runs().flat_map(of).collect::<BTreeSet<&str>>();
    let of_flow = |f: &FlowSummary| f.values().into_iter().map(|v| v.0).collect::<Vec<_>>();
    let flow_columns = names(&|r| flows(r).into_iter().flat_map(|i| of_flow(&r.flows[i])).collect());
    let run_columns = names(&|r| r.values().into_iter().map(|v| v.0).collect());
    let mut out = String::from("scenario,variant,controller,seed,flow,flow_controller,kind,start_s,stop_s");
    flow_columns.iter().chain(&run_columns).for_each(|name| {
        out.push(',');
        out.push_str(name);
    });
    out.push_str("\r\n");
    for run in runs() {
        let of_run = run.values();
        for flow in flows(run).into_iter().map(|i| &run.flows[i]) {
            let kind = match flow.kind {
                FlowKind::Rtp => "rtp",
                FlowKind::Tcp => "tcp",
                FlowKind::Udp => "udp",
                FlowKind::Dccp => "dccp",
            };
            let [scenario, condition, controller, name, own] =
                [&run.scenario, &run.condition, &run.controller, &flow.name, &flow.controller].map(|t| quoted(t));
            // Writing into a string never fails.
            let _ = write!(
                out,
                "{scenario},{condition},{controller},{},{name},{own},{kind},{},{}",
                run.seed, flow.start_s, flow.stop_s
            );
            let of_flow = flow.values();
            let cells = flow_columns.iter().map(|c| (&of_flow, c)).chain(run_columns.iter().map(|c| (&of_run, c)));
            for (values, column) in cells {
                out.push(',');
                if let Some((_, v)) = values.iter().find(|v| v.0 == *column) {
                    let _ = write!(out, "{v}");
                }
            }
            out.push_str("\r\n");
            if out.len() > MAX_BYTES {
                return None;
            }
        }
    }
    Some(out)
}

/// A field of RFC 4180.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(["a b", "a,b", "say \"a\""].map(quoted), ["a b", "\"a,b\"", "\"say \"\"a\"\"\""]);
    }
}
