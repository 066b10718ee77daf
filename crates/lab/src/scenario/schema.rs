//! The JSON schema of scenario files, for editors and other programs.

use super::raw::RawScenario;

/// The schema as JSON text, ending in a line break.
pub fn schema() -> String {
    let schema = schemars::schema_for!(RawScenario);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
