//! JSON schemas of what `--json` prints.
//!
//! Outputs have schemas. They are derived from the printed types and kept in `crates/cli/schemas/`, whose files are in the program;
//! tests compare files, types, documentation and real output. `WEIR_BLESS=1 cargo test -p weir --features full,schema schema` updates the
//! files after a change.

#[cfg(all(test, feature = "schema"))]
mod derived;

use crate::Done;
use crate::output::print;
use serde_json::Value;
use weir_lab::scenario::InputError;

/// Schema names, which stay where a command gets another name, and the command that prints each.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("compare", "compare"),
    ("run", "run"),
    ("explain", "run --explain"),
    ("reproduce", "judge paper"),
    ("papers", "judge paper --all"),
    ("quality", "media quality"),
    ("list", "show"),
    ("twin", "judge twins"),
    ("scorecard", "judge rfc"),
    ("questions", "judge rfc --suite rfc9743"),
    ("scoreboard", "judge rows"),
    ("stability", "judge stability"),
    ("harm", "judge harm"),
    ("fits", "judge fits"),
    ("causes", "judge causes"),
    ("cues", "judge cues"),
    ("contradictions", "judge contradictions"),
    ("pathologies", "judge pathologies"),
    ("tune", "search tune"),
    ("calls", "search calls"),
    ("open", "open"),
    ("fit", "fit"),
    ("whatif", "whatif"),
    ("estimator", "estimator check"),
    ("gate", "gate"),
    ("overlay", "overlay"),
    ("layers", "layers"),
    ("bench", "bench"),
    ("bench-against", "bench --against"),
    #[cfg(target_os = "linux")]
    ("emulate", "live emulate"),
    #[cfg(target_os = "linux")]
    ("testbed", "live testbed"),
    #[cfg(target_os = "linux")]
    ("call", "live call"),
    #[cfg(target_os = "linux")]
    ("dccp", "live dccp"),
];

/// Name of the schema of scenario files.
const SCENARIO: &str = "scenario";
/// Name of the schema of files of rules (`weir open --rules`).
const RULES: &str = "rules";

// Deriving them here would be 2 MB of the program.
macro_rules! texts {
    ($($name:literal),+) => {
        /// The text of the schema of this name, ending in a line break.
        fn text(of: &str) -> Option<&'static str> {
            match of {
                $($name => Some(include_str!(concat!("../../schemas/", $name, ".json"))),)+
                _ => None,
            }
        }
    };
}

texts!(
    "compare",
    "run",
    "explain",
    "reproduce",
    "papers",
    "quality",
    "list",
    "twin",
    "scorecard",
    "questions",
    "scoreboard",
    "stability",
    "harm",
    "fits",
    "causes",
    "cues",
    "contradictions",
    "pathologies",
    "calls",
    "tune",
    "open",
    "fit",
    "whatif",
    "estimator",
    "gate",
    "overlay",
    "layers",
    "bench",
    "bench-against",
    "emulate",
    "testbed",
    "call",
    "dccp",
    "rules"
);

/// The schema of this name.
pub(super) fn schema(of: &str) -> Option<Value> {
    serde_json::from_str(text(of)?).ok()
}

/// `weir show schema`.
pub(super) fn show(command: &[String]) -> Done {
    let of = command.join(" ");
    let of = of.strip_prefix("weir ").unwrap_or(&of);
    if of == SCENARIO {
        return print(&weir_lab::scenario::schema());
    }
    let name = COMMANDS.iter().find(|c| c.0 == of || c.1 == of).map(|c| c.0);
    let Some(text) = name.or(Some(RULES).filter(|rules| *rules == of)).and_then(text) else {
        let names: Vec<&str> = COMMANDS.iter().map(|c| c.1).chain([SCENARIO, RULES]).collect();
        return Err(InputError::whole(of, "no command with this name has a schema").help(names.join(", ")).into());
    };
    print(text)
}
