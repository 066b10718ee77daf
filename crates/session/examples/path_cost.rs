//! Both ends of a call over one or several paths, in memory: the work of the session, for a profiler.
//!
//! ```text
//! cargo build --release -p weir-session --example path_cost
//! valgrind --tool=callgrind target/release/examples/path_cost gcc 2 20000
//! ```
//!
//! The arguments are the controller, the number of paths, which share 2 Mbit/s, the number of RTP packets, and
//! optionally `packets` for a source of single packets instead of 30 frames a second.

#[path = "../benches/two_ends/mod.rs"]
mod two_ends;

use std::process::ExitCode;
use two_ends::Call;
use weir_media::PerfectCodec;
use weir_units::{DataSize, TimeDelta, Timestamp};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (controller, paths, packets, source) = match &args[..] {
        [controller, paths, packets] => {
            let interval = TimeDelta::from_nanos(1_000_000_000 / 30);
            (controller, paths, packets, PerfectCodec::frames(interval, Timestamp::ZERO))
        }
        [controller, paths, packets, source] if source == "packets" => {
            (controller, paths, packets, PerfectCodec::packets(DataSize::from_bytes(1_000), Timestamp::ZERO))
        }
        _ => {
            eprintln!("usage: path_cost CONTROLLER PATHS PACKETS [packets]");
            return ExitCode::FAILURE;
        }
    };
    let (Ok(paths @ 1..=8), Ok(packets)) = (paths.parse(), packets.parse()) else {
        eprintln!("expected 1 to 8 paths, and a number of packets");
        return ExitCode::FAILURE;
    };
    let mut call = Call::new(controller, paths, source);
    call.send(packets);
    println!("{controller}: packets by path {:?}", call.sent());
    ExitCode::SUCCESS
}
