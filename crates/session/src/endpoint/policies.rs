//! The application's policies for paths, and the controllers of its choice.

use super::{Endpoint, PathError};
use crate::multipath::PathPolicy;
use crate::sender::SendPath;
use weir_cc::Sender as Controller;
use weir_cc::cue::PacketResult;
use weir_units::{DataRate, PathId, Timestamp};

impl Endpoint {
    /// Sets what the application wants of a path: how it is preferred, and which part of its rate and how many bytes it
    /// may carry. It takes effect with the next packet, under any scheduler, and until the path is removed.
    ///
    /// # Errors
    /// This end does not send on the path, or the call was made for one path; nothing changes then.
    pub fn set_path_policy(&mut self, path: PathId, policy: PathPolicy, now: Timestamp) -> Result<(), PathError> {
        let sender = self.sender.as_mut().filter(|_| self.is_multipath).ok_or(PathError::SinglePath)?;
        if sender.set_policy(path, policy, now) { Ok(()) } else { Err(PathError::Unknown) }
    }

    /// The policy of a path, with the budget that is left; `None` if this end does not send on it.
    pub fn path_policy(&self, path: PathId) -> Option<PathPolicy> {
        self.sender.as_ref()?.policy(path)
    }

    /// Sets the media rate that suffices: paths of a worse [`PathClass`](crate::multipath::PathClass) carry media only
    /// while those of better ones have less. `None`, the default, uses all but backups.
    pub fn set_sufficient_rate(&mut self, rate: Option<DataRate>, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.set_sufficient_rate(rate, now);
        }
    }

    /// Another controller takes over a path in mid-call, from its own start rate; `false` if this end does not send on the
    /// path. What it needs of feedback has to be what the other end sends. Packets sent before are reported to it as well.
    pub fn set_controller(&mut self, path: PathId, controller: Controller, now: Timestamp) -> bool {
        self.sender.as_mut().is_some_and(|s| s.set_controller(path, controller, now))
    }

    /// The packets that the last per-packet feedback on a path has resolved, in the order of sending.
    pub fn reported_packets(&self, path: PathId) -> &[PacketResult] {
        self.sender.as_ref().and_then(|s| s.paths.get(path.index())).map_or(&[], SendPath::results)
    }
}
