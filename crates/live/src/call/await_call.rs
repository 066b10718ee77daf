//! A listener that takes calls until one of them has begun.
//!
//! An answer ends nothing: whoever offers a call and then sends nothing would otherwise be the one call of the listener, and
//! keep everybody else out. Offers that were answered wait together, on the same sockets, and the call is that of which a
//! datagram arrives first: with SRTP an authentic one, otherwise one from the described address.

use crate::call::CallError;
use crate::call::joined::Joined;
use crate::call::lent::Lent;
use crate::call::party::Party;
use crate::call::path_sockets::BoundPath;
use crate::clock::Clock;
use crate::ice::FromServer;
use crate::ice::stun::is_stun;
use crate::sdp::Setup as DccpSetup;
use crate::signal::{Listener, Refused};
use crate::srtp::SrtpSession;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use weir_admission::{Doors, Limits, Source, Ticket};
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;
use weir_wire::{DatagramKind, kind_of};

/// Answered offers of which nothing has arrived. For one more, the one that is next by [`weir_admission`] is given up: at
/// 1,000 offers a second from one address each waits for 256 ms.
const MAX_ANSWERED: usize = 256;
/// A call has to begin within this time of the answer.
const BEGIN_DEADLINE: TimeDelta = TimeDelta::from_secs(10);
/// Datagrams looked at in one turn, for each socket.
const MAX_DATAGRAMS: usize = 64;
/// Offers whose keys are tried on one datagram.
const MAX_TRIED: usize = 64;
/// Addresses of this host, apart from those of `--path`, at which offers were answered and wait.
const MAX_ADDRESSES: usize = 8;
/// Longest datagram looked at: a longer one is authenticated by no key.
const MAX_DATAGRAM: usize = 9_216;

/// An offer that was answered.
struct Answered {
    joined: Joined,
    who: String,
    until: Timestamp,
    /// Tries datagrams; made when the first one comes.
    trial: Option<SrtpSession>,
}

/// The source that a datagram names.
fn named_source(datagram: &[u8]) -> Option<u32> {
    if kind_of(datagram)? == DatagramKind::Rtcp {
        return Some(u32::from_be_bytes(datagram.get(4..8)?.try_into().ok()?));
    }
    PacketView::parse_header(datagram).ok().map(|view| view.ssrc())
}

impl Answered {
    /// Whether its description names this sender, by address or by source.
    fn names(&self, from: SocketAddr, source: Option<u32>, datagram: &[u8]) -> bool {
        if is_stun(datagram) {
            return self.joined.ice.as_ref().is_some_and(|ice| ice.is_check(datagram));
        }
        let agreement = &self.joined.agreement;
        let sources =
            || agreement.streams.iter().flat_map(|s| [s.remote.media, s.remote.repair, s.remote.retransmission]);
        agreement.paths.iter().any(|to| to.ip() == from.ip()) || source.is_some() && sources().any(|s| s == source)
    }

    fn names_no_source(&self) -> bool {
        self.joined.agreement.streams.iter().all(|s| s.remote.media.is_none())
    }

    /// Whether the datagram is of this call.
    fn begins_by(&mut self, datagram: &[u8], from: SocketAddr) -> bool {
        if is_stun(datagram) {
            return self.joined.ice.as_ref().is_some_and(|ice| ice.is_check(datagram));
        }
        let agreement = &self.joined.agreement;
        let Some((own, theirs)) = &agreement.keys else { return agreement.paths.contains(&from) };
        if self.trial.is_none() {
            self.trial = SrtpSession::new(own, theirs).ok();
        }
        self.trial.as_mut().is_some_and(|trial| trial.open(datagram).is_some())
    }
}

/// Answered offers, and the sockets that they share.
struct Waiting {
    clock: Clock,
    answered: Doors<Answered>,
    /// By the address of this host that the offers came to.
    paths: Vec<(Option<IpAddr>, Vec<BoundPath>)>,
    buffer: Vec<u8>,
}

impl Waiting {
    fn paths(&mut self, party: &Party, at: Option<IpAddr>, stop: &AtomicBool) -> Result<&mut [BoundPath], CallError> {
        let at = at.filter(|_| party.first_path.is_none());
        let place = match self.paths.iter().position(|(ip, _)| *ip == at) {
            Some(place) => place,
            None => {
                if self.paths.len() >= MAX_ADDRESSES {
                    self.paths.remove(0);
                }
                self.paths.push((at, party.bind_paths(at, stop)?));
                self.paths.len() - 1
            }
        };
        Ok(&mut self.paths[place].1)
    }

    /// The relays of a call's sockets.
    fn lent_to(&mut self, joined: &Joined) -> Vec<Lent> {
        let at: Vec<SocketAddr> = joined.sockets.iter().filter_map(|(s, _)| s.local_addr().ok()).collect();
        let paths = self.paths.iter_mut().flat_map(|(_, paths)| paths).filter(|p| at.contains(&p.address));
        paths.map(|p| std::mem::replace(&mut p.lent, Lent::none())).collect()
    }

    /// The call that has begun. Its first datagram stays in the socket, and what is of no call is dropped.
    fn begun(&mut self) -> Option<Joined> {
        for path in self.paths.iter_mut().flat_map(|(_, paths)| paths) {
            path.lent.turn(&path.socket);
            for _ in 0..MAX_DATAGRAMS {
                let Ok((length, from)) = path.socket.peek_from(&mut self.buffer) else { break };
                // The first check that a relay passes on is taken from the socket; the other end repeats it.
                let passed_on;
                let is_servers = path.lent.is_server(from);
                let (from, datagram) = if is_servers {
                    let _ = path.socket.recv_from(&mut self.buffer);
                    let FromServer::Data { from, bytes } = path.lent.take(from, &self.buffer[..length]) else {
                        continue;
                    };
                    passed_on = bytes;
                    (from, &passed_on[..])
                } else {
                    (from, &self.buffer[..length])
                };
                let source = named_source(datagram);
                let by = |names: bool| {
                    let fits = move |a: &Answered| {
                        if names {
                            a.names(from, source, datagram)
                        } else {
                            !a.names(from, source, datagram) && a.names_no_source()
                        }
                    };
                    self.answered.iter().filter(move |(_, a)| fits(a)).map(|(ticket, _)| ticket)
                };
                let tried: Vec<Ticket> = by(true).chain(by(false)).take(MAX_TRIED).collect();
                let is_of = |t: &Ticket| self.answered.get_mut(*t).is_some_and(|a| a.begins_by(datagram, from));
                if let Some(begun) = tried.into_iter().find(is_of) {
                    let mut joined = self.answered.leave(begun).map(|a| a.joined)?;
                    joined.lent = self.lent_to(&joined);
                    return Some(joined);
                }
                if !is_servers {
                    let _ = path.socket.recv_from(&mut self.buffer);
                }
            }
        }
        None
    }
}

impl Party {
    /// Waits for a call that has begun. Offers are answered meanwhile, and each of which nothing arrives is given up: no
    /// offer ends the wait by itself. The others get nothing more, and end by their own timeouts. `refused` receives each
    /// connection or offer without a call, with the reason.
    ///
    /// An offer by a file is taken as it is: who may write there is no stranger. So is one over DCCP where this end
    /// connects, since the other one sends nothing before that.
    ///
    /// # Errors
    /// The listening socket fails, this end cannot be described, or the flag is raised.
    pub fn await_call(
        &self,
        listener: &mut Listener,
        stop: &AtomicBool,
        refused: &mut dyn FnMut(&Refused),
    ) -> Result<Joined, CallError> {
        if !listener.is_open_to_strangers() {
            return self.listen(listener, stop, refused);
        }
        let limits =
            Limits { strangers: MAX_ANSWERED, usual: 1, proven: 1, per_source: 1, kept: 0, quiet: TimeDelta::ZERO };
        let mut waiting = Waiting {
            clock: Clock::starting_now(),
            answered: Doors::new(limits),
            paths: Vec::new(),
            buffer: vec![0; MAX_DATAGRAM],
        };
        loop {
            let sockets: Vec<_> = waiting.paths.iter().flat_map(|(_, paths)| paths).map(|p| p.socket.as_fd()).collect();
            let found = listener.turn(stop, &sockets, refused)?;
            if let Some((exchange, offer)) = found {
                let (who, ip) = (exchange.who(), exchange.peer_ip());
                let paths = waiting.paths(self, exchange.local_ip(), stop)?;
                for path in &mut *paths {
                    path.socket.set_nonblocking(true).map_err(CallError::socket("preparing a socket"))?;
                }
                let joined = self.answer(exchange, &offer, paths, stop, refused)?;
                if let (Some(joined), Some(ip)) = (joined, ip) {
                    let connects = joined.own.media().find_map(|m| m.transport.as_ref()?.dccp);
                    if connects.is_some_and(|dccp| dccp.setup == DccpSetup::Active) {
                        return Ok(joined);
                    }
                    let now = waiting.clock.now();
                    let answered = Answered { joined, who, until: now + BEGIN_DEADLINE, trial: None };
                    if let (_, Some(gone)) = waiting.answered.enter(now, Source::from(ip), answered) {
                        let why = format!("{}: given up for newer offers before its call began", gone.who);
                        refused(&Refused { who: gone.who, why });
                    }
                }
            }
            if let Some(begun) = waiting.begun() {
                return Ok(begun);
            }
            let now = waiting.clock.now();
            let late: Vec<Ticket> =
                waiting.answered.iter().filter(|(_, a)| now >= a.until).map(|(ticket, _)| ticket).collect();
            for gone in late.into_iter().filter_map(|ticket| waiting.answered.leave(ticket)) {
                let why = format!("{}: its call did not begin within {} s", gone.who, BEGIN_DEADLINE.as_secs_f64());
                refused(&Refused { who: gone.who, why });
            }
        }
    }
}
