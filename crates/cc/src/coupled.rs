//! Coupled congestion control: flows over one bottleneck share it as one flow would, in the proportions wanted.
//!
//! | type | follows |
//! |---|---|
//! | [`FlowStateExchange`] | RFC 8699: rates of several flows, divided among them at each update |
//! | [`Detector`] | RFC 8382: which flows share a bottleneck, from the shape of their delays |
//! | [`DelayCorrelation`] | which flows of one sender share a bottleneck, from delays that change together |
//! | [`Link`] | RFC 6356: how far the windows of a connection's subflows grow together |
//!
//! A flow is one path of a call, or one of several calls from a host. All see numbers only.

mod correlation;
mod flow_state;
mod linked_increase;
mod shared_bottleneck;

pub use correlation::DelayCorrelation;
pub use flow_state::{Division, FlowNumber, FlowStateExchange, Group, Update};
pub use linked_increase::{Link, Subflow};
pub use shared_bottleneck::{Config as DetectorConfig, Detector, Summary};
