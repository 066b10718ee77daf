//! The tests of weir-dccp from outside, in one program: each file or folder is a module of it.

mod every_pair;
mod off_path;
#[path = "open_and_close/main.rs"]
mod open_and_close;
mod support;
mod timeouts;
#[path = "tshark_dissects/main.rs"]
mod tshark_dissects;
mod window_connections;
mod wire_properties;
