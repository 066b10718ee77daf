//! Arguments of `weir overlay`.

use weir_units::DataRate;

pub(super) const EXAMPLES: &str = "\
The root's stream is divided among trees. A node forwards in one of them and is a leaf in the others; a focus places nodes
that join, and others where a parent has failed. Each hop has a controller of its own. Uplinks of nodes: 0.6 (20 % of them),
1.6 (60 %) and 4 times (20 %) the stream's rate; delays between two nodes: 10 to 80 ms.
A run of 1000 nodes for 20 s takes about a minute of CPU time in the dev profile.

Examples:
  weir overlay
  weir overlay --nodes 1000 --trees 5 --leave 20%
  weir overlay --nodes 300 --trees 3 --division frames --loss 0.5% --controller scream
  weir overlay --nodes 300 --without-focus --duration 40s --leave-within 20s
  weir overlay --nodes 200 --graceful --json | jq .churn";

#[derive(clap::Args, Debug)]
pub(crate) struct OverlayArgs {
    /// Nodes beside the root, which has the source
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) nodes: u32,
    /// Distribution trees, 1 to 16
    #[arg(long, value_name = "N", default_value = "5")]
    pub(crate) trees: u8,
    /// Rate of the stream, RTP headers included
    #[arg(long, value_name = "RATE", default_value = "1mbps", value_parser = crate::values::bit_rate)]
    pub(crate) rate: DataRate,
    /// Copies of the stream that the root's uplink carries
    #[arg(long, value_name = "N", default_value = "5")]
    pub(crate) copies: u16,
    /// Time within which the nodes join, each at a random one; they join at once if absent
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds)]
    pub(crate) arrivals: Option<f64>,
    /// Share of the nodes that leaves at one time, such as 20% or 0.2
    #[arg(long, value_name = "SHARE", default_value = "20%", value_parser = crate::values::share)]
    pub(crate) leave: f64,
    /// When they leave
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::values::seconds)]
    pub(crate) leave_at: f64,
    /// Time within which they leave, each at a random one; at once if absent
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds)]
    pub(crate) leave_within: Option<f64>,
    /// No focus: nodes join at members whose addresses they know, and neighbours repair the trees
    #[arg(long)]
    pub(crate) without_focus: bool,
    /// They say so, and forward until others have replaced them; otherwise they vanish
    #[arg(long)]
    pub(crate) graceful: bool,
    /// Share of packets lost at random on each access link, in each direction
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = crate::values::share)]
    pub(crate) loss: f64,
    /// How packets are divided among the trees
    #[arg(long, value_name = "HOW", value_enum, default_value = "packets")]
    pub(crate) division: Division,
    /// The controller of each hop; one that has feedback on single packets
    #[arg(long, value_name = "NAME", default_value = "gcc")]
    pub(crate) controller: String,
    /// Delay from sending to playout, after which a packet is of no use
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::values::seconds)]
    pub(crate) playout: f64,
    /// Simulated time
    #[arg(long, alias = "for", value_name = "TIME", default_value = "20s", value_parser = crate::values::seconds)]
    pub(crate) duration: f64,
    /// Seed of links, arrivals and of who leaves
    #[arg(long, value_name = "S", default_value = "1")]
    pub(crate) seed: u64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Division {
    /// Packet by packet
    Packets,
    /// Frame by frame
    Frames,
}
