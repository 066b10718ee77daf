//! Arguments of `weir open`.

use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Read, by their content, compressed by gzip or not: RtcEventLog of version 2, dumps of chrome://webrtc-internals, getStats
reports as JSON lines, rtcstats logs, pcap and pcapng (SRTP needs no keys), logs of Pion's bwe-test, rtpdump, SCReAM's traces,
and what Weir writes: series (CSV) and reports (--json) of weir run, reports and pages of weir live.
Several files are taken for one call: both ends, or a log and a capture.
A damaged file is read up to the damage; the exit code is then 3.

Examples:
  weir open event.log
  weir open left.pcap.gz right.pcap.gz --why
  weir open left.pcap.gz right.pcap.gz --report call.html
  weir open event.log --why --from 60 --to 90 --rules my-rules.toml
  weir open capture.pcap --lint
  weir open event.log --controllers gcc,nada,sluice
  weir open dump.gz --redact handed-on.json
  weir open webrtc_internals_dump.gz --json | jq .episodes";

#[derive(clap::Args, Debug)]
pub(crate) struct OpenArgs {
    /// Recordings of one call
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Say why the rate fell, and why pictures froze
    #[arg(long)]
    pub(crate) why: bool,
    /// Rules of your own beside the built-in ones, in a TOML file (docs/open.md)
    #[arg(long, value_name = "TOML")]
    pub(crate) rules: Option<PathBuf>,
    /// Show the call from this time on, counted from its begin (seconds or a time such as 90s)
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds_from_zero, allow_hyphen_values = true)]
    pub(crate) from: Option<f64>,
    /// Show the call up to this time
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds, allow_hyphen_values = true)]
    pub(crate) to: Option<f64>,
    /// List the rules of RTP and RTCP that the files break, with packet numbers
    #[arg(long)]
    pub(crate) lint: bool,
    /// Feed the recorded packets and feedback to controllers, behind whose names parameters may follow (gcc:beta=0.9), and
    /// show what each would have asked for on this feedback
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) controllers: Vec<String>,
    /// Write a page with rates, delay, loss, feedback and pictures over time, and the causes of episodes
    #[arg(long, value_name = "HTML")]
    pub(crate) report: Option<PathBuf>,
    /// Write a copy without addresses, names, URLs, keys and payloads: a file, or for several a folder
    #[arg(long, value_name = "OUT")]
    pub(crate) redact: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// No remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
