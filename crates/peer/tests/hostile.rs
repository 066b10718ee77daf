//! Offers and datagrams that no browser sends: no panic, bounded answers, and a call that runs goes on. The fuzz targets `sdp_offer` and
//! `peer` do the same for longer.

#[path = "support/hostile.rs"]
mod hostile;

use std::path::Path;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// Bytes of a script: a quarter of them small, as kinds of steps are.
    fn script(&mut self, len: u64) -> Vec<u8> {
        let one = |n: u64| if n.is_multiple_of(4) { (n >> 8) as u8 & 15 } else { (n >> 8) as u8 };
        (0..len).map(|_| one(self.next())).collect()
    }
}

/// The corpus of a fuzz target.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> = folder.read_dir().expect("a corpus").map(|f| f.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|f| std::fs::read(f).expect("read")).collect()
}

#[test]
fn offers_of_any_kind_are_answered_or_refused() {
    let seeds = seeds("sdp_offer");
    assert!(seeds.len() > 4);
    seeds.iter().for_each(|s| hostile::offer(s));
    let mut random = Random(1);
    for _ in 0..300 {
        let mut data = seeds[random.next() as usize % seeds.len()].clone();
        for _ in 0..1 + random.next() % 5 {
            let (at, n) = (random.next() as usize % data.len().max(1), random.next());
            match n % 3 {
                0 => data[at] = b"\r\n =:;,/-019aZ\0*"[n as usize / 8 % 16],
                1 => drop(data.drain(at..(at + n as usize / 8 % 80).min(data.len()))),
                _ => data.splice(at..at, random.script(n / 8 % 20)).for_each(drop),
            }
        }
        hostile::offer(&data);
    }
}

#[test]
fn a_call_goes_on_whatever_datagrams_come() {
    let seeds = seeds("peer");
    assert!(seeds.len() > 4);
    seeds.iter().for_each(|s| hostile::play(s));
    let mut random = Random(2);
    for _ in 0..600 {
        let len = random.next() % 400;
        hostile::play(&random.script(len));
    }
}
