//! The tests of weir-session from outside, in one program: each file or folder is a module of it.

mod adaptive;
mod breaker;
mod call;
#[path = "capacity_vector/main.rs"]
mod capacity_vector;
mod clocks;
mod common;
mod content;
mod copies;
mod dccp;
mod dccp_common;
mod feedback;
mod forecast;
mod lips;
mod many_streams;
#[path = "multipath/main.rs"]
mod multipath;
mod outage;
#[path = "overlay/main.rs"]
mod overlay;
mod picture;
mod remote;
#[path = "repair/main.rs"]
mod repair;
mod reports;
mod retransmission;
mod silence;
mod station;
mod strangers;
#[path = "streams/main.rs"]
mod streams;
mod system;
#[path = "timers/main.rs"]
mod timers;
