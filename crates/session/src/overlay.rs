//! An overlay that distributes one source's stream to many nodes over several trees (V. Singh's dissertation, chapter 6,
//! and section 8.2; SplitStream, Castro et al., SOSP 2003).
//!
//! The stream's packets are divided among trees ([`Division`]). Every node is in all trees. It forwards in one of them
//! and is a leaf in the others, so that it sends about as much as it receives. A centralised [`Focus`] gives each joining
//! node a parent in every tree, and another one where a parent has failed or left ([`Forest`]).
//!
//! A [`Node`] relays without decoding: it forwards its tree's packets to its children, each by a hop with a congestion
//! controller of its own ([`HopControl`]), numbered and reported as a subflow of Multipath RTP is. The stream's RTP
//! headers stay as they are, so that a node joins the trees' packets as a receiver of Multipath RTP joins subflows. What
//! it lacks it requests from its other parents, which receive all trees too.
//!
//! The focus answers a first request with a cookie, and a parent accepts only children with a ticket that the focus has
//! made for their address: nothing is sent to an address whose owner has not asked for it. Without a focus a [`Peer`] takes its places
//! from its neighbours, which also repair the trees. Control messages
//! ([`weir_wire::rtcp::overlay`]) are not encrypted.
//!
//! An overlay's node forwards in one tree. The loss of a node then interrupts one tree for those below it, and each
//! sends about as much as it receives (`session::overlay`). Each hop from parent to child is a path of its own, with
//! its controller, feedback and MPRTP subflow numbers; RTP's own numbers are end to end. The tree of a packet follows
//! from its RTP header, so that any parent can repeat it. The focus is centralised, and places nodes only below those
//! connected to the root, so that there are no cycles to find. Its credentials are HMACs: it keeps no state for a
//! request whose address is not confirmed, and no parent sends to an address without a ticket.

mod allowance;
mod config;
mod control;
mod credentials;
mod datagram;
mod division;
mod downstream;
mod focus;
mod forest;
mod node;
mod peer;
mod store;
mod upstream;

pub use config::{FocusConfig, NodeConfig, PeerConfig, RootIdentity, Timing};
pub use control::{HopControl, HopControlError};
pub use datagram::{Outgoing, Received};
pub use division::Division;
pub use downstream::HopCounters;
pub use focus::{Focus, FocusCounters};
pub use forest::{Forest, MAX_TREES, Placed, ROOT};
pub use node::{Delivered, Node, NodeCounters, SendError};
pub use peer::{Peer, PeerCounters};
