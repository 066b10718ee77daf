//! The encoder: media passes unchanged, repair packets follow the last packet of each block.

use super::{CAT, DEFAULT_PAYLOAD_TYPE, beside, pad_templates, uint};
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use weir_session::{RepairSource, StreamProtector};
use weir_wire::rtp::PacketView;

/// Repair packets per hundred media packets.
const DEFAULT_OVERHEAD: u32 = 20;
/// Media packets of a block.
const DEFAULT_BLOCK: u32 = 10;
/// Most media packets of a block: with as many repair packets again it has the 255 at most of GF(2^8).
const MAX_BLOCK: u32 = 127;

#[derive(Clone, Copy)]
struct Settings {
    overhead: u32,
    block: u32,
    payload_type: u32,
    /// 0 for a random one.
    ssrc: u32,
}

impl Settings {
    /// Packets of a block, and how many of them are repair.
    fn blocks(&self) -> (u8, u8) {
        let repair = (self.block * self.overhead).div_ceil(100).clamp(1, self.block);
        // Both fit: a block has at most 254.
        ((self.block + repair) as u8, repair as u8)
    }

    fn source(&self) -> RepairSource {
        // Payload types are at most 127 by the property's range.
        RepairSource { ssrc: self.ssrc, payload_type: self.payload_type as u8 }
    }
}

struct State {
    settings: Settings,
    protector: Option<StreamProtector>,
    /// Of the repair packets since the start: the properties hold from the next one on.
    source: RepairSource,
    /// Of the newest packet.
    times: (Option<gst::ClockTime>, Option<gst::ClockTime>),
    repairs: u64,
}

impl Default for State {
    fn default() -> Self {
        let settings =
            Settings { overhead: DEFAULT_OVERHEAD, block: DEFAULT_BLOCK, payload_type: DEFAULT_PAYLOAD_TYPE, ssrc: 0 };
        let source = settings.source();
        Self { settings, protector: None, source, times: (None, None), repairs: 0 }
    }
}

impl State {
    fn repairs(&mut self) -> Vec<gst::Buffer> {
        let times = self.times;
        let packets = std::iter::from_fn(|| self.protector.as_mut()?.poll());
        let made: Vec<gst::Buffer> = packets.map(|p| beside(p, times)).collect();
        self.repairs += made.len() as u64;
        made
    }
}

pub(crate) struct WeirFecEnc {
    sink: gst::Pad,
    src: gst::Pad,
    state: Mutex<State>,
}

impl WeirFecEnc {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chain(&self, buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let repairs = {
            let mut state = self.lock();
            let RepairSource { payload_type, ssrc } = state.source;
            state.times = (buffer.pts(), buffer.dts());
            let map = buffer.map_readable().map_err(|_| gst::FlowError::Error)?;
            let clash = PacketView::parse(&map).ok().filter(|v| v.payload_type() == payload_type || v.ssrc() == ssrc);
            if let Some(view) = clash {
                drop(state);
                gst::element_imp_error!(
                    self,
                    gst::LibraryError::Settings,
                    (
                        "media has payload type {} and SSRC {}: set others for repair than payload-type={payload_type} \
                         ssrc={ssrc}",
                        view.payload_type(),
                        view.ssrc()
                    )
                );
                return Err(gst::FlowError::Error);
            }
            if let Some(Err(e)) = state.protector.as_mut().map(|p| p.on_packet(&map)) {
                gst::debug!(CAT, imp = self, "sent without protection: {e}");
            }
            drop(map);
            state.repairs()
        };
        self.src.push(buffer)?;
        self.push(repairs)
    }

    fn push(&self, packets: Vec<gst::Buffer>) -> Result<gst::FlowSuccess, gst::FlowError> {
        for packet in packets {
            self.src.push(packet)?;
        }
        Ok(gst::FlowSuccess::Ok)
    }

    fn sink_event(&self, pad: &gst::Pad, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::Eos(_) => {
                let repairs = {
                    let mut state = self.lock();
                    if let Some(protector) = &mut state.protector {
                        protector.flush();
                    }
                    state.repairs()
                };
                // The stream ends either way.
                let _ = self.push(repairs);
            }
            gst::EventView::FlushStop(_) => self.start(),
            _ => {}
        }
        gst::Pad::event_default(pad, Some(&*self.obj()), event)
    }

    /// Begins a stream: the next packet's source is protected.
    fn start(&self) {
        let mut state = self.lock();
        let settings = &mut state.settings;
        if settings.ssrc == 0 {
            settings.ssrc = glib::random_int().max(1);
        }
        let (source, (n, repair)) = (settings.source(), settings.blocks());
        state.source = source;
        state.protector = StreamProtector::new(n, repair, source).ok();
    }
}

#[glib::object_subclass]
impl ObjectSubclass for WeirFecEnc {
    const NAME: &'static str = "GstWeirFecEnc";
    type Type = super::WeirFecEnc;
    type ParentType = gst::Element;

    fn with_class(class: &Self::Class) -> Self {
        let (sink, src) = super::pads(|name| class.pad_template(name), Self::chain, Self::sink_event);
        Self { sink, src, state: Mutex::default() }
    }
}

impl ObjectImpl for WeirFecEnc {
    fn constructed(&self) {
        self.parent_constructed();
        let element = self.obj();
        element.add_pad(&self.sink).expect("the element is new");
        element.add_pad(&self.src).expect("the element is new");
    }

    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            vec![
                uint(
                    "overhead",
                    "Overhead",
                    "Repair packets per hundred media packets, rounded up in each block; from the next block on",
                    (1, 100, DEFAULT_OVERHEAD),
                ),
                uint(
                    "block-size",
                    "Block size",
                    "Media packets of a block: as many losses in it as it has repair packets are recovered. Larger ones recover \
                     longer bursts, later",
                    (1, MAX_BLOCK, DEFAULT_BLOCK),
                ),
                uint(
                    "payload-type",
                    "Payload type",
                    "Payload type of repair packets, other than the media's; from the next start on",
                    (0, 127, DEFAULT_PAYLOAD_TYPE),
                ),
                uint(
                    "ssrc",
                    "SSRC",
                    "SSRC of repair packets, from the next start on; 0 takes a random one when the element starts",
                    (0, u32::MAX, 0),
                ),
                glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
                    .nick("Statistics")
                    .blurb("Media packets protected, and repair packets sent")
                    .read_only()
                    .build(),
            ]
        });
        &PROPERTIES
    }

    fn set_property(&self, _: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        let Ok(value) = value.get::<u32>() else { return };
        let mut state = self.lock();
        match spec.name() {
            "overhead" => state.settings.overhead = value,
            "block-size" => state.settings.block = value,
            "payload-type" => state.settings.payload_type = value,
            _ => state.settings.ssrc = value,
        }
        let (n, repair) = state.settings.blocks();
        // Valid by the properties' ranges.
        if let Some(Err(e)) = state.protector.as_mut().map(|p| p.set_blocks(n, repair)) {
            gst::warning!(CAT, imp = self, "{e}");
        }
    }

    fn property(&self, _: usize, spec: &glib::ParamSpec) -> glib::Value {
        let state = self.lock();
        match spec.name() {
            "overhead" => state.settings.overhead.to_value(),
            "block-size" => state.settings.block.to_value(),
            "payload-type" => state.settings.payload_type.to_value(),
            "ssrc" => state.settings.ssrc.to_value(),
            _ => {
                let protected = state.protector.as_ref().map_or(0, StreamProtector::protected);
                let stats = gst::Structure::builder("weirfecenc-stats").field("protected", protected);
                stats.field("repair-packets", state.repairs).build().to_value()
            }
        }
    }
}

impl GstObjectImpl for WeirFecEnc {}

impl ElementImpl for WeirFecEnc {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Weir Reed-Solomon encoder",
                "Codec/Encoder/Network/RTP",
                "Sends repair packets (RFC 6865, of a payload type and SSRC of their own) beside an RTP stream, which passes \
                 unchanged. It belongs after whatever writes header extensions, such as rtpsession",
                "the Weir authors",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(pad_templates);
        &TEMPLATES
    }

    fn change_state(&self, change: gst::StateChange) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if change == gst::StateChange::ReadyToPaused {
            self.start();
        }
        self.parent_change_state(change)
    }
}
