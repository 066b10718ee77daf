//! Series and pages of Weir.

use super::{Pseudonyms, Redacted, json, whole};
use crate::input::Input;
use crate::weir::{page as pages, series as rows};
use serde_json::Value;
use std::io::{self, Write};

const MAX_LINE: usize = 64 << 10;

/// Rows of series: numbers are kept, and the names of columns but for those of streams and paths behind a colon.
pub(super) fn series(
    input: &mut Input<'_>,
    out: &mut dyn Write,
    names: &mut Pseudonyms,
    done: &mut Redacted,
) -> io::Result<()> {
    let (mut line, mut columns) = (Vec::new(), 0);
    while super::line(input, MAX_LINE, &mut line, done) {
        let fields = rows::fields(&String::from_utf8_lossy(&line)).filter(|f| columns == 0 || f.len() == columns);
        let Some(fields) = fields else {
            done.left_out += 1;
            continue;
        };
        let field = |field: &String| match (columns, field.split_once(':')) {
            (0, Some((kind, name))) if word(kind) => format!("{kind}:{}", names.text(name)),
            (0, None) if word(field) => field.clone(),
            _ if field.is_empty() || field.parse::<f64>().is_ok() => field.clone(),
            _ => names.text(field),
        };
        let fields: Vec<String> = fields.iter().map(field).collect();
        columns = fields.len();
        writeln!(out, "{}", fields.join(","))?;
    }
    Ok(())
}

/// A report, whose schema stays its first member: by that it is recognised.
pub(super) fn result(
    input: &mut Input<'_>,
    out: &mut dyn Write,
    names: &mut Pseudonyms,
    done: &mut Redacted,
) -> io::Result<()> {
    let Some(report) = whole(input, done, Some) else { return Ok(()) };
    let Value::Object(mut report) = json::value("", &report, names, 0) else {
        done.left_out += 1;
        return Ok(());
    };
    let schema = report.remove("schema").unwrap_or_default();
    let rest = Value::Object(report).to_string();
    let comma = if rest == "{}" { "" } else { "," };
    writeln!(out, "{{\"schema\":{schema}{comma}{}", &rest[1..])
}

/// A page with the data alone, since tables and texts around it name addresses and machines.
pub(super) fn page(
    input: &mut Input<'_>,
    out: &mut dyn Write,
    names: &mut Pseudonyms,
    done: &mut Redacted,
) -> io::Result<()> {
    let data = whole(input, done, |bytes| pages::data(&bytes).map(|(_, data)| data.to_vec()));
    let Some(data) = data else { return Ok(()) };
    let data = pages::without_names(&data, &mut |text: &str| names.text(text));
    let data = data.to_string().replace("</", "<\\/").replace("<!--", "<\\u0021--");
    writeln!(out, "<!doctype html>\n<html>\n<head><title>Calls with browsers</title></head>\n<body>")?;
    writeln!(out, "<script type=\"application/json\" id=\"data\">{data}</script>\n</body>\n</html>")
}

/// A name that is in Weir's own sources.
fn word(text: &str) -> bool {
    text.len() <= 48 && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}
