//! Streams that are added, changed, found and removed while the call runs.

use super::*;

#[test]
fn streams_are_paused_changed_and_removed_while_the_call_runs() {
    let mut c = call("gcc", 3_000, |_, _| Fate::Pass);
    let [low, high, screen] = add(&mut c);
    run(&mut c, 20);
    c.a.outgoing(screen).unwrap().set_paused(true, c.now);
    run(&mut c, 30);
    let paused = sent_bytes(&c, 21);
    assert_eq!(paused.get(&SCREEN), None, "{paused:?}");
    let now = c.now;
    c.a.outgoing(screen).unwrap().set_paused(false, now);
    c.a.outgoing(high).unwrap().set_demand(demand(300, 400, MediaKind::Video, Some(1)), now);
    run(&mut c, 50);
    let rates = sent_bytes(&c, 40);
    assert!(rates[&SCREEN] * 8 / 10_000 > 400, "{rates:?}");
    assert!(rates[&HIGH] * 8 / 10_000 <= 450, "{rates:?}");
    let keys = c.a.outgoing(screen).unwrap().counters().key_frames;
    assert!(keys >= 1, "a stream that goes on begins with a key frame");
    c.a.remove_outgoing(screen, c.now).unwrap();
    assert_eq!(c.a.remove_outgoing(screen, c.now), Err(StreamError::Unknown));
    assert!(c.a.outgoing(screen).is_none());
    run(&mut c, 55);
    let goodbyes = c.sent[0].iter().flat_map(|s| parse_compound(&s.1)).filter_map(|p| match p {
        Ok(Packet::Bye(b)) => Some(b.sources.iter().collect::<Vec<_>>()),
        _ => None,
    });
    assert_eq!(goodbyes.collect::<Vec<_>>(), [vec![SCREEN]]);
    assert!(!c.b.remote().has_left(), "the other streams go on");
    assert_eq!(sent_bytes(&c, 51).get(&SCREEN), None);
    for id in [low, high] {
        c.a.remove_outgoing(id, c.now).unwrap();
    }
    assert_eq!(c.a.remove_outgoing(OutgoingId::FIRST, c.now), Err(StreamError::LastStream));
    run(&mut c, 60);
    let only = sent_bytes(&c, 56);
    assert!(only.len() == 1 && (40..=60).contains(&(only[&AUDIO] * 8 / 4_000)), "{only:?}");
}

#[test]
fn a_stream_that_was_off_goes_on_when_the_others_are_removed() {
    let recorder = Recorder::new(300);
    let config = EndConfig { ssrc: LOW, remote_ssrc: 22, ..EndConfig::default() };
    let outgoing = OutgoingConfig::new(StreamIdentity::of(LOW), frames(ms(33)), Demand::default());
    let sending = SendingPath::new(recorder.sender());
    let other = EndConfig { ssrc: 22, remote_ssrc: LOW, seed: 2, ..config.clone() };
    let a = EndPlan::new(config).sends(outgoing).on(sending).make(Timestamp::ZERO).unwrap();
    let b = EndPlan::new(other)
        .receives(IncomingConfig::new(StreamIdentity::of(LOW), MediaKind::default()))
        .on(ReceivingPath::default())
        .make(Timestamp::ZERO)
        .unwrap();
    let mut c = Call::new(a, b, Link::new(kbps(4_000), |_, _| Fate::Pass));
    run(&mut c, 1);
    let wants = demand(400, 500, MediaKind::Audio, None);
    let audio = c.a.add_outgoing(OutgoingConfig::new(identity(AUDIO, 111), frames(ms(20)), wants), c.now).unwrap();
    run(&mut c, 2);
    assert!(!c.a.outgoing(OutgoingId::FIRST).unwrap().is_on(), "the audio takes all of the target");
    // The video fits now and waits for its hold of a second; before that the audio is removed.
    c.a.outgoing(audio).unwrap().set_demand(demand(100, 150, MediaKind::Audio, None), c.now);
    c.run_until(c.now + ms(200));
    c.a.remove_outgoing(audio, c.now).unwrap();
    assert!(c.a.outgoing(OutgoingId::FIRST).unwrap().is_on());
    run(&mut c, 6);
    let rates = sent_bytes(&c, 3);
    let rate = rates[&LOW] * 8 / 3_000;
    assert!(rates.len() == 1 && (270..=330).contains(&rate), "{rates:?}");
    assert_eq!(c.a.outgoing(OutgoingId::FIRST).unwrap().counters().key_frames, 2);
}

#[test]
fn sources_in_use_and_too_many_streams_are_refused() {
    let mut c = call("fixed", 3_000, |_, _| Fate::Pass);
    add(&mut c);
    let config = |ssrc| OutgoingConfig::new(identity(ssrc, 100), frames(ms(33)), Demand::default());
    assert_eq!(c.a.add_outgoing(config(LOW), c.now), Err(StreamError::SourceInUse(LOW)));
    assert_eq!(c.b.add_outgoing(config(7), c.now), Err(StreamError::NoPath));
    for n in 0..28 {
        c.a.add_outgoing(config(1_000 + n), c.now).unwrap();
    }
    assert_eq!(c.a.add_outgoing(config(2_000), c.now), Err(StreamError::TooMany));
    assert!(StreamError::SourceInUse(LOW).to_string().contains("0x00000065"));
}

#[test]
fn unknown_sources_find_their_stream_by_payload_type_mid_and_rid() {
    let label = |text| Some(Label::new(text).unwrap());
    let recorder = Recorder::new(900);
    let config = EndConfig { ssrc: AUDIO, remote_ssrc: 22, ..EndConfig::default() };
    let audio = StreamIdentity { mid: label("a"), ..identity(AUDIO, 111) };
    let outgoing = OutgoingConfig::new(audio, frames(ms(20)), demand(16, 48, MediaKind::Audio, None));
    let sending = SendingPath::new(recorder.sender());
    let a = EndPlan::new(config.clone()).sends(outgoing).on(sending).make(Timestamp::ZERO).unwrap();
    let other = EndConfig { ssrc: 22, remote_ssrc: 0, seed: 2, ..config };
    let b = EndPlan::new(other)
        .receives(IncomingConfig::new(StreamIdentity { ssrc: 0, ..audio }, MediaKind::default()))
        .on(ReceivingPath::default())
        .make(Timestamp::ZERO)
        .unwrap();
    let mut c = Call::new(a, b, Link::new(kbps(4_000), |_, _| Fate::Pass));
    let encodings = [
        ("lo", LOW, demand(50, 200, MediaKind::Video, Some(1))),
        ("hi", HIGH, demand(100, 400, MediaKind::Video, Some(1))),
    ];
    let mut ids = vec![IncomingId::FIRST];
    // The receiver lists them in reverse: the labels decide.
    for (rid, ..) in encodings.iter().rev() {
        let identity = StreamIdentity { mid: label("v"), rid: label(rid), ..identity(0, 100) };
        ids.push(c.b.add_incoming(IncomingConfig::new(identity, MediaKind::Video), c.now).unwrap());
    }
    for (rid, ssrc, demand) in encodings {
        let identity = StreamIdentity { mid: label("v"), rid: label(rid), ..identity(ssrc, 100) };
        c.a.add_outgoing(OutgoingConfig::new(identity, frames(ms(33)), demand), c.now).unwrap();
    }
    run(&mut c, 10);
    let found: Vec<u32> = ids.iter().map(|&id| c.b.incoming(id).unwrap().identity().ssrc).collect();
    assert_eq!(found, [AUDIO, HIGH, LOW]);
    // After the first report packets are sent without labels.
    let labelled = |s: &&(Timestamp, Vec<u8>, weir_session::Transmit)| {
        s.2.is_rtp() && PacketView::parse_header(&s.1).unwrap().extension(9).is_some()
    };
    assert!(c.sent[0].iter().find(|s| s.2.is_rtp()).is_some_and(|s| labelled(&s)));
    let late = c.sent[0].iter().filter(|s| s.0 > Timestamp::from_secs(8)).filter(labelled).count();
    assert_eq!(late, 0);
}
