//! Scenarios in real time: the same links between network namespaces.

mod network;

pub use network::{emulated, emulated_link, emulated_path};
