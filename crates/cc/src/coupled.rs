//! Coupled congestion control: flows over one bottleneck share it as one flow would, in the proportions wanted.
//!
//! | module | follows |
//! |---|---|
//! | [`flow_state`] | RFC 8699: rates of several flows, divided among them at each update |
//! | [`shared_bottleneck`] | RFC 8382: which flows share a bottleneck, from the shape of their delays |
//! | [`correlation`] | the same at one sender, from delays that change together |
//! | [`linked_increase`] | RFC 6356: how far the windows of a connection's subflows grow together |
//!
//! A flow is one path of a call, or one of several calls from a host. All see numbers only.

pub mod correlation;
pub mod flow_state;
pub mod linked_increase;
pub mod shared_bottleneck;
