//! ICE for an end that can be reached: the lite implementation of RFC 8445, section 2.5. It answers checks, and the other end decides.
//!
//! Consent (RFC 7675) is the other end's to renew: a full implementation checks every 5 s or so, and those checks are authenticated. Where
//! none has come for [`CONSENT`], nothing more is sent.

use rtc_crypto::RTCCryptoProvider;
use rtc_shared::error::Error;
use rtc_stun::attributes::{
    ATTR_ICE_CONTROLLING, ATTR_MESSAGE_INTEGRITY, ATTR_PRIORITY, ATTR_USE_CANDIDATE, ATTR_USERNAME,
};
use rtc_stun::fingerprint::FINGERPRINT;
use rtc_stun::integrity::MessageIntegrity;
use rtc_stun::message::{BINDING_REQUEST, BINDING_SUCCESS, Message, Setter};
use rtc_stun::xoraddr::XorMappedAddress;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_units::{TimeDelta, Timestamp};

/// Time that an authenticated check permits to send (RFC 7675, section 5.1).
pub const CONSENT: TimeDelta = TimeDelta::from_secs(30);
/// Longest check looked at, in bytes: they have about 100.
const MAX_CHECK: usize = 600;
/// Addresses from which checks have come that are remembered.
const MAX_ADDRESSES: usize = 16;
/// Characters of names and passwords (`ice-char`, RFC 8839, section 5.4).
const ICE_CHARS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Preference that checks of [`check`] give a candidate learnt from them (RFC 8445, section 5.1.2.1).
const PEER_REFLEXIVE: u32 = (110 << 24) | (65_535 << 8) | 255;

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// `ice-ufrag`.
    pub name: String,
    /// `ice-pwd`.
    pub password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({}, secret)", self.name)
    }
}

impl Credentials {
    /// Random ones: 48 bits of name, 144 of password (RFC 8445, section 5.3, requires 24 and 128).
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        let text: String = bytes.iter().map(|b| char::from(ICE_CHARS[usize::from(b & 63)])).collect();
        let (name, password) = text.split_at(8);
        Ok(Self { name: name.into(), password: password.into() })
    }
}

/// Counters of checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IceCounters {
    /// Checks that were authenticated.
    pub accepted: u64,
    /// Messages that were not.
    pub refused: u64,
    /// Changes of the other end's address.
    pub moves: u64,
}

/// This end's half.
pub struct IceLite {
    own: Credentials,
    /// `USERNAME` of the other end's checks.
    username: String,
    /// Credentials of a restart that has been agreed on, until the first check with them.
    next: Option<(Credentials, String)>,
    crypto: Arc<dyn RTCCryptoProvider>,
    /// Addresses from which authenticated checks have come, the latest last.
    seen: Vec<SocketAddr>,
    selected: Option<SocketAddr>,
    consent: Option<Timestamp>,
    counters: IceCounters,
}

impl IceLite {
    /// Waits for checks with these credentials by an end with this name.
    pub fn new(own: Credentials, remote_name: &str, crypto: Arc<dyn RTCCryptoProvider>) -> Self {
        let username = format!("{}:{remote_name}", own.name);
        Self {
            own,
            username,
            next: None,
            crypto,
            seen: Vec::new(),
            selected: None,
            consent: None,
            counters: IceCounters::default(),
        }
    }
    /// Agrees on a restart (RFC 8445, section 9): checks with these credentials are answered too, and those with the ones before until then.
    pub fn restart(&mut self, own: Credentials, remote_name: &str) {
        let username = format!("{}:{remote_name}", own.name);
        self.next = Some((own, username));
    }
    /// The address that the other end has nominated.
    pub fn selected(&self) -> Option<SocketAddr> {
        self.selected
    }
    /// Whether something may be sent to it now.
    pub fn may_send(&self, now: Timestamp) -> bool {
        self.selected.is_some() && self.consent.is_some_and(|at| now < at + CONSENT)
    }
    /// When the last authenticated check came.
    pub fn last_consent(&self) -> Option<Timestamp> {
        self.consent
    }
    /// Whether authenticated checks have come from this address.
    pub fn knows(&self, address: SocketAddr) -> bool {
        self.seen.contains(&address)
    }
    /// Its counters.
    pub fn counters(&self) -> IceCounters {
        self.counters
    }

    /// The answer to a message; none to what is no authenticated check. Nobody gets an answer who does not know the password.
    pub fn handle(&mut self, now: Timestamp, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        let answer = self.check(now, from, bytes);
        match answer {
            Some(_) => self.counters.accepted += 1,
            None => self.counters.refused += 1,
        }
        answer
    }

    fn check(&mut self, now: Timestamp, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        if bytes.len() > MAX_CHECK {
            return None;
        }
        let mut m = Message::new();
        m.unmarshal_binary(bytes).ok()?;
        // The library computes offsets from the length of the whole.
        if m.typ != BINDING_REQUEST || m.raw.len() != 20 + m.length as usize {
            return None;
        }
        let username = m.get(ATTR_USERNAME).ok()?;
        let is_next = self.next.as_ref().is_some_and(|(_, next)| username == next.as_bytes());
        if username != self.username.as_bytes() && !is_next {
            return None;
        }
        // It takes the end of the message for the fingerprint's place, and that before it for the integrity's.
        if m.attributes.0.iter().filter(|a| a.typ == ATTR_MESSAGE_INTEGRITY).count() != 1 {
            return None;
        }
        FINGERPRINT.check(&m).ok()?;
        let own = self.next.as_ref().filter(|_| is_next).map_or(&self.own, |(own, _)| own);
        MessageIntegrity::check(&mut m, own.password.as_bytes(), self.crypto.crypto()).ok()?;
        if let Some((own, username)) = self.next.take_if(|_| is_next) {
            (self.own, self.username) = (own, username);
        }
        self.consent = Some(now);
        self.seen.retain(|a| *a != from);
        if self.seen.len() == MAX_ADDRESSES {
            self.seen.remove(0);
        }
        self.seen.push(from);
        if m.contains(ATTR_USE_CANDIDATE) && self.selected != Some(from) {
            self.counters.moves += u64::from(self.selected.is_some());
            self.selected = Some(from);
        }
        self.answer(&m, from).ok()
    }

    fn answer(&self, request: &Message, to: SocketAddr) -> Result<Vec<u8>, Error> {
        let mut m = Message::new();
        let mapped = XorMappedAddress { ip: to.ip(), port: to.port() };
        let password = self.own.password.clone();
        let integrity = MessageIntegrity::new_short_term_integrity_with_provider(password, self.crypto.crypto());
        let setters: [Box<dyn Setter + '_>; 5] = [
            Box::new(request.clone()),
            Box::new(BINDING_SUCCESS),
            Box::new(mapped),
            Box::new(integrity),
            Box::new(FINGERPRINT),
        ];
        m.build(&setters)?;
        Ok(m.raw)
    }
}

/// `USERNAME`, `PRIORITY`, `USE-CANDIDATE` and `ICE-CONTROLLING` of a check (RFC 8445, sections 7.1 and 16.1).
struct Controlling<'a> {
    username: &'a str,
    nominates: bool,
}

impl Setter for Controlling<'_> {
    fn add_to(&self, m: &mut Message) -> Result<(), Error> {
        m.add(ATTR_USERNAME, self.username.as_bytes());
        m.add(ATTR_PRIORITY, &PEER_REFLEXIVE.to_be_bytes());
        m.add(ATTR_ICE_CONTROLLING, &[0; 8]);
        if self.nominates {
            m.add(ATTR_USE_CANDIDATE, &[]);
        }
        Ok(())
    }
}

/// A check as the other end sends it, which nominates the address that it comes from if wanted.
///
/// # Errors
/// The library's.
pub fn check(
    username: &str,
    password: &str,
    nominates: bool,
    crypto: &dyn RTCCryptoProvider,
) -> Result<Vec<u8>, Error> {
    let mut m = Message::new();
    m.new_transaction_id()?;
    let integrity = MessageIntegrity::new_short_term_integrity_with_provider(password.to_owned(), crypto.crypto());
    let setters: [Box<dyn Setter + '_>; 4] = [
        Box::new(BINDING_REQUEST),
        Box::new(Controlling { username, nominates }),
        Box::new(integrity),
        Box::new(FINGERPRINT),
    ];
    m.build(&setters)?;
    Ok(m.raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn check(name: &str, password: &str, nominates: bool) -> Vec<u8> {
        let crypto = rtc_crypto::default_provider().expect("ring");
        super::check(name, password, nominates, &*crypto).expect("built")
    }

    fn lite() -> (IceLite, String, String) {
        let own = Credentials::random().expect("random");
        let (name, password) = (format!("{}:them", own.name), own.password.clone());
        (IceLite::new(own, "them", rtc_crypto::default_provider().expect("ring")), name, password)
    }

    #[test]
    fn authenticated_checks_are_answered_and_nominate() {
        let (mut ice, name, password) = lite();
        let now = Timestamp::from_secs(1);
        assert!(ice.handle(now, address(1), &check(&name, "another password, wrong", true)).is_none());
        assert!(ice.handle(now, address(1), &check("them:them", &password, true)).is_none());
        assert!((ice.selected(), ice.may_send(now), ice.knows(address(1))) == (None, false, false));

        let answer = ice.handle(now, address(2), &check(&name, &password, false)).expect("answered");
        let mut m = Message::new();
        m.unmarshal_binary(&answer).expect("STUN");
        assert_eq!(m.typ, BINDING_SUCCESS);
        let crypto = rtc_crypto::default_provider().expect("ring");
        FINGERPRINT.check(&m).expect("whole");
        MessageIntegrity::check(&mut m, password.as_bytes(), crypto.crypto()).expect("authentic");
        assert!(ice.knows(address(2)) && ice.selected().is_none());

        ice.handle(now, address(2), &check(&name, &password, true)).expect("answered");
        assert_eq!(ice.selected(), Some(address(2)));
        // It moves to another network.
        ice.handle(now, address(3), &check(&name, &password, true)).expect("answered");
        assert_eq!(
            (ice.selected(), ice.counters()),
            (Some(address(3)), IceCounters { accepted: 3, refused: 2, moves: 1 })
        );
    }

    #[test]
    fn a_restart_takes_effect_with_its_first_check_and_ends_the_credentials_before() {
        let (mut ice, name, password) = lite();
        let now = Timestamp::from_secs(1);
        ice.handle(now, address(2), &check(&name, &password, true)).expect("answered");
        let own = Credentials::random().expect("random");
        let (next, other) = (format!("{}:new", own.name), own.password.clone());
        ice.restart(own, "new");
        // Those before go on meanwhile, and neither name has the other's password.
        assert!(ice.handle(now, address(2), &check(&name, &password, false)).is_some());
        assert!(ice.handle(now, address(3), &check(&next, &password, true)).is_none());
        assert!(ice.handle(now, address(3), &check(&name, &other, true)).is_none());
        assert_eq!(ice.selected(), Some(address(2)));
        assert!(ice.handle(now, address(3), &check(&next, &other, true)).is_some());
        assert_eq!(ice.selected(), Some(address(3)));
        assert!(ice.handle(now, address(2), &check(&name, &password, true)).is_none());
    }

    #[test]
    fn consent_ends_unless_it_is_renewed() {
        let (mut ice, name, password) = lite();
        let at = Timestamp::from_secs;
        ice.handle(at(10), address(2), &check(&name, &password, true)).expect("answered");
        assert!(ice.may_send(at(39)) && !ice.may_send(at(40)));
        ice.handle(at(40), address(2), &check(&name, &password, false)).expect("answered");
        assert!(ice.may_send(at(69)));
    }

    #[test]
    fn damaged_checks_are_not_answered() {
        let (mut ice, name, password) = lite();
        let good = check(&name, &password, true);
        let mut state = 1u64;
        for n in 0..20_000usize {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut bad = good.clone();
            let at = n % bad.len();
            bad[at] = bad[at].wrapping_add(1 + (state >> 33) as u8 % 255);
            if n % 5 == 0 {
                bad.truncate((state >> 40) as usize % good.len());
            }
            assert!(ice.handle(Timestamp::ZERO, address(1), &bad).is_none(), "{n}: {bad:?}");
        }
        assert!(ice.selected().is_none());
    }
}
