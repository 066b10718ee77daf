//! Arguments of `weir live`.

pub(crate) mod call;
pub(crate) mod dccp;
mod emulate;
mod testbed;
#[cfg(feature = "webrtc")]
pub(crate) mod webrtc;

pub(crate) use emulate::EmulateArgs;
pub(crate) use testbed::TestbedArgs;

use clap::Subcommand;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir live call loopback --duration 10s
  weir live webrtc                      a page for browsers, WHIP and WHEP
  weir live emulate --rate 2mbps --delay 50ms --loss 1% --left 'ping -c 5 $WEIR_PEER'
  weir live testbed quick --controllers gcc --compare
  weir live dccp send HOST --size 1GB --ccid 3";

#[derive(Subcommand, Debug)]
pub(crate) enum LiveCommand {
    /// Call in real time: both ends in this process, or between two
    #[command(after_help = call::EXAMPLES)]
    Call {
        #[command(subcommand)]
        command: call::CallCommand,
    },
    /// Serve a page whose visitors call Weir from their browser, and WHIP and WHEP for other programs
    #[cfg(feature = "webrtc")]
    #[command(after_help = webrtc::EXAMPLES)]
    Webrtc(webrtc::WebrtcArgs),
    /// Emulate a link in real time between two network namespaces, for any programs
    #[command(after_help = emulate::EXAMPLES)]
    Emulate(EmulateArgs),
    /// Run a scenario in real time: real sockets, kernel TCP, an emulated bottleneck
    #[command(after_help = testbed::EXAMPLES)]
    Testbed(TestbedArgs),
    /// Send and receive datagrams under congestion control: DCCP over UDP
    #[command(after_help = dccp::EXAMPLES)]
    Dccp {
        #[command(subcommand)]
        command: dccp::DccpCommand,
    },
}
