//! Configuration of nodes, and their times.

use super::control::HopControl;
use super::division::Division;
use crate::nack::NackConfig;
use core::net::SocketAddr;
use weir_units::{DataRate, TimeDelta};

/// Configuration of a node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The focus's address.
    pub focus: SocketAddr,
    /// Most children that the node's uplink can feed: its rate divided by a tree's.
    pub degree: u16,
    /// The media's synchronisation source.
    pub ssrc: u32,
    /// Its RTP clock in Hz.
    pub clock_rate: u32,
    /// Header extension identifier of the subflow number (MPRTP), 1 to 255, which every packet carries.
    pub subflow_id: u8,
    /// How packets are divided among trees; the same at all nodes.
    pub division: Division,
    /// Rate of the whole stream, RTP headers included.
    pub rate: DataRate,
    /// The controllers of hops to children.
    pub control: HopControl,
    /// Delay from a packet's earliest arrival to its playout: lost packets are requested while they can arrive in time.
    pub playout: TimeDelta,
    /// When lost packets are requested.
    pub nack: NackConfig,
    /// Packets kept to be repeated, at most 65,536.
    pub history: usize,
    /// Longest wait of a packet for a hop's controller.
    pub max_wait: TimeDelta,
    /// Its times.
    pub timing: Timing,
    /// NTP seconds at `Timestamp::ZERO`, as [`EndConfig::ntp_epoch`](crate::EndConfig::ntp_epoch).
    pub ntp_epoch: u32,
    /// Seed of the nonce and of first numbers, random where nodes are on a network.
    pub seed: u64,
}

impl NodeConfig {
    /// A node of a stream of this rate at the focus's address, with defaults otherwise: a playout delay of 1 s, packets
    /// divided in turn, and 1,024 of them kept.
    pub fn new(focus: SocketAddr, degree: u16, rate: DataRate, control: HopControl) -> Self {
        Self {
            focus,
            degree,
            ssrc: 1,
            clock_rate: 90_000,
            subflow_id: 6,
            division: Division::Packets,
            rate,
            control,
            playout: TimeDelta::from_secs(1),
            nack: NackConfig {
                // Longer than the interval of keep-alives: a parent that is there requests lost packets for all below it.
                path_idle: TimeDelta::from_millis(150),
                // A busy parent's uplink delays the answer.
                slack: TimeDelta::from_millis(80),
                ..NackConfig::default()
            },
            history: 1_024,
            max_wait: TimeDelta::from_millis(500),
            timing: Timing::default(),
            // As in `EndConfig`.
            ntp_epoch: 3_976_214_400,
            seed: 1,
        }
    }
}

/// Times of nodes. All are choices of this implementation: small enough that a stream whose parents have failed is whole
/// again within 2 s, and large enough that three messages have to be lost in a row before a hop counts as failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Silence after which a parent sends a keep-alive.
    pub keepalive: TimeDelta,
    /// The same of a child, whose feedback is less frequent than packets.
    pub child_keepalive: TimeDelta,
    /// Silence after which a parent counts as lost.
    pub silence: TimeDelta,
    /// The same of a child.
    pub child_silence: TimeDelta,
    /// Wait for a parent's answer before it is asked again.
    pub attach_retry: TimeDelta,
    /// How often a parent is asked before the focus is asked for another.
    pub attach_tries: u8,
    /// Wait for the focus's answer, which doubles up to [`Self::max_retry`].
    pub focus_retry: TimeDelta,
    /// Longest wait for the focus's answer.
    pub max_retry: TimeDelta,
    /// Interval at which a node shows the focus that it is there.
    pub report: TimeDelta,
    /// How long a leaving node forwards at most.
    pub linger: TimeDelta,
    /// Share of packets lost on a hop, in a row of measurements, above which the node asks for another parent, in percent.
    pub max_loss_percent: u8,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            keepalive: TimeDelta::from_millis(70),
            child_keepalive: TimeDelta::from_millis(100),
            silence: TimeDelta::from_millis(300),
            child_silence: TimeDelta::from_millis(450),
            attach_retry: TimeDelta::from_millis(200),
            attach_tries: 2,
            focus_retry: TimeDelta::from_millis(250),
            max_retry: TimeDelta::from_secs(2),
            report: TimeDelta::from_secs(5),
            linger: TimeDelta::from_secs(2),
            max_loss_percent: 10,
        }
    }
}

/// Identity of the root, shared with the focus, with which it is set up.
#[derive(Clone, PartialEq, Eq)]
pub struct RootIdentity {
    /// Number of trees.
    pub trees: u8,
    /// Most children of the root in each tree.
    pub share: u16,
    /// By which the focus recognises the root's messages.
    pub token: u64,
    /// Key of its children's tickets.
    pub key: [u8; 16],
}

impl core::fmt::Debug for RootIdentity {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RootIdentity").field("trees", &self.trees).field("share", &self.share).finish_non_exhaustive()
    }
}

/// Configuration of a node without a focus, beside [`NodeConfig`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerConfig {
    /// Number of trees, the same at all nodes; 1 to [`MAX_TREES`](super::MAX_TREES).
    pub trees: u8,
    /// Addresses of members to join at; eight at most are used.
    pub contacts: Vec<SocketAddr>,
    /// From which cookies and tickets are derived; random where the node is on a network.
    pub secret: [u8; 32],
}

/// Configuration of a focus.
#[derive(Clone, PartialEq, Eq)]
pub struct FocusConfig {
    /// Number of trees, 1 to [`MAX_TREES`](super::MAX_TREES).
    pub trees: u8,
    /// The root's address.
    pub root: SocketAddr,
    /// Most children of the root in all trees together.
    pub root_degree: u16,
    /// From which all cookies, tokens and keys are derived; random where the focus is on a network.
    pub secret: [u8; 32],
    /// Most nodes. Each takes about 1 kB.
    pub max_nodes: usize,
    /// Most children of a node that are believed.
    pub max_degree: u16,
    /// How long requests are collected before nodes are placed: those that forward first, and not below nodes of which
    /// others say meanwhile that they have failed.
    pub round: TimeDelta,
    /// Most nodes placed at one time; the rest follow a millisecond later.
    pub placements: usize,
    /// Wait for an answer before an assignment or a check is repeated.
    pub retry: TimeDelta,
    /// How often a check is sent before a node counts as failed.
    pub check_tries: u8,
    /// The same of an assignment.
    pub assign_tries: u8,
}

impl core::fmt::Debug for FocusConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FocusConfig").field("trees", &self.trees).field("root", &self.root).finish_non_exhaustive()
    }
}

impl FocusConfig {
    /// A focus of this many trees, with defaults otherwise: choices of this implementation.
    pub const fn new(trees: u8, root: SocketAddr, root_degree: u16, secret: [u8; 32]) -> Self {
        Self {
            trees,
            root,
            root_degree,
            secret,
            max_nodes: 10_000,
            max_degree: 64,
            round: TimeDelta::from_millis(20),
            placements: 4_096,
            retry: TimeDelta::from_millis(250),
            check_tries: 2,
            assign_tries: 6,
        }
    }
}
