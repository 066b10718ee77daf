//! In place of the client, in builds without the feature `turn`: no server is asked, and the allocation is over at once.

use super::event::{Event, Received};
use std::net::{IpAddr, SocketAddr};
use weir_units::{TimeDelta, Timestamp};

#[derive(Debug)]
pub(super) struct Client;

impl Client {
    pub(super) fn allocate(_: SocketAddr, _: SocketAddr, _: &str, _: &str) -> Self {
        Self
    }
    pub(super) fn permit(&mut self, _: IpAddr, _: Timestamp) {}
    pub(super) fn bind(&mut self, _: SocketAddr, _: Timestamp) {}
    pub(super) fn has_permission(&self, _: IpAddr) -> bool {
        false
    }
    pub(super) fn send(&mut self, _: SocketAddr, _: &[u8], _: Timestamp) -> Option<Vec<u8>> {
        None
    }
    pub(super) fn recv(&mut self, _: &[u8], _: Timestamp) -> Received {
        Received::Ignored
    }
    pub(super) fn delete(&mut self, _: Timestamp) -> bool {
        false
    }
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        None
    }
    pub(super) fn poll_transmit(&mut self, _: Timestamp) -> Option<Vec<u8>> {
        None
    }
    pub(super) fn poll(&mut self, _: Timestamp) -> Option<TimeDelta> {
        None
    }
}
