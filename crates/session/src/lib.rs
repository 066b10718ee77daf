//! Both ends of an RTP call, without sockets or clocks: real RTP and RTCP bytes in and out.
//!
//! An [`Endpoint`] sends, receives or does both. The caller passes in datagrams and the time, and takes out datagrams
//! and the next deadline:
//!
//! 1. after [`Endpoint::handle_datagram`] or [`Endpoint::handle_timeout`], call [`Endpoint::poll_transmit`] until it
//!    returns `None`;
//! 2. then wait for a datagram or for [`Endpoint::poll_timeout`], whichever comes first.
//!
//! The same code runs in the simulator and on real sockets. Media may be carried as a length only: a datagram is then
//! its header bytes and a count of payload bytes. If the source's frames have content, packets carry it; at the other
//! end, with [`IncomingConfig::content`], [`Endpoint::take_frame`] returns the received content of a frame once
//! [`Endpoint::poll_playout`] has returned its event.
//!
//! A session is two lists, of streams and of paths. A stream has a source, queue, repair and statistics, and no
//! controller; a path has a controller, pacer, sent history and sequence numbers, and no codec. `session::Sender` and
//! `Receiver` combine them. With one path all streams use it, and nothing is paid for others. With several, a
//! scheduler (`session::multipath`, by name) chooses the path of each packet, and the target is the scheduler's sum of
//! the paths' targets. A packet's transport-wide number is then its subflow's (MPRTP), and feedback on a path takes
//! that path, in multipath RTCP. Paths behind one bottleneck can be coupled to one flow's share
//! (`GroupConfig::coupling`, RFC 8699). A path of which nothing is reported in time is suspected and carries no media
//! until something is; one that stays silent has failed, is checked every 250 ms, and must answer for a while first,
//! longer after each failure. Each path keeps the order of its packets, so that a receiver requests a packet once all
//! paths in use have delivered later ones.

pub mod allocation;
mod arrivals;
mod capacity_vector;
mod config;
mod content;
mod datagram;
pub mod dccp;
mod endpoint;
mod feedback;
mod frame_repair;
mod frames;
mod identity;
mod ids;
mod interval;
mod layered;
mod make;
pub mod multipath;
mod nack;
mod observer;
mod outcome;
pub mod overlay;
mod picture;
mod plan;
mod protection;
mod queue;
mod received_packet;
mod receiver;
mod receiver_model;
mod recovery;
mod repair_format;
mod resilience;
mod retransmission;
mod rtcp;
mod rtcp_timer;
mod sender;
mod sender_model;
mod sent;
mod session_params;
mod station;
mod statistics;
mod stream_repair;
pub mod system;
mod timers;

pub use arrivals::ArrivalLog;
pub use capacity_vector::CapacityVectorCounters;
pub use config::{
    EndConfig, GroupConfig, HeaderExtensions, IncomingConfig, OutgoingConfig, OutgoingOptions, PathConfig,
    ReceivingPath, SendingPath,
};
pub use content::ContentCounters;
pub use datagram::{Datagram, Kind, Transmit};
pub use endpoint::{
    EndStats, Endpoint, EndpointCounters, Handover, Incoming, IncomingStats, MAX_OFFERED, MAX_STREAMS, Outgoing,
    OutgoingStats, Path, PathError, PathMut, PathStats, PathUse, RemoteEnd, RtcpControl, StreamError,
};
pub use frame_repair::{FrameRepair, Hairpin, Tambur};
pub use frames::RecoveryStats;
pub use identity::{Label, MAX_LABEL, ParityFormat, Red, StreamIdentity};
pub use ids::{IncomingId, OutgoingId};
pub use layered::{LayerAction, LayeredConfig, LayeredCounters, LayeredReceiver, MAX_LAYERS};
pub use nack::{NackConfig, NackCounters};
pub use observer::{Observer, Seen};
pub use outcome::{Outcome, Refusal, RtcpOutcome};
pub use picture::{KeyFrameRequest, PictureCounters, PictureFeedback, PictureName};
pub use plan::{CallPlan, Control, EndName, EndPlan};
pub use protection::RepairChoice;
pub use queue::{QueuedPacket, RtpQueue};
pub use receiver::ReceiveCounters;
pub use receiver_model::ReceiverModel;
pub use recovery::{RepairReceiveCounters, RepairReception};
pub use resilience::ResilienceConfig;
pub use retransmission::{RetransmissionConfig, RetransmissionCounters};
pub use rtcp_timer::{RTCP_BANDWIDTH_SHARE, RtcpTimer, RtcpTimerConfig};
pub use sender::SendCounters;
pub use sender_model::SenderModel;
pub use session_params::{Profile, RapidSynchronisation, SessionParams, XrBlocks};
pub use station::{Station, StationConfig};
pub use statistics::{BlockNumbers, ReceiveStatistics, Sequenced};
pub use stream_repair::{RepairSource, StreamProtector, StreamRepairer};

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
