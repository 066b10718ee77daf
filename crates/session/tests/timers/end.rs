//! An end of a call over UDP or DCCP.

use super::*;

/// An end over either carrier.
pub(crate) enum End {
    Udp(Box<Endpoint>),
    Dccp(Box<DccpEnd>),
}

impl End {
    pub(crate) fn endpoint(&mut self) -> &mut Endpoint {
        match self {
            Self::Udp(e) => e,
            Self::Dccp(e) => e.endpoint_mut(),
        }
    }
    pub(crate) fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Udp(e) => e.poll_timeout(now),
            Self::Dccp(e) => e.poll_timeout(now),
        }
    }
    pub(crate) fn handle_timeout(&mut self, now: Timestamp) {
        match self {
            Self::Udp(e) => e.handle_timeout(now),
            Self::Dccp(e) => e.handle_timeout(now),
        }
    }
    pub(crate) fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<(u32, Ecn)> {
        match self {
            Self::Udp(e) => e.poll_transmit(now, out).map(|t| (t.payload, t.ecn)),
            Self::Dccp(e) => e.poll_transmit(now, out).map(|t| (t.transmit.payload, t.transmit.ecn)),
        }
    }
    pub(crate) fn handle_datagram(&mut self, now: Timestamp, f: &Flying) {
        match self {
            Self::Udp(e) => {
                e.handle_datagram(now, &Datagram { payload: f.payload, ..Datagram::new(&f.bytes, f.ecn) });
            }
            Self::Dccp(e) => {
                let datagram = DccpDatagram { bytes: &f.bytes, payload: f.payload, ecn: f.ecn };
                e.handle_datagram(now, &datagram);
            }
        }
    }
    pub(crate) fn set_paused(&mut self, paused: bool) {
        match self {
            Self::Udp(e) => e.set_paused(paused),
            Self::Dccp(e) => e.set_paused(paused),
        }
    }
    pub(crate) fn leave(&mut self) {
        match self {
            Self::Udp(e) => e.leave(None),
            Self::Dccp(e) => e.leave(),
        }
    }
}
