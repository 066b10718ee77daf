//! Streams of an RTP flow, looked up and checked.

use crate::checks::check_name;
use crate::error::InputError;
use crate::model::{RtpStream, StreamSource};
use crate::quantity::Time;
use crate::raw::stream::{RawMedia, RawPriority, RawStream};
use crate::resolve::flow::Flows;
use crate::spanned::At;
use weir_media::audio::{AudioLimits, PacketTime};
use weir_session::MAX_STREAMS;
use weir_session::allocation::{Demand, MediaKind, Priority};
use weir_units::{DataRate, DataSize, TimeDelta};

/// Size of RTP's header (RFC 3550, section 5.1) with the extensions of a stream among several.
pub(super) const RTP_HEADER: DataSize = DataSize::from_bytes(24);

impl Flows<'_> {
    /// The streams of a flow with this ceiling, whose packets have headers of this size below RTP; none if the file has none.
    pub(crate) fn streams(
        &self,
        raw: &[At<RawStream>],
        ceiling: DataRate,
        headers: DataSize,
    ) -> Result<Vec<RtpStream>, InputError> {
        let mut all: Vec<RtpStream> = Vec::new();
        for (index, stream) in raw.iter().enumerate() {
            let (s, span) = (&stream.value, &stream.span);
            check_name(self.text, &s.name)?;
            let is_audio = s.media == RawMedia::Audio;
            let wrong = [
                ("fps", is_audio.then_some(s.fps.as_ref().map(|f| &f.span)).flatten(), "audio"),
                ("rise", is_audio.then_some(s.rise.as_ref().map(|t| &t.span)).flatten(), "audio"),
                ("coded_most", is_audio.then_some(s.coded_most.as_ref().map(|r| &r.span)).flatten(), "audio"),
                ("encodings", is_audio.then_some(s.encodings.first().map(|e| &e.span)).flatten(), "audio"),
                ("dtx", (!is_audio).then_some(s.dtx.as_ref().map(|d| &d.span)).flatten(), "video"),
                ("packet_time", (!is_audio).then_some(s.packet_time.as_ref().map(|t| &t.span)).flatten(), "video"),
            ];
            if let Some((field, Some(at), media)) = wrong.into_iter().find(|w| w.1.is_some()) {
                return Err(self.text.error(at.clone(), format!("a stream of {media} has no `{field}`")));
            }
            let both = s.least.as_ref().or(s.most.as_ref()).filter(|_| !s.encodings.is_empty());
            if let Some(rate) = both {
                let message = format!("stream `{}` has `encodings`, each with rates of its own", s.name.value);
                return Err(self
                    .text
                    .error(rate.span.clone(), message)
                    .help("leave `least` and `most` to the encodings"));
            }
            let source = match s.media {
                RawMedia::Audio => StreamSource::Audio {
                    dtx: s.dtx.as_ref().is_some_and(|d| d.value),
                    packet_time: s.packet_time.as_ref().map(|t| self.packet_time(t)).transpose()?,
                },
                RawMedia::Video => StreamSource::Frames {
                    fps: self.bounded(&s.fps, 30.0, 1.0..=1_000.0)?,
                    rise: self.rise(s.rise.as_ref())?,
                    most: s.coded_most.as_ref().map(|r| r.value.0),
                },
            };
            // More than its codec can use would be taken from the others, and not sent.
            let usable =
                if is_audio { AudioLimits::default().most(headers + RTP_HEADER).min(ceiling) } else { ceiling };
            let demand = Demand {
                least: s.least.as_ref().map_or(DataRate::ZERO, |r| r.value.0),
                most: s.most.as_ref().map_or(usable, |r| r.value.0),
                priority: match s.priority {
                    RawPriority::VeryLow => Priority::VeryLow,
                    RawPriority::Low => Priority::Low,
                    RawPriority::Medium => Priority::Medium,
                    RawPriority::High => Priority::High,
                },
                media: if is_audio { MediaKind::Audio } else { MediaKind::Video },
                simulcast: None,
            };
            let mut add = |name: String, demand: Demand, at: &std::ops::Range<usize>| {
                if demand.least > demand.most || demand.most.as_bps() == 0 {
                    let message =
                        format!("expected `least` no higher than `most`: {} and {}", demand.least, demand.most);
                    return Err(self.text.error(at.clone(), message));
                }
                if all.iter().any(|other| other.name == name) {
                    return Err(self.text.error(at.clone(), format!("two streams are named `{name}`")));
                }
                let has_default_most = s.most.is_none() && s.encodings.is_empty();
                all.push(RtpStream { name, demand, has_default_most, source });
                Ok(())
            };
            if s.encodings.is_empty() {
                add(s.name.value.clone(), demand, span)?;
            }
            let mut lower: Option<weir_units::DataRate> = None;
            for (n, e) in s.encodings.iter().enumerate() {
                let (least, most) = (e.value.least.value.0, e.value.most.value.0);
                if let Some(lower) = lower.replace(most).filter(|lower| *lower > most) {
                    let message = format!("expected encodings with the lowest first: `most` is {most} after {lower}");
                    return Err(self
                        .text
                        .error(e.span.clone(), message)
                        .help("list the encodings in the order of their rates"));
                }
                let simulcast = u8::try_from(index).ok();
                add(format!("{}:{n}", s.name.value), Demand { least, most, simulcast, ..demand }, &e.span)?;
            }
            if all.len() > MAX_STREAMS {
                return Err(self.text.error(span.clone(), format!("expected no more than {MAX_STREAMS} streams")));
            }
        }
        Ok(all)
    }

    fn packet_time(&self, raw: &At<Time>) -> Result<PacketTime, InputError> {
        // Within a microsecond: a file may write 2.5 ms in any unit.
        let near = |p: &PacketTime| (p.duration() - raw.value.0).abs() < TimeDelta::from_micros(1);
        PacketTime::ALL.into_iter().find(near).ok_or_else(|| {
            let message = format!("expected a packet time of Opus, found {}", raw.value.0);
            self.text.error(raw.span.clone(), message).help("one of 2.5 ms, 5 ms, 10 ms, 20 ms, 40 ms and 60 ms")
        })
    }
}
