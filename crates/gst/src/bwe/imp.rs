//! The element: pads, the thread that pushes, properties.

use super::sending::{Item, Sending, Step};
use super::settings::{DEFAULT_CONTROLLER, Settings, params};
use super::state::State;
use super::{properties, twcc};
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_units::{DataRate, Timestamp};

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("weirbwe", gst::DebugColorFlags::empty(), Some("Weir's congestion control"))
});

/// Longest wait of the pushing thread, so that a lost wake-up costs no more.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// GStreamer's system clock, by which `rtpsession` notes departures.
fn now() -> Timestamp {
    let time = gst::SystemClock::obtain().time();
    Timestamp::from_nanos(i64::try_from(time.nseconds()).unwrap_or(i64::MAX))
}

pub(crate) struct WeirBwe {
    sink: gst::Pad,
    src: gst::Pad,
    state: Mutex<State>,
    /// Wakes the thread that pushes.
    wake: Condvar,
}

impl WeirBwe {
    fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic the element still has to be shut down.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a change to what is being sent, and passes a new rate on.
    fn change(&self, change: impl FnOnce(&mut Sending, Timestamp)) {
        let changed = {
            let mut state = self.lock();
            if let Some(sending) = &mut state.sending {
                change(sending, now());
            }
            state.update()
        };
        self.wake.notify_all();
        if changed {
            self.obj().notify("estimated-bitrate");
        }
    }

    fn chain(&self, buffer: gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let mut state = self.lock();
        let flow = state.flow?;
        if let Some(sending) = &mut state.sending {
            sending.on_buffer(buffer, now());
        }
        drop(state);
        self.wake.notify_all();
        Ok(flow)
    }

    fn sink_event(&self, pad: &gst::Pad, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::FlushStart(_) => {
                self.stop(gst::FlowError::Flushing);
                let pushed = self.src.push_event(event);
                // It ends, since what it pushes is flushed too.
                let _ = self.src.pause_task();
                pushed
            }
            gst::EventView::FlushStop(_) => {
                let events = {
                    let mut state = self.lock();
                    state.flow = Ok(gst::FlowSuccess::Ok);
                    state.sending.as_mut().map(Sending::flush).unwrap_or_default()
                };
                // The stream's description outlives the flush, unlike its segment and end.
                let transient = [gst::EventType::Segment, gst::EventType::Eos];
                for kept in events.iter().filter(|e| e.is_sticky() && !transient.contains(&e.type_())) {
                    let _ = self.src.store_sticky_event(kept);
                }
                self.src.push_event(event) && self.start_task().is_ok()
            }
            view => {
                if let gst::EventView::Caps(caps) = view {
                    self.check_caps(caps.caps());
                }
                if !event.is_serialized() {
                    return gst::Pad::event_default(pad, Some(&*self.obj()), event);
                }
                let mut state = self.lock();
                if state.flow.is_err() {
                    return false;
                }
                if let Some(sending) = &mut state.sending {
                    sending.on_event(event);
                }
                drop(state);
                self.wake.notify_all();
                true
            }
        }
    }

    fn check_caps(&self, caps: &gst::CapsRef) {
        let promised = twcc::is_promised(caps);
        let rate = {
            let mut state = self.lock();
            let was = std::mem::replace(&mut state.promised, promised);
            if promised && !was {
                state.resume(now());
            } else if let Some(sending) = state.sending.as_mut().filter(|_| !promised) {
                sending.hold();
            }
            (was && !promised).then_some(state.estimated)
        };
        if let Some(rate) = rate {
            gst::element_imp_warning!(
                self,
                gst::LibraryError::Settings,
                ("the caps name no extension for transport-wide sequence numbers, so that no feedback comes: the rate stays at \
                     {rate} bit/s"),
                ["{caps}: expected extmap-1=http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"]
            );
        }
    }

    fn src_event(&self, pad: &gst::Pad, event: gst::Event) -> bool {
        if let Some(structure) = event.structure().filter(|s| s.name() == twcc::EVENT) {
            match twcc::read(structure) {
                Some(packets) => {
                    // Feedback comes although the caps promise none.
                    let mut state = self.lock();
                    if state.sending.as_ref().is_some_and(|s| s.is_held() && s.knows(&packets)) {
                        state.resume(now());
                    }
                    drop(state);
                    self.change(|sending, now| sending.on_feedback(&packets, now));
                }
                None => gst::warning!(CAT, imp = self, "passed over an event without packets: {structure}"),
            }
        }
        gst::Pad::event_default(pad, Some(&*self.obj()), event)
    }

    /// The thread sends no more.
    fn stop(&self, why: gst::FlowError) {
        self.lock().flow = Err(why);
        self.wake.notify_all();
    }

    fn start_task(&self) -> Result<(), glib::BoolError> {
        let weak = self.obj().downgrade();
        self.src.start_task(move || {
            if let Some(element) = weak.upgrade() {
                element.imp().send();
            }
        })
    }

    /// One round of the thread: waits for what is due, and pushes it.
    fn send(&self) {
        let (step, changed) = {
            let mut state = self.lock();
            if state.flow.is_err() {
                drop(state);
                let _ = self.src.pause_task();
                return;
            }
            let now = now();
            let step = state.sending.as_mut().map_or(Step::Wait(None), |s| s.poll(now));
            let changed = state.update();
            if let Step::Wait(until) = &step
                && !changed
            {
                let nanos = until.map(|at| at.saturating_since(now).as_nanos());
                let wait = nanos.map_or(LONGEST_WAIT, |n| Duration::from_nanos(u64::try_from(n).unwrap_or(0)));
                // Whatever ended the wait is looked at in the next round.
                drop(self.wake.wait_timeout(state, wait.min(LONGEST_WAIT)));
                return;
            }
            (step, changed)
        };
        if changed {
            self.obj().notify("estimated-bitrate");
        }
        match step {
            Step::Push(Item::Packet(packet)) => {
                if let Err(why) = self.src.push(packet.buffer) {
                    self.failed(why);
                }
            }
            Step::Push(Item::Event(event)) => {
                self.src.push_event(event);
            }
            Step::Wait(_) => {}
        }
        let wants_key_frame = self.lock().sending.as_mut().is_some_and(|s| std::mem::take(&mut s.wants_key_frame));
        if wants_key_frame {
            gst::debug!(CAT, imp = self, "discarded old packets: asking for a key frame");
            let request = gst::Structure::builder("GstForceKeyUnit").field("all-headers", true).build();
            self.sink.push_event(gst::event::CustomUpstream::new(request));
        }
    }

    /// Downstream takes no more; upstream learns it with its next packet.
    fn failed(&self, why: gst::FlowError) {
        {
            let mut state = self.lock();
            // A flush or a stop that came in between says more.
            if state.flow.is_ok() {
                state.flow = Err(why);
            }
        }
        if !matches!(why, gst::FlowError::Flushing | gst::FlowError::Eos) {
            gst::warning!(CAT, imp = self, "cannot push: {why}");
        }
    }

    fn activate(&self, active: bool) -> Result<(), gst::LoggableError> {
        if !active {
            self.stop(gst::FlowError::Flushing);
            self.src.stop_task()?;
            self.lock().sending = None;
            return Ok(());
        }
        {
            let mut state = self.lock();
            let now = now();
            let flow = state.settings.flow(state.settings.start_rate(), now);
            let flow = flow.map_err(|e| gst::loggable_error!(CAT, "{e}"))?;
            state.sending = Some(Sending::new(flow, now));
            state.promised = true;
            state.flow = Ok(gst::FlowSuccess::Ok);
            state.update();
        }
        self.obj().notify("estimated-bitrate");
        Ok(self.start_task()?)
    }

    /// Takes settings with a new controller. While packets are sent, one that cannot be had leaves the old in place.
    fn configure(&self, set: impl FnOnce(&mut Settings)) {
        let refused = {
            let mut state = self.lock();
            let mut settings = state.settings.clone();
            set(&mut settings);
            let (rate, now) = (DataRate::from_bps(state.estimated.into()), now());
            match (&mut state.sending, settings.flow(rate, now)) {
                (Some(sending), Ok(flow)) => {
                    sending.replace(flow);
                    state.settings = settings;
                    None
                }
                (Some(_), Err(e)) => Some((e, ", the controller stays as it was")),
                (None, made) => {
                    state.settings = settings;
                    made.err().map(|e| (e, ""))
                }
            }
        };
        if let Some((e, so)) = refused {
            gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{e}{so}"));
        }
        self.wake.notify_all();
    }
}

#[glib::object_subclass]
impl ObjectSubclass for WeirBwe {
    const NAME: &'static str = "GstWeirBwe";
    type Type = super::WeirBwe;
    type ParentType = gst::Element;

    fn with_class(class: &Self::Class) -> Self {
        let flags = gst::PadFlags::PROXY_CAPS | gst::PadFlags::PROXY_ALLOCATION;
        let template = |name| class.pad_template(name).expect("both are declared below");
        let sink = gst::Pad::builder_from_template(&template("sink"))
            .chain_function(|_, parent, buffer| {
                Self::catch_panic_pad_function(parent, || Err(gst::FlowError::Error), |imp| imp.chain(buffer))
            })
            .event_function(|pad, parent, event| {
                Self::catch_panic_pad_function(parent, || false, |imp| imp.sink_event(pad, event))
            })
            .flags(flags)
            .build();
        let src = gst::Pad::builder_from_template(&template("src"))
            .event_function(|pad, parent, event| {
                Self::catch_panic_pad_function(parent, || false, |imp| imp.src_event(pad, event))
            })
            .activatemode_function(|_, parent, mode, active| {
                let failed = || Err(gst::loggable_error!(CAT, "panic while the source pad was activated"));
                Self::catch_panic_pad_function(parent, failed, |imp| match mode {
                    gst::PadMode::Push => imp.activate(active),
                    _ => Err(gst::loggable_error!(CAT, "{mode:?} mode is not supported")),
                })
            })
            .flags(flags)
            .build();
        Self { sink, src, state: Mutex::default(), wake: Condvar::new() }
    }
}

impl ObjectImpl for WeirBwe {
    fn constructed(&self) {
        self.parent_constructed();
        let element = self.obj();
        element.add_pad(&self.sink).expect("the element is new");
        element.add_pad(&self.src).expect("the element is new");
    }

    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(properties::all);
        &PROPERTIES
    }

    fn set_property(&self, _: usize, value: &glib::Value, spec: &glib::ParamSpec) {
        let bitrate = || value.get::<u32>().ok();
        match spec.name() {
            "controller" => {
                let name = value.get::<Option<String>>().ok().flatten();
                // A controller's parameters are its own.
                self.configure(|s| s.controller = name.unwrap_or_else(|| DEFAULT_CONTROLLER.into()));
            }
            "controller-params" => {
                let given = value.get::<Option<gst::Structure>>().ok().flatten();
                match params(given.as_ref()) {
                    Ok(params) => self.configure(|s| (s.params, s.params_given) = (params, given)),
                    Err(e) => gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{e}")),
                }
            }
            "estimated-bitrate" => {
                let mut state = self.lock();
                if let Some(rate) = bitrate() {
                    state.settings.start = rate;
                    if state.sending.is_none() {
                        state.estimated = rate;
                    }
                }
            }
            name => {
                let limits = {
                    let mut state = self.lock();
                    let mut settings = state.settings.clone();
                    match (name, bitrate()) {
                        ("min-bitrate", Some(rate)) => settings.min = rate,
                        ("max-bitrate", Some(rate)) => settings.max = rate,
                        _ => return,
                    }
                    // Before the start they come one after the other, and are checked together then.
                    let checked = if state.sending.is_some() { settings.check_bounds() } else { Ok(()) };
                    checked.map(|()| {
                        let limits = settings.limits();
                        state.settings = settings;
                        limits
                    })
                };
                match limits {
                    Ok(limits) => self.change(|sending, now| sending.set_limits(limits, now)),
                    Err(e) => {
                        gst::element_imp_warning!(
                            self,
                            gst::LibraryError::Settings,
                            ("{e}; the bounds stay as they were")
                        );
                    }
                }
            }
        }
    }

    fn property(&self, _: usize, spec: &glib::ParamSpec) -> glib::Value {
        let state = self.lock();
        match spec.name() {
            "controller" => state.settings.controller.to_value(),
            "controller-params" => state.settings.params_given.to_value(),
            "estimated-bitrate" => state.estimated.to_value(),
            "min-bitrate" => state.settings.min.to_value(),
            "max-bitrate" => state.settings.max.to_value(),
            _ => state.stats().to_value(),
        }
    }
}

impl GstObjectImpl for WeirBwe {}

impl ElementImpl for WeirBwe {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        Some(&properties::METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        &properties::PADS
    }

    fn change_state(&self, change: gst::StateChange) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if matches!(change, gst::StateChange::NullToReady | gst::StateChange::ReadyToPaused) {
            let checked = self.lock().settings.check();
            if let Err(e) = checked {
                gst::element_imp_error!(self, gst::LibraryError::Settings, ("{e}"));
                return Err(gst::StateChangeError);
            }
        }
        self.parent_change_state(change)
    }
}
