//! The command that repeats a scenario's runs.

use weir_lab::compare::Outcome;

/// A word for a shell, quoted if necessary.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=%+,:@".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The command that repeats all runs of a scenario's variants; empty if its file is unknown.
pub(super) fn repeat(outcome: &Outcome, scenario: &str) -> String {
    let Some(source) = outcome.text_of(scenario) else { return String::new() };
    let mut controllers: Vec<&str> = Vec::new();
    for name in outcome.scenarios().filter(|s| s.name == scenario).filter_map(|s| s.controller.as_deref()) {
        if !controllers.contains(&name) {
            controllers.push(name);
        }
    }
    let seeds = &source.seeds;
    let mut words = vec!["weir".to_owned(), "compare".into(), "--scenario".into(), shell_word(&source.argument)];
    if !controllers.is_empty() {
        words.extend(["--controllers".into(), shell_word(&controllers.join(","))]);
    }
    words.extend(["--runs".into(), seeds.len().to_string()]);
    if let Some(first) = seeds.first() {
        words.extend(["--seed".into(), first.to_string()]);
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_part_them() {
        let words = ["a/b-1.toml", "with space", "it's", "", "$x"].map(shell_word);
        assert_eq!(words, ["a/b-1.toml", "'with space'", "'it'\\''s'", "''", "'$x'"]);
    }
}
