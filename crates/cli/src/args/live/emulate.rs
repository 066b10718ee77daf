//! Arguments of `weir live emulate`.

use clap::ValueHint;

pub(super) const EXAMPLES: &str = "\
The programs run in two namespaces, left (10.0.0.1, fd77:6569:72::1) and right (10.1.0.1, fd77:6569:72::1:1), that the
link joins; WEIR_HERE and WEIR_PEER are the address of each side and that of the other. It ends with the left program or, if there
is none, with the right one, after --duration, or at Ctrl-C, and prints its accuracy. Nothing is left behind.
Needs Linux with /dev/net/tun, and root or user namespaces; programs: util-linux, iproute2.

Examples:
  weir live emulate --rate 1mbps --delay 50ms --queue 300ms --loss 1%
  weir live emulate --rate 5mbps --delay 20ms --queue 1s --discipline codel --duration 30s
  weir live emulate --rate 8mbps --delay 20ms --right 'iperf3 -s -1' -- iperf3 -c 10.1.0.1 -t 10 -C cubic
  weir live emulate responsiveness --duration 100s --right 'iperf3 -s -1' --left 'sleep 1; iperf3 -c $WEIR_PEER -t 90'";

#[derive(clap::Args, Debug)]
pub(crate) struct EmulateArgs {
    /// A scenario file, or a built-in scenario's name: the path of its first flow is emulated
    #[arg(value_name = "FILE|NAME", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Option<String>,
    /// The scenario's variant; the first of them if absent
    #[arg(long, value_name = "NAME", requires = "scenario")]
    pub(crate) variant: Option<String>,
    /// Only this link of the scenario, with its other direction
    #[arg(long, value_name = "NAME", requires = "scenario")]
    pub(crate) link: Option<String>,
    /// Capacity from left to right, such as 2mbps; unlimited if absent
    #[arg(long, allow_hyphen_values = true, value_name = "RATE", conflicts_with = "scenario")]
    pub(crate) rate: Option<String>,
    /// One-way delay of both directions, such as 50ms; none if absent
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "scenario")]
    pub(crate) delay: Option<String>,
    /// Capacity of the queue: time, bytes or packets, such as 300ms, 75kB, '100 packets' [default: 300ms]
    #[arg(long, value_name = "AMOUNT", conflicts_with = "scenario")]
    pub(crate) queue: Option<String>,
    /// Queue discipline from left to right, with its parameters: codel, or codel,target=5ms,interval=100ms; see `weir show
    /// disciplines` [default: drop-tail]
    #[arg(long, value_name = "NAME[,PARAMETER=VALUE]...", conflicts_with = "scenario")]
    pub(crate) discipline: Option<String>,
    /// Share of packets lost from left to right, such as 1% or 0.01
    #[arg(long, value_name = "SHARE", conflicts_with = "scenario", value_parser = crate::values::share)]
    pub(crate) loss: Option<f64>,
    /// Random extra delay of up to this, without reordering
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "scenario")]
    pub(crate) jitter: Option<String>,
    /// Capacity from right to left; unlimited if absent
    #[arg(long, allow_hyphen_values = true, value_name = "RATE", conflicts_with = "scenario")]
    pub(crate) reverse_rate: Option<String>,
    /// Shell command to run on the left
    #[arg(long, value_name = "COMMAND", conflicts_with = "command")]
    pub(crate) left: Option<String>,
    /// Shell command to run on the right, started first
    #[arg(long, value_name = "COMMAND")]
    pub(crate) right: Option<String>,
    /// End after this time, such as 30s
    #[arg(long, alias = "for", value_name = "TIME", value_parser = crate::values::seconds)]
    pub(crate) duration: Option<f64>,
    /// Seed of random losses and jitter; the scenario's own if absent
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Print the accuracy report as one JSON object; the programs' output goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// No remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Program to run on the left, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
