//! The schemas, derived from the printed types.

use super::{COMMANDS, RULES};
use crate::output::schema_id;
use crate::show::lists;
use crate::{bench, compare, fit, judge, layers, media, overlay, run, search};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use weir_lab::results::RunResult;

/// The schema of this name.
fn schema(of: &str) -> Option<Schema> {
    let title = format!("weir {} --json", COMMANDS.iter().find(|c| c.0 == of)?.1);
    let mut schema = match of {
        "compare" => generate::<compare::Json<'_>>(),
        "run" => generate::<RunResult>(),
        "explain" => generate::<run::ExplainJson>(),
        "reproduce" => generate::<judge::PaperJson<'_>>(),
        "papers" => generate::<judge::PapersJson<'_>>(),
        "quality" => generate::<media::QualityReport>(),
        "list" => generate::<lists::Listed>(),
        "twin" => generate::<judge::TwinsJson>(),
        "scorecard" => generate::<judge::RfcJson>(),
        "questions" => generate::<weir_judge::rfc9743::Answers>(),
        "scoreboard" => generate::<weir_judge::rows::Board>(),
        "stability" => generate::<weir_judge::stability::Map>(),
        "fits" => generate::<judge::FitsJson>(),
        "causes" => generate::<judge::CausesJson>(),
        "harm" => generate::<weir_judge::harm::Ledger>(),
        "cues" => generate::<weir_judge::cues::Table>(),
        "contradictions" => generate::<weir_judge::contradictions::Scan>(),
        "pathologies" => generate::<weir_judge::pathologies::Report>(),
        "calls" => generate::<search::CallsJson>(),
        "tune" => generate::<weir_judge::tune::Report>(),
        "open" => generate::<weir_timeline::Report>(),
        "fit" => generate::<fit::FitJson>(),
        "whatif" => generate::<fit::WhatIfJson>(),
        "estimator" => generate::<weir_estimator::Checked>(),
        "gate" => generate::<weir_judge::gate::Report>(),
        "overlay" => generate::<overlay::Report>(),
        "layers" => generate::<layers::Report>(),
        "bench" => generate::<weir_bench::report::Report>(),
        "bench-against" => generate::<bench::AgainstJson>(),
        #[cfg(target_os = "linux")]
        "emulate" => generate::<weir_live::emulate::Accuracy>(),
        #[cfg(target_os = "linux")]
        "testbed" => generate::<crate::live::TestbedJson<'_>>(),
        #[cfg(target_os = "linux")]
        "call" => generate::<crate::live::CallReport<'_>>(),
        #[cfg(target_os = "linux")]
        "dccp" => generate::<crate::live::DccpReport<'_>>(),
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
    // Printed objects have no other fields.
    RecursiveTransform(|schema: &mut Schema| {
        if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
            schema.insert("additionalProperties".into(), false.into());
        }
        // Formats say how a number is kept, not what it is.
        schema.remove("format");
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = unlinked(text);
        }
    })
    .transform(&mut schema);
    schema
}

/// The schema of files of rules.
fn rules() -> Schema {
    SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<weir_timeline::why::Rules>()
}

fn text(schema: &Schema) -> String {
    let mut text = serde_json::to_string_pretty(schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

/// Documentation's links to items of the source, as their names alone.
fn unlinked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        out.push_str(before);
        let Some((name, after)) = link.split_once("`]") else {
            out.push_str("[`");
            rest = link;
            continue;
        };
        let name = name.rsplit("::").next().unwrap_or(name);
        out.push_str(&format!("`{name}`"));
        // A target in parentheses or brackets goes with its link.
        let target = |open: char, close: char| after.strip_prefix(open)?.split_once(close).map(|t| t.1);
        rest = target('(', ')').or_else(|| target('[', ']')).unwrap_or(after);
    }
    out + rest
}

#[test]
fn the_files_are_the_schemas_of_the_printed_types() {
    // A build with fewer features prints fewer fields.
    if !cfg!(feature = "full") {
        return;
    }
    let commands = COMMANDS.iter().map(|c| (c.0, schema(c.0).expect("there is one")));
    for (name, schema) in commands.chain([(RULES, rules())]) {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{name}.json"));
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(&path, text(&schema)).expect("written");
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        let remedy = "WEIR_BLESS=1 cargo test -p weir --features full,schema schema writes it";
        assert!(there == text(&schema), "{} does not agree with the types: {remedy}", path.display());
    }
}

#[test]
fn links_to_the_source_become_names() {
    assert_eq!(unlinked("By [`RunResult::values`], see [`x`](crate::x)."), "By `values`, see `x`.");
    assert_eq!(unlinked("A list [a, b] of `c`"), "A list [a, b] of `c`");
}

#[test]
fn rules_have_a_schema_that_refuses_other_fields() {
    let rule = json!({ "name": "satellite", "confidence": 0.7, "when": [
        { "quantity": "rtt_ms", "statistic": "least", "of": "around", "above": 500 }] });
    let validator = jsonschema::validator_for(rules().as_value()).expect("a schema");
    assert!(validator.is_valid(&json!({ "rules": [rule] })));
    let mut other = rule.clone();
    other["sure"] = 1.into();
    assert!(!validator.is_valid(&json!({ "rules": [other] })) && !validator.is_valid(&json!({ "rules": [{}] })));
}

#[test]
fn every_command_has_a_schema_under_either_name() {
    for (name, command) in COMMANDS {
        let schema = schema(name).expect("there is one");
        assert_eq!(schema.get("title"), Some(&Value::from(format!("weir {command} --json"))));
        assert!(!schema.as_value().to_string().contains("[`"), "{name}");
    }
}
