//! Arguments of `weir bench`.

use std::num::NonZeroU32;

pub(super) const EXAMPLES: &str = "\
Each figure is CPU time of one thread: one run to warm up, then the best of 3. ns-3's are measured in the same way, in the
same call, by benches/compare in Weir's repository, and need g++ and libns3-dev (apt-get install g++ libns3-dev);
without them '-' is printed. DCCP over UDP, UDP and kernel TCP on the loopback device follow, in wall-clock time. Use a
release build: cargo run --release -- bench. It takes some minutes, with ns-3 more.

--against builds another commit in a worktree in the folder for temporary files, once (what was built is kept in
target/bench-against), and runs both programs by turns. For each row it prints the medians, their ratio (above 1: this build
is faster) and the least and greatest ratio of a round. Ctrl-C removes the worktree.

Examples:
  weir bench
  weir bench --scale 0.1 --ns3 never --json
  weir bench --against HEAD~20 --scale 0.1 --rounds 7
  weir bench --markdown                 writes the tables of docs/performance.md, with commit and machine";

#[derive(clap::Args, Debug)]
pub(crate) struct BenchArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the tables of docs/performance.md instead of printing any
    #[arg(long, conflicts_with_all = ["json", "against"])]
    pub(crate) markdown: bool,
    /// Build another commit, and compare this build's speed with its
    #[arg(long, value_name = "REV", conflicts_with = "ns3")]
    pub(crate) against: Option<String>,
    /// With --against: how many times each program is run
    #[arg(long, value_name = "N", default_value = "5", requires = "against")]
    pub(crate) rounds: NonZeroU32,
    /// Share of the usual simulated time, for a quick result
    #[arg(long, value_name = "X", default_value = "1")]
    pub(crate) scale: f64,
    /// Run the same scenarios in ns-3: if it is installed, or else fail, or not at all
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub(crate) ns3: Ns3,
    /// No remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ns3 {
    /// If it is installed
    Auto,
    /// Fail if it is not
    Always,
    /// Leave it out
    Never,
}
