//! CCIDs by number.

use super::{Receiver, Sender};
use std::sync::Arc;
use weir_cc::tunable::{ParamInfo, SetupError};
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Inputs to the construction of a CCID's half, when its half-connection opens.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// When that is; no later call has an earlier time.
    pub now: Timestamp,
    /// Maximum application data of a packet.
    pub max_packet_size: DataSize,
    /// Round-trip time of the handshake, if this end measured it.
    pub rtt: Option<TimeDelta>,
    /// Whether packets are sent as ECN-capable.
    pub ecn: bool,
    /// Current Ack Ratio (RFC 4340, section 11.3: 2 at first).
    pub ack_ratio: u16,
    /// Parameters by name, in the units of [`ParamInfo::unit`]; unknown ones are refused.
    pub params: Vec<(String, f64)>,
}

/// A CCID's requirements on the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requirements {
    /// The receiver has to send Ack Vectors.
    pub ack_vector: bool,
    /// The sender has to send NDP Counts, so that losses of packets without data can be recognised.
    pub ndp_count: bool,
    /// Acknowledgements have to carry Elapsed Time or Timestamp Echo.
    pub elapsed_time: bool,
}

type MakeSender = Arc<dyn Fn(&Setup) -> Result<Sender, SetupError> + Send + Sync>;
type MakeReceiver = Arc<dyn Fn(&Setup) -> Result<Receiver, SetupError> + Send + Sync>;

/// A CCID's entry in the registry.
#[derive(Clone)]
pub struct Spec {
    /// Its number (RFC 4340, section 19.5; 248 to 254 are for experiments).
    pub number: u8,
    /// One or two words.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The document that it follows.
    pub source: &'static str,
    /// Its requirements on the connection.
    pub requirements: Requirements,
    /// Parameters that may be set.
    pub params: Vec<ParamInfo>,
    /// Constructs the half at the data's sender.
    pub sender: MakeSender,
    /// Constructs the half at the data's receiver.
    pub receiver: MakeReceiver,
}

impl core::fmt::Debug for Spec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Spec").field("number", &self.number).field("name", &self.name).finish_non_exhaustive()
    }
}

/// The CCIDs that can be negotiated: the built-in ones and any that a program adds.
#[derive(Clone, Debug)]
pub struct Registry {
    specs: Vec<Spec>,
}

impl Registry {
    /// An empty registry, for a program that adds only its own.
    pub fn empty() -> Self {
        Self { specs: Vec::new() }
    }
    /// The built-in ones.
    pub fn builtin() -> Self {
        Self { specs: super::builtin() }
    }
    /// Adds a CCID, taking the place of one that has its number.
    pub fn register(&mut self, spec: Spec) {
        self.specs.retain(|s| s.number != spec.number);
        self.specs.push(spec);
    }
    /// All of them.
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }
    /// The one of this number.
    pub fn get(&self, number: u8) -> Option<&Spec> {
        self.specs.iter().find(|s| s.number == number)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}
