//! Paths added and removed in mid-call. A new path carries no media until the other end has answered there, as in
//! RFC 9000, section 8.2: a challenge of random octets that only who receives on the path can return. It is sent as an
//! APP packet in a subflow's reports, since draft-ietf-avtcore-mprtp-03 leaves such checks to ICE.

use super::subflows::twcc_writer;
use super::{Endpoint, with_report_interval};
use crate::config::PathConfig;
use crate::datagram::Transmit;
use crate::multipath::{MAX_PATHS, PathPolicy, PathSet};
use crate::sender::SendPath;
use rand::RngExt;
use weir_units::{DataSize, Ecn, PathId, TimeDelta, Timestamp};
use weir_wire::rtcp::App;
use weir_wire::rtcp::mprtcp::Writer;

/// Name of the packets, and their subtypes.
const NAME: [u8; 4] = *b"WPCK";
pub(super) const CHALLENGE: u8 = 0;
const RESPONSE: u8 = 1;
/// Challenges of a check, and the time to the second, doubled with each (calibrated: 15.5 s in all).
const CHALLENGES: u32 = 5;
const FIRST_WAIT: TimeDelta = TimeDelta::from_millis(500);

/// Treatment of a path that is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handover {
    /// It carries media until another path can.
    MakeBeforeBreak,
    /// It carries no media from now on.
    BreakBeforeMake,
}

/// Use of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathUse {
    /// It may carry media.
    Open,
    /// The other end has not answered there yet.
    Checked,
    /// The other end has not answered there; the path carries nothing.
    Failed,
    /// It was removed.
    Removed,
}

/// A path could not be added or removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PathError {
    /// The call was made for one path only: without [`EndConfig::multipath`](crate::EndConfig::multipath).
    #[error("the call was made for one path only")]
    SinglePath,
    /// The call has [`MAX_PATHS`] paths.
    #[error("the call has as many paths as are possible")]
    TooMany,
    /// The call does not have the path.
    #[error("the call does not have the path")]
    Unknown,
    /// It is the only one left.
    #[error("the path is the only one")]
    LastPath,
}

/// State of paths that were added or removed.
#[derive(Default)]
pub(super) struct Handovers {
    uses: [Option<Use>; MAX_PATHS],
    /// Octets to be returned on each path.
    replies: [Option<[u8; 8]>; MAX_PATHS],
}

#[derive(Clone, Copy)]
enum Use {
    /// The challenge, when it is sent next, and how often it was.
    Checked([u8; 8], Timestamp, u32),
    Failed,
    Removed,
}

impl Handovers {
    /// When the next challenge or answer is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        if self.replies.iter().any(Option::is_some) {
            return Some(Timestamp::ZERO);
        }
        self.uses.iter().filter_map(|u| if let Some(Use::Checked(_, next, _)) = u { Some(*next) } else { None }).min()
    }
}

impl Endpoint {
    /// Adds a path, in the directions that the end has. An end that receives gives feedback on it as on its first path if
    /// `path` does not say how. Its number is the least that is free, unless [`PathConfig::number`] says it: both ends have to add it, so
    /// that they agree on it. It carries media once the other end has answered on it, see [`Path::usage`](super::Path::usage): a round
    /// trip later if the receiver has added it first. The call has to be made for it
    /// ([`EndConfig::multipath`](crate::EndConfig::multipath)). The example `growing_call` has both ends of it;
    /// [`Path::stats`](super::Path::stats) shows what the path carries.
    ///
    /// # Errors
    /// The call was made for one path, or has too many; the number is neither the next one nor that of a path that was removed or has
    /// failed. Nothing changes then.
    pub fn add_path(&mut self, path: PathConfig, now: Timestamp) -> Result<PathId, PathError> {
        if self.paths.is_none() || !self.is_multipath {
            return Err(PathError::SinglePath);
        }
        let count = self.path_count();
        let next = PathId::new(u8::try_from(count).unwrap_or(u8::MAX));
        let id = path
            .number
            .unwrap_or_else(|| (0..next.number()).map(PathId::new).find(|id| self.is_free(*id)).unwrap_or(next));
        if id.index() >= MAX_PATHS {
            return Err(PathError::TooMany);
        }
        if id != next && !self.is_free(id) {
            return Err(PathError::Unknown);
        }
        self.put_path(id, path, now);
        Ok(id)
    }

    /// Whether a number that the call has had can be used again.
    fn is_free(&self, id: PathId) -> bool {
        matches!(self.path_use(id), Some(PathUse::Removed | PathUse::Failed))
    }

    fn put_path(&mut self, id: PathId, path: PathConfig, now: Timestamp) {
        let index = id.index();
        let mut open = true;
        let first = self.first_numbers(u16::MAX - 64 - u16::from(id.number())).media;
        if let (Some(s), Some(sending)) = (&mut self.sender, path.sending) {
            let sending = with_report_interval(sending, &self.timer, &self.config);
            let policy = sending.policy;
            s.add_path(SendPath::new(id, sending, first, now));
            if policy != PathPolicy::default() {
                s.set_policy(id, policy, now);
            }
            open = false;
        }
        if let Some(r) = self.receiver.as_mut().filter(|r| r.is_multipath()) {
            let twcc = || twcc_writer(self.config.ssrc, self.config.remote_ssrc, true);
            let params = &self.config.params;
            // This end may send on more paths than it receives on so far.
            for missing in 1 + r.others.len()..index {
                r.put_path(PathId::new(missing as u8), r.path.feedback_config(), twcc(), params, now);
            }
            r.put_path(id, path.receiving.unwrap_or_else(|| r.path.feedback_config()), twcc(), params, now);
        }
        let nonce: [u8; 8] = self.rng.random();
        if let Some(h) = self.handovers_mut() {
            h.uses[index] = (!open).then_some(Use::Checked(nonce, now, 0));
        }
        self.follow_paths(now);
    }

    /// Removes a path. Its number may be used again by [`Self::add_path`].
    ///
    /// # Errors
    /// The call does not have the path, or no other; nothing changes then.
    pub fn remove_path(&mut self, path: PathId, handover: Handover) -> Result<(), PathError> {
        let is_used = |p: PathId| matches!(self.path_use(p), Some(PathUse::Open | PathUse::Checked));
        if !is_used(path) {
            return Err(PathError::Unknown);
        }
        if (0..self.path_count() as u8).map(PathId::new).filter(|p| is_used(*p)).count() < 2 {
            return Err(PathError::LastPath);
        }
        if let Some(s) = &mut self.sender {
            s.remove_path(path, handover == Handover::MakeBeforeBreak);
        }
        if let Some(h) = self.handovers_mut() {
            (h.uses[path.index()], h.replies[path.index()]) = (Some(Use::Removed), None);
        }
        self.forget_vector(path);
        self.note_subflow_due();
        Ok(())
    }

    /// See [`PathMut::open`](super::PathMut::open).
    pub(super) fn open_checked_path(&mut self, path: PathId) {
        let Some(h) = self.handovers_mut() else { return };
        if let Some(Use::Checked(..)) = h.uses.get(path.index()).copied().flatten() {
            h.uses[path.index()] = None;
            if let Some(s) = &mut self.sender {
                s.open_path(path);
            }
            self.note_subflow_due();
        }
    }

    fn handovers_mut(&mut self) -> Option<&mut Handovers> {
        self.paths.as_mut().map(|p| &mut p.handovers)
    }

    /// The use of a path; `None` if the call has never had it.
    pub(super) fn path_use(&self, path: PathId) -> Option<PathUse> {
        let is_known = self.is_multipath && path.index() < self.path_count();
        let handovers = &self.paths.as_ref().filter(|_| is_known)?.handovers;
        Some(match handovers.uses[path.index()] {
            None => PathUse::Open,
            Some(Use::Checked(..)) => PathUse::Checked,
            Some(Use::Failed) => PathUse::Failed,
            Some(Use::Removed) => PathUse::Removed,
        })
    }

    /// A packet of a check has arrived in a path's reports.
    pub(super) fn on_check(&mut self, path: usize, app: &App<'_>, now: Timestamp) {
        let Ok(octets) = <[u8; 8]>::try_from(app.data) else { return };
        if app.name == NAME
            && app.subtype == RESPONSE
            && (self.on_address_answer(path, octets) || self.on_path_check_answer(path, octets, now))
        {
            return;
        }
        let is_ours = app.name == NAME && path < MAX_PATHS;
        let Some(paths) = self.paths.as_mut().filter(|_| is_ours) else { return };
        let h = &mut paths.handovers;
        match (app.subtype, h.uses[path]) {
            (CHALLENGE, None | Some(Use::Checked(..))) => h.replies[path] = Some(octets),
            (RESPONSE, Some(Use::Checked(nonce, ..))) if nonce == octets => {
                h.uses[path] = None;
                if let Some(s) = &mut self.sender {
                    s.open_path(PathId::new(path as u8));
                }
            }
            _ => self.counters.checks_refused += 1,
        }
        self.note_subflow_due();
    }

    /// The next response or challenge that is due.
    pub(super) fn poll_check(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        let h = self.handovers_mut()?;
        let mut found = None;
        for index in 0..MAX_PATHS {
            if let Some(octets) = h.replies[index].take() {
                found = Some((index, RESPONSE, octets));
                break;
            }
            let Some(Use::Checked(nonce, next, tries)) = h.uses[index] else { continue };
            if next > now {
                continue;
            }
            if tries >= CHALLENGES {
                h.uses[index] = Some(Use::Failed);
                continue;
            }
            h.uses[index] = Some(Use::Checked(nonce, now + FIRST_WAIT * (1 << tries), tries + 1));
            found = Some((index, CHALLENGE, nonce));
            break;
        }
        self.note_subflow_due();
        let (index, subtype, data) = found?;
        Some(self.write_check(PathId::new(index as u8), subtype, &data, now, out))
    }

    /// Writes a packet of a check on a path.
    pub(super) fn write_check(
        &mut self,
        path: PathId,
        subtype: u8,
        data: &[u8; 8],
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Transmit {
        let ssrc = self.config.ssrc;
        let mut writer = Writer::new(out, ssrc, self.config.remote_ssrc);
        writer.reports(path.number().into(), |out| App { subtype, ssrc, name: NAME, data }.write_into(out));
        writer.finish();
        let size = DataSize::from_bytes(out.len() as u64);
        self.on_subflow_rtcp_sent(size, out, now);
        Transmit { path, payload: 0, size, ecn: Ecn::NotEct, rtp: None }
    }

    /// Paths on which nothing is to be sent but checks.
    pub(super) fn closed_paths(&self) -> PathSet {
        let Some(h) = self.paths.as_ref().map(|p| &p.handovers) else { return PathSet::NONE };
        let closed = (0..MAX_PATHS).filter(|i| h.uses[*i].is_some());
        closed.fold(PathSet::NONE, |set, i| set.with(PathId::new(i as u8)))
    }
}
