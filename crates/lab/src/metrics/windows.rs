//! Measures of flows and links in a window of the run.

use super::links::LinkMeter;
use super::meter::{Meter, Totals};
use super::{RecorderConfig, instant, seconds};
use crate::results::{FlowWindow, WindowSummary};
use weir_units::Timestamp;

/// Measures one window: the difference of the totals at its end and at its start.
#[derive(Debug, Default)]
pub(super) struct WindowMeter {
    start: Vec<Totals>,
    start_area: Vec<(f64, f64)>,
    summary: Option<WindowSummary>,
}

impl WindowMeter {
    /// The window starts: keeps what was counted before it.
    pub(super) fn begin(&mut self, meters: &[Meter], links: &[LinkMeter]) {
        self.start = meters.iter().map(Meter::counted).collect();
        self.start_area = links.iter().map(|l| l.area).collect();
    }

    /// The window, the one of this index, ends. One that never started, or is empty, has no summary.
    pub(super) fn end(
        &mut self,
        config: &RecorderConfig,
        index: usize,
        end: Timestamp,
        meters: &[Meter],
        links: &[LinkMeter],
    ) {
        let window = &config.windows[index];
        if end <= window.start || self.start.len() != meters.len() {
            return;
        }
        let length = seconds(end - window.start);
        let flow = |(m, s): (&Meter, &Totals)| {
            let t = m.counted();
            let (generated, goodput) = (t.generated - s.generated, t.goodput().saturating_sub(s.goodput()));
            let capacity = config.capacity_bits(&m.info, window.start, end);
            let of_capacity = |bytes: u64| (capacity > 0.0).then(|| bytes as f64 * 8.0 / capacity);
            let arrived = t.packets.received - s.packets.received;
            let sent = t.packets.sent - s.packets.sent;
            FlowWindow {
                name: m.info.name.clone(),
                generated_bps: generated as f64 * 8.0 / length,
                goodput_bps: goodput as f64 * 8.0 / length,
                utilisation: of_capacity(t.used(m.info.kind).saturating_sub(s.used(m.info.kind))),
                utilisation_goodput: of_capacity(goodput),
                one_way_delay_ms: (arrived > 0).then(|| (t.delay - s.delay) as f64 * 1e-6 / arrived as f64),
                loss: if sent > 0 { (t.lost() - s.lost()) as f64 / sent as f64 } else { 0.0 },
            }
        };
        let queue = |(l, s): (&LinkMeter, &(f64, f64))| {
            let covered = l.area.1 - s.1;
            (covered > 0.0).then(|| (l.area.0 - s.0) / covered)
        };
        self.summary = Some(WindowSummary {
            label: window.label.clone(),
            start_s: instant(window.start),
            end_s: instant(end),
            flows: meters.iter().zip(&self.start).map(flow).collect(),
            queue_delay_ms: links.iter().zip(&self.start_area).map(queue).collect(),
        });
    }

    /// The summary, if the window ended.
    pub(super) fn finish(self) -> Option<WindowSummary> {
        self.summary
    }
}
