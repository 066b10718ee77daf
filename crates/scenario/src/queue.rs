//! Queues: their capacity and discipline.

use super::checks::positive_queue;
use super::choice::{Choice, RawNumber, choice};
use super::error::InputError;
use super::quantity::{Queue, Time};
use super::spanned::{At, Named};
use super::suggest;
use super::tree::Text;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
#[cfg(feature = "schema")]
use serde_json::{Map, Value as Json};
#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::ops::Range;
use weir_path::Limit;
use weir_path::queue::{Discipline, Parameter, Value};
use weir_units::TimeDelta;

const DEFAULT_LIMIT: Limit = Limit::Time(TimeDelta::from_millis(300));

/// A queue: its capacity alone, or a table with a discipline and its parameters.
#[derive(Clone, Debug)]
pub(super) enum RawQueue {
    Room(Queue),
    Table(Named<RawNumber>),
}

impl Choice for RawQueue {
    type Fields = Named<RawNumber>;
    const EXPECTED: &'static str = "a queue in bytes, packets or time, such as \"75 kB\", \"50 packets\" or \"300 ms\", \
                                    or a table with its `discipline` and `limit`";
    fn from_text(text: &str) -> Result<Self, String> {
        Queue::read(text).map(Self::Room)
    }
    fn from_table(table: Self::Fields) -> Self {
        Self::Table(table)
    }
}
choice!(RawQueue);

/// A queue with defaults filled in.
pub(super) struct Resolved {
    pub(super) limit: Limit,
    pub(super) discipline: Discipline,
    /// Position of the discipline's name in the file, if present.
    pub(super) named: Option<Range<usize>>,
}

/// Looks up the discipline and sets its parameters.
pub(super) fn resolve(
    text: &Text,
    raw: Option<&At<RawQueue>>,
    ecn_threshold: Option<&At<Queue>>,
) -> Result<Resolved, InputError> {
    let mut queue = Resolved { limit: DEFAULT_LIMIT, discipline: Discipline::default(), named: None };
    match raw.map(|q| (&q.value, &q.span)) {
        None => {}
        Some((RawQueue::Room(room), span)) => {
            queue.limit = positive_queue(text, &At { value: *room, span: span.clone() })?;
        }
        Some((RawQueue::Table(table), _)) => {
            if let Some((_, name)) = table.iter().find(|(key, _)| key.value == "discipline") {
                queue.discipline = discipline(text, name)?;
                queue.named = Some(name.span.clone());
            }
            for (key, value) in table.iter().filter(|(key, _)| key.value != "discipline") {
                match key.value.as_str() {
                    "limit" => queue.limit = amount(text, value)?,
                    _ => set(text, &mut queue.discipline, key, value)?,
                }
            }
        }
    }
    if let Some(threshold) = ecn_threshold {
        let limit = positive_queue(text, threshold)?;
        let name = queue.discipline.name();
        queue.discipline.set("ecn_threshold", Value::Amount(limit)).map_err(|_| {
            text.error(threshold.span.clone(), format!("`{name}` has no threshold: it marks by a rule of its own"))
                .help("leave `ecn_threshold` out")
        })?;
    }
    Ok(queue)
}

fn discipline(text: &Text, name: &At<RawNumber>) -> Result<Discipline, InputError> {
    let known: Vec<&str> = Discipline::all().iter().map(Discipline::name).collect();
    let RawNumber::Text(given) = &name.value else {
        return Err(text
            .error(name.span.clone(), "expected the name of a discipline in quotes")
            .help(format!("one of {}", known.join(", "))));
    };
    Discipline::by_name(given).ok_or_else(|| {
        text.error(name.span.clone(), format!("no queue discipline is named `{given}`"))
            .help(suggest::help(given, &known))
    })
}

fn set(text: &Text, to: &mut Discipline, key: &At<String>, value: &At<RawNumber>) -> Result<(), InputError> {
    let all = to.parameters();
    let Some(parameter) = all.iter().find(|p| p.name == key.value) else {
        let known: Vec<&str> = ["discipline", "limit"].into_iter().chain(all.iter().map(|p| p.name)).collect();
        return Err(text
            .error(key.span.clone(), format!("queue discipline `{}` has no parameter `{}`", to.name(), key.value))
            .help(suggest::help(&key.value, &known)));
    };
    let given = match parameter.default {
        Value::Time(_) => Value::Time(read(text, value, Time::read)?.0),
        Value::Amount(_) => Value::Amount(amount(text, value)?),
        Value::Number(_) => Value::Number(number(text, parameter, value)?),
        Value::Switch(_) => match number(text, parameter, value)? {
            0.0 => Value::Switch(false),
            1.0 => Value::Switch(true),
            _ => return Err(text.error(value.span.clone(), "expected true or false")),
        },
    };
    to.set(parameter.name, given).map_err(|e| {
        text.error(value.span.clone(), format!("expected {}, found {}", e.expected, e.value)).help(&parameter.doc)
    })
}

/// A quantity in quotes.
fn read<T>(text: &Text, raw: &At<RawNumber>, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, InputError> {
    let given = match &raw.value {
        RawNumber::Text(t) => t.clone(),
        RawNumber::Plain(n) => n.to_string(),
    };
    parse(&given).map_err(|message| text.error(raw.span.clone(), message))
}

fn amount(text: &Text, raw: &At<RawNumber>) -> Result<Limit, InputError> {
    positive_queue(text, &At { value: read(text, raw, Queue::read)?, span: raw.span.clone() })
}

fn number(text: &Text, parameter: &Parameter, raw: &At<RawNumber>) -> Result<f64, InputError> {
    match &raw.value {
        RawNumber::Plain(n) => Ok(*n),
        RawNumber::Text(_) => Err(text.error(raw.span.clone(), format!("expected {}", parameter.expected()))),
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for RawQueue {
    fn schema_name() -> Cow<'static, str> {
        "LinkQueue".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        let room = g.subschema_for::<Queue>().to_value();
        let mut any = vec![room.clone()];
        for discipline in Discipline::all() {
            let mut fields = Map::new();
            fields.insert("discipline".into(), json_schema!({ "const": discipline.name() }).to_value());
            fields.insert("limit".into(), room.clone());
            for p in discipline.parameters() {
                fields.insert(p.name.into(), schema(g, &p));
            }
            // Drop tail is the discipline of a queue that names none.
            let required: &[&str] = if discipline == Discipline::default() { &[] } else { &["discipline"] };
            any.push(
                json_schema!({
                    "description": format!("{}: {} ({}).", discipline.name(), discipline.summary(), discipline.source()),
                    "type": "object",
                    "properties": fields,
                    "required": required,
                    "additionalProperties": false,
                })
                .to_value(),
            );
        }
        json_schema!({ "description": "The room of a drop-tail queue, or a table with a discipline and its parameters.", "anyOf": any })
    }
}

#[cfg(feature = "schema")]
fn schema(g: &mut SchemaGenerator, p: &Parameter) -> Json {
    let mut schema = match (p.default, p.range) {
        (Value::Time(_), _) => g.subschema_for::<Time>(),
        (Value::Amount(_), _) => g.subschema_for::<Queue>(),
        (Value::Number(_), Some((Value::Number(least), Value::Number(greatest)))) => {
            json_schema!({ "type": "number", "minimum": least, "maximum": greatest })
        }
        (Value::Number(_), _) => json_schema!({ "type": "number" }),
        (Value::Switch(_), _) => json_schema!({ "type": "boolean" }),
    };
    schema.insert("description".into(), format!("{} Default: {}.", p.doc, p.default).into());
    schema.to_value()
}
