//! Packets of a run that pass one point of the network, for captures.

use weir_sim::LinkId;
use weir_units::{Ecn, Timestamp};

/// Where packets are captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapturePoint {
    /// At the media sender: media as it leaves, feedback as it arrives. Packets that the path loses are there.
    Sender,
    /// At the media receiver: media as it arrives, feedback as it leaves. Packets that the path loses are missing.
    Receiver,
    /// Behind the bottleneck: media as it comes out of the link, feedback as it enters the link back. Flows that do not pass the
    /// bottleneck are missing.
    Link,
    /// At the media sender and at the receiver: each packet that arrives is there twice ([`CapturedPacket::at`]).
    Ends,
}

/// A packet as a capture sees it.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// When it passed the point of capture.
    pub now: Timestamp,
    /// The point: of [`CapturePoint::Ends`] the one of the two.
    pub at: CapturePoint,
    /// Index of its flow in the scenario.
    pub flow: usize,
    /// Whether it goes with the media rather than with the feedback.
    pub forward: bool,
    /// Whether it is a DCCP packet rather than RTP or RTCP.
    pub is_dccp: bool,
    /// UDP payload, or its beginning.
    pub bytes: &'a [u8],
    /// Bytes that follow and are carried as a length only.
    pub payload: u32,
    /// ECN field, as it was at that point.
    pub ecn: Ecn,
}

/// A point of the network and what takes its packets. Only RTP and DCCP flows have bytes to show.
pub struct Capture<'a> {
    /// The point.
    pub at: CapturePoint,
    /// Takes the packets.
    pub sink: &'a mut dyn FnMut(&CapturedPacket<'_>),
}

/// Something that happens to a packet on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passage {
    Sent,
    Enqueued(LinkId),
    Forwarded(LinkId),
    Delivered,
}

/// The bottleneck and the link back beside it.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct WatchedLinks {
    pub(super) forward: Option<LinkId>,
    pub(super) reverse: Option<LinkId>,
}

impl CapturePoint {
    /// The point at which a packet of that direction is seen when this happens to it, if it is one of these.
    pub(super) fn seen(self, passage: Passage, forward: bool, links: WatchedLinks) -> Option<Self> {
        let points = match self {
            Self::Ends => [Self::Sender, Self::Receiver],
            one => [one; 2],
        };
        points.into_iter().find(|point| point.sees(passage, forward, links))
    }

    fn sees(self, passage: Passage, forward: bool, links: WatchedLinks) -> bool {
        match (self, passage) {
            (Self::Sender, Passage::Sent) | (Self::Receiver, Passage::Delivered) => forward,
            (Self::Sender, Passage::Delivered) | (Self::Receiver, Passage::Sent) => !forward,
            (Self::Link, Passage::Forwarded(link)) => forward && links.forward == Some(link),
            (Self::Link, Passage::Enqueued(link)) => !forward && links.reverse == Some(link),
            _ => false,
        }
    }
}
