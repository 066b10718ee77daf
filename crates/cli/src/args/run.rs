//! Arguments of `weir run`.

use clap::ValueHint;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
In the place of a scenario, row:e is row e of weir judge rows, and with --explain a folder is one that --series wrote.
Parameters may follow the controller's name, and count for every flow under it: sluice:queue_target=20. Scenario files set
them too: controllers.sluice.params = { queue_target = \"20 ms\" }.
--explain prints lines in the place of the table: until when, the target before and after, and why, from the controller's
internals by name, or from delay, loss and the source's rate where they are not known. Spans with one reason and a steady
rate are joined. --pcap writes every packet of the run for Wireshark and tshark.
A run of 300 s of one call takes 20 to 100 ms on one core, with a real encoder up to a minute.

Examples:
  weir run quick
  weir run random-loss --variant 5% --controller nada --seed 3
  weir run quick --controller gcc:beta=0.7
  weir run my-link.toml --json
  weir run quick --json | jq '.flows[] | {name, loss, delay: .one_way_delay_ms.p95}'
  weir run responsiveness --controller gcc --series out
  weir run row:e --controller sluice --explain --from 39s --to 45s
  weir run responsiveness --controller gcc --explain --plot why.svg
  weir run quick --series out && weir run out --explain
  weir run row:d2 --explain --json | jq '.flows[].spans[] | select(.reason == \"competition\")'
  weir run quick --controller gcc --pcap gcc.pcapng && tshark -r gcc.pcapng -Y rtcp
  weir run random-loss --variant 5% --pcap . --pcap-at sender";

/// Choice of a single run.
#[derive(clap::Args, Debug)]
pub(crate) struct OneArgs {
    /// A scenario file, a built-in scenario's name, or row:KEY for a row of `weir judge rows`
    #[arg(value_name = "FILE|NAME", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: String,
    /// The controller, if the scenario compares several, parameters may follow: gcc:beta=0.9; the first of them if absent
    #[arg(long, value_name = "NAME")]
    pub(crate) controller: Option<String>,
    /// The variant, if the scenario has some; the first of them if absent
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Seed; the scenario's own if absent
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) one: OneArgs,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder for the time series, as Parquet and CSV
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) series: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
    #[command(flatten)]
    pub(crate) explain: ExplainArgs,
    /// Print no table, as `weir run --pcap` did
    #[arg(long, hide = true)]
    pub(crate) no_table: bool,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Packets")]
pub(crate) struct CaptureArgs {
    /// Write the run's packets as pcapng; into a folder under the run's name
    #[arg(long, value_name = "FILE|DIR", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Where packets are captured; the file's comment has it
    #[arg(long, alias = "at", value_name = "POINT", value_enum, default_value = "receiver", requires = "pcap")]
    pub(crate) pcap_at: At,
    /// Write zeros where the simulator carries a payload's length only; such packets are truncated if absent
    #[arg(long, alias = "zeros", requires = "pcap")]
    pub(crate) pcap_zeros: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// At the media sender: media as it leaves, feedback as it arrives; loss on the path does not show
    Sender,
    /// At the media receiver: media as it arrives, feedback as it leaves; lost packets are missing
    Receiver,
    /// Behind the bottleneck: media as it comes out of the link, feedback as it enters the link back
    Link,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Explanation")]
pub(crate) struct ExplainArgs {
    /// Say in words, second by second, why the controller's rate moved
    #[arg(long)]
    pub(crate) explain: bool,
    /// Only this flow
    #[arg(long, value_name = "NAME", requires = "explain")]
    pub(crate) flow: Option<String>,
    /// Time in a span, 10 ms to 1 h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = step, requires = "explain")]
    pub(crate) step: f64,
    /// Only from this time on
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds_from_zero, requires = "explain", allow_hyphen_values = true)]
    pub(crate) from: Option<f64>,
    /// Only up to this time
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds_from_zero, requires = "explain", allow_hyphen_values = true)]
    pub(crate) to: Option<f64>,
    /// Draw the rates, with the reasons as coloured bands, as SVG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "explain")]
    pub(crate) plot: Option<PathBuf>,
}

fn step(text: &str) -> Result<f64, String> {
    let value = crate::values::seconds(text).ok().filter(|s| (0.01..=3_600.0).contains(s));
    value.ok_or_else(|| "expected a time, 10ms to 1h".into())
}
