//! The client: a reporter, look-aheads, and a cached map for the time without a server.
//!
//! [`Client`] makes requests and waits for their answers. [`Background`] has a thread of its own that does so beside a call:
//! nothing that the call uses of it waits for the network, and a lost server changes nothing but the age of what is known.

mod background;
mod http;

pub use background::{Background, BackgroundConfig, Forecast, Request};
pub use http::{Client, ClientError, Endpoint, EndpointError, Response, Trust};
