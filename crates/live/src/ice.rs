//! Paths through NATs: interactive connectivity establishment (ICE, RFC 8445), one agent a path, sans-IO.
//!
//! An [`IcePaths`] has the agents of an end's paths. It takes datagrams and the time, and returns datagrams, and which
//! pair of addresses each path is to use. [`PathAgent`] is one agent: connectivity checks by the library `is`, with
//! bounds on what strangers and the other end can cause, consent (RFC 7675), and round-trip time and loss of each
//! pair by its checks. [`Gather`] asks a STUN server for an address as seen from outside (RFC 8489).
//!
//! Candidates are announced out of band (`a=candidate` in SDP, RFC 8839) or, for paths that are added later, in-band as
//! addresses of multipath RTCP. The credentials of path `n` follow from those of the call ([`Credentials::of_path`]),
//! so that an address alone is enough for a further path.
//!
//! [`Relay`] is an address at a TURN server (RFC 8656), for ends of which neither can be reached through its NAT, or that are
//! not to be seen.

mod agent;
mod arrivals;
mod candidate;
mod checks;
mod credentials;
mod gather;
mod guard;
mod paths;
mod relay;
mod relaying;
mod restart;
mod slot;
pub mod stun;

pub use agent::{AgentConfig, IceCounters, PathAgent, PathEvent, Selection, Stage, Transmit};
pub use arrivals::{Arrival, is_check_for};
pub use candidate::{Candidate, CandidateKind, MAX_CANDIDATES};
pub use checks::PairMeasure;
pub use credentials::{Credentials, Secret};
pub use gather::Gather;
pub use paths::{IceConfig, IceEvent, IcePaths};
pub use relay::{FromServer, Relay, RelayCounters, RelayServer, RelayState};
