//! The file as a tree with positions: variants override it, and errors are assigned to fields.

use super::error::InputError;
use super::suggest;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Format of scenario files. It counts up when a field gets another meaning or goes; new fields are no other format.
const FORMAT: u32 = 1;
/// Combinations of variants and matrix values that one file may have.
const MAX_VARIANTS: usize = 1_000;

/// A file's name and text, for errors.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) file: String,
    pub(super) text: Arc<str>,
}

impl Text {
    /// An error at a position, with the field there.
    pub(super) fn error(&self, span: Range<usize>, message: impl Into<String>) -> InputError {
        let field = DeTable::parse(&self.text).map(|tree| field_at(&tree, &span)).unwrap_or_default();
        InputError::at(&self.file, &self.text, span, message).field(field)
    }

    /// The error of the parser or a field's reader, with the nearest name if one is unknown.
    pub(super) fn parse_error(&self, e: &toml::de::Error) -> InputError {
        let span = e.span().unwrap_or(0..0);
        let message = e.message();
        // A field that the whole file lacks has no place: the first field, which is there, is not at fault.
        if message.starts_with("missing field `") && span.is_empty() {
            return InputError::at(&self.file, &self.text, span, message);
        }
        let error = self.error(span, plainly(message));
        let is_name = message.starts_with("unknown field `") || message.starts_with("unknown variant `");
        let mut names = message.split('`').skip(1).step_by(2);
        match names.next() {
            Some(given) if is_name => {
                let known: Vec<_> = names.collect();
                let what = if message.starts_with("unknown field") { "field" } else { "value" };
                let at = e.span().unwrap_or(0..0);
                self.error(at, format!("unknown {what} `{given}`")).help(suggest::help(given, &known))
            }
            _ => error,
        }
    }
}

/// A reader's error with the kind of value that it expects in the words of TOML.
fn plainly(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let kind = match expected {
        "a map" => "a table",
        "a sequence" => "a list in [ ]",
        "a string" | "string" => "text in quotes",
        "a boolean" => "true or false",
        "f64" | "f32" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number",
        other => other,
    };
    format!("{found}, expected {kind}")
}

/// The path of the smallest field that contains a position.
fn field_at(tree: &Spanned<DeTable<'_>>, at: &Range<usize>) -> String {
    struct Best(String, usize);
    fn holds(span: &Range<usize>, at: &Range<usize>) -> bool {
        span.start <= at.start && at.start < span.end.max(span.start + 1)
    }
    fn offer(best: &mut Best, span: &Range<usize>, at: &Range<usize>, path: &str) {
        // On a tie the later, deeper one is the better name.
        if holds(span, at) && span.len() <= best.1 {
            *best = Best(path.into(), span.len());
        }
    }
    fn value(v: &Spanned<DeValue<'_>>, at: &Range<usize>, path: &str, best: &mut Best) {
        offer(best, &v.span(), at, path);
        match v.get_ref() {
            DeValue::Table(t) => table(t, at, path, best),
            DeValue::Array(a) => {
                for (i, v) in a.iter().enumerate() {
                    value(v, at, &format!("{path}[{i}]"), best);
                }
            }
            _ => {}
        }
    }
    fn table(t: &DeTable<'_>, at: &Range<usize>, path: &str, best: &mut Best) {
        for (k, v) in t {
            let path = if path.is_empty() { k.get_ref().to_string() } else { format!("{path}.{}", k.get_ref()) };
            offer(best, &k.span(), at, &path);
            value(v, at, &path, best);
        }
    }
    let mut best = Best(String::new(), usize::MAX);
    table(tree.get_ref(), at, "", &mut best);
    best.0
}

/// One version of the file.
pub(super) struct Version<'i> {
    pub(super) name: Option<String>,
    pub(super) tree: Spanned<DeTable<'i>>,
}

/// Reads a file into its versions: one without a name if it has neither variants nor a matrix.
pub(super) fn versions<'i>(text: &Text, source: &'i str) -> Result<Vec<Version<'i>>, InputError> {
    let mut base = DeTable::parse(source).map_err(|e| text.parse_error(&e))?;
    if let Some(format) = base.get_mut().remove("format") {
        check_format(text, &format)?;
    }
    let variants = base.get_mut().remove("variants");
    let matrix = base.get_mut().remove("matrix");
    let mut all = vec![Version { name: None, tree: base.clone() }];
    if let Some(variants) = variants {
        let mut next = Vec::new();
        for entry in tables(text, &variants, "variants")? {
            next.push(variant(text, &base, entry)?);
        }
        all = next;
    }
    if let Some(matrix) = matrix {
        for entry in tables(text, &matrix, "matrix")? {
            all = cross(text, &all, entry)?;
        }
    }
    for (i, v) in all.iter().enumerate() {
        if all[..i].iter().any(|o| o.name == v.name) {
            let name = v.name.as_deref().unwrap_or_default();
            return Err(InputError::whole(&text.file, format!("two variants are named \"{name}\""))
                .help("give every variant a name of its own, and a matrix its `names`"));
        }
    }
    Ok(all)
}

fn check_format(text: &Text, format: &Spanned<DeValue<'_>>) -> Result<(), InputError> {
    let stated = format.get_ref().as_integer().and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok());
    match stated {
        Some(1..=FORMAT) => Ok(()),
        Some(newer) if newer > FORMAT => {
            let message = format!("the file has format {newer}: this Weir reads formats up to {FORMAT}");
            Err(text
                .error(format.span(), message)
                .help("a newer Weir reads it (weir --version); or write it in format 1"))
        }
        _ => Err(text.error(format.span(), format!("expected a whole number from 1 to {FORMAT}"))),
    }
}

type Entry<'a, 'i> = (Range<usize>, &'a DeTable<'i>);

fn tables<'a, 'i>(text: &Text, value: &'a Spanned<DeValue<'i>>, what: &str) -> Result<Vec<Entry<'a, 'i>>, InputError> {
    let wrong = |span| text.error(span, format!("expected a list of tables, each headed [[{what}]]"));
    let list: &DeArray<'_> = value.get_ref().as_array().ok_or_else(|| wrong(value.span()))?;
    if list.is_empty() || list.len() > MAX_VARIANTS {
        return Err(text.error(value.span(), format!("expected between 1 and {MAX_VARIANTS} entries")));
    }
    list.iter().map(|v| v.get_ref().as_table().map(|t| (v.span(), t)).ok_or_else(|| wrong(v.span()))).collect()
}

fn string<'a>(text: &Text, v: &'a Spanned<DeValue<'_>>) -> Result<&'a str, InputError> {
    v.get_ref()
        .as_str()
        .filter(|s| !s.trim().is_empty())
        .ok_or_else(|| text.error(v.span(), format!("expected a name in quotes, found {}", v.get_ref().type_str())))
}

fn variant<'i>(
    text: &Text,
    base: &Spanned<DeTable<'i>>,
    (span, entry): Entry<'_, 'i>,
) -> Result<Version<'i>, InputError> {
    let Some(name) = entry.get("name") else {
        return Err(text.error(span, "a variant needs a `name`").help("for example: name = \"5%\""));
    };
    let name = string(text, name)?.to_owned();
    let mut tree = base.clone();
    for (k, v) in entry {
        match k.get_ref().as_ref() {
            "name" => {}
            "format" | "title" | "doc" | "compare" => {
                return Err(text.error(k.span(), format!("`{}` is of the whole file, not of a variant", k.get_ref())));
            }
            _ => overlay(tree.get_mut(), k, v, 1),
        }
    }
    Ok(Version { name: Some(name), tree })
}

/// Whether the table at this depth of a path is merged field by field (true) or replaced as a whole. Entities and their
/// parameters are merged; a field that is itself a table, such as a loss model, is one value.
fn merges(key: &str, depth: usize) -> bool {
    match depth {
        // `links`, `rtp`, `controllers` ...
        1 => key != "windows",
        // `links.bottleneck`
        2 => true,
        3 => matches!(key, "reverse" | "params" | "feedback" | "wifi" | "cellular"),
        _ => false,
    }
}

fn overlay<'i>(
    into: &mut DeTable<'i>,
    key: &Spanned<std::borrow::Cow<'i, str>>,
    value: &Spanned<DeValue<'i>>,
    depth: usize,
) {
    let old = into.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut);
    if let (Some(DeValue::Table(old)), DeValue::Table(new)) = (old, value.get_ref())
        && merges(key.get_ref(), depth)
    {
        for (k, v) in new {
            overlay(old, k, v, depth + 1);
        }
        return;
    }
    // The key's position follows its value's.
    into.remove(key.get_ref().as_ref());
    into.insert(key.clone(), value.clone());
}

fn cross<'i>(text: &Text, all: &[Version<'i>], (span, entry): Entry<'_, 'i>) -> Result<Vec<Version<'i>>, InputError> {
    const FIELDS: [&str; 3] = ["set", "values", "names"];
    for (k, _) in entry {
        if !FIELDS.contains(&k.get_ref().as_ref()) {
            let help = suggest::help(k.get_ref(), &FIELDS);
            return Err(text.error(k.span(), format!("unknown field `{}`", k.get_ref())).help(help));
        }
    }
    let need = |name: &str| {
        entry.get(name).ok_or_else(|| {
            text.error(span.clone(), format!("a matrix entry needs `{name}`"))
                .help("for example: set = \"links.bottleneck.loss\", values = [0.0, 0.01, 0.05]")
        })
    };
    let set = need("set")?;
    let path: Vec<&str> = string(text, set)?.split('.').collect();
    if path.iter().any(|p| p.is_empty())
        || matches!(path[0], "format" | "title" | "doc" | "compare" | "variants" | "matrix")
    {
        return Err(text
            .error(set.span(), "expected the path of one field of the scenario")
            .help("for example: \"links.bottleneck.loss\""));
    }
    let values = need("values")?;
    let list = values.get_ref().as_array().filter(|a| !a.is_empty());
    let list = list.ok_or_else(|| text.error(values.span(), "expected a list of at least one value"))?;
    let names = match entry.get("names") {
        None => list
            .iter()
            .map(|v| text.text.get(v.span()).unwrap_or_default().trim_matches(['"', '\'']).to_owned())
            .collect::<Vec<_>>(),
        Some(names) => {
            let given = names.get_ref().as_array();
            let given = given.filter(|n| n.len() == list.len()).ok_or_else(|| {
                text.error(names.span(), format!("expected {} names, one for each value", list.len()))
            })?;
            given.iter().map(|n| string(text, n).map(str::to_owned)).collect::<Result<_, _>>()?
        }
    };
    if all.len().saturating_mul(list.len()) > MAX_VARIANTS {
        return Err(text.error(values.span(), format!("more than {MAX_VARIANTS} combinations")));
    }
    let mut out = Vec::with_capacity(all.len() * list.len());
    for version in all {
        for (value, name) in list.iter().zip(&names) {
            let mut tree = version.tree.clone();
            put(text, tree.get_mut(), &path, value, set)?;
            let name = version.name.as_ref().map_or_else(|| name.clone(), |v| format!("{v}, {name}"));
            out.push(Version { name: Some(name), tree });
        }
    }
    Ok(out)
}

fn put<'i>(
    text: &Text,
    tree: &mut DeTable<'i>,
    path: &[&str],
    value: &Spanned<DeValue<'i>>,
    set: &Spanned<DeValue<'i>>,
) -> Result<(), InputError> {
    let Some((first, rest)) = path.split_first() else { return Ok(()) };
    if rest.is_empty() {
        tree.remove(*first);
        tree.insert(Spanned::new(set.span(), first.to_string().into()), value.clone());
        return Ok(());
    }
    if !tree.contains_key(*first) && matches!(*first, "reverse" | "params" | "feedback" | "wifi" | "cellular") {
        let empty = Spanned::new(set.span(), DeValue::Table(DeTable::new()));
        tree.insert(Spanned::new(set.span(), first.to_string().into()), empty);
    }
    let known: Vec<String> = tree.keys().map(|k| k.get_ref().to_string()).collect();
    match tree.get_mut(*first).map(Spanned::get_mut) {
        Some(DeValue::Table(next)) => put(text, next, rest, value, set),
        Some(_) => Err(text.error(set.span(), format!("`{first}` is not a table, so it has no `{}`", rest[0]))),
        None => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Err(text.error(set.span(), format!("the file has no `{first}` here")).help(suggest::help(first, &known)))
        }
    }
}
