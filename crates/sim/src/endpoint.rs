//! Every agent of this crate in one type.

use crate::agent::Agent;
use crate::packet::Packet;
use crate::{tcp, udp};
use weir_units::Timestamp;

/// Any of this crate's agents, so that a simulation of cross traffic needs no trait objects. An enum with further
/// agents can have it as a variant.
#[derive(Clone, Debug)]
// An explicit tag: one in the niche of a variant takes several instructions in each of a packet's six calls.
#[repr(u8)]
pub enum Endpoint {
    /// A UDP source.
    UdpSource(udp::Source),
    /// A UDP sink.
    UdpSink(udp::Sink),
    /// A TCP sender, boxed since it is several times larger than the others.
    TcpSender(Box<tcp::Sender>),
    /// A TCP receiver.
    TcpReceiver(tcp::Receiver),
    /// The senders of short TCP flows.
    ShortSender(Box<tcp::ShortSender>),
    /// Their receivers.
    ShortReceiver(Box<tcp::ShortReceiver>),
}

macro_rules! each {
    ($self:ident, $agent:ident => $call:expr) => {
        match $self {
            Self::UdpSource($agent) => $call,
            Self::UdpSink($agent) => $call,
            Self::TcpSender($agent) => $call,
            Self::TcpReceiver($agent) => $call,
            Self::ShortSender($agent) => $call,
            Self::ShortReceiver($agent) => $call,
        }
    };
}

impl Agent for Endpoint {
    fn on_start(&mut self, now: Timestamp) {
        each!(self, agent => agent.on_start(now));
    }
    #[inline]
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        each!(self, agent => agent.on_packet(now, packet));
    }
    #[inline]
    fn on_timeout(&mut self, now: Timestamp) {
        each!(self, agent => agent.on_timeout(now));
    }
    fn is_silent(&self) -> bool {
        each!(self, agent => agent.is_silent())
    }
    #[inline]
    fn is_settled(&self) -> bool {
        each!(self, agent => agent.is_settled())
    }
    #[inline]
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        each!(self, agent => agent.poll_timeout())
    }
    #[inline]
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        each!(self, agent => agent.poll_transmit(now, packet))
    }
}
