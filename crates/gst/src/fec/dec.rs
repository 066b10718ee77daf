//! The decoder: media passes unchanged, repair packets end here, and recovered packets follow what made them solvable.

use super::{CAT, DEFAULT_PAYLOAD_TYPE, beside, pad_templates, uint};
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use weir_session::StreamRepairer;
use weir_units::{TimeDelta, Timestamp};

/// How long packets are kept, in ms.
const DEFAULT_WINDOW: u32 = 1_000;

struct State {
    payload_type: u32,
    window: u32,
    repairer: Option<StreamRepairer>,
}

impl Default for State {
    fn default() -> Self {
        Self { payload_type: DEFAULT_PAYLOAD_TYPE, window: DEFAULT_WINDOW, repairer: None }
    }
}

pub(crate) struct WeirFecDec {
    sink: gst::Pad,
    src: gst::Pad,
    state: Mutex<State>,
}

impl WeirFecDec {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn chain(&self, buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let times = (buffer.pts(), buffer.dts());
        let (is_media, recovered) = {
            let mut state = self.lock();
            let map = buffer.map_readable().map_err(|_| gst::FlowError::Error)?;
            let Some(repairer) = &mut state.repairer else { return Err(gst::FlowError::Flushing) };
            let now = gst::SystemClock::obtain().time().nseconds();
            let now = Timestamp::from_nanos(i64::try_from(now).unwrap_or(i64::MAX));
            let is_media = repairer.on_packet(now, &map).unwrap_or_else(|e| {
                gst::debug!(CAT, imp = self, "passed on as it is: {e}");
                true
            });
            let recovered = std::iter::from_fn(|| repairer.poll());
            (is_media, recovered.map(|p| beside(p, times)).collect::<Vec<gst::Buffer>>())
        };
        if is_media {
            self.src.push(buffer)?;
        }
        for packet in recovered {
            self.src.push(packet)?;
        }
        Ok(gst::FlowSuccess::Ok)
    }

    fn sink_event(&self, pad: &gst::Pad, event: gst::Event) -> bool {
        if let gst::EventView::FlushStop(_) = event.view() {
            self.start();
        }
        gst::Pad::event_default(pad, Some(&*self.obj()), event)
    }

    fn start(&self) {
        let mut state = self.lock();
        let (payload_type, window) = (state.payload_type as u8, TimeDelta::from_millis(state.window.into()));
        state.repairer = Some(StreamRepairer::new(payload_type, window));
    }
}

#[glib::object_subclass]
impl ObjectSubclass for WeirFecDec {
    const NAME: &'static str = "GstWeirFecDec";
    type Type = super::WeirFecDec;
    type ParentType = gst::Element;

    fn with_class(class: &Self::Class) -> Self {
        let (sink, src) = super::pads(|name| class.pad_template(name), Self::chain, Self::sink_event);
        Self { sink, src, state: Mutex::default() }
    }
}

impl ObjectImpl for WeirFecDec {
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
                    "payload-type",
                    "Payload type",
                    "Payload type of repair packets, as set on weirfecenc; from the next start on",
                    (0, 127, DEFAULT_PAYLOAD_TYPE),
                ),
                uint(
                    "window",
                    "Window",
                    "How long packets are kept for recovery, in ms: more than a block lasts; from the next start on",
                    (1, 60_000, DEFAULT_WINDOW),
                ),
                glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
                    .nick("Statistics")
                    .blurb("Repair packets received, packets recovered, lost beyond recovery, and repair packets that do not parse")
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
            "payload-type" => state.payload_type = value,
            _ => state.window = value,
        }
    }

    fn property(&self, _: usize, spec: &glib::ParamSpec) -> glib::Value {
        let state = self.lock();
        match spec.name() {
            "payload-type" => state.payload_type.to_value(),
            "window" => state.window.to_value(),
            _ => {
                let counters = state.repairer.as_ref().map(StreamRepairer::counters).unwrap_or_default();
                gst::Structure::builder("weirfecdec-stats")
                    .field("repair-packets", counters.packets)
                    .field("recovered", counters.window.recovered)
                    .field("unrecoverable", counters.window.unrecoverable)
                    .field("malformed", counters.malformed + counters.bad_recovered)
                    .build()
                    .to_value()
            }
        }
    }
}

impl GstObjectImpl for WeirFecDec {}

impl ElementImpl for WeirFecDec {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Weir Reed-Solomon decoder",
                "Codec/Decoder/Network/RTP",
                "Recovers lost RTP packets from the repair packets of weirfecenc, which it takes out of the stream. It belongs \
                 before the jitter buffer, which puts recovered packets into their place",
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
