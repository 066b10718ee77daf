//! For any sequence of events at both ends: after a timeout was handled, the next is later.

#[path = "support/script.rs"]
mod script;

use proptest::prelude::*;

/// A step of a script with its parameters, weighted so that connections live for a while.
fn step() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        // A packet is delivered, duplicated, lost, or overtakes another.
        8 => (0u8..2, prop_oneof![8 => 0u8..5, 1 => Just(5), 1 => Just(6), 1 => Just(8)]).prop_map(|(s, n)| vec![n << 1 | s]),
        1 => (0u8..2, any::<[u8; 2]>()).prop_map(|(s, b)| vec![7 << 1 | s, b[0], b[1]]),
        2 => (0u8..2, any::<[u8; 5]>(), prop::collection::vec(any::<u8>(), 0..24)).prop_map(|(s, b, options)| {
            let near = [b[0], b[1] % 4, b[2] % 2, b[3], b[4]];
            [&[9 << 1 | s][..], &near, &[options.len() as u8], &options].concat()
        }),
        4 => any::<u8>().prop_map(|t| vec![11 << 1, t]),
        4 => (0u8..2, any::<[u8; 2]>()).prop_map(|(s, b)| vec![13 << 1 | s, b[0], b[1]]),
        // Slow receivers, and data read; rarely the end.
        2 => (0u8..2, prop_oneof![6 => Just(3u8), 3 => Just(11), 6 => Just(4), 1 => 0u8..3]).prop_map(|(s, b)| vec![15 << 1 | s, b]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn time_advances_after_any_events(flags: [u8; 3], steps in prop::collection::vec(step(), 0..200)) {
        // The handshake, in most cases.
        let open = [1, 0, 1, 0, 1, 0].repeat(2);
        play(&flags, &open, &steps);
    }
}

fn play(flags: &[u8; 3], open: &[u8], steps: &[Vec<u8>]) {
    script::play(&[&flags[..], open, &steps.concat()].concat());
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
