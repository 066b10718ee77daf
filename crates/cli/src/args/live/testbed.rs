//! Arguments of `weir live testbed`.

use clap::ValueHint;
use std::num::NonZeroU32;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
The scenario's RTP flows are calls over real sockets, its TCP flows the kernel's (by iperf3), and its links are emulated
between two network namespaces. A run takes as long as the scenario's duration. Nothing is left behind, however it ends.
Needs Linux with /dev/net/tun, and root or user namespaces; programs: util-linux, iproute2, iperf3.

Examples:
  weir live testbed quick --controllers gcc --compare
  weir live testbed responsiveness --controllers gcc,nada,scream,fbra --compare --json --out live
  weir live testbed competition --controllers scream --tcp bbr --pcap scream.pcapng";

#[derive(clap::Args, Debug)]
pub(crate) struct TestbedArgs {
    /// A scenario file, or a built-in scenario's name
    #[arg(value_name = "FILE|NAME", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: String,
    /// Controllers, one after the other, if the scenario compares several; the first of them if absent
    #[arg(long, alias = "controller", value_name = "A,B,C", value_delimiter = ',')]
    pub(crate) controllers: Vec<String>,
    /// The variant, if the scenario has some; the first of them if absent
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Runs under each controller, each with the next seed
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) runs: NonZeroU32,
    /// Seed of the first run; the scenario's own if absent
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// The kernel's congestion control for every TCP flow, such as bbr; the scenario's own if absent
    #[arg(long, value_name = "NAME")]
    pub(crate) tcp: Option<String>,
    /// Also make each run in the simulator, and print the differences
    #[arg(long)]
    pub(crate) compare: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder for a report, and the time series as Parquet and CSV
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Write every packet as pcapng; the label of the run is added to the name if there are several
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Write the packets at both ends as sender.pcapng and receiver.pcapng in this folder, for `weir open`, `fit`
    /// and `whatif`; the label of the run is added to the names if there are several
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) pcap_ends: Option<PathBuf>,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
