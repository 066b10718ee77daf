//! Arguments of `weir live webrtc`.

use crate::args::OutputArgs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use weir_media::FrameRate;
use weir_units::DataRate;

pub(super) const EXAMPLES: &str = "\
Prints the address of its page, with the token that requests need. A visitor sees Weir's clip, sent under the chosen
controller, and sends its own camera; controller and maximum rate change while the call runs, and the page plots what
happens. It saves a call as a report, as a scenario for weir run, and its packets' headers as pcapng. Other programs offer by HTTP: POST /whip sends to Weir (RFC 9725), POST /whep receives its clip, DELETE of the
answer's Location ends, each with 'Authorization: Bearer TOKEN'. Media are protected (DTLS-SRTP); signalling is not, so
that it stays on this machine or behind a proxy that speaks TLS. Browsers give their camera to pages of this machine
and of https alone.

Examples:
  weir live webrtc
  weir live webrtc --controller scream --codec h264 --max-rate 4mbps
  weir live webrtc --link responsiveness --out calls     # through the link of a scenario
  weir live webrtc --listen 192.0.2.7:8090 --token \"$(openssl rand -hex 16)\"
  gst-launch-1.0 videotestsrc ! x264enc tune=zerolatency ! video/x-h264,profile=constrained-baseline ! rtph264pay ! whipclientsink signaller::whip-endpoint=http://127.0.0.1:8090/whip \\
    signaller::auth-token=TOKEN";

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BrowserCodec {
    /// VP8
    Vp8,
    /// H.264, baseline profile
    H264,
}

#[derive(clap::Args, Debug)]
pub(crate) struct WebrtcArgs {
    /// Where the page is served. Other machines reach it only by an address of this machine that they know
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    pub(crate) listen: SocketAddr,
    /// The address for media, if it is not that of --listen
    #[arg(long, value_name = "IP")]
    pub(crate) address: Option<IpAddr>,
    /// The token that requests need, 16 letters and digits or more; a new one each time if absent
    #[arg(long, value_name = "TEXT")]
    pub(crate) token: Option<String>,
    /// The controller of Weir's rate, until the page chooses another: one that transport-wide feedback suffices for
    #[arg(long, value_name = "NAME", default_value = weir_cc::DEFAULT_CONTROLLER)]
    pub(crate) controller: String,
    /// The codec, if the browser has it; VP8 where it is built in, or else H.264
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) codec: Option<BrowserCodec>,
    /// The material: talking-head, hand-held or sports
    #[arg(long, value_name = "NAME", default_value = "talking-head")]
    pub(crate) clip: String,
    /// Size of the pictures
    #[arg(long, value_name = "WxH", default_value = "640x360")]
    pub(crate) size: String,
    /// Frames a second
    #[arg(long, alias = "rate", value_name = "N", default_value = "30", value_parser = crate::values::frame_rate)]
    pub(crate) fps: FrameRate,
    /// Media rate at the beginning, between the bounds; 500kbps, or the bound next to it, if absent
    #[arg(long, value_name = "RATE", value_parser = crate::values::bit_rate)]
    pub(crate) start_rate: Option<DataRate>,
    /// Minimum media rate
    #[arg(long, value_name = "RATE", default_value = "50kbps", value_parser = crate::values::bit_rate)]
    pub(crate) min_rate: DataRate,
    /// Maximum media rate
    #[arg(long, value_name = "RATE", default_value = "2500kbps", value_parser = crate::values::bit_rate)]
    pub(crate) max_rate: DataRate,
    /// An emulated link between Weir and each browser, inside the process: the path of a scenario's first flow, from the
    /// moment when they are connected
    #[arg(long, value_name = "SCENARIO", value_hint = clap::ValueHint::FilePath)]
    pub(crate) link: Option<String>,
    /// The variant of --link's scenario, if it has some; the first of them if absent
    #[arg(long, value_name = "NAME", requires = "link")]
    pub(crate) variant: Option<String>,
    /// Calls at a time
    #[arg(long, value_name = "N", default_value = "8")]
    pub(crate) calls: usize,
    /// End after this time (30s, 5min); Ctrl-C ends it if absent
    #[arg(long, value_name = "TIME", value_parser = crate::values::seconds)]
    pub(crate) duration: Option<f64>,
    /// Folder for a report of the calls, with both ends' numbers and plots, written at the end; none if absent
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}
