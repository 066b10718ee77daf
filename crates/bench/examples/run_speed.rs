//! Runs each scenario file once, with all metrics and without series: the work of `weir run` alone, to be profiled.
//!
//!     cargo build --release -p weir-bench --example run_speed
//!     valgrind --tool=callgrind --cache-sim=yes target/release/examples/run_speed call.toml

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::ScenarioFile;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let is_bare = std::env::args().any(|a| a == "--bare");
    for name in std::env::args().skip(1).filter(|a| a != "--bare") {
        for scenario in ScenarioFile::open(&name, &registry)?.scenarios(None, &registry)? {
            if is_bare {
                println!("{name}: {:?}", weir_bench::call::bare_call(&scenario, scenario.seed, &registry)?);
                continue;
            }
            let result = run(&scenario, scenario.seed, &options)?;
            println!("{name}: {:?} bit/s", result.flows.iter().map(|f| f.rates.goodput_bps).collect::<Vec<_>>());
        }
    }
    Ok(())
}
