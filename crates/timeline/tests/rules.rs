//! Files of rules that nobody should write: no panic, and faults with a place. The fuzz target `rules` does the same for longer.

#[path = "support/hostile.rs"]
mod hostile;

use std::path::Path;
use weir_timeline::why::Rules;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

fn seeds() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/rules");
    let mut files: Vec<_> = folder.read_dir().expect("a corpus").map(|f| f.expect("a file").path()).collect();
    files.sort();
    let name = |f: &Path| f.file_name().expect("a name").to_string_lossy().into_owned();
    files.iter().map(|f| (name(f), std::fs::read(f).expect("read"))).collect()
}

#[test]
fn the_corpus_has_rules_that_are_taken_and_rules_that_are_refused() {
    let mut taken = 0;
    for (name, data) in seeds() {
        hostile::rules(&data);
        let refused = String::from_utf8(data).map(|text| Rules::parse(&text).is_err()).unwrap_or(true);
        assert_eq!(refused, name.starts_with("bad_"), "{name}");
        taken += usize::from(!refused);
    }
    assert!(taken >= 4, "{taken}");
}

#[test]
fn rules_with_errors_of_any_kind_are_refused_or_applied() {
    const WORDS: [&str; 12] = [
        "[[rules]]",
        "[[rules.when]]",
        "\nname = ",
        "\"",
        "confidence",
        "= -1e400",
        "nan",
        "quantity = \"rtt_ms\"",
        "of = \"ratio\"",
        "above = 0",
        "\u{7f}",
        "ä",
    ];
    let seeds = seeds();
    let mut random = Random(1);
    for _ in 0..3_000 {
        let mut data = seeds[random.next() as usize % seeds.len()].1.clone();
        for _ in 0..1 + random.next() % 4 {
            let (at, n) = (random.next() as usize % (data.len() + 1), random.next());
            match n % 3 {
                0 => drop(data.drain(at..(at + n as usize / 8 % 60).min(data.len()))),
                1 => data.splice(at..at, WORDS[n as usize / 8 % WORDS.len()].bytes()).for_each(drop),
                _ => data.splice(at..at, [(n >> 16) as u8]).for_each(drop),
            }
        }
        hostile::rules(&data);
    }
}
