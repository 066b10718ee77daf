//! The JSON schema of scenario files, for editors and other programs.

/// The schema as JSON text, ending in a line break. It is `scenarios/schema.json`: to derive it here would be more of a program than
/// its text is.
pub fn schema() -> String {
    include_str!(concat!(env!("OUT_DIR"), "/schema.json")).to_owned()
}

/// The schema as it follows from the types that files are read into.
#[cfg(all(test, feature = "schema"))]
pub(super) fn derived() -> String {
    let schema = schemars::schema_for!(super::raw::RawScenario);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}
