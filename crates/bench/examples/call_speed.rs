//! Runs a call at 2 Mbit/s and 100 ms for so many simulated seconds under each controller, without metrics: the work of
//! `weir bench`'s sessions alone, to be profiled.
//!
//!     cargo build --release -p weir-bench --example call_speed
//!     valgrind --tool=callgrind target/release/examples/call_speed 200 gcc

use weir_bench::call::{bare_call, session};
use weir_cc::Registry;
use weir_units::TimeDelta;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::builtin();
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().unwrap_or_default().parse()?;
    for name in arguments {
        let file = session(&registry)?;
        let controllers = [name.clone()];
        let mut scenario = file.scenarios(Some(&controllers), &registry)?.remove(0);
        scenario.duration = TimeDelta::from_secs_f64(seconds);
        for f in &mut scenario.flows {
            f.stop = scenario.duration;
        }
        println!("{name}: {:?}", bare_call(&scenario, 1, &registry)?);
    }
    Ok(())
}
