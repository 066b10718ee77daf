//! The nearest valid name for one that was mistyped.

/// Least similarity (Jaro-Winkler) of a name that is offered, as in scenario files.
const SIMILAR: f64 = 0.75;

/// "; did you mean `x`?", if a name is similar enough, or else the names there are.
pub fn hint<'a>(given: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let scored = known.clone().map(|k| (k, strsim::jaro_winkler(given, k)));
    let best = scored.filter(|(_, score)| *score >= SIMILAR).max_by(|a, b| a.1.total_cmp(&b.1));
    match best {
        Some((name, _)) => format!("; did you mean `{name}`?"),
        None => format!("; there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_the_nearest_name_or_all() {
        let known = ["gcc", "nada", "scream"];
        assert_eq!(hint("nadda", known.into_iter()), "; did you mean `nada`?");
        assert_eq!(hint("x", known.into_iter()), "; there are gcc, nada, scream");
    }
}
