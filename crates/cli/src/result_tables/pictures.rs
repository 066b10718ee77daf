//! The quality of the pictures of calls with real encoders.

use super::MAX_FLOWS;
use crate::tables::{Table, table};
use weir_lab::results::{QualitySummary, RunResult};

/// Explains the columns, for below the table.
pub(super) const LEGEND: &str = "PSNR (luma), SSIM and VMAF: means over the pictures captured, each beside the one on the screen at its time; \
                                 shown: decoded in time; frozen: time in freezes. ";

/// A table for flows with pictures.
pub(super) fn empty() -> Table {
    let header =
        ["controller", "flow", "PSNR dB", "SSIM", "VMAF", "width", "shown %", "frozen s", "freezes", "key frames"];
    table(&header, 2).keys(2).spares(&["key frames", "width"])
}

/// Adds the flows with pictures of these runs, which differ by seed alone: means over them.
pub(super) fn add(t: &mut Table, runs: &[RunResult]) {
    let Some(first) = runs.first() else { return };
    let with_pictures = first.flows.iter().enumerate().filter(|(_, f)| f.quality.is_some());
    for (i, flow) in with_pictures.take(MAX_FLOWS) {
        let each: Vec<_> = runs.iter().filter_map(|r| r.flows.get(i)?.quality.as_ref()).collect();
        let mean = |of: fn(&QualitySummary) -> Option<f64>| {
            let values: Vec<f64> = each.iter().filter_map(|q| of(q)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let cell = |of: fn(&QualitySummary) -> Option<f64>, digits: usize| {
            mean(of).map_or("-".into(), |v| format!("{v:.digits$}"))
        };
        t.add_row([
            flow.controller.clone(),
            flow.name.clone(),
            cell(|q| q.psnr_db.map(|d| d.mean), 1),
            cell(|q| q.ssim.map(|d| d.mean), 3),
            cell(|q| q.vmaf.map(|d| d.mean), 1),
            cell(|q| q.width, 0),
            cell(|q| (q.pictures > 0).then(|| 100.0 * q.shown as f64 / q.pictures as f64), 1),
            cell(|q| Some(q.frozen_s), 1),
            cell(|q| Some(q.freezes as f64), 0),
            cell(|q| Some(q.key_frames as f64), 0),
        ]);
    }
}
