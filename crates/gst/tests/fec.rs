//! `weirfecenc` and `weirfecdec` in pipelines of this process.
#![cfg(feature = "gst")]

mod common;

use common::{RTP, init};
use gst::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use weir_path::Random;

/// Media packets of a run.
const PACKETS: u16 = 4_000;

#[derive(Debug, Default)]
struct Run {
    lost: u64,
    repairs: u64,
    /// Packets at the end, by number, and bytes.
    got: BTreeMap<u16, Vec<u8>>,
    stats: Option<gst::Structure>,
}

fn media(sequence: u16) -> Vec<u8> {
    let mut packet = vec![0x80, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
    packet[2..4].copy_from_slice(&sequence.to_be_bytes());
    packet[4..8].copy_from_slice(&(u32::from(sequence) * 900).to_be_bytes());
    packet.extend((0..600 + sequence % 500).map(|i| (i ^ sequence) as u8));
    packet
}

/// Media through encoder, a drop of `loss` of all packets, and decoder.
fn run(encoder: &str, decoder: &str, loss: f64) -> Run {
    init();
    let description =
        format!("{encoder} name=enc ! identity name=path ! {decoder} name=dec ! fakesink name=end sync=false");
    let pipeline = gst::parse::launch(&description).expect("parsed").downcast::<gst::Pipeline>().expect("a pipeline");
    let named = |name| pipeline.by_name(name).expect("named");
    let run = Arc::<Mutex<Run>>::default();
    let random = Mutex::new(Random::new(7));
    let dropped = run.clone();
    named("path").static_pad("src").expect("a pad").add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let buffer = info.buffer().expect("a buffer's probe");
        let is_repair = buffer.map_readable().expect("readable")[1] & 0x7f == 97;
        let mut run = dropped.lock().expect("no panic");
        run.repairs += u64::from(is_repair);
        if random.lock().expect("no panic").uniform() < loss {
            run.lost += u64::from(!is_repair);
            return gst::PadProbeReturn::Drop;
        }
        gst::PadProbeReturn::Ok
    });
    let got = run.clone();
    named("end").static_pad("sink").expect("a pad").add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let bytes = info.buffer().expect("a buffer's probe").map_readable().expect("readable").to_vec();
        got.lock().expect("no panic").got.insert(u16::from_be_bytes([bytes[2], bytes[3]]), bytes);
        gst::PadProbeReturn::Ok
    });
    let to = gst::Pad::builder(gst::PadDirection::Src).build();
    to.link(&named("enc").static_pad("sink").expect("a pad")).expect("linked");
    to.set_active(true).expect("active");
    pipeline.set_state(gst::State::Playing).expect("plays");
    to.push_event(gst::event::StreamStart::new("test"));
    to.push_event(gst::event::Caps::new(&RTP.parse::<gst::Caps>().expect("caps")));
    to.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()));
    for sequence in 0..PACKETS {
        to.push(gst::Buffer::from_mut_slice(media(sequence))).expect("passes");
    }
    to.push_event(gst::event::Eos::new());
    let bus = pipeline.bus().expect("a pipeline has one");
    let wanted = [gst::MessageType::Eos, gst::MessageType::Error];
    let end = bus.timed_pop_filtered(gst::ClockTime::from_seconds(5), &wanted).expect("an end");
    assert_eq!(end.type_(), gst::MessageType::Eos);
    let stats = named("dec").property::<gst::Structure>("stats");
    pipeline.set_state(gst::State::Null).expect("stops");
    let mut run = std::mem::take(&mut *run.lock().expect("no panic"));
    run.stats = Some(stats);
    run
}

#[test]
fn losses_of_five_per_cent_are_recovered_whole_but_for_few() {
    let r = run("weirfecenc block-size=20 overhead=20", "weirfecdec", 0.05);
    let residual = f64::from(PACKETS) - r.got.len() as f64;
    let (lost, residual) = (r.lost as f64 / f64::from(PACKETS), residual / f64::from(PACKETS));
    // 4 repair packets for 20: a block of 24 has more than 4 losses with a probability of 0.6 %.
    assert!((0.035..0.065).contains(&lost) && residual < 0.004, "{lost} lost, {residual} after repair");
    assert!(lost > 10.0 * residual);
    assert_eq!(r.repairs, u64::from(PACKETS) / 5);
    for (sequence, bytes) in &r.got {
        assert_eq!(bytes, &media(*sequence), "packet {sequence}");
    }
    let stats = r.stats.expect("read");
    let recovered: u64 = stats.get("recovered").expect("counted");
    assert_eq!(recovered, r.lost - (u64::from(PACKETS) - r.got.len() as u64));
    assert_eq!(stats.get::<u64>("malformed"), Ok(0));
    println!("{:.2} % lost, {:.3} % after repair", 100.0 * lost, 100.0 * residual);
}

#[test]
fn without_loss_all_passes_in_order_and_without_the_decoder_repair_is_only_another_payload_type() {
    let r = run("weirfecenc", "weirfecdec", 0.0);
    assert_eq!((r.lost, r.got.len() as u16, r.repairs), (0, PACKETS, u64::from(PACKETS) / 5));
    let r = run("weirfecenc block-size=100 overhead=3", "identity", 0.0);
    assert_eq!(r.repairs, u64::from(PACKETS) * 3 / 100);
}

#[test]
fn changes_while_playing_and_clashes_with_the_media() {
    init();
    let pipeline = gst::parse::launch("weirfecenc name=enc ! fakesink sync=false").expect("parsed");
    let pipeline = pipeline.downcast::<gst::Pipeline>().expect("a pipeline");
    let enc = pipeline.by_name("enc").expect("named");
    let to = gst::Pad::builder(gst::PadDirection::Src).build();
    to.link(&enc.static_pad("sink").expect("a pad")).expect("linked");
    to.set_active(true).expect("active");
    let begin = || {
        to.push_event(gst::event::StreamStart::new("test"));
        to.push_event(gst::event::Caps::new(&RTP.parse::<gst::Caps>().expect("caps")));
        to.push_event(gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()))
    };
    let push = |range: std::ops::Range<u16>| {
        range.map(|s| to.push(gst::Buffer::from_mut_slice(media(s)))).collect::<Result<Vec<_>, _>>()
    };
    let repairs = || enc.property::<gst::Structure>("stats").get::<u64>("repair-packets").expect("counted");
    pipeline.set_state(gst::State::Playing).expect("plays");
    begin();
    push(0..40).expect("passes");
    assert_eq!(repairs(), 8);
    // The open block keeps what it began with.
    push(40..45).expect("passes");
    enc.set_property("block-size", 5u32);
    enc.set_property("overhead", 100u32);
    push(45..50).expect("passes");
    let changed = repairs();
    push(50..60).expect("passes");
    assert_eq!(repairs() - changed, 10, "two blocks of five and five");
    // Not RTP: passes as it is.
    to.push(gst::Buffer::from_mut_slice(vec![1u8, 2, 3])).expect("passes");
    assert_ne!(enc.property::<u32>("ssrc"), 0);
    // The media's payload type and SSRC for repair, which hold from the next start on.
    enc.set_property("payload-type", 96u32);
    enc.set_property("ssrc", 7u32);
    push(60..61).expect("repair packets are what they were");
    pipeline.set_state(gst::State::Ready).expect("stops");
    pipeline.set_state(gst::State::Playing).expect("plays");
    begin();
    assert_eq!(push(61..62), Err(gst::FlowError::Error));
    let bus = pipeline.bus().expect("a pipeline has one");
    let error = bus.timed_pop_filtered(gst::ClockTime::from_seconds(5), &[gst::MessageType::Error]).expect("posted");
    let gst::MessageView::Error(error) = error.view() else { unreachable!("filtered") };
    assert!(error.error().to_string().contains("payload type 96"), "{}", error.error());
    pipeline.set_state(gst::State::Null).expect("stops");
}
