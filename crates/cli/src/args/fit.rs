//! Arguments of `weir fit` and `weir whatif`.

use clap::ValueHint;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use weir_units::DataRate;

pub(super) const FIT: &str = "\
The recordings need sent packets with their fates: captures at both ends, or one event log of the sender. Capacity is known where
packets queued; elsewhere it has bounds. Statistics of the sending end once a second (getStats, webrtc-internals) give a coarser link
with wider bounds. docs/whatif.md says how it is found, and where it fails.

Examples:
  weir fit left.pcap.gz right.pcap.gz
  weir fit event.log --controller gcc --report fit.html
  weir fit sender-stats.jsonl.gz receiver-stats.jsonl.gz
  weir fit left.pcap.gz right.pcap.gz --out my-call && weir compare --scenario my-call/scenario.toml
  weir fit event.log --json | jq .fit.queue";

pub(super) const WHATIF: &str = "\
Each controller runs over the likeliest link, and over links drawn within the bounds of the fit; intervals go from the 5th to the 95th
percentile of these. An order is decided if it holds on nine draws of ten. The application's limit is not the link's: --ceiling
states it where it is known.

With --controller the controller that was recorded runs over the same links, and the output says whether the fit explains the call.
--set changes the call: each KEY once. The check is made without it.
  ceiling=3Mbps floor=100kbps start=300kbps   rates of the video: greatest, least, and before the first feedback
  audio=32kbps, audio=off                     the audio beside it
  fps=15 deadline=200ms                       pictures a second; how long after its capture a frame is played
  repair=nack                                 error resilience: none, auto, nack, uep, or nack,uep
  queue=75kB, queue=codel,target=5ms          the link's queue: its room, or a discipline (weir show disciplines)
  extra-delay=50ms reverse-loss=2%            a longer path, each way; losses on the way back

Examples:
  weir whatif left.pcap.gz right.pcap.gz --controllers gcc,nada,sluice
  weir whatif left.pcap.gz right.pcap.gz --controllers gcc,sluice --controller gcc
  weir whatif event.log --controllers gcc,sluice --ceiling 2.5Mbps --draws 50
  weir whatif event.log --set ceiling=3Mbps --set repair=nack --set queue=codel
  weir whatif event.log --save my-call --json | jq .whatif.controllers
Of many calls: weir search calls";

#[derive(clap::Args, Debug)]
pub(crate) struct FittedArgs {
    /// Recordings of one call
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Greatest rate that the application sends, such as 2.5Mbps; by what was sent, or the highest target, if absent
    #[arg(long, value_name = "RATE", value_parser = crate::values::bit_rate)]
    pub(crate) ceiling: Option<DataRate>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// No remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) call: FittedArgs,
    /// The controller that was recorded: it is run over the fitted link, beside what was measured
    #[arg(long, value_name = "NAME")]
    pub(crate) controller: Option<String>,
    /// Folder for the fitted link: scenario.toml, and its capacity as CSV
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Write a page with capacity, bounds and what arrived over time
    #[arg(long, value_name = "HTML", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct WhatIfArgs {
    #[command(flatten)]
    pub(crate) call: FittedArgs,
    /// Controllers to run
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "gcc,nada,scream2,sluice")]
    pub(crate) controllers: Vec<String>,
    /// The controller that was recorded: it is run over the same links, beside what was measured
    #[arg(long, value_name = "NAME")]
    pub(crate) controller: Option<String>,
    /// Change the call, such as ceiling=3Mbps or repair=nack; several times for several keys
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, String)>,
    /// Links drawn within the bounds of the fit, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) draws: u64,
    /// Runs at a time; one for each core if absent
    #[arg(long, short, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Folder for the likeliest link: scenario.toml, and its capacity as CSV
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) save: Option<PathBuf>,
    /// Write a page with the predictions, the check and the capacity over time
    #[arg(long, value_name = "HTML", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
}

/// A key with its value.
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("`{text}` is no KEY=VALUE, such as ceiling=3Mbps")),
    }
}
