//! A flow between the ends of a program: the fields that the file leaves out are as in that program's calls.
//!
//! Chromium's are those of 22 calls between two Chromiums of version 156 with VP8 and Opus (`docs/fidelity.md`, *Calls of Chromium*).

use crate::error::InputError;
use crate::quantity::{Rate, Size, Time};
use crate::raw::stream::{RawMedia, RawPriority, RawStream};
use crate::raw::*;
use crate::resolve::flow::Flows;
use crate::spanned::At;
use crate::suggest;
use std::ops::Range;
use weir_units::{DataRate, DataSize, TimeDelta};

/// Programs whose ends a flow may have.
const PROGRAMS: [&str; 1] = ["chromium"];
/// Opus in Chromium without DTX: 50 packets a second, of 24 kbit/s beside 28 bytes of RTP header in getStats, and of UDP, IPv6 and SRTP's tag.
const SPEECH: DataRate = DataRate::from_kbps(64);
const SPEECH_PACKET: TimeDelta = TimeDelta::from_millis(20);
/// The least that libwebrtc gives VP8 at 640x480 (`kMinVideoBitrate`), and what its encoder makes at most (`maxBitrate` in getStats).
const LEAST: DataRate = DataRate::from_kbps(30);
const CODED: DataRate = DataRate::from_kbps(2_500);
/// The greatest target: twice what the encoder makes, for repair packets (`kTransmissionMaxBitrateMultiplier`, `bitrate_allocator.cc`), and speech.
const CEILING: DataRate = DataRate::from_kbps(5_050);
/// The rate before the first feedback (`kDefaultStartBitrateBps`).
const START: DataRate = DataRate::from_kbps(300);
/// Headers below RTP: UDP, IPv6 and SRTP's tag. And the payload of a packet in the calls.
const HEADERS: DataSize = DataSize::from_bytes(58);
const PAYLOAD: DataSize = DataSize::from_bytes(1_150);

impl Flows<'_> {
    /// The flow with the fields of its program, if it names one.
    pub(super) fn with_ends(&self, f: &RawRtp) -> Result<Option<RawRtp>, InputError> {
        let Some(ends) = &f.ends else { return Ok(None) };
        let at = &ends.span;
        if !PROGRAMS.contains(&ends.value.as_str()) {
            let message = format!("no program with ends is named `{}`", ends.value);
            return Err(self.text.error(at.clone(), message).help(suggest::help(&ends.value, &PROGRAMS)));
        }
        let mut f = f.clone();
        f.receiver.get_or_insert_with(|| placed("chromium".into(), at));
        f.sender.get_or_insert_with(|| placed("chromium".into(), at));
        f.error_resilience.get_or_insert_with(|| placed(vec![RawResilience::Nack], at));
        f.repair.get_or_insert_with(|| placed(RawRepair::of(RawRepairCode::Libwebrtc), at));
        f.floor.get_or_insert_with(|| placed(Rate(LEAST), at));
        f.start_rate.get_or_insert_with(|| placed(Rate(START), at));
        f.ceiling.get_or_insert_with(|| placed(Rate(CEILING), at));
        f.header_overhead.get_or_insert_with(|| placed(Size(HEADERS), at));
        f.payload.get_or_insert_with(|| placed(Size(PAYLOAD), at));
        if f.source.is_none() && f.streams.is_empty() && f.prefer.is_none() {
            f.streams = speech_and_camera(at);
        }
        Ok(Some(f))
    }
}

fn placed<T>(value: T, at: &Range<usize>) -> At<T> {
    At { value, span: at.clone() }
}

fn speech_and_camera(at: &Range<usize>) -> Vec<At<RawStream>> {
    let time = placed(Time(SPEECH_PACKET), at);
    let speech = ("speech", RawMedia::Audio, SPEECH, Some(SPEECH), None, Some(time));
    let camera = ("camera", RawMedia::Video, LEAST, None, Some(CODED), None);
    [speech, camera]
        .map(|(name, media, least, most, coded, packet_time)| {
            let rate = |r| placed(Rate(r), at);
            let stream = RawStream {
                name: placed(name.into(), at),
                media,
                least: Some(rate(least)),
                most: most.map(rate),
                coded_most: coded.map(rate),
                priority: RawPriority::default(),
                fps: None,
                rise: None,
                dtx: None,
                packet_time,
                encodings: Vec::new(),
            };
            placed(stream, at)
        })
        .into()
}
