//! The file of a vector: JSON, as `docs/sluice-spec.md` has it in section 16.

use serde_json::Value;
use weir_cc::{Limits, Setup};
use weir_units::{DataRate, DataSize, Timestamp};

/// A file as read.
pub(super) struct Vector {
    pub(super) setup: Setup,
    /// Names of the outputs.
    pub(super) outputs: Vec<String>,
    /// Outputs before the first event.
    pub(super) begin: Vec<Option<f64>>,
    pub(super) events: Vec<Event>,
}

/// An input, and the outputs after it.
pub(super) struct Event {
    pub(super) now: Timestamp,
    pub(super) input: Input,
    pub(super) outputs: Vec<Option<f64>>,
}

/// An input, or a change of what bounds the rate.
pub(super) enum Input {
    /// Packets leave: their times, numbers and sizes. It has no outputs.
    Sent(Vec<(Timestamp, u64, DataSize)>),
    /// Feedback: round-trip time in ns, bytes in flight, packets.
    Feedback(Option<i64>, u64, Vec<Packet>),
    Timeout,
    Limits(Limits),
    Request(Option<DataRate>),
    Notice(DataRate),
    Coupled(f64),
    /// Data that waits at the sender, without the newest frame.
    Waiting(DataSize),
}

/// A packet that a message resolves.
pub(super) struct Packet {
    pub(super) sequence: u64,
    /// Its arrival by the receiver's clock less its departure, in ns.
    pub(super) delay: Option<i64>,
    pub(super) is_ce: bool,
    pub(super) was_lost: bool,
}

/// Reads JSON of known shape; the path to a value that has another is the error.
struct Reader<'a>(&'a Value);

impl<'a> Reader<'a> {
    fn get(&self, key: &str) -> Result<&'a Value, String> {
        self.0.get(key).ok_or_else(|| format!("no `{key}`"))
    }
}

fn int(v: &Value) -> Result<i64, String> {
    v.as_i64().ok_or_else(|| format!("{v} is no integer"))
}

fn natural(v: &Value) -> Result<u64, String> {
    v.as_u64().ok_or_else(|| format!("{v} is no natural number"))
}

fn list(v: &Value) -> Result<&[Value], String> {
    v.as_array().map(Vec::as_slice).ok_or_else(|| format!("{v} is no list"))
}

fn outputs(v: &Value) -> Result<Vec<Option<f64>>, String> {
    Ok(list(v)?.iter().map(Value::as_f64).collect())
}

/// Units that events refer to.
struct Frame {
    tick: i64,
    /// Of the receiver's clock, in ns.
    offset: i64,
    size: u64,
}

impl Frame {
    fn time(&self, v: &Value) -> Result<Timestamp, String> {
        Ok(Timestamp::from_nanos(int(v)? * self.tick))
    }

    fn sent(&self, e: &[Value]) -> Result<Input, String> {
        let (mut at, first) = (int(&e[1])?, natural(&e[2])?);
        let sizes = e.get(4).map(list).transpose()?;
        let mut packets = vec![];
        for (i, gap) in [Value::from(0)].iter().chain(list(&e[3])?).enumerate() {
            at += int(gap)?;
            let size = sizes.map_or(Ok(self.size), |s| natural(&s[i]))?;
            packets.push((Timestamp::from_nanos(at * self.tick), first + i as u64, DataSize::from_bytes(size)));
        }
        Ok(Input::Sent(packets))
    }

    /// A message. Its packets have delays, not yet arrivals.
    fn feedback(&self, e: &[Value]) -> Result<Input, String> {
        let rtt = if e[2].is_null() { None } else { Some(int(&e[2])? * self.tick) };
        let mut next = natural(&e[4])?;
        let mut packets = vec![];
        for item in list(&e[5])? {
            let (value, flags) = match item {
                Value::Array(of) => {
                    next = natural(&of[0])?;
                    (&of[1], natural(&of[2])?)
                }
                value => (value, 0),
            };
            let delay = if value.is_null() { None } else { Some(int(value)? * self.tick + self.offset) };
            packets.push(Packet { sequence: next, delay, is_ce: flags & 1 != 0, was_lost: flags & 2 != 0 });
            next += 1;
        }
        Ok(Input::Feedback(rtt, natural(&e[3])?, packets))
    }

    fn event(&self, v: &Value) -> Result<Event, String> {
        let e = list(v)?;
        let rate = |v: &Value| natural(v).map(DataRate::from_bps);
        let input = match e[0].as_str() {
            Some("s") => self.sent(e)?,
            Some("f") => self.feedback(e)?,
            Some("t") => Input::Timeout,
            Some("l") => Input::Limits(Limits { floor: rate(&e[2])?, ceiling: rate(&e[3])? }),
            Some("r") => Input::Request(if e[2].is_null() { None } else { Some(rate(&e[2])?) }),
            Some("n") => Input::Notice(rate(&e[2])?),
            Some("q") => Input::Waiting(DataSize::from_bytes(natural(&e[2])?)),
            Some("c") => Input::Coupled(e[2].as_f64().ok_or("no share")?),
            other => return Err(format!("event {other:?}")),
        };
        let outputs = if matches!(input, Input::Sent(_)) { vec![] } else { outputs(e.last().ok_or("empty")?)? };
        Ok(Event { now: self.time(&e[1])?, input, outputs })
    }
}

impl Vector {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let all = Reader(&value);
        let config = Reader(all.get("config")?);
        let tick = int(all.get("tick_ns")?)?;
        let offset = int(all.get("clock_offset")?)? * tick;
        let frame = Frame { tick, offset, size: natural(all.get("size")?)? };
        let rate = |key: &str| natural(config.get(key)?).map(DataRate::from_bps);
        let params = config.get("params")?.as_object().ok_or("params")?;
        let param = |(name, v): (&String, &Value)| Some((name.clone(), v.as_f64()?));
        let setup = Setup {
            limits: Limits { floor: rate("floor_bps")?, ceiling: rate("ceiling_bps")? },
            start_rate: rate("start_bps")?,
            now: frame.time(config.get("start")?)?,
            seed: 1,
            params: params.iter().filter_map(param).collect(),
        };
        let names = list(all.get("outputs")?)?.iter().filter_map(|n| Some(n.as_str()?.to_owned())).collect();
        let events: Result<_, String> = list(all.get("events")?)?.iter().map(|e| frame.event(e)).collect();
        Ok(Self { setup, outputs: names, begin: outputs(all.get("begin")?)?, events: events? })
    }
}
