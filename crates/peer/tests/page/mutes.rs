//! A browser that mutes: by `enabled`, by taking its tracks away, and by another page in front of the call's. Weir sees and hears it
//! again within a second, and it sees and hears Weir throughout.

use super::browser::Browser;
use super::{CAMERA, NO_BROWSER, click, codecs, run, service};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;
use weir_media::audio::{PcmSource, SpeechClip, level_dbov};
use weir_peer::server::RunningServer;

/// Length of each mute in s, unless `WEIR_MUTE_S` gives another.
const MUTE_S: f64 = 2.0;
/// Longest time until pictures and sound are back.
const BACK: Duration = Duration::from_secs(1);
/// Mutes of each kind until one is right: another process may take the browser's time.
const ATTEMPTS: usize = 3;
/// Frames, and slots of sound, that count as back: a muted track may send a black frame now and then.
const SEVERAL: u64 = 4;

/// Keeps the page's connections, so that their senders can be reached.
const KEEP: &str = "
    window.peers = [];
    const Connection = RTCPeerConnection;
    window.RTCPeerConnection = class extends Connection {
        constructor(...given) { super(...given); window.peers.push(this); }
    };";
/// Of the browser's statistics: frames decoded, and samples of sound that were not concealed.
const RECEIVED: &str = "peers.at(-1).getStats().then((all) => {
    const [picture, sound] = ['video', 'audio'].map((kind) => [...all.values()].find((r) => r.type === 'inbound-rtp' && r.kind === kind));
    return [picture.framesDecoded, sound.totalSamplesReceived - (sound.concealedSamples ?? 0)];
})";

/// A way to mute, and the end of it.
struct Way {
    name: &'static str,
    mute: &'static str,
    unmute: &'static str,
    /// Whether nothing arrives meanwhile, or all of it.
    sends: bool,
}

const WAYS: [Way; 3] = [
    Way {
        name: "enabled",
        mute: "peers.at(-1).getSenders().forEach(({ track }) => { if (track) track.enabled = false; })",
        unmute: "peers.at(-1).getSenders().forEach(({ track }) => { if (track) track.enabled = true; })",
        sends: false,
    },
    Way {
        name: "replaceTrack",
        mute: "(window.kept = peers.at(-1).getSenders().filter((s) => s.track).map((s) => [s, s.track]), Promise.all(kept.map(([s]) => s.replaceTrack(null))))",
        unmute: "Promise.all(kept.map(([s, track]) => s.replaceTrack(track)))",
        sends: false,
    },
    Way {
        name: "in the background",
        mute: "void (window.front = open('about:blank'))",
        unmute: "front.close()",
        sends: true,
    },
];

/// Level above which a slot of speech is no pause, in -dBov.
const SPOKEN: u8 = 35;

/// Speech without its pauses as a file of a microphone.
fn speech(path: &Path) {
    let (mut all, rate) = (vec![0_i16; 48_000 * 40], 48_000_u32);
    SpeechClip::new(1).read(&mut all);
    let pcm = all.chunks(960).filter(|slot| level_dbov(slot) < SPOKEN).collect::<Vec<_>>().concat();
    assert!(pcm.len() > 48_000 * 10, "{} samples", pcm.len());
    let bytes = 2 * pcm.len() as u32;
    let mut file = Vec::new();
    for part in [&b"RIFF"[..], &(36 + bytes).to_le_bytes(), b"WAVEfmt ", &16_u32.to_le_bytes()] {
        file.extend(part);
    }
    // PCM, one channel.
    for field in [1_u16, 1] {
        file.extend(field.to_le_bytes());
    }
    file.extend(rate.to_le_bytes());
    file.extend((2 * rate).to_le_bytes());
    for field in [2_u16, 16] {
        file.extend(field.to_le_bytes());
    }
    file.extend(b"data");
    file.extend(bytes.to_le_bytes());
    pcm.iter().for_each(|s| file.extend(s.to_le_bytes()));
    std::fs::write(path, file).expect("written");
}

/// Frames decoded and audible slots, at Weir.
fn at_weir(service: &RunningServer) -> [u64; 2] {
    let t = service.calls().last().expect("a call").1.totals;
    [t.frames_decoded + t.frames_damaged, t.audio_audible]
}

/// The same at the browser: samples of sound stand for slots of 20 ms.
async fn at_browser(browser: &mut Browser) -> [u64; 2] {
    let [frames, samples]: [f64; 2] = serde_json::from_value(browser.eval(RECEIVED).await).expect("numbers");
    [frames as u64, (samples / 960.0) as u64]
}

/// Time from now until both have grown by so much, each.
async fn back(service: &RunningServer, before: [u64; 2]) -> [Option<Duration>; 2] {
    let (began, mut found) = (Instant::now(), [None; 2]);
    while found.contains(&None) && began.elapsed() < 10 * BACK {
        for (found, (now, before)) in found.iter_mut().zip(at_weir(service).into_iter().zip(before)) {
            if now >= before + SEVERAL {
                found.get_or_insert(began.elapsed());
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    found
}

async fn gesture(browser: &mut Browser, expression: &str) {
    let params = json!({ "expression": expression, "awaitPromise": true, "userGesture": true });
    let answer = browser.call("Runtime.evaluate", params).await;
    assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
}

#[test]
fn sound_and_pictures_are_back_within_a_second_of_a_mute() {
    run(async {
        let profile = tempfile::tempdir().expect("a folder");
        let file = profile.path().join("speech.wav");
        speech(&file);
        let microphone = format!("--use-file-for-fake-audio-capture={}", file.display());
        let Some(mut browser) = Browser::start(profile.path(), &[&CAMERA[..], &[&microphone]].concat()).await else {
            println!("{NO_BROWSER}");
            return;
        };
        let given = std::env::var("WEIR_MUTE_S").ok().and_then(|s| s.parse().ok());
        let mute = Duration::from_secs_f64(given.unwrap_or(MUTE_S));
        let (codec, _) = codecs()[0];
        let service = service(codec, false).await;
        browser.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": KEEP })).await;
        browser.open(&service.page(), 1280, 900).await;
        browser.until("document.body.dataset.ready === 'yes'").await;
        click(&mut browser, "call").await;
        browser.until("Number(document.body.dataset.decoded) > 20 && Number(document.body.dataset.seen) > 20").await;
        for way in WAYS {
            let mut wrong = Vec::new();
            for _ in 0..ATTEMPTS {
                wrong = muted(&mut browser, &service, &way, mute).await;
                if wrong.is_empty() {
                    break;
                }
                eprintln!("{}: {wrong:?}", way.name);
            }
            assert!(wrong.is_empty(), "{}: {wrong:?}", way.name);
        }
        assert_eq!(browser.complaints, Vec::<String>::new());
        service.stop().await;
    });
}

/// One mute; what was wrong with it.
async fn muted(browser: &mut Browser, service: &RunningServer, way: &Way, mute: Duration) -> Vec<String> {
    let start = at_weir(service);
    tokio::time::sleep(2 * BACK).await;
    let usual = grown(start, at_weir(service));
    gesture(browser, way.mute).await;
    // Packets on their way still arrive.
    tokio::time::sleep(BACK).await;
    let hidden = browser.eval("document.visibilityState").await == "hidden";
    let (ours, theirs) = (at_weir(service), at_browser(browser).await);
    tokio::time::sleep(mute).await;
    let (before, theirs_before) = (at_weir(service), at_browser(browser).await);
    gesture(browser, way.unmute).await;
    let found = back(service, before).await;
    tokio::time::sleep(BACK).await;
    let theirs = [(grown(theirs, theirs_before), mute), (grown(theirs_before, at_browser(browser).await), BACK)];
    let meanwhile = grown(ours, before);
    eprintln!(
        "{}: {usual:?} in 2 s, {meanwhile:?} in {mute:?} of mute, back after {found:?}; at the browser {theirs:?}",
        way.name
    );
    let mut wrong = Vec::new();
    let mut check = |is_right: bool, what: String| {
        if !is_right {
            wrong.push(what);
        }
    };
    // A page that nobody sees goes on sending; a muted track sends black frames and silence, and none nothing.
    check(hidden == way.sends, format!("hidden: {hidden}"));
    let is_heard = meanwhile[1] as f64 > 0.2 * usual[1] as f64 / 2.0 * mute.as_secs_f64();
    check(is_heard == way.sends && usual[1] > 20, format!("{meanwhile:?} heard, {usual:?} in 2 s before"));
    for (what, found) in ["pictures", "sound"].iter().zip(found) {
        check(found.is_some_and(|t| t <= BACK), format!("{what} back after {found:?}"));
    }
    // Weir's own go on, at the browser, during the mute and after it.
    for (grown, time) in theirs {
        let seconds = time.as_secs_f64();
        let goes_on = grown[0] as f64 >= 8.0 * seconds && grown[1] as f64 >= 25.0 * seconds;
        check(goes_on, format!("{grown:?} at the browser in {seconds} s"));
    }
    wrong
}

fn grown(before: [u64; 2], after: [u64; 2]) -> [u64; 2] {
    [after[0].saturating_sub(before[0]), after[1].saturating_sub(before[1])]
}

/// Of a member's browser: frames decoded of the others, and energy of their sound in billionths.
const OF_OTHERS: &str = "peers.at(-1).getStats().then((all) => {
    const inbound = [...all.values()].filter((r) => r.type === 'inbound-rtp');
    const sum = (field) => inbound.reduce((sum, r) => sum + (r[field] ?? 0), 0);
    return [sum('framesDecoded'), Math.round(1e9 * sum('totalAudioEnergy'))];
})";

async fn of_others(browser: &mut Browser) -> [u64; 2] {
    serde_json::from_value(browser.eval(OF_OTHERS).await).expect("numbers")
}

/// Time from now until a member's browser has several more frames of the others, and more of their sound.
async fn back_at(browser: &mut Browser, before: [u64; 2]) -> [Option<Duration>; 2] {
    let (began, mut found) = (Instant::now(), [None; 2]);
    while found.contains(&None) && began.elapsed() < 10 * BACK {
        let now = grown(before, of_others(browser).await);
        for (found, (now, several)) in found.iter_mut().zip(now.into_iter().zip([SEVERAL, 1_000])) {
            if now >= several {
                found.get_or_insert(began.elapsed());
            }
        }
    }
    found
}

#[test]
fn another_member_of_a_room_has_sound_and_pictures_back_within_a_second() {
    run(async {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let mut members = Vec::new();
        let (codec, name) = codecs()[0];
        let service = service(codec, false).await;
        for folder in &folders {
            let file = folder.path().join("speech.wav");
            speech(&file);
            let microphone = format!("--use-file-for-fake-audio-capture={}", file.display());
            let Some(mut browser) = Browser::start(folder.path(), &[&CAMERA[..], &[&microphone]].concat()).await else {
                println!("{NO_BROWSER}");
                return;
            };
            browser.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": KEEP })).await;
            let page = service.page().replace("/#", "/room#");
            browser.open(&format!("{page}&sends=1&room=mutes&link=off&codec={name}"), 1280, 900).await;
            browser.until("document.body.dataset.ready === 'yes'").await;
            click(&mut browser, "join").await;
            browser.until("document.body.dataset.members >= '1'").await;
            members.push(browser);
        }
        let [muting, watching] = &mut members[..] else { unreachable!("two browsers") };
        while of_others(watching).await[0] < 20 {
            tokio::time::sleep(BACK / 10).await;
        }
        for way in &WAYS[..2] {
            let mut found = [None; 2];
            for _ in 0..ATTEMPTS {
                gesture(muting, way.mute).await;
                tokio::time::sleep(BACK).await;
                let muted = of_others(watching).await;
                tokio::time::sleep(Duration::from_secs_f64(MUTE_S)).await;
                let before = of_others(watching).await;
                gesture(muting, way.unmute).await;
                found = back_at(watching, before).await;
                eprintln!("{} in a room: {:?} during the mute, back after {found:?}", way.name, grown(muted, before));
                assert!(grown(muted, before)[1] < 1_000, "{}: heard during the mute", way.name);
                // Also the sender's own rate, after its tracks were away.
                tokio::time::sleep(2 * BACK).await;
                if found.iter().all(|f| f.is_some_and(|t| t <= BACK)) {
                    break;
                }
            }
            assert!(found.iter().all(|f| f.is_some_and(|t| t <= BACK)), "{}: {found:?}", way.name);
        }
        let complaints = members.iter().map(|b| b.complaints.clone()).collect::<Vec<_>>().concat();
        assert_eq!(complaints, Vec::<String>::new());
        service.stop().await;
    });
}
