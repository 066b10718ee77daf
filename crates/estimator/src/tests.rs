//! Faults of estimators, each with its message. The programs are those of a POSIX shell.

use super::*;
use crate::process::Budgets;
use std::time::Duration;
use weir_cc::tunable::SetupError;
use weir_cc::{Cue, Pair, Receiver, ReceiverController as _, Report};
use weir_units::DataSize;

/// The first answer of a sound estimator.
const HELLO: &str = r#"{"turn":0,"media_bps":500000,"about":{"version":1,"name":"mine"}}"#;

fn quick() -> Budgets {
    Budgets { start: Duration::from_secs(5), turn: Duration::from_secs(2) }
}

/// Starts a shell script.
fn start(script: &str) -> Result<(Remote, Faults), Fault> {
    let command = format!("sh -c {}", shlex::try_quote(script).expect("no NUL in it"));
    let faults = Faults::default();
    let budgets = Budgets { start: Duration::from_secs(4), ..quick() };
    Ok((Remote::start_within(budgets, "it", &command, &nominal(), faults.clone())?, faults))
}

fn refused(script: &str) -> String {
    start(script).err().expect("a fault").to_string()
}

/// Faults of a script that answers the first turn well, and the target that is left.
fn later(script: &str) -> (String, DataRate) {
    let (mut remote, faults) = start(&format!("read l; echo '{HELLO}'; {script}")).expect("it begins well");
    assert_eq!(remote.target().media_rate, DataRate::from_kbps(500));
    let now = Timestamp::from_secs(1);
    let (bytes_in_flight, rtt) = (DataSize::ZERO, None);
    let feedback = weir_cc::cue::TransportFeedback { now, packets: &[], bytes_in_flight, rtt };
    remote.on_cue(&Cue::TransportFeedback(feedback));
    (faults.take().join("; "), remote.target().media_rate)
}

#[test]
fn a_program_that_is_none_is_named() {
    let command = |c: &str| Remote::start("it", c, &nominal(), Faults::default()).err().expect("a fault").to_string();
    assert!(command("/no/such/program --fast").contains("`/no/such/program` does not start"));
    assert!(command("").contains("is no command"));
    assert!(command("mine 'without an end").contains("is no command"));
}

#[test]
fn first_answers_have_to_be_in_the_protocol() {
    for (script, expected) in [
        ("echo broken >&2; exit 3", ["turn 0", "exit status: 3", "broken"]),
        ("exec sleep 100", ["no answer to turn 0", "killed", "flushed"]),
        ("exec yes", ["turn 0 cannot be read", "begins with `y`", "line 1"]),
        ("exec cat /dev/zero", ["turn 0", "longer than", "bytes"]),
        (r#"printf '{"turn":0'"#, ["it ended", "turn 0", "exit status: 0"]),
        (r#"echo '{"turn":0,"media_bps":1}'"#, ["about", "version", "name"]),
        (
            r#"echo '{"turn":0,"media_bps":1,"about":{"version":9,"name":"x"}}'"#,
            ["about.version = 9", "expected 1 to 2", "turn 0"],
        ),
        (r#"echo '{"turn":0,"media_bps":1,"about":{"version":1,"name":""}}'"#, ["about.name", "1 to 100", "turn 0"]),
        (r#"echo '{"turn":0,"media_bps":NaN,"about":{"version":1,"name":"x"}}'"#, ["turn 0", "cannot be read", "NaN"]),
        (
            r#"echo '{"turn":0,"media_bps":1,"about":{"version":2,"name":"x","sides":[]}}'"#,
            ["about.sides = []", "receiver", "turn 0"],
        ),
        (
            r#"echo '{"turn":0,"media_bps":1,"report":"remb","about":{"version":2,"name":"x"}}'"#,
            ["report", "this end is the sender", "turn 0"],
        ),
        (r#"echo '{"turn":0,"rate":1}'"#, ["unknown field `rate`", "media_bps", "turn 0"]),
    ] {
        let said = refused(script);
        assert!(expected.iter().all(|e| said.contains(e)), "{script}: {said}");
    }
}

#[test]
fn a_fault_in_mid_call_leaves_the_flow_at_its_floor() {
    let answer = |rest: &str| format!("read l; echo '{{\"turn\":1,{rest}}}'; read l");
    for (script, expected) in [
        ("read l; echo why >&2; kill -9 $$".to_owned(), ["it, 1.000 s", "signal: 9", "why"]),
        ("exec sleep 100".into(), ["turn 1", "no answer", "2 s"]),
        ("read l; echo '{\"turn\":0,\"media_bps\":1}'; read l".into(), ["it answers turn 0", "turn 1", "in order"]),
        (answer("\"media_bps\":-5"), ["media_bps = -5", "0 to 1e12", "turn 1"]),
        (answer("\"media_bps\":1e13"), ["media_bps = 10000000000000", "0 to 1e12", "turn 1"]),
        (answer("\"media_bps\":1e400"), ["turn 1", "cannot be read", "out of range"]),
        (answer("\"media_bps\":1,\"timer_ns\":1000000000"), ["timer_ns = 1000000000", "later", "1000000000"]),
        (answer("\"media_bps\":1,\"max_queue_age_ns\":0"), ["max_queue_age_ns", "more than 0", "turn 1"]),
        (
            answer("\"media_bps\":1,\"probes\":[{\"id\":0,\"rate_bps\":1,\"min_packets\":1,\"min_bytes\":1}]"),
            ["probes", "id", "above 0"],
        ),
    ] {
        let (said, target) = later(&script);
        assert!(expected.iter().all(|e| said.contains(e)), "{script}: {said}");
        assert_eq!(target, nominal().limits.floor, "{script}");
    }
}

/// A program that ends and leaves another with its output is late like any other, and what it left is killed.
#[cfg(unix)]
#[test]
fn a_program_that_leaves_another_with_its_output_is_no_hang() {
    let (said, target) = later("sleep 30 & exit 0");
    assert!(said.contains("no answer to turn 1 within 2 s"), "{said}");
    assert_eq!(target, nominal().limits.floor);
}

#[test]
fn timers_without_end_are_a_fault() {
    let next = "n=1; while read l; do t=${l##*now_ns\\\":}; t=${t%%[!0-9]*}; \
                echo \"{\\\"turn\\\":$n,\\\"media_bps\\\":500000,\\\"timer_ns\\\":$((t+STEP))}\"; n=$((n+1)); done";
    for (step, timers, fault) in [
        (1_i64, 20_000, "timer_ns = 1000020001; expected at most 20000 timers in a second of the call"),
        (100_000, 30_000, ""),
    ] {
        let next = next.replace("STEP", &step.to_string());
        let (mut remote, faults) = start(&format!("read l; echo '{HELLO}'; {next}")).expect("it begins well");
        remote.on_limits(nominal().limits, Timestamp::from_secs(1));
        let mut woken = 0;
        while let Some((at, _)) = remote.poll_timeout().filter(|_| woken < 30_000) {
            remote.on_timeout(at);
            woken += 1;
        }
        let said = faults.take().join("; ");
        assert!(said.contains(fault) && said.is_empty() == fault.is_empty(), "{step}: {said}");
        assert!((timers..=timers + 1).contains(&woken), "{step}: {woken} timers");
    }
}

#[test]
fn rates_outside_the_limits_are_limited_and_later_events_are_ignored_after_a_fault() {
    let (said, target) = later(r#"read l; echo '{"turn":1,"media_bps":9e9}'; read l"#);
    assert_eq!((said.as_str(), target), ("", nominal().limits.ceiling));
    let (mut remote, faults) = start(&format!("read l; echo '{HELLO}'")).expect("it begins well");
    for second in 1..4 {
        remote.on_limits(nominal().limits, Timestamp::from_secs(second));
    }
    assert_eq!(faults.take().len(), 1);
    assert_eq!(remote.poll_timeout(), None);
}

#[test]
fn errors_repeat_little_of_a_process_and_no_control_characters() {
    let name = "x".repeat(5_000);
    let said = refused(&format!("printf '{{\"turn\":0,\"{name}\":1}}\\n'"));
    assert!(said.contains("unknown field") && said.len() < 1_000, "{} bytes", said.len());
    let said = refused("printf '\\033[2Jcleared\\n' >&2; exit 1");
    assert!(said.contains("cleared") && !said.contains('\u{1b}'), "{said:?}");
    let said = refused("printf '\\033[2J{\\n'");
    assert!(said.contains("cannot be read") && !said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn only_names_that_were_typed_start_a_program() {
    let words = ["--controllers", "gcc,exec:python3 mine.py", "--controller=exec:./other"].map(String::from);
    let permits = Permits::of_words(words);
    assert_eq!(permits, Permits::these(["exec:python3 mine.py", "exec:./other"]));
    let one = Permits::of_words(["exec:sh -c 'echo 1,2'".to_owned()]);
    assert_eq!(one, Permits::these(["exec:sh -c 'echo 1,2'", "exec:sh -c 'echo 1"]));
}

#[test]
fn checks_find_clocks_and_deaf_estimators() {
    // A rate from the process's number differs between two runs.
    let clock = format!(
        "read l; echo '{HELLO}'; n=1; while read l; do echo \"{{\\\"turn\\\":$n,\\\"media_bps\\\":$(( 400000 + $$ % 9973 + n ))}}\"; n=$((n+1)); done"
    );
    let checked = check(&format!("sh -c {}", shlex::try_quote(&clock).expect("no NUL")), CALLS).expect("it answers");
    assert_eq!(checked.name, "mine");
    let [finding] = &checked.findings[..] else { panic!("{:?}", checked.findings) };
    assert!(finding.is_fault && finding.text.contains("a clock or a random number of its own"), "{finding:?}");
    let deaf = "read l; echo '{\"turn\":0,\"media_bps\":300000,\"about\":{\"version\":1,\"name\":\"deaf\"}}'; n=1; \
                while read l; do echo \"{\\\"turn\\\":$n,\\\"media_bps\\\":300000}\"; n=$((n+1)); done";
    let checked = check(&format!("sh -c {}", shlex::try_quote(deaf).expect("no NUL")), CALLS).expect("it answers");
    assert!(
        checked.findings.iter().any(|f| !f.is_fault && f.text.contains("never left the start rate")),
        "{checked:?}"
    );
    assert!(checked.events > 1_000 && checked.us_per_event > 0.0, "{checked:?}");
    let said = |script: &str| {
        let checked =
            check(&format!("sh -c {}", shlex::try_quote(script).expect("no NUL")), CALLS).expect("it answers");
        checked.findings.into_iter().map(|f| (f.is_fault, f.text)).collect::<Vec<_>>()
    };
    let found = said(&deaf.replace("$n,\\\"media_bps\\\":300000", "$n,\\\"media_bps\\\":700000"));
    let [(false, text)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(text, "the target never left 700000 bit/s: does it read `feedback`?");
    // `answers` names what `events` does not.
    let mute = deaf.replace("\"deaf\"", "\"mute\",\"events\":[\"feedback\"],\"answers\":[\"queue\"]");
    let found = said(&mute);
    assert!(found.iter().any(|(is_fault, text)| *is_fault && text.contains("it had no turn in 60 s")), "{found:?}");
}

/// Faults of a script that chooses the binary form, and the target that is left.
fn later_in_binary(script: &str) -> (String, DataRate) {
    let hello = HELLO.replace("\"name\"", "\"form\":\"binary\",\"name\"");
    let (mut remote, faults) = start(&format!("read l; echo '{hello}'; {script}")).expect("it begins well");
    remote.on_limits(nominal().limits, Timestamp::from_secs(1));
    (faults.take().join("; "), remote.target().media_rate)
}

#[test]
fn faults_in_the_binary_form_have_their_words_too() {
    // Length, probes, turn, flags and overhead, rate; then 40 bytes of nothing.
    let rest = |rate: &str| format!("\\0\\0\\0\\0\\0\\0\\0\\0{rate}{}", "\\0".repeat(40));
    let head = |length: &str, turn: &str| {
        let head = format!("{length}\\0\\0\\0\\0\\0\\0\\0{turn}\\0\\0\\0\\0\\0\\0\\0");
        format!("head -c 48 >/dev/null; printf '{head}")
    };
    // 500,000.0 and a number that is none.
    let (sound, none) = ("\\0\\0\\0\\0\\200\\204\\036\\101", "\\0\\0\\0\\0\\0\\0\\370\\177");
    let floor = nominal().limits.floor;
    let answer = |rate: &str| format!("{}{}'; cat >/dev/null", head("\\070", "\\001"), rest(rate));
    assert_eq!(later_in_binary(&answer(sound)), (String::new(), DataRate::from_kbps(500)));
    for (script, expected) in [
        ("exec sleep 100".to_owned(), ["turn 1", "no answer", "2 s"]),
        (format!("{}'; exec sleep 100", head("\\070", "\\001")), ["turn 1", "no answer", "2 s"]),
        (format!("{}'; exit 4", head("\\070", "\\001")), ["turn 1", "it ended", "exit status: 4"]),
        ("exec cat /dev/zero".into(), ["a length of 0", "expected 56", "begins with `00 00"]),
        ("exec yes".into(), ["its head has", "probes", "begins with `79 0a"]),
        (format!("{}{}'", head("\\070", "\\002"), rest(sound)), ["it answers turn 2", "in order", "turn 1"]),
        (format!("{}{}'", head("\\071", "\\001"), rest(sound)), ["a length of 57", "expected 56", "turn 1"]),
        (answer(none), ["media_bps = NaN", "expected a number", "turn 1"]),
    ] {
        let (said, target) = later_in_binary(&script);
        assert!(expected.iter().all(|e| said.contains(e)), "{script}: {said}");
        assert_eq!(target, floor, "{script}");
    }
}

/// A receiver asks for a rate in a message, wakes at its time, and after a fault asks for the floor again and again.
#[test]
fn receivers_ask_for_rates_and_for_the_floor_after_a_fault() {
    let about = r#""about":{"version":2,"name":"theirs","sides":["receiver"]}"#;
    let script = format!(
        "read l; case $l in *receiver*) ;; *) exit 9;; esac; echo '{{\"turn\":0,\"media_bps\":300000,{about}}}'; \
         read l; echo '{{\"turn\":1,\"media_bps\":400000,\"report\":\"tmmbr\",\"timer_ns\":3000000000}}'; \
         read l; echo '{{\"turn\":2,\"media_bps\":450000,\"report\":\"remb\"}}'; read l; exit 5"
    );
    let command = format!("sh -c {}", shlex::try_quote(&script).expect("no NUL"));
    let faults = Faults::default();
    let mut half = RemoteReceiver::start("it", &command, &nominal(), faults.clone()).expect("it begins well");
    assert_eq!((half.about().name.as_str(), half.poll_timeout()), ("theirs", None));
    let packet = |s: i64| weir_cc::cue::ReceivedPacket {
        now: Timestamp::from_secs(s),
        departure: None,
        size: DataSize::from_bytes(1_200),
        payload: DataSize::from_bytes(1_180),
        sequence: 1,
        rtp_timestamp: 0,
        marker: true,
        ecn: weir_units::Ecn::NotEct,
    };
    half.on_packet_received(&packet(1));
    assert_eq!(half.poll_report(Timestamp::from_secs(1)), Some(Report::Tmmbr { rate: DataRate::from_kbps(400) }));
    assert_eq!(half.poll_timeout(), Some(Timestamp::from_secs(3)));
    assert_eq!(half.poll_report(Timestamp::from_secs(2)), None);
    assert_eq!(half.poll_report(Timestamp::from_secs(3)), Some(Report::Remb { rate: DataRate::from_kbps(450) }));
    assert_eq!(half.poll_timeout(), None);
    half.on_rtt(TimeDelta::from_millis(50), Timestamp::from_secs(4));
    assert!(faults.take().join("; ").contains("exit status: 5"));
    let floor = Some(Report::Remb { rate: nominal().limits.floor });
    for second in 4..7 {
        let now = Timestamp::from_secs(second);
        assert_eq!((half.poll_timeout(), half.poll_report(now)), (Some(now), floor), "{second}");
    }
}

#[test]
fn a_sender_obeys_a_receiver_that_is_alone() {
    let about = r#""about":{"version":2,"name":"theirs","sides":["receiver"]}"#;
    let script = format!("read l; echo '{{\"turn\":0,\"media_bps\":300000,{about}}}'; read l");
    let name = format!("exec:sh -c {}", shlex::try_quote(&script).expect("no NUL"));
    let mut registry = Registry::builtin();
    let _ = add_to(&mut registry, Permits::these([name.clone()]));
    assert_eq!(registry.find(&name).expect("it answers").feedback, None);
    let mut pair = registry.make(&name, &nominal()).expect("it starts");
    assert!(pair.receiver.is_some());
    let now = Timestamp::from_secs(1);
    let kind = weir_cc::cue::EstimateKind::Remb;
    let mut ask = |estimate| {
        pair.sender.on_cue(&Cue::ReceiverEstimate(estimate));
        pair.sender.target().media_rate
    };
    let of = |kbps| weir_cc::cue::ReceiverEstimate { now, rate: DataRate::from_kbps(kbps), kind };
    assert_eq!(ask(of(700)), DataRate::from_kbps(700));
    assert_eq!(ask(weir_cc::cue::ReceiverEstimate::withdrawn(now, kind)), DataRate::from_kbps(700));
    assert_eq!(ask(of(1)), nominal().limits.floor);
}

/// The pair of a script that decides over a controller.
fn over(base: &str, script: &str) -> Result<Pair<Sender, Receiver>, SetupError> {
    let about = format!(r#""about":{{"version":2,"name":"theirs","over":"{base}"}}"#);
    let script = format!("read l; echo '{{\"turn\":0,\"media_bps\":1e9,{about}}}'; {script}");
    let name = format!("exec:sh -c {}", shlex::try_quote(&script).expect("no NUL"));
    let mut registry = Registry::builtin();
    let _ = add_to(&mut registry, Permits::these([name.clone()]));
    registry.find(&name)?;
    registry.make(&name, &nominal())
}

#[test]
fn decisions_over_a_controller_leave_the_rest_to_it() {
    // Its first turn has the target of 300 kbit/s.
    let told = r#"read l; case $l in *'"target","now_ns":0,"media_bps":300000'*) ;; *) exit 9;; esac;"#;
    let answer = |rest: &str| format!("{told} echo '{{\"turn\":1,\"media_bps\":250000{rest}}}'; cat >/dev/null");
    let target = |rest: &str| over("fixed", &answer(rest)).expect("it starts").sender.target();
    let fixed = Registry::builtin().make("fixed", &nominal()).expect("known").sender.target();
    let media_rate = DataRate::from_kbps(250);
    assert_eq!(target(""), weir_cc::Target { media_rate, ..fixed });
    let repair = weir_cc::RepairPlan::Parity { interval: 9 };
    let said = r#","pacing_bps":400000,"repair":{"scheme":"parity","interval":9}"#;
    assert_eq!(target(said), weir_cc::Target { media_rate, pacing_rate: DataRate::from_kbps(400), repair, ..fixed });
    // More than the controller allows is not taken, and after a fault there is the floor.
    let more = over("fixed", &format!("{told} echo '{{\"turn\":1,\"media_bps\":1e9}}'; cat >/dev/null"));
    assert_eq!(more.expect("it starts").sender.target(), fixed);
    for rest in [
        r#","repair":{"scheme":"parity","interval":1}"#,
        r#","repair":{"scheme":"reed-solomon","block":5,"repair":5}"#,
        r#","repair":{"scheme":"parity","interval":9,"more":1}"#,
    ] {
        assert_eq!(target(rest).media_rate, nominal().limits.floor, "{rest}");
    }
    let refused = over("gccc", "cat >/dev/null").err().expect("no such controller").to_string();
    assert!(refused.contains("about.over = `gccc` is no controller of Weir's"), "{refused}");
    let refused = over("exec:true", "cat >/dev/null").err().expect("no program again").to_string();
    assert!(refused.contains("about.over = `exec:true`"), "{refused}");
}
