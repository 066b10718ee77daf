//! The page of all commands' fields, in Markdown.

use super::schema::{COMMANDS, schema};
use crate::output::Failure;
use serde_json::Value;
use std::collections::BTreeSet;

/// Text above the tables.
const ABOUT: &str = include_str!("results.md");

/// A schema's type in a word or two.
fn kind(schema: &Value, root: &Value) -> String {
    let s = resolved(schema, root);
    if let Some(value) = s.get("const") {
        return value.to_string();
    }
    if let Some(values) = s.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
    }
    for any in ["anyOf", "oneOf"] {
        if let Some(forms) = s.get(any).and_then(Value::as_array) {
            let mut kinds: Vec<String> = forms.iter().map(|f| kind(f, root)).collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    match s.get("type") {
        Some(Value::String(t)) if t == "array" => match s.get("items").or(s.get("prefixItems")) {
            Some(items @ Value::Object(_)) => format!("list of {}", kind(items, root)),
            Some(Value::Array(items)) => {
                let kinds: Vec<String> = items.iter().map(|i| kind(i, root)).collect();
                format!("pair of {}", kinds.join(" and "))
            }
            _ => "list".into(),
        },
        Some(Value::String(t)) => t.clone(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".into(),
    }
}

fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let Some(name) = schema.get("$ref").and_then(Value::as_str) else { return schema };
    &root["$defs"][name.trim_start_matches("#/$defs/")]
}

/// The object types that a value may be, by name.
fn objects(schema: &Value, root: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref").and_then(Value::as_str) {
                let name = name.trim_start_matches("#/$defs/").to_owned();
                if !found.contains(&name) {
                    found.push(name.clone());
                    objects(&root["$defs"][&name], root, found);
                }
            }
            map.iter().filter(|(key, _)| *key != "$defs").for_each(|(_, v)| objects(v, root, found));
        }
        Value::Array(all) => all.iter().for_each(|v| objects(v, root, found)),
        _ => {}
    }
}

fn about<'a>(field: &'a Value, root: &'a Value) -> Option<&'a Value> {
    field.get("description").or(resolved(field, root).get("description"))
}

/// The forms that a value may have, if there are several; they may be references.
fn forms(schema: &Value) -> &[Value] {
    let forms = ["oneOf", "anyOf"].iter().find_map(|any| schema.get(any)?.as_array());
    forms.map_or(&[], Vec::as_slice)
}

/// Whether a schema is an object's, or that of objects of several forms.
fn is_object(schema: &Value) -> bool {
    let has_fields = |s: &Value| s.get("properties").is_some();
    has_fields(schema) || forms(schema).iter().any(has_fields)
}

/// The tables of an object's fields: one for each of its forms, if there are several.
fn tables(schema: &Value, root: &Value, out: &mut String) {
    if schema.get("properties").is_some() {
        return rows(schema, root, out);
    }
    for form in forms(schema) {
        if let Some(about) = about(form, root).and_then(Value::as_str) {
            out.push_str(&format!("{about}\n\n"));
        }
        rows(resolved(form, root), root, out);
    }
}

fn rows(object: &Value, root: &Value, out: &mut String) {
    let required: BTreeSet<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    out.push_str("| field | type | what it is |\n|---|---|---|\n");
    for (name, field) in object["properties"].as_object().into_iter().flatten() {
        let about = about(field, root);
        let about = about.and_then(Value::as_str).unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        let optional = if required.contains(name.as_str()) { "" } else { ", may be absent" };
        let kind = named(field, root);
        out.push_str(&format!("| `{name}` | {kind}{optional} | {about} |\n"));
    }
}

/// As [`kind`], with objects by their names.
fn named(field: &Value, root: &Value) -> String {
    let mut names = Vec::new();
    objects(field, root, &mut names);
    let first = names.iter().find(|n| is_object(&root["$defs"][n.as_str()]));
    let kind = kind(field, root);
    first.map_or(kind.clone(), |name| kind.replacen("object", &format!("[{name}](#{})", name.to_lowercase()), 1))
}

/// The page: first each command's object, then the objects inside.
pub(super) fn page() -> Result<String, Failure> {
    let (mut out, mut inside) = (ABOUT.to_owned(), Vec::<(String, Value, Value)>::new());
    for (of, command) in COMMANDS {
        let Some(root) = schema(of) else { continue };
        let id = root["$id"].as_str().unwrap_or_default();
        out.push_str(&format!("\n### weir {command} --json\n\nSchema `{id}`.\n\n"));
        tables(&root, &root, &mut out);
        let mut names = Vec::new();
        objects(&root, &root, &mut names);
        // A form of the whole is shown above.
        let shown: Vec<&Value> = forms(&root).iter().map(|form| resolved(form, &root)).collect();
        for name in names {
            let object = &root["$defs"][&name];
            if !is_object(object) || shown.contains(&object) {
                continue;
            }
            match inside.iter().find(|i| i.0 == name) {
                Some(same) if same.1 != *object => {
                    return Err(Failure::Work(format!("{command}: two objects with the name {name}")));
                }
                Some(_) => {}
                None => inside.push((name, object.clone(), root.clone())),
            }
        }
    }
    out.push_str("\n## Objects inside\n");
    for (name, object, root) in &inside {
        let about = object["description"].as_str().unwrap_or_default();
        out.push_str(&format!("\n### {name}\n\n{about}\n\n"));
        tables(object, root, &mut out);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The objects of a command's output, with their forms.
    fn all_objects(of: &str) -> (Value, Vec<Value>) {
        let root = schema(of).expect("there is one");
        let mut names = Vec::new();
        objects(&root, &root, &mut names);
        let all = names.iter().map(|n| &root["$defs"][n.as_str()]).chain([&root]);
        let all = all.flat_map(|schema| forms(schema).iter().chain([schema])).cloned().collect();
        (root, all)
    }

    fn properties(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
        object["properties"].as_object().into_iter().flatten()
    }

    #[test]
    fn the_page_has_every_field_and_no_link_to_the_source() {
        let page = page().expect("objects have names of their own");
        assert!(page.starts_with("# Results\n") && !page.contains("[`"));
        for (of, _) in COMMANDS {
            for object in all_objects(of).1 {
                for (field, _) in properties(&object) {
                    assert!(page.contains(&format!("| `{field}` |")), "{of}: {field}");
                }
            }
        }
    }

    #[test]
    fn every_field_is_explained() {
        for (of, _) in COMMANDS {
            let (root, all) = all_objects(of);
            for object in all {
                for (name, field) in properties(&object) {
                    // A form of one field, or with a tag, is explained as a whole.
                    let about = about(field, &root).or(object.get("description"));
                    assert!(about.is_some(), "{of}: `{name}` has no explanation");
                }
            }
        }
    }
}
