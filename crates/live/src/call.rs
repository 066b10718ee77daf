//! Calls in real time: `weir_session`'s ends on sockets.
//!
//! [`LiveEnd`] is one end: an [`Endpoint`](weir_session::Endpoint) with a port, the other end's address and, usually,
//! SRTP. [`LiveEnd::run`] drives it until a flag, a time or the call itself ends it, and passes every packet to a
//! [`CallObserver`] as the session sees it, so that a live call can be measured like a simulated one. [`loopback`] runs
//! both ends in one process.

mod arrivals;
mod await_call;
mod camera;
mod carrier;
mod config;
mod decode;
mod encode;
mod end;
mod gather;
mod ice;
mod ice_state;
mod joined;
mod leaving;
mod lent;
mod liveness;
mod loopback;
mod observer;
mod originals;
mod party;
mod party_streams;
mod party_video;
mod path_factory;
mod path_sockets;
mod paths;
mod receiving;
mod recording;
mod roaming;
mod routes;
mod sending;
mod stats;
mod streams;
mod streams_summary;

pub use camera::Camera;
pub use carrier::{Carrier, DccpSummary};
pub use config::{CallConfig, FrameModel, announced, endpoints};
pub use decode::{DecodeSummary, ReceivingVideo, VideoReceive};
pub use encode::{EncodeSummary, SendingVideo, VideoSend};
pub use end::{LiveEnd, RunUntil};
pub use gather::IceOptions;
pub use ice_state::{IceEvents, IcePairSummary, IceRelaySummary, IceSummary};
pub use joined::{IncomingPlan, Joined, JoinedEnd, OutgoingPlan, PlannedSource};
pub use liveness::{EndReason, Notice};
pub use loopback::{LoopbackSummary, VideoSummary, loopback, loopback_video};
pub use observer::{CallObserver, CallPathSummary, EndCounters, EndSummary, LivePacket, PacketTotals, Unobserved};
pub use party::{Party, PartyCoding, PartyMedia};
pub use party_streams::{
    PartyReceive, PartyRun, PartySend, PartySource, PartyStreamsSummary, ReceivedStream, SentStream, run_party_streams,
};
pub use party_video::{PartySummary, VideoCall, run_party};
pub use path_sockets::PathAddress;
pub use paths::PathUse;
pub use recording::{LEAST_FREE, RecordFile, Recording, SIZE_LIMIT};
pub use routes::Peer;
pub use stats::{CpuShares, Times};
pub use streams::{StreamSend, StreamSource, loopback_streams};
pub use streams_summary::{AudioSummary, LipSummary, StreamSummary, StreamsSummary};

/// Why a call could not begin or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// A socket could not be opened or used.
    #[error("{what}: {source}")]
    Socket {
        /// The operation.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The controller, or one of its parameters.
    #[error(transparent)]
    Controller(#[from] weir_cc::tunable::SetupError),
    /// A call's streams contradict each other.
    #[error("the streams of a call: {0}")]
    Streams(weir_session::StreamError),
    /// A stream cannot be added to the call.
    #[error("stream `{name}`: {source}")]
    Stream {
        /// The stream.
        name: String,
        /// Why.
        source: weir_session::StreamError,
    },
    /// There is no such interface, or it has no address.
    #[error("interface `{name}` has no address: those with one are {known}")]
    NoInterface {
        /// The name given.
        name: String,
        /// The names of interfaces with an address.
        known: String,
    },
    /// An end that is to be reached by relays alone has none.
    #[error(
        "no TURN server has lent an address: asked {servers}. Check the user and the password, or leave out --ice-relay-only"
    )]
    NoRelay {
        /// The servers asked.
        servers: String,
    },
    /// Several paths over DCCP.
    #[error("a call over DCCP has one path: leave out --path, or use --transport udp")]
    PathsOverDccp,
    /// There is no such scheduler or coupling.
    #[error("there is no {what} `{name}`: choose one of {known}")]
    NoSuchPolicy {
        /// Scheduler or coupling.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A call of several streams has none.
    #[error("a call needs a stream at least: none was given")]
    NoStreams,
    /// Packets cannot be protected.
    #[error(transparent)]
    Srtp(#[from] crate::srtp::SrtpError),
    /// The ends could not exchange their descriptions.
    #[error(transparent)]
    Signal(#[from] crate::signal::SignalError),
    /// The ends' descriptions are incompatible.
    #[error(transparent)]
    Sdp(#[from] crate::sdp::SdpError),
    /// The other end does not send the feedback that the controller needs.
    #[error(
        "controller `{controller}` needs {wants}, which the other end does not send: choose another with --controller"
    )]
    Unfit {
        /// The controller.
        controller: String,
        /// The feedback needed.
        wants: String,
    },
    /// The controller is for DCCP, and the call runs over plain datagrams.
    #[error(
        "controller `{controller}` is for DCCP, and the call uses plain datagrams: use --transport dccp --no-srtp, or \
         choose another with --controller"
    )]
    OnlyOverDccp {
        /// The controller.
        controller: String,
    },
    /// There is no SRTP over DCCP.
    #[error("there is no SRTP over DCCP: use --no-srtp at both ends for an unencrypted call")]
    DccpInTheClear,
    /// Media would be sent to another machine unencrypted.
    #[error("media to {to} would go in the clear: protect them with SRTP at both ends, or allow it by --insecure")]
    InTheClear {
        /// The other end.
        to: std::net::SocketAddr,
    },
    /// The system provides no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
    /// A thread of the call has failed, which is a fault of Weir's.
    #[error("a thread of the call has failed: {0}")]
    Thread(String),
}

impl CallError {
    pub(crate) fn socket(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Socket { what, source }
    }
}

fn random_failure(e: getrandom::Error) -> CallError {
    CallError::Random(e.to_string())
}

/// Random bits from the system.
///
/// # Errors
/// The system provides none.
pub fn random() -> Result<u64, CallError> {
    getrandom::u64().map_err(random_failure)
}
