//! Properties of flows that a link knows.
//!
//! State of links about flows is kept per flow (`path::Members`: code point and station, by the number of the sending
//! agent), so that packets carry nothing for it.

use crate::dscp::Dscp;
use std::sync::Arc;

/// Properties of a flow that a link knows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Member {
    /// The code point of its packets.
    pub dscp: Dscp,
    /// Its station's number, from 1 on, on a medium shared by stations; 0 is the base station or access point.
    pub station: u16,
    /// Whether its packets go to the station rather than come from it.
    pub to_station: bool,
}

/// Properties of a link's flows, by their number ([`crate::Packet::flow`]). Kept per flow and not per packet, so that a
/// packet carries nothing for it. Cheap to clone.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Members(Option<Arc<[Member]>>);

impl Members {
    /// From a list by flow number.
    pub fn new(list: Vec<Member>) -> Self {
        Self(Some(list.into()))
    }

    /// A flow; one that is not listed has the default code point and belongs to the base station.
    #[inline]
    pub fn get(&self, flow: u32) -> Member {
        self.0.as_ref().and_then(|list| list.get(flow as usize)).copied().unwrap_or_default()
    }

    /// The greatest station's number.
    pub(crate) fn stations(&self) -> usize {
        self.0.iter().flat_map(|list| list.iter()).map(|m| usize::from(m.station)).max().unwrap_or(0)
    }
}
