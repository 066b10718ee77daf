//! Corrupted session descriptions: each is answered or refused, within its bounds.

use proptest::prelude::*;
use weir_live::sdp::{Description, MAX_ENCODINGS, MAX_SECTIONS};

const OFFER: &str = include_str!("sdp/offer-of-several");
const SEEDS: [&str; 5] = [
    OFFER,
    include_str!("sdp/answer-to-several"),
    include_str!("sdp/offer-of-one"),
    include_str!("sdp/offer-over-dccp"),
    include_str!("sdp/offer-of-a-browser"),
];

/// Answers a description as ends of one and of several streams, and accepts it as an answer to their offers.
fn check(text: &str) {
    let Ok(d) = Description::parse(text) else { return };
    assert!(d.sections.len() <= MAX_SECTIONS);
    assert!(d.media().all(|m| m.send.len().max(m.receive.len()) <= MAX_ENCODINGS && m.payloads.len() <= 64));
    for own in SEEDS {
        let own = Description::parse(own).expect("it is right");
        if let Ok((answer, agreed)) = own.answer(&d) {
            assert_eq!(answer.sections.len(), d.sections.len());
            assert!((1..=d.sections.len()).contains(&agreed.streams.len()));
            let again = Description::parse(&answer.to_sdp()).expect("what is written can be read");
            assert_eq!(again.sections.len(), answer.sections.len());
        }
        if let Ok(agreed) = own.accept(&d) {
            assert!((1..=own.sections.len()).contains(&agreed.streams.len()));
        }
    }
}

#[test]
fn seeds_are_right_and_fit_each_other() {
    let [offer, answer, one, dccp, browser] = SEEDS.map(|s| Description::parse(s).expect("it is right"));
    let agreed = offer.accept(&answer).expect("it fits");
    assert_eq!((agreed.streams.len(), agreed.streams[1].send.len(), agreed.refused.len()), (3, 2, 0));
    assert_eq!((one.media().count(), dccp.media().count(), browser.media().count()), (1, 1, 2));
    assert_eq!(browser.sections.len(), 3);
    // An end of one stream accepts the browser's video, and refuses audio and data.
    let (_, agreed) = one.answer(&browser).expect("both have H.264");
    assert_eq!((agreed.streams.len(), agreed.refused.len()), (1, 2));
    SEEDS.iter().for_each(|s| check(s));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn spoilt_ones_are_answered_or_refused(
        seed in 0..SEEDS.len(),
        cuts in proptest::collection::vec((any::<u16>(), any::<u16>(), 0u8..6, "[ -~]{0,12}"), 1..8),
    ) {
        let mut lines: Vec<String> = SEEDS[seed].lines().map(str::to_owned).collect();
        for (from, to, what, text) in cuts {
            if lines.is_empty() {
                break;
            }
            let (from, to) = (usize::from(from) % lines.len(), usize::from(to) % lines.len());
            match what {
                0 => lines.swap(from, to),
                1 => { lines.remove(from); }
                2 => lines.insert(to, lines[from].clone()),
                3 => lines[from] += &text,
                4 => { let half = lines[from].len() / 2; lines[from].truncate(half); lines[from] += &text; }
                _ => { let end = from.max(to); let copy = lines[from.min(to)..end].to_vec(); lines.extend(copy); }
            }
        }
        check(&lines.join("\r\n"));
    }
}
