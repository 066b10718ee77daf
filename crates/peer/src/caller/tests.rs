//! A caller and the end it calls, without a network between them.

use super::*;
use crate::ice::CONSENT;
use crate::sdp::{Answer, Codecs, Wanted, negotiate, write};
use crate::transport::{Received, Transport, TransportError};

const HERE: &str = "127.0.0.1:7000";

struct Pair {
    caller: Caller,
    transport: Transport,
    now: Timestamp,
}

fn offered() -> Offer {
    let direction = Direction { sends: true, receives: true };
    Offer { codec: VideoCodec::Vp8, direction, ssrc: (5, 6), transport_wide: true }
}

/// Both ends after offer and answer; `other` replaces the answer's fingerprint.
fn pair(other: Option<Fingerprint>) -> Pair {
    #[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
    let zero = Instant::now();
    let mut caller = Caller::new(zero).expect("a caller");
    let both = Direction { sends: true, receives: true };
    let wanted = Wanted { codec: VideoCodec::Vp8, built_in: Codecs { vp8: true, h264: true }, direction: both };
    let n = negotiate(&caller.offer(&offered()), wanted).expect("accepted");
    let (identity, credentials) = (Identity::new().expect("made"), Credentials::random().expect("random"));
    let address = HERE.parse().expect("an address");
    let fingerprint = other.unwrap_or(identity.fingerprint());
    let a = Answer { session: 1, credentials: &credentials, fingerprint, address, ssrc: (1, 2), cname: "w" };
    assert_eq!(caller.accept(&write(&n, &a)).expect("an answer"), address);
    let now = Timestamp::from_secs(1);
    let transport = Transport::new(&identity, credentials, &n.ice_name, n.fingerprint, zero, now).expect("a transport");
    Pair { caller, transport, now }
}

impl Pair {
    /// Exchanges what both have to say for a while; what ends the transport.
    fn run(&mut self, time: TimeDelta) -> Result<(), TransportError> {
        let (from, end) = ("10.0.0.1:9".parse().expect("an address"), self.now + time);
        while self.now < end {
            let _ = self.caller.handle_timeout(self.now);
            self.transport.handle_timeout(self.now)?;
            while let Some(bytes) = self.caller.poll_transmit() {
                self.transport.handle(self.now, from, &bytes)?;
            }
            while let Some((to, bytes)) = self.transport.poll_transmit() {
                assert_eq!(to, from);
                let _ = self.caller.handle(self.now, &bytes);
            }
            self.now += TimeDelta::from_millis(10);
        }
        Ok(())
    }
}

/// An RTP packet of the caller's source.
fn packet(sequence: u16) -> Vec<u8> {
    let [high, low] = sequence.to_be_bytes();
    [&[0x80, 96, high, low, 0, 0, 0, 1, 0, 0, 0, 5][..], &[7; 100]].concat()
}

#[test]
fn both_ends_get_keys_and_media_pass_both_ways() {
    let mut p = pair(None);
    p.run(TimeDelta::from_secs(2)).expect("connected");
    assert!(p.caller.is_connected() && p.transport.is_connected());
    let to = p.transport.destination(p.now).expect("nominated");
    let protected = p.caller.protect(&packet(1)).expect("protected");
    let Received::Media(opened) = p.transport.handle(p.now, to, &protected).expect("taken") else { panic!("no media") };
    assert_eq!(opened[..], packet(1));
    // Not twice, and not from elsewhere.
    assert!(matches!(p.transport.handle(p.now, to, &protected), Ok(Received::Nothing)));
    let again = p.caller.protect(&packet(2)).expect("protected");
    let stranger = "10.0.0.2:9".parse().expect("an address");
    assert!(matches!(p.transport.handle(p.now, stranger, &again), Ok(Received::Nothing)));
    let back = p.transport.protect(&packet(9)).expect("protected").to_vec();
    assert_eq!(p.caller.handle(p.now, &back).expect("taken").expect("media"), packet(9));
}

#[test]
fn ice_starts_again_within_a_call() {
    use crate::sdp::{fragment_name, write_fragment};
    let mut p = pair(None);
    p.run(TimeDelta::from_secs(2)).expect("connected");
    let fragment = p.caller.restart().expect("random");
    let name = fragment_name(&fragment).expect("a name");
    let own = Credentials::random().expect("random");
    let mid = weir_session::Label::new("0").expect("a label");
    let answer = write_fragment(mid, &own, HERE.parse().expect("an address"));
    p.transport.restart(own, name);
    p.caller.accept_restart(&answer).expect("accepted");
    // The keys stay, and checks renew consent: without these it would end after 30 s.
    let accepted = p.transport.counters().0.accepted;
    p.run(TimeDelta::from_secs(40)).expect("the call goes on");
    assert!(p.transport.counters().0.accepted > accepted + 10 && p.transport.destination(p.now).is_some());
    let to = p.transport.destination(p.now).expect("nominated");
    let protected = p.caller.protect(&packet(1)).expect("protected");
    assert!(matches!(p.transport.handle(p.now, to, &protected), Ok(Received::Media(_))));
    for bad in ["", "a=ice-ufrag:abc\r\n", "a=ice-ufrag:ab\"c\r\n", &"a".repeat(20_000)] {
        assert!(fragment_name(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_call_ends_when_the_other_end_is_silent_or_closes() {
    let mut p = pair(None);
    p.run(TimeDelta::from_secs(2)).expect("connected");
    let since = p.now;
    p.transport.handle_timeout(since + CONSENT - TimeDelta::from_secs(4)).expect("still consents");
    let late = since + CONSENT;
    assert!(p.transport.destination(late).is_none(), "nothing is sent");
    assert!(matches!(p.transport.handle_timeout(late), Err(TransportError::NoConsent)));

    let mut p = pair(None);
    p.run(TimeDelta::from_secs(40)).expect("checks renew consent");
    assert!(p.transport.destination(p.now).is_some());
    let instant = p.caller.instant(p.now);
    p.caller.remote.as_mut().expect("called").dtls.close(instant);
    p.caller.collect();
    assert!(matches!(p.run(TimeDelta::from_secs(1)), Err(TransportError::Closed)));
}

#[test]
fn a_caller_that_does_not_come_and_a_certificate_of_another_end_a_call() {
    let mut p = pair(None);
    let from = p.now;
    assert!(matches!(p.transport.handle_timeout(from + TimeDelta::from_secs(20)), Err(TransportError::NotConnected)));
    // The caller refuses the certificate, and says so.
    let mut p = pair(Some(Fingerprint([1; 32])));
    let ended = p.run(TimeDelta::from_secs(25));
    assert!(ended.is_err() && !p.caller.is_connected() && !p.transport.is_connected(), "{ended:?}");
}
