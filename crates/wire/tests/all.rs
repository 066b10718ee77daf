//! The tests of weir-wire from outside, in one program: each file or folder is a module of it.

mod captures;
mod fec_captures;
mod fec_tshark;
mod oracles;
#[path = "tshark/main.rs"]
mod tshark;
