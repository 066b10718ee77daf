//! Properties of every file of rules, whoever wrote it.

use weir_timeline::why::{Cause, Column, Curves, Episode, EpisodeKind, QUANTITIES, Rules};

/// Reads a file of rules, and applies them to episodes of every kind.
pub(crate) fn rules(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let rules = match Rules::parse(text) {
        Ok(rules) => rules,
        Err(e) => {
            assert!(!e.message.is_empty() && e.span.start <= e.span.end && e.span.end <= text.len(), "{e:?}");
            assert!(text.get(e.span.clone()).is_some(), "{e:?}");
            return;
        }
    };
    // Rates, delays and shares as calls have them, and numbers that no call has.
    let odd = [0.0, 20.0, 600.0, 2_500.0, f64::NAN, f64::INFINITY, -1.0, f64::MAX];
    let column = |(i, name): (usize, &'static str)| {
        let values = (0..80).map(|row| odd[(i + row / 4) % odd.len()]).collect();
        Column { name, values }
    };
    // The last quantity is one that the call does not have.
    let columns = QUANTITIES[..QUANTITIES.len() - 1].iter().copied().enumerate().map(column).collect();
    let curves = Curves { start_ms: 1_000, interval_s: 0.5, columns };
    let kinds = [EpisodeKind::Fall, EpisodeKind::Freeze, EpisodeKind::SlowStart];
    let times = [(21_000, 26_000), (1_000, 1_000), (-5_000, 900), (i64::MIN / 2, i64::MAX / 2)];
    let not_known = Cause { name: "not-known".into(), confidence: 0.0, evidence: vec![] };
    let mut episodes: Vec<Episode> = (kinds.into_iter())
        .flat_map(|kind| {
            times.map(|(from_ms, to_ms)| Episode {
                from_ms,
                to_ms,
                kind,
                freezes: None,
                frozen_ms: None,
                causes: vec![not_known.clone()],
            })
        })
        .collect();
    rules.apply(&mut episodes, &curves);
    for e in &episodes {
        assert!(!e.causes.is_empty() && e.causes.len() <= 200);
        assert!(e.causes.is_sorted_by(|a, b| a.confidence >= b.confidence));
        for cause in &e.causes {
            assert!((0.0..=1.0).contains(&cause.confidence) && cause.name.len() <= 40);
            assert!(cause.evidence.len() <= 21 && cause.evidence.iter().all(|e| e.len() <= 1_000), "{cause:?}");
        }
    }
}
