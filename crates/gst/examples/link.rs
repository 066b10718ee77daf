//! Elements that estimate bandwidth, on the same emulated link one after the other:
//!
//!     cargo run -p weir-gst --features gst --example link -- "weirbwe controller=gcc" "weirbwe controller=nada" rtpgccbwe
//!
//! The link carries 2, 0.5 and 2 Mbit/s for 20 s each, 25 ms each way, with a queue of 300 ms. VP8 follows the estimate.

#[path = "../tests/common/mod.rs"]
mod common;

use common::Call;
use gst::prelude::*;
use std::time::Duration;
use weir_path::{Capacity, Limit, LinkConfig, Schedule, Step};
use weir_units::{DataRate, TimeDelta};

const PHASES: [u64; 3] = [2_000, 500, 2_000];

fn main() {
    let elements: Vec<String> = std::env::args().skip(1).collect();
    let phase: i64 = std::env::var("PHASE_S").ok().and_then(|s| s.parse().ok()).unwrap_or(20);
    println!("{:<32} {:>18} {:>18} {:>18} {:>6}", "element", "2 Mbit/s", "0.5 Mbit/s", "2 Mbit/s", "lost");
    println!("{:<32} {:>18} {:>18} {:>18} {:>6}", "", "kbit/s, queue ms", "kbit/s, queue ms", "kbit/s, queue ms", "%");
    for element in elements {
        let delay = TimeDelta::from_millis(25);
        let steps = (0..)
            .zip(PHASES)
            .map(|(i, kbps)| Step { at: TimeDelta::from_secs(i * phase), rate: DataRate::from_kbps(kbps) });
        let capacity = Capacity::Schedule(Schedule::new(steps.collect(), None).expect("steps in order"));
        let limit = Limit::Time(TimeDelta::from_millis(300));
        let there = LinkConfig { capacity, limit, ..LinkConfig::constant(DataRate::from_kbps(500), delay) };
        let back = LinkConfig::constant(DataRate::from_mbps(10), delay);
        let call = Call::new(&format!("{element} estimated-bitrate=300000 min-bitrate=100000"), &there, &back);
        call.play();
        for _ in 0..phase * 6 {
            std::thread::sleep(Duration::from_millis(500));
            if std::env::var_os("STATS").is_some() {
                let stats = call.estimator.property::<gst::Structure>("stats");
                println!("{stats}");
            }
        }
        print!("{element:<32}");
        for i in 0..3 {
            let (from, to) = ((i * phase) as f64, ((i + 1) * phase) as f64);
            let (rate, queue) = call.received(from, to);
            print!(" {:>18}", format!("{rate:.0}, {queue:.0}"));
        }
        let lost = *call.forward.dropped.lock().expect("no panic") as f64;
        let arrived = call.forward.arrived.lock().expect("no panic").len() as f64;
        println!(" {:>6.1}", 100.0 * lost / (lost + arrived).max(1.0));
        if let Some(fault) = call.fault() {
            println!("  {fault}");
        }
        if std::env::var_os("RATES").is_some() {
            for (at, rate) in call.rates.lock().expect("no panic").iter().step_by(10) {
                println!("  {at:6.2} s {:5} kbit/s", rate / 1_000);
            }
        }
    }
}
