//! Weir's controllers beside str0m: two of its ends through a simulated link of 2 Mbit/s, 0.5, 2, for 20 s each, 25 ms, 60,000 bytes of queue.
//!
//!     cargo run -p weir-adapters --example str0m --features str0m -- CONTROLLER...

mod call;

fn main() {
    let controllers: Vec<String> = std::env::args().skip(1).collect();
    let controllers = if controllers.is_empty() {
        ["gcc", "nada", "scream", "sluice"].map(String::from).to_vec()
    } else {
        controllers
    };
    println!("{:<10} {:>8} {:>6} {:>9} {:>8} {:>12}", "", "kbit/s", "used", "delay ms", "dropped", "target kbit/s");
    for controller in controllers {
        let capacities = [2_000, 500, 2_000];
        for (phase, kbps) in call::run(&controller, &capacities.map(|kbps| (20, kbps))).iter().zip(capacities) {
            let call::Phase { used, delay_ms, dropped, target_kbps } = phase;
            println!(
                "{controller:<10} {kbps:>8} {:>4.0} % {delay_ms:>9.0} {dropped:>8} {target_kbps:>12.0}",
                100.0 * used
            );
        }
    }
}
