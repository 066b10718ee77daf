//! The report's tables beside the JSON of the same run.

use weir_lab::results::RunResult;
use weir_report::page::{ControllerRuns, Report, ScenarioReport, render};

/// The texts of the cells of a report of one run.
fn cells(result: RunResult) -> Result<Vec<String>, String> {
    let runs = ControllerRuns::new(vec![result]).ok_or("no run")?;
    let section = ScenarioReport { title: "run".into(), controllers: vec![runs], ..ScenarioReport::default() };
    let report = Report { scenarios: vec![section], ..Report::default() };
    let html = render(&report).map_err(|e| format!("the report cannot be written: {e}"))?;
    let parts = html.split("<td").skip(1).filter_map(|part| part.split_once('>')?.1.split_once("</td>"));
    Ok(parts.map(|(text, _)| text.to_owned()).collect())
}

/// The number of cells compared, and those that a report made from the run and one made from its JSON show differently.
pub(super) fn differences(result: &RunResult) -> Result<(u64, Vec<String>), String> {
    let text = serde_json::to_string(result).map_err(|e| format!("no JSON: {e}"))?;
    let mut read: RunResult = serde_json::from_str(&text).map_err(|e| format!("the JSON cannot be read: {e}"))?;
    // Not part of the JSON, and of no table.
    read.outline = result.outline.clone();
    read.rates_over_time = result.rates_over_time.clone();
    let (shown, from_json) = (cells(RunResult { series: None, ..result.clone() })?, cells(read)?);
    if shown.len() != from_json.len() {
        return Err(format!("{} cells of the run, {} of its JSON", shown.len(), from_json.len()));
    }
    let pairs = shown.iter().zip(&from_json).filter(|(a, b)| a != b);
    let differences = pairs.map(|(a, b)| format!("the report shows {a:?}, and {b:?} from the JSON")).collect();
    Ok((shown.len() as u64, differences))
}
