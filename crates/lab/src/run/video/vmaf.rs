//! VMAF of a flow's pictures, as its meter compares them.

use std::sync::{Arc, Mutex, PoisonError};
use weir_codecs::Vmaf;
use weir_media::MediaError;
use weir_media::quality::{Distribution, QualityMeter};

/// Of the pictures so far, or of all.
#[derive(Debug)]
enum State {
    Open(Vmaf),
    /// None where the library failed, or there was no picture.
    Closed(Option<Distribution>),
}

/// Scores what a meter compares.
#[derive(Debug)]
pub(super) struct Scorer(Arc<Mutex<State>>);

impl Scorer {
    /// For the pictures of `meter`, of this size. Errors: libvmaf is not built in, or they are too small for it.
    pub(super) fn of(meter: &mut QualityMeter, width: u32, height: u32) -> Result<Self, MediaError> {
        let state = Arc::new(Mutex::new(State::Open(Vmaf::new(width, height)?)));
        let pairs = state.clone();
        meter.set_tap(Box::new(move |reference, displayed| {
            let mut state = pairs.lock().unwrap_or_else(PoisonError::into_inner);
            if let State::Open(vmaf) = &mut *state
                && vmaf.push(reference, displayed).is_err()
            {
                *state = State::Closed(None);
            }
        }));
        Ok(Self(state))
    }

    /// Scores of all pictures, which have been compared.
    pub(super) fn scores(&self) -> Option<Distribution> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = match std::mem::replace(&mut *state, State::Closed(None)) {
            State::Closed(scores) => scores,
            State::Open(vmaf) => vmaf.finish().ok().map(|scores| {
                let mut all = Distribution::new(0.0, 0.01, 10_001);
                scores.pictures.into_iter().for_each(|score| all.add(score));
                all
            }),
        };
        *state = State::Closed(all.clone());
        all
    }
}
