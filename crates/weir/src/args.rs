//! The command line's grammar and its help.

#[cfg(target_os = "linux")]
pub(crate) mod call;
mod compare;
#[cfg(feature = "coverage")]
pub(crate) mod coverage;
#[cfg(target_os = "linux")]
pub(crate) mod dccp;
mod emulate;
mod explain;
mod judge;
mod overlay;
mod pcap;
mod quality;
mod scoreboard;
mod sweep;
mod tune;

pub(crate) use compare::{CompareArgs, FigureFormat, ReproduceArgs, WorkArgs};
pub(crate) use emulate::EmulateArgs;
pub(crate) use explain::ExplainArgs;
pub(crate) use judge::{ScorecardArgs, TwinCommand, TwinRunArgs};
pub(crate) use overlay::{Division, OverlayArgs};
pub(crate) use pcap::{At, PcapArgs};
pub(crate) use quality::{ClipArgs, Luma, QualityArgs};
pub(crate) use scoreboard::ScoreboardArgs;
pub(crate) use sweep::SweepArgs;
pub(crate) use tune::TuneArgs;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Parser, Subcommand, ValueHint};
use std::num::NonZeroU32;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  weir                                  compare GCC, NADA and SCReAM as the paper rmcat-comparison does
  weir --controllers gcc,nada --scenario 5.4-competing-flows --runs 10
  weir run quick --controller gcc --json
  weir run my-link.toml --series out    a scenario of your own; time series as Parquet and CSV
  weir reproduce rmcat-comparison       every published number beside the measured one
  weir list scenarios                   what can be run
  weir scenario show quick > mine.toml  a scenario to start from

Exit codes: 0 all went well; 1 a run or a write failed; 2 the command line or a file that it names is wrong;
130 interrupted by Ctrl-C or SIGTERM (files that are there are whole).
Environment: NO_COLOR turns colours off; COLUMNS sets the width of tables.";

#[cfg(target_os = "linux")]
#[derive(clap::Args, Debug)]
pub(crate) struct OutputArgs {
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Compare congestion controllers for live audio and video.
///
/// Runs scenarios (a network, and flows over it) in a deterministic simulator: the same scenario and seed give the same
/// numbers on every machine. Without a subcommand it is `weir compare`.
#[derive(Parser, Debug)]
#[command(name = "weir", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run scenarios under several controllers, print a table and write a report
    #[command(after_help = "\
Ctrl-C or SIGTERM shows what has finished, over as many runs of one controller as of another, and says what is missing.
Durations: without arguments some 4 s on one core; a run of 300 s of one call takes 20 to 100 ms, with a real encoder up to
a minute. Progress says how long the rest takes. Up to 1000000 runs; of more than 10000 the statistics alone are kept.

Examples:
  weir compare
  weir compare --scenario responsiveness --scenario my-link.toml --runs 10 --out results
  weir compare --controllers gcc,nada --json --quiet | jq '.aggregates[].metrics'")]
    Compare(CompareArgs),
    /// Run every combination of a grid once, and keep the results as Parquet
    #[command(after_help = sweep::EXAMPLES)]
    Sweep(SweepArgs),
    /// Run a paper's experiments and compare its numbers with the measured ones
    #[command(after_help = "\
Durations on two cores: rmcat-comparison some seconds, the others minutes (fbra's and dccp-video's have real encoders). Where
a paper made more runs than the default, --runs makes as many; --runs 1 is a first look. Progress says how long the rest takes.

Examples:
  weir reproduce rmcat-comparison
  weir reproduce fbra --runs 1 --out fbra
  weir reproduce fbra --runs 30 --resume fbra-runs    may be stopped; the same command goes on
  weir reproduce rmcat-comparison --table 2 --json --runs 20
  weir reproduce rmcat-comparison --out paper --figures svg,pdf
  weir reproduce papers/my-paper        a folder with a reproduce.toml")]
    Reproduce(ReproduceArgs),
    /// Run one scenario once
    #[command(after_help = "\
Examples:
  weir run quick
  weir run random-loss --variant 5% --controller nada --seed 3
  weir run my-link.toml --json
  weir run quick --json | jq '.flows[] | {name, loss, delay: .one_way_delay_ms.p95}'
  weir run responsiveness --controller gcc --series out
A run of 300 s of one call takes 20 to 100 ms on one core, with a real encoder up to a minute.")]
    Run(RunArgs),
    /// Say in words, second by second, why a controller's rate moved
    #[command(after_help = explain::EXAMPLES)]
    Explain(ExplainArgs),
    /// List controllers, scenarios, papers, codecs, disciplines or schedulers
    #[command(after_help = "\
Examples:
  weir list scenarios
  weir list scenarios --json | jq -r '.scenarios[].name'
  weir list controllers --params        every parameter with its unit, range and default")]
    List(ListArgs),
    /// Check, show and describe scenario files
    #[command(after_help = "\
Examples:
  weir scenario check my-link.toml
  weir scenario show responsiveness
  weir scenario schema > scenario.schema.json")]
    Scenario {
        #[command(subcommand)]
        command: ScenarioCommand,
    },
    /// Compare controllers with recordings of the authors' own programs
    #[command(after_help = "\
Examples:
  weir twin list
  weir twin run                        all of them, in a few seconds
  weir twin run gcc/three scream2/single
  weir twin run --json | jq '.scores[] | select(.near | not) | .twin'
A twin is a recording of a program, such as libwebrtc's goog_cc, on a plain link, and the
scenario that repeats it.")]
    Twin {
        #[command(subcommand)]
        command: TwinCommand,
    },
    /// Judge controllers by the test cases of RFC 8867 or RFC 8869, each criterion written down
    #[command(after_help = "\
Examples:
  weir scorecard                       gcc, nada, scream and scream2, in a few seconds
  weir scorecard gcc rrtcc
  weir scorecard --suite rfc8869       cellular and Wi-Fi links, in some minutes
  weir scorecard gcc --json | jq '.cases[] | select(.passed | not) | .case'")]
    Scorecard(ScorecardArgs),
    /// Run controllers over rows of hard situations, and over recorded capacity: goals, met or not, the worst case first
    #[command(after_help = scoreboard::EXAMPLES)]
    Scoreboard(ScoreboardArgs),
    /// Search for a controller's parameters over traces, recorded or generated, and the scoreboard's rows
    #[command(after_help = tune::EXAMPLES)]
    Tune(TuneArgs),
    /// Print the JSON schema of what a command prints with --json
    #[command(after_help = "\
Examples:
  weir schema run > run.schema.json
  weir schema compare | jq '.properties | keys'")]
    Schema {
        /// The command: compare, run, explain, reproduce, quality, list, twin, scorecard, scoreboard, tune, overlay, bench, emulate, testbed, call or dccp
        #[arg(value_name = "COMMAND")]
        command: String,
    },
    /// Write the packets of one run as pcapng, for Wireshark and tshark
    #[command(after_help = "\
Examples:
  weir pcap quick --controller gcc
  weir pcap random-loss --variant 5% --at sender --out sent.pcapng
  weir pcap responsiveness --controller nada --out nada.pcapng && tshark -r nada.pcapng -Y rtcp")]
    Pcap(PcapArgs),
    /// Emulate a link in real time between two network namespaces, for any programs
    #[command(after_help = "\
The programs run in two namespaces, left (10.0.0.1, fd77:6569:72::1) and right (10.1.0.1, fd77:6569:72::1:1), that the
link joins; WEIR_HERE and WEIR_PEER are the address of each side and that of the other. It ends with the left program or, if there
is none, with the right one, after --for, or at Ctrl-C, and prints its accuracy. Nothing is left behind.
Needs Linux with /dev/net/tun, and root or user namespaces; programs: util-linux, iproute2.

Examples:
  weir emulate --rate 1mbps --delay 50ms --queue 300ms --loss 1%
  weir emulate --rate 5mbps --delay 20ms --queue 1s --discipline codel --for 30s
  weir emulate --rate 8mbps --delay 20ms --right 'iperf3 -s -1' -- iperf3 -c 10.1.0.1 -t 10 -C cubic
  weir emulate responsiveness --for 100s --right 'iperf3 -s -1' --left 'sleep 1; iperf3 -c $WEIR_PEER -t 90'")]
    Emulate(EmulateArgs),
    /// Call in real time, over this machine's network
    #[cfg(target_os = "linux")]
    #[command(after_help = call::EXAMPLES)]
    Call {
        #[command(subcommand)]
        command: call::CallCommand,
    },
    /// Call in real time; on Linux only
    #[cfg(not(target_os = "linux"))]
    Call(OnLinuxArgs),
    /// Send and receive datagrams under congestion control: DCCP over UDP
    #[cfg(target_os = "linux")]
    #[command(after_help = dccp::EXAMPLES)]
    Dccp {
        #[command(subcommand)]
        command: dccp::DccpCommand,
    },
    /// Send and receive datagrams under congestion control; on Linux only
    #[cfg(not(target_os = "linux"))]
    Dccp(OnLinuxArgs),
    /// Run the service of a network coverage map, and what belongs to it
    #[cfg(feature = "coverage")]
    #[command(after_help = coverage::EXAMPLES)]
    Coverage {
        #[command(subcommand)]
        command: coverage::CoverageCommand,
    },
    /// Measure the quality of video against its reference: PSNR, SSIM, detail and motion
    #[command(after_help = "\
Files are YUV4MPEG2 (.y4m) or, with --size, raw I420; - is standard input. A built-in clip may replace a file. PSNR of
equal pictures is reported as 100 dB. With libvmaf (--features vmaf) VMAF is measured too, by the model vmaf_v0.6.1.
ssim_tiled has adjacent 8x8 windows, ssim_overlapped is that of ffmpeg's filter for
luma, ssim_gaussian that of Wang et al. 2004. SI and TI are those of ITU-T P.910.

Examples:
  weir quality reference.y4m decoded.y4m
  weir quality talking-head:640x480@15 decoded.y4m --json | jq '.metrics[] | {metric, mean}'
  ffmpeg -i call.mp4 -f yuv4mpegpipe - | weir quality reference.y4m - --frames frames.csv --cdf cdf.csv
  weir quality --size 352x288 reference.yuv decoded.yuv")]
    Quality(QualityArgs),
    /// Write a built-in clip as YUV4MPEG2
    #[command(after_help = "\
Clips: talking-head (a news reader, the camera still), hand-held (a person talking, the camera in a hand, a building),
sports (players, a fast camera, a crowd), movie (cuts between such scenes, titles). The same arguments give the same bytes on every machine.

Examples:
  weir clip talking-head
  weir clip sports --size 1280x720 --rate 25 --frames 100 --out sports.y4m
  weir clip hand-held --out - | ffplay -")]
    Clip(ClipArgs),
    /// Run a scenario in real time: real sockets, kernel TCP, an emulated bottleneck
    #[command(after_help = "\
The scenario's RTP flows are calls over real sockets, its TCP flows the kernel's (by iperf3), and its links are emulated
between two network namespaces. A run takes as long as the scenario's duration. Nothing is left behind, however it ends.
Needs Linux with /dev/net/tun, and root or user namespaces; programs: util-linux, iproute2, iperf3.

Examples:
  weir testbed quick --controller gcc --compare
  weir testbed responsiveness --controller gcc,nada,scream,fbra --compare --json --out live
  weir testbed competition --controller scream --tcp bbr --pcap scream.pcapng")]
    Testbed(TestbedArgs),
    /// Simulate an overlay: a stream to many nodes over distribution trees, and nodes that leave
    #[command(after_help = "\
The root's stream is divided among trees. A node forwards in one of them and is a leaf in the others; a focus places nodes
that join, and others where a parent has failed. Each hop has a controller of its own. Uplinks of nodes: 0.6 (20 % of them),
1.6 (60 %) and 4 times (20 %) the stream's rate; delays between two nodes: 10 to 80 ms.
A run of 1000 nodes for 20 s takes about a minute of CPU time in the dev profile.

Examples:
  weir overlay
  weir overlay --nodes 1000 --trees 5 --leave 20%
  weir overlay --nodes 300 --trees 3 --division frames --loss 0.5% --controller scream
  weir overlay --nodes 200 --graceful --json | jq .churn")]
    Overlay(OverlayArgs),
    /// Measure Weir's speed on this machine, and that of ns-3 if it is installed
    #[command(after_help = "\
Each figure is CPU time of one thread: one run to warm up, then the best of 3. ns-3's are measured in the same way, in the
same call, by benches/compare in Weir's repository, and need g++ and libns3-dev (apt-get install g++ libns3-dev);
without them '-' is printed. DCCP over UDP, UDP and kernel TCP on the loopback device follow, in wall-clock time. Use a
release build: cargo run --release -- bench. It takes some minutes, with ns-3 more.

Examples:
  weir bench
  weir bench --scale 0.1 --ns3 never --json")]
    Bench(BenchArgs),
}

#[derive(Subcommand, Debug)]
pub(crate) enum ScenarioCommand {
    /// Check scenario files, every variant under every controller
    Check {
        /// Files, or names of built-in scenarios
        #[arg(required = true, value_name = "FILE|NAME")]
        files: Vec<String>,
    },
    /// Print a scenario file
    Show {
        /// A built-in scenario's name, or a file
        #[arg(value_name = "NAME|FILE")]
        name: String,
    },
    /// Print the JSON schema of scenario files
    Schema,
}

/// A command that exists on Linux only: any arguments are accepted, so that the answer is about the system.
#[cfg(not(target_os = "linux"))]
#[derive(clap::Args, Debug)]
pub(crate) struct OnLinuxArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<String>,
}

/// Which single run.
#[derive(clap::Args, Debug)]
pub(crate) struct OneArgs {
    /// A scenario file, or a built-in scenario's name
    #[arg(value_name = "FILE|NAME", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: String,
    /// The controller, if the scenario compares several; the first of them if absent
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
}

#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_parser = PossibleValuesParser::new(["controllers", "scenarios", "papers", "codecs", "disciplines", "schedulers"]))]
    pub(crate) what: String,
    /// With controllers and disciplines: their parameters as well
    #[arg(long, action = ArgAction::SetTrue)]
    pub(crate) params: bool,
    /// Print one JSON object instead of a table, parameters included
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct TestbedArgs {
    /// A scenario file, or a built-in scenario's name
    #[arg(value_name = "FILE|NAME", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: String,
    /// Controllers, one after the other, if the scenario compares several; the first of them if absent
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub(crate) controller: Vec<String>,
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
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct BenchArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
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
