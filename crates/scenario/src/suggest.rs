//! The nearest valid name for one that was mistyped.

use super::error::InputError;
use weir_cc::Registry;
use weir_cc::Spec;
use weir_cc::tunable::SetupError;

/// The candidate most similar to `given`, if any is similar enough.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = given.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (c, strsim::jaro_winkler(&lower, &c.to_lowercase())))
        .filter(|(c, score)| {
            let c = c.to_lowercase();
            *score >= 0.75
                || strsim::damerau_levenshtein(&lower, &c) <= 1
                || (lower.len() >= 3 && (c.contains(&lower) || lower.contains(&c)))
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(c, _)| c)
}

/// Characters of names that a help lists; the others are counted. Some 60 controllers have 700.
const MOST_LISTED: usize = 900;

/// Help for an unknown name: the nearest one, or all there are, as far as some hundred characters list them.
pub fn help(given: &str, candidates: &[&str]) -> String {
    let list = || {
        let mut room = MOST_LISTED;
        let fits = |c: &&&str| {
            room = room.saturating_sub(c.len());
            room > 0
        };
        let mut list: Vec<_> = candidates.iter().take_while(fits).map(|c| format!("`{c}`")).collect();
        let left = candidates.len() - list.len();
        list.extend((left > 0).then(|| format!("{left} more")));
        list.join(", ")
    };
    match nearest(given, candidates.iter().copied()) {
        _ if candidates.is_empty() => "there are none here".into(),
        Some(near) => format!("did you mean `{near}`? Known here: {}", list()),
        None => format!("known here: {}", list()),
    }
}

/// An error about a controller, with the nearest names if it is one of an unknown name; `others` are names known beside the
/// registry's.
pub fn controller(error: InputError, e: &SetupError, registry: &Registry, others: &[&str]) -> InputError {
    let SetupError::UnknownController { name } = e else { return error };
    if name.contains([' ', '/']) {
        return error.help(format!(
            "a program is `exec:{name}`; a comma ends a name, so put a command that has one into a script"
        ));
    }
    let known: Vec<&str> = registry.specs().map(|s| s.name.as_str()).chain(others.iter().copied()).collect();
    error.help(help(name, &known))
}

/// The entry of a controller that the user named in the place of a command line or file that `place` says.
///
/// # Errors
/// No controller has this name, with the nearest ones as help; its family refuses it.
pub fn find<'r>(registry: &'r Registry, place: &str, name: &str) -> Result<&'r Spec, InputError> {
    registry.find(name).map_err(|e| controller(InputError::whole(place, e.to_string()), &e, registry, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_intended_name() {
        let known = ["gcc", "gcc-remb", "nada", "scream"];
        assert_eq!(nearest("naba", known), Some("nada"));
        assert_eq!(nearest("SCREAM", known), Some("scream"));
        assert_eq!(nearest("gcc_remb", known), Some("gcc-remb"));
        assert_eq!(nearest("reno", ["newreno", "cubic"]), Some("newreno"));
        assert_eq!(nearest("bbr", known), None);
        assert!(help("bbr", &known).starts_with("known here: `gcc`"));
    }

    #[test]
    fn a_long_list_is_cut() {
        let names: Vec<String> = (0..200).map(|i| format!("variant {i:03}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let help = help("variant 199x", &names);
        assert!(help.starts_with("did you mean `variant 199`?") && help.ends_with("`variant 080`, 119 more"), "{help}");
    }
}
