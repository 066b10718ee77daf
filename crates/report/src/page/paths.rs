//! Paths of calls in a report, as tables.

use super::ScenarioReport;
use super::tables::{Row, Table, column, grouped};

/// Rows of a table.
const MAX_ROWS: usize = 24;

/// The paths of the plotted run under each controller, and the order of arrival; empty if all calls have one path.
pub(super) fn tables(s: &ScenarioReport, style: impl Fn(&str) -> Option<usize>) -> Vec<Table> {
    let (mut paths, mut joint) = (Vec::new(), Vec::new());
    let optional = |v: Option<f64>, digits| v.map_or("–".into(), |v| grouped(v, digits));
    for run in s.controllers.iter().map(|c| &c.shown) {
        for (flow, m) in run.flows.iter().filter_map(|f| Some((f, f.multipath.as_deref()?))) {
            paths.extend(m.paths.iter().map(|p| Row {
                label: format!("{}: {} {}", run.controller, flow.name, p.name),
                style: style(&run.controller),
                cells: vec![
                    grouped(p.share * 100.0, 1),
                    grouped(p.sent_bps * 1e-3, 0),
                    optional(p.target_bps.map(|t| t * 1e-3), 0),
                    optional(p.rtt_ms, 0),
                    optional(p.one_way_delay_ms.map(|d| d.p95), 0),
                    grouped(p.loss * 100.0, 2),
                ],
            }));
            joint.push(Row {
                label: format!("{}: {}", run.controller, flow.name),
                style: style(&run.controller),
                cells: vec![
                    m.scheduler.clone(),
                    grouped(m.residual_loss * 100.0, 2),
                    grouped(m.duplicates * 100.0, 1),
                    grouped(m.reordered * 100.0, 1),
                    optional(m.late_time_ms.map(|d| d.p95), 0),
                    optional(m.skew_ms, 0),
                    grouped(m.longest_gap_ms, 0),
                ],
            });
        }
    }
    paths.truncate(MAX_ROWS);
    joint.truncate(MAX_ROWS);
    if paths.is_empty() {
        return vec![];
    }
    vec![
        Table {
            first: None,
            caption: "Paths of the plotted run".into(),
            columns: vec![
                column("Share", "%", "of the bytes sent on all paths"),
                column("Sent", "kbit/s", "RTP, with repair, padding and copies"),
                column("Target", "kbit/s", "of the path's controller, mean over time"),
                column("RTT", "ms", "smoothed, as measured by the sender, mean over time"),
                column("Delay p95", "ms", "one-way delay of the packets received on the path, 95th percentile"),
                column("Loss", "%", "packets lost on the path over packets sent there"),
            ],
            rows: paths,
        },
        Table {
            first: None,
            caption: "Paths together".into(),
            columns: vec![
                column("Scheduler", "", "what chooses the path of each packet"),
                column("Residual loss", "%", "media packets of which no copy was received"),
                column("Duplicates", "%", "copies received of packets received before"),
                column("Reordered", "%", "received after a packet with a higher sequence number (RFC 4737)"),
                column("Late time p95", "ms", "how long packets sent later have waited for reordered ones (RFC 4737)"),
                column("Skew", "ms", "largest median one-way delay of a path less the smallest"),
                column("Longest gap", "ms", "longest time without a new media packet"),
            ],
            rows: joint,
        },
    ]
}
