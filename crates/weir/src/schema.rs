//! JSON schemas of what `--json` prints, and the tables of fields in docs/results.md.

use crate::output::{Failure, print, schema_id};
use crate::{Done, bench, compare, list, overlay, quality, reproduce, scorecard, twin};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use weir_lab::results::RunResult;
use weir_lab::scenario::InputError;

/// Commands whose output has a schema, and a line about each.
const COMMANDS: &[(&str, &str)] = &[
    ("compare", "weir compare --json"),
    ("run", "weir run --json"),
    ("explain", "weir explain --json"),
    ("reproduce", "weir reproduce --json"),
    ("quality", "weir quality --json"),
    ("list", "weir list --json"),
    ("twin", "weir twin run --json"),
    ("scorecard", "weir scorecard --json"),
    ("scoreboard", "weir scoreboard --json"),
    ("stability", "weir scoreboard --stability --json"),
    ("tune", "weir tune --json"),
    ("overlay", "weir overlay --json"),
    ("bench", "weir bench --json"),
    #[cfg(target_os = "linux")]
    ("emulate", "weir emulate --json"),
    #[cfg(target_os = "linux")]
    ("testbed", "weir testbed --json"),
    #[cfg(target_os = "linux")]
    ("call", "weir call --json"),
    #[cfg(target_os = "linux")]
    ("dccp", "weir dccp --json"),
];

/// The schema of a command's output.
fn schema(of: &str) -> Option<Schema> {
    let title = COMMANDS.iter().find(|c| c.0 == of)?.1;
    let mut schema = match of {
        "compare" => generate::<compare::Json<'_>>(),
        "run" => generate::<RunResult>(),
        "explain" => generate::<crate::explain::Json>(),
        "reproduce" => generate::<reproduce::Json<'_>>(),
        "quality" => generate::<quality::Report>(),
        "list" => generate::<list::Listed>(),
        "twin" => generate::<twin::Json>(),
        "scorecard" => generate::<scorecard::Json>(),
        "scoreboard" => generate::<weir_lab::judge::rows::Board>(),
        "stability" => generate::<weir_lab::judge::stability::Map>(),
        "tune" => generate::<weir_lab::judge::tune::Report>(),
        "overlay" => generate::<overlay::Report>(),
        "bench" => generate::<bench::Report>(),
        #[cfg(target_os = "linux")]
        "emulate" => generate::<weir_live::emulate::Accuracy>(),
        #[cfg(target_os = "linux")]
        "testbed" => generate::<crate::testbed::Json<'_>>(),
        #[cfg(target_os = "linux")]
        "call" => generate::<crate::call::Report<'_>>(),
        #[cfg(target_os = "linux")]
        "dccp" => generate::<crate::dccp::Report<'_>>(),
        _ => return None,
    };
    let id = schema_id(of);
    let name = json!({ "description": "The schema that this object follows.", "const": id });
    let object = schema.ensure_object();
    // The object may be one of several: of forms, or of definitions that nothing else refers to.
    let definitions: Vec<String> = (object.get("anyOf").and_then(Value::as_array).into_iter().flatten())
        .filter_map(|form| form["$ref"].as_str()?.strip_prefix("#/$defs/").map(str::to_owned))
        .collect();
    if let Some(Value::Array(forms)) = object.get_mut("oneOf") {
        forms.iter_mut().for_each(|form| add_name(form.as_object_mut(), &name));
    } else if definitions.is_empty() {
        add_name(Some(object), &name);
    }
    let mut all = object.get_mut("$defs").and_then(Value::as_object_mut);
    for definition in definitions {
        let definition = all.as_mut().and_then(|all| all.get_mut(&definition)?.as_object_mut());
        add_name(definition, &name);
    }
    schema.insert("$id".into(), id.into());
    schema.insert("title".into(), title.into());
    Some(schema)
}

fn add_name(object: Option<&mut Map<String, Value>>, name: &Value) {
    let Some(object) = object else { return };
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("schema".into(), name.clone());
    }
    if let Some(required) = object.entry("required").or_insert(json!([])).as_array_mut() {
        required.insert(0, "schema".into());
    }
}

fn generate<T: JsonSchema>() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    // What is printed has no other fields.
    RecursiveTransform(|schema: &mut Schema| {
        if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
            schema.insert("additionalProperties".into(), false.into());
        }
        // Formats say how a number is kept, not what it is.
        schema.remove("format");
    })
    .transform(&mut schema);
    schema
}

fn text(schema: &Schema) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(schema).map_err(Failure::work)?;
    text.push('\n');
    Ok(text)
}

/// `weir schema`.
pub(crate) fn print_schema(of: &str) -> Done {
    let Some(schema) = schema(of) else {
        let names: Vec<&str> = COMMANDS.iter().map(|c| c.0).collect();
        return Err(InputError::whole(of, "no command with this name has a schema").help(names.join(", ")).into());
    };
    print(&text(&schema)?)
}
