//! The interface's description as a page without scripts, made from the OpenAPI document.

use serde_json::Value;
use std::fmt::Write as _;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;\
color:#1b1f23;background:#fff}h2{margin-top:2.5rem}code{background:#eef1f4;padding:.1em .3em;border-radius:3px}\
article{border-top:1px solid #c8ced4;padding:.5rem 0}table{border-collapse:collapse}td,th{text-align:left;\
padding:.1rem 1rem .1rem 0;vertical-align:top}@media(prefers-color-scheme:dark){body{color:#e6e8ea;background:#15181b}\
code{background:#262b30}article{border-color:#3a4147}a{color:#8ab8ff}}";

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// The type of a schema, with a link where it has a name.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.rsplit('/').next()) {
        return format!("<a href=\"#{0}\">{0}</a>", escape(name));
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(list) = schema[several].as_array() {
            return list.iter().map(kind).filter(|k| k != "null").collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let names: Vec<String> = values.iter().filter_map(Value::as_str).map(escape).collect();
        return names.join(" | ");
    }
    let own = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).find(|t| *t != "null").unwrap_or("any"),
        other => other.as_str().unwrap_or("any"),
    };
    if own == "array" { format!("list of {}", kind(&schema["items"])) } else { escape(own) }
}

fn operation(out: &mut String, method: &str, path: &str, operation: &Value) -> std::fmt::Result {
    write!(out, "<article><h3><code>{} {}</code></h3>", method.to_uppercase(), escape(path))?;
    write!(out, "<p>{}. {}</p>", escape(text(operation, "summary")), escape(text(operation, "description")))?;
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let (name, about) = (escape(text(parameter, "name")), escape(text(parameter, "description")));
        write!(out, "<p>Parameter <code>{name}</code> ({}): {about}</p>", escape(text(parameter, "in")))?;
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        write!(out, "<p>Body: {}</p>", kind(body))?;
    }
    out.push_str("<table>");
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        let schema = &answer["content"]["application/json"]["schema"];
        let body = if schema.is_null() { String::new() } else { format!(": {}", kind(schema)) };
        write!(out, "<tr><td>{status}</td><td>{}{body}</td></tr>", escape(text(answer, "description")))?;
    }
    out.push_str("</table></article>");
    Ok(())
}

fn fields(out: &mut String, schema: &Value) -> std::fmt::Result {
    for several in ["allOf", "oneOf", "anyOf"] {
        for part in schema[several].as_array().into_iter().flatten() {
            if part["properties"].is_object() || part["allOf"].is_array() {
                fields(out, part)?;
            } else {
                write!(out, "<p>{} {}</p>", kind(part), escape(text(part, "description")))?;
            }
        }
    }
    out.push_str("<table>");
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"].as_array().is_some_and(|r| r.iter().any(|n| n == name));
        let about = escape(text(field, "description"));
        let optional = if required { "" } else { ", optional" };
        write!(
            out,
            "<tr><td><code>{}</code></td><td>{}{optional}</td><td>{about}</td></tr>",
            escape(name),
            kind(field)
        )?;
    }
    out.push_str("</table>");
    Ok(())
}

fn write_page(out: &mut String, api: &Value) -> std::fmt::Result {
    let title = escape(text(&api["info"], "title"));
    write!(out, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>")?;
    write!(out, "<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style><h1>{title}</h1>")?;
    write!(out, "<p>{}</p>", escape(text(&api["info"], "description")))?;
    out.push_str("<p>The same for programs: <a href=\"/openapi.json\">openapi.json</a>.</p><h2>Requests</h2>");
    for (path, methods) in api["paths"].as_object().into_iter().flatten() {
        for (method, what) in methods.as_object().into_iter().flatten() {
            operation(out, method, path, what)?;
        }
    }
    out.push_str("<h2>Types</h2>");
    for (name, schema) in api["components"]["schemas"].as_object().into_iter().flatten() {
        let name = escape(name);
        write!(out, "<article id=\"{name}\"><h3>{name}</h3><p>{}</p>", escape(text(schema, "description")))?;
        if schema["properties"].is_null() && schema["oneOf"].is_null() && schema["allOf"].is_null() {
            write!(out, "<p>{}</p>", kind(schema))?;
        } else {
            fields(out, schema)?;
        }
        out.push_str("</article>");
    }
    Ok(())
}

/// The page, from an OpenAPI document.
pub(super) fn page(api: &str) -> String {
    let mut out = String::new();
    let api: Value = serde_json::from_str(api).unwrap_or_default();
    // Writing to a string does not fail.
    let _ = write_page(&mut out, &api);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_all_that_the_document_does() {
        let api = crate::server::openapi();
        let page = page(&api);
        let api: Value = serde_json::from_str(&api).expect("JSON");
        let paths: Vec<&String> = api["paths"].as_object().expect("paths").keys().collect();
        assert!(paths.len() >= 9 && paths.iter().all(|p| page.contains(&escape(p))), "{paths:?}");
        let types: Vec<&String> = api["components"]["schemas"].as_object().expect("types").keys().collect();
        assert!(types.len() >= 15 && types.iter().all(|t| page.contains(&format!("id=\"{t}\""))), "{types:?}");
        for name in page.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap_or_default()) {
            assert!(page.contains(&format!("id=\"{name}\"")), "{name} is linked and not there");
        }
        assert!(page.contains("throughput_bps") && page.contains("p25"));
        assert!(!page.contains("<script") && !page.contains("http://"));
    }
}
