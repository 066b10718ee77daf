//! Commands that this build lacks: each says in one line how to get it.
//!
//! A command behind a cargo feature has its variant in `args/` under that feature, and a line in [`PARTS`]; nothing else
//! is needed for its answer, and for its place in `weir --help`.

use crate::output::Failure;
use std::ffi::OsString;
use weir_report::page::shell_word;

/// A command that not every build has.
struct Part {
    /// Its words, without `weir`.
    command: &'static [&'static str],
    needs: Needs,
    /// Whether this build has it.
    is_there: bool,
}

enum Needs {
    Feature(&'static str),
    /// The system, and what for.
    Linux(&'static str),
}

const LINUX: bool = cfg!(target_os = "linux");

const PARTS: [Part; 6] = [
    Part { command: &["coverage"], needs: Needs::Feature("coverage"), is_there: cfg!(feature = "coverage") },
    Part { command: &["search", "tune"], needs: Needs::Feature("tune"), is_there: cfg!(feature = "tune") },
    Part { command: &["completions"], needs: Needs::Feature("dist"), is_there: cfg!(feature = "dist") },
    Part { command: &["manual"], needs: Needs::Feature("dist"), is_there: cfg!(feature = "dist") },
    // Before the next, which begins like it.
    Part {
        command: &["live", "webrtc"],
        needs: Needs::Feature("webrtc"),
        is_there: !LINUX || cfg!(feature = "webrtc"),
    },
    Part {
        command: &["live"],
        needs: Needs::Linux("network namespaces, TUN devices and the kernel's packet timestamps"),
        is_there: LINUX,
    },
];

impl Part {
    fn name(&self) -> String {
        self.command.join(" ")
    }

    /// The answer to a command line that begins with this command; `rest` follows it.
    fn answer(&self, rest: &[String]) -> String {
        let name = self.name();
        match self.needs {
            Needs::Feature(feature) => {
                let rest: String = rest.iter().map(|word| format!(" {}", shell_word(word))).collect();
                format!(
                    "weir {name} is not in this build, which lacks the feature {feature}: cargo run --release --features \
                     {feature} -- {name}{rest}, or cargo install --path crates/weir --features {feature}"
                )
            }
            Needs::Linux(what) => {
                format!("weir {name} needs Linux ({what}); simulated runs, reports and papers need none of it")
            }
        }
    }
}

/// The part of a command line that is not there, and what follows its name.
fn find<'a>(parts: &'a [Part], words: &[OsString]) -> Option<(&'a Part, Vec<String>)> {
    let words: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let words = words.strip_prefix(&["help".to_owned()][..]).unwrap_or(&words);
    let begins = |p: &&Part| words.len() >= p.command.len() && p.command.iter().zip(words).all(|(a, b)| a == b);
    let part = parts.iter().filter(|p| !p.is_there).find(begins)?;
    Some((part, words[part.command.len()..].to_vec()))
}

/// The failure of a command line, without the program's name, whose command this build lacks.
pub(crate) fn answer(words: &[OsString]) -> Option<Failure> {
    find(&PARTS, words).map(|(part, rest)| Failure::Absent(part.answer(&rest)))
}

/// Lists the commands that this build lacks, for `weir --help`.
pub(crate) fn listed() -> Option<String> {
    let lacking: Vec<String> = PARTS
        .iter()
        .filter(|p| !p.is_there)
        .map(|p| match p.needs {
            Needs::Feature(feature) => format!("{} (--features {feature})", p.name()),
            Needs::Linux(_) => format!("{} (Linux)", p.name()),
        })
        .collect();
    (!lacking.is_empty()).then(|| format!("Not in this build: {}", lacking.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LACKING: [Part; 2] = [
        Part { command: &["live", "webrtc"], needs: Needs::Feature("webrtc"), is_there: false },
        Part { command: &["coverage"], needs: Needs::Feature("coverage"), is_there: true },
    ];

    fn answer_to(words: &[&str]) -> Option<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        find(&LACKING, &words).map(|(part, rest)| part.answer(&rest))
    }

    #[test]
    fn the_answer_is_one_line_that_can_be_typed() {
        let text = answer_to(&["live", "webrtc", "--clip", "my clip"]).expect("it is not there");
        assert!(text.contains("cargo run --release --features webrtc -- live webrtc --clip 'my clip',"), "{text}");
        assert!(text.ends_with("cargo install --path crates/weir --features webrtc") && !text.contains('\n'), "{text}");
        assert!(answer_to(&["help", "live", "webrtc"]).is_some());
    }

    #[test]
    fn what_is_there_is_not_answered() {
        for words in [&["coverage", "demo"][..], &["live"], &["live", "call"], &["run", "live", "webrtc"], &[]] {
            assert_eq!(answer_to(words), None, "{words:?}");
        }
    }

    #[test]
    fn every_feature_named_is_one_of_cargo_s() {
        let manifest = include_str!("../Cargo.toml");
        for part in &PARTS {
            if let Needs::Feature(feature) = part.needs {
                assert!(manifest.contains(&format!("\n{feature} = [")), "{feature}");
            }
        }
    }
}
