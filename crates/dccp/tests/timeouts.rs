//! Time advances at both ends of a connection and at the listener: after a timeout was handled, the next is later, or a few
//! more turns at that instant lead there. Random operations, by a seeded generator.
//!
//! `WEIR_TIMER_STEPS=10000000` takes more steps. A failure prints the seed of its connection, which `WEIR_TIMER_SEED` plays
//! alone.

#[path = "support/script.rs"]
mod script;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Steps by default.
const STEPS: u64 = 100_000;
const STEPS_A_CONNECTION: u64 = 200;

/// A step of a script with its parameters, weighted so that connections live for a while.
fn step(rng: &mut Pcg64Mcg, out: &mut Vec<u8>) {
    let side = rng.random_range(0..2u8);
    let mut any = || rng.random::<u8>();
    match any() % 21 {
        // A packet is delivered, lost, duplicated, or overtakes another.
        0..8 => {
            let what = [0, 1, 2, 3, 4, 0, 1, 2, 5, 6, 8][usize::from(any() % 11)];
            out.push(what << 1 | side);
        }
        8 => out.extend([7 << 1 | side, any(), any()]),
        9 | 10 => {
            let len = any() % 24;
            out.extend([9 << 1 | side, any(), any() % 4, any() % 2, any(), any(), len]);
            out.extend((0..len).map(|_| any()));
        }
        11..15 => out.extend([11 << 1, any()]),
        15..19 => out.extend([13 << 1 | side, any(), any()]),
        _ => {
            let what = match any() % 18 {
                0..6 => 3,
                6..9 => 11,
                9..14 => 4,
                14 => 8 * (any() % 32) + 5,
                15 => 6,
                // Rarely the end.
                16 if any() < 128 => any() % 3,
                _ => 4,
            };
            out.extend([15 << 1 | side, what]);
        }
    }
}

/// A seed that is shown where the test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("WEIR_TIMER_SEED={}", self.0);
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|n| n.parse().unwrap_or_else(|_| panic!("{variable}={n} is no number")))
}

#[test]
fn time_advances_after_any_events() {
    let steps = number("WEIR_TIMER_STEPS").unwrap_or(STEPS);
    let seeds = match number("WEIR_TIMER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..steps.div_ceil(STEPS_A_CONNECTION),
    };
    for seed in seeds {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut script: Vec<u8> = (0..3).map(|_| rng.random()).collect();
        // The handshake, in most cases.
        script.extend([1, 0, 1, 0, 1, 0].repeat(2));
        (0..STEPS_A_CONNECTION).for_each(|_| step(&mut rng, &mut script));
        let _shown = Seed(seed);
        script::play(&script);
    }
}

/// The fuzz target's seeds, among them a server that is a slow receiver under each CCID while time advances by half
/// minutes.
#[test]
fn the_kept_scripts_play() {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/dccp_connection");
    let mut played = 0;
    for seed in std::fs::read_dir(seeds).expect("seeds").flatten() {
        script::play(&std::fs::read(seed.path()).expect("a file"));
        played += 1;
    }
    assert!(played >= 11, "{played}");
}
