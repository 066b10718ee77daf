//! `weir run --pcap`.

use super::{failure, stem};
use crate::args::{At, CaptureArgs};
use crate::output::Failure;
use std::path::Path;
use weir_lab::results::RunResult;
use weir_lab::run::{CapturePoint, RunOptions};
use weir_lab::scenario::Scenario;
use weir_report::capture::{self, CaptureError, CaptureOptions};

/// Runs a scenario and writes its packets; in a folder, the file is named after the run. Also returns a line that says how
/// many packets went where.
pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    options: &RunOptions<'_>,
    args: &CaptureArgs,
    path: &Path,
) -> Result<(RunResult, String), Failure> {
    if path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR) {
        std::fs::create_dir_all(path).map_err(|e| Failure::Work(format!("--pcap {}: {e}", path.display())))?;
    }
    let out = if path.is_dir() { path.join(format!("{}.pcapng", stem(&scenario.label()))) } else { path.to_owned() };
    let at = match args.pcap_at {
        At::Sender => CapturePoint::Sender,
        At::Receiver => CapturePoint::Receiver,
        At::Link => CapturePoint::Link,
    };
    let what = CaptureOptions { at, zeros: args.pcap_zeros };
    let (result, packets) = capture::write(scenario, seed, options, &out, what).map_err(|e| match e {
        CaptureError::Run(e) => failure(*e),
        e => Failure::work(e),
    })?;
    // As it was typed: `./` says nothing.
    let written = format!("{packets} packets: {}", out.strip_prefix(".").unwrap_or(&out).display());
    Ok((result, written))
}
