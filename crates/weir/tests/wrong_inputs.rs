//! Wrong command lines: exit code 2, and a message with the place, the value and a way out.

use std::process::{Command, Output};

/// Words of a command line that is wrong, and what its message has: the place, the value, the way out.
type Case<'a> = (&'a str, &'a [&'a str]);

fn weir(folder: &std::path::Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.current_dir(folder).args(words).env("NO_COLOR", "1").env("COLUMNS", "300");
    command.output().expect("starts")
}

/// Each case has to fail with code 2, print nothing on standard output, say all that it should and leave no file.
fn refused(cases: &[Case<'_>]) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut faults = Vec::new();
    for (line, parts) in cases {
        let words: Vec<&str> = line.split(' ').map(|word| if word == "''" { "" } else { word }).collect();
        let output = weir(folder.path(), &words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // Long messages are broken into lines between words.
        let joined = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let lacking: Vec<_> = parts.iter().filter(|part| !joined.contains(**part)).collect();
        if output.status.code() != Some(2) || !output.stdout.is_empty() || !lacking.is_empty() {
            faults.push(format!("{line}: {:?}, lacks {lacking:?}:\n{said}", output.status.code()));
        }
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").map(|e| e.expect("entry").path()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn of_commands_that_simulate() {
    refused(&[
        ("run quick --controller ncc", &["--controller: no controller is named `ncc`", "did you mean `gcc`?"]),
        ("run quick --controller ncc:beta=1", &["--controller: no controller is named `ncc`", "did you mean `gcc`?"]),
        ("run quick --controller gcc:betta=1", &["controller `gcc` has no parameter `betta`", "did you mean `beta`?"]),
        ("run quick --controller gcc:beta=7", &["beta: expected a number between 0.5 and 0.99, found 7"]),
        ("run quick --controller gcc:beta", &["gcc:beta", "`beta` is no PARAMETER=VALUE:..."]),
        ("compare --scenario quick --controllers nada,gcc:beta=x", &["gcc:beta=x", "no PARAMETER=VALUE"]),
        ("run quick --seed -1", &["--seed", "'-1'", "expected a whole number"]),
        ("run quick --seed 1.5", &["--seed", "'1.5'", "expected a whole number"]),
        ("run quick --seed 99999999999999999999", &["--seed", "too large"]),
        ("run quick --variant x", &["no variant is named \"x\""]),
        ("run random-loss --variant 6%", &["no variant is named \"6%\"", "did you mean `5%`?"]),
        ("run qick", &["qick", "did you mean `quick`?"]),
        ("run row:zz", &["row:zz", "rows: a"]),
        ("run quick --explain --from 5x", &["--from", "`x` is no unit of time: ms, s, min or h"]),
        ("run quick --explain --from=-5s", &["--from", "'-5s'", "not below zero"]),
        ("run quick --explain --from -5s", &["--from", "'-5s'", "not below zero"]),
        ("run quick --explain --to -1min", &["--to", "'-1min'", "not below zero"]),
        ("run quick --explain --step 2h", &["--step", "'2h'", "10ms to 1h"]),
        ("run quick --explain --flow nobody", &["--flow", "nobody", "flows: video"]),
        ("run quick --pcap-at middle --pcap x", &["--pcap-at", "'middle'", "sender, receiver, link"]),
        ("compare --runs 0", &["--runs", "'0'", "expected a whole number above zero"]),
        ("compare --runs ten", &["--runs", "'ten'", "expected a whole number"]),
        ("compare --runs 5000000000", &["--runs", "too large"]),
        ("compare --jobs 0", &["--jobs", "expected a whole number above zero"]),
        ("compare --jobs -2", &["--jobs", "'-2'", "expected a whole number"]),
        ("compare --scenario quick --controllers gcc,nadda", &["--controllers", "`nadda`", "did you mean `nada`?"]),
        ("run quick --pcap absent/a.pcapng", &["--pcap", "absent/a.pcapng", "its folder is not there", "name a file"]),
        ("compare --scenario quick --controllers ''", &["no controller is named ``", "known here"]),
        ("judge paper rmcat-comparisn", &["did you mean `rmcat-comparison`?"]),
        ("judge paper rmcat-comparison --table 9", &["no table 9"]),
        ("judge paper rmcat-comparison --figures gif", &["--figures", "'gif'", "possible values"]),
        ("judge rfc ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
        ("judge rfc gcc --suite rfc1", &["--suite", "'rfc1'", "rfc8867"]),
        ("judge rows --controllers ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
        ("judge rows --controllers gcc --rows zz", &["zz"]),
        ("judge stability --controller ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
        ("judge stability --grid huge", &["--grid", "'huge'", "possible values"]),
        ("judge harm --controllers ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
        ("judge harm --links 0", &["--links", "0", "1..=100000"]),
        ("judge contradictions --controllers ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
        ("judge pathologies --controllers ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
        ("judge pathologies --cases mutes", &["--cases", "no case is named `mutes`", "mute-and-playout"]),
        ("judge twins gcc/x", &["gcc/x", "no twin has this name", "one of"]),
        ("overlay --controller ncc", &["--controller", "no controller is named `ncc`", "did you mean `gcc`?"]),
        ("overlay --rate 5", &["--rate", "`5` has no unit: such as 500kbps"]),
        ("overlay --rate 1MB", &["--rate", "`1MB` is in bytes; rates are in bits"]),
        ("overlay --nodes 0", &["number of nodes is 0", "expected 1 to 20000"]),
        ("layers --sites 0", &["number of sites is 0", "expected 1 to 1000"]),
        ("layers --layers 5", &["--layers", "`5` has no unit: such as 500kbps"]),
        ("overlay --loss 7", &["--loss", "`7` is no share: 0 to 1, or 0% to 100%"]),
        ("overlay --duration 5days", &["--duration", "`days` is no unit of time: ms, s, min or h"]),
        ("overlay --division halves", &["--division", "'halves'", "possible values"]),
        ("search sweep nofile.toml", &["nofile.toml", "there is no such file"]),
        ("bench --scale 0", &["--scale", "0", "above 0 and up to 1000"]),
        ("bench --scale -1", &["--scale", "-1", "above 0 and up to 1000"]),
        ("bench --scale half", &["--scale", "'half'", "expected a number"]),
        ("bench --ns3 maybe", &["--ns3", "'maybe'", "auto, always, never"]),
        ("media clip sport", &["sport", "talking-head, hand-held, sports"]),
        ("media clip sports --size 0x0", &["--size", "0", "expected 1 to"]),
        ("media clip sports --size big", &["--size", "'big'", "as 640x480"]),
        ("media clip sports --fps 0", &["--fps", "'0'", "expected 1/1000 to 1000"]),
        ("media clip sports --frames many", &["--frames", "'many'", "expected a whole number"]),
        ("media quality a b", &["a", "there is no such file"]),
        ("show scenario xyz", &["xyz", "weir show scenarios"]),
        ("show schema nope", &["nope", "compare, run"]),
        ("show controlers", &["'controlers'", "'controllers'"]),
        ("comprae", &["'comprae'", "compare"]),
    ]);
}

#[cfg(target_os = "linux")]
#[test]
fn of_commands_in_real_time() {
    refused(&[
        ("live emulate --delay 50", &["--delay", "found \"50\", which has no unit", "us, ms, s, min"]),
        ("live emulate --delay 5days", &["--delay", "found \"5days\"", "us, ms, s, min"]),
        ("live emulate --delay=-5ms", &["--delay", "-5ms", "expected a time"]),
        ("live emulate --rate 2", &["--rate", "found \"2\", which has no unit", "2 Mbps"]),
        ("live emulate --rate 2MB", &["--rate", "found \"2MB\"", "\"16 Mbps\" is as much as 2 MB"]),
        ("live emulate --rate 0mbps", &["--rate", "above zero"]),
        ("live emulate --reverse-rate 2MBps", &["--reverse-rate", "rates are in bits"]),
        ("live emulate --loss 5x", &["--loss", "`5x` is no share: 0 to 1, or 0% to 100%"]),
        ("live emulate --loss 120%", &["--loss", "`120%` is no share"]),
        ("live emulate --jitter 5", &["--jitter", "found \"5\", which has no unit"]),
        ("live emulate --queue 5", &["--queue", "found \"5\", which has no unit", "50 packets"]),
        ("live emulate --queue 5ms --discipline codal", &["--discipline", "`codal`", "did you mean `codel`?"]),
        ("live emulate --discipline codel,targt=5ms", &["--discipline", "`targt`", "did you mean `target`?"]),
        ("live emulate --discipline codel,target=5", &["--discipline", "5"]),
        ("live emulate --duration 0", &["--duration", "not a time above zero, such as 30s"]),
        ("live emulate --seed x", &["--seed", "'x'", "expected a whole number"]),
        ("live emulate quick --link nolink", &["--link", "no link `nolink`", "bottleneck"]),
        ("live emulate quick --rate 5mbps", &["--rate", "cannot be used with"]),
        ("live testbed quick --controller ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
        ("live testbed nowhere", &["nowhere", "weir show scenarios"]),
        ("live call loopback --controller ncc", &["--controller", "`ncc`", "did you mean `gcc`?"]),
        ("live call loopback --controller omniscient", &["--controller", "gets no forecast", "name sluice"]),
        ("live call loopback --map nofile.csv", &["--map", "nofile.csv", "there is no such file"]),
        ("live call connect --map nofile.csv", &["--map", "the end that receives media", "NAME+map"]),
        ("live call listen --map nofile.csv --path lo --path lo", &["--map", "1 given", "one for each --path"]),
        ("live call listen --map-route x", &["--map"]),
        ("live call loopback --start-rate 999999999999", &["--start-rate", "has no unit: such as 500kbps"]),
        (
            "live call loopback --start-rate 999gbps",
            &["--start-rate", "expected 50 kbit/s to 5000 kbit/s", "--max-rate"],
        ),
        ("live call loopback --start-rate 2MB", &["--start-rate", "rates are in bits"]),
        ("live call loopback --min-rate 9mbps", &["--min-rate", "the least below the most"]),
        ("live call loopback --max-rate 900gbps", &["--max-rate", "1kbps to 10gbps"]),
        ("live call loopback --playout-delay 20s", &["--playout-delay", "20 s", "1ms to 10s"]),
        ("live call loopback --timeout forever", &["--timeout", "'forever'"]),
        ("live call loopback --layers 9x", &["--layers", "\"9x\"", "expected L1T1 to L3T3"]),
        ("live call loopback --size 5", &["--size", "\"5\"", "as 640x480"]),
        ("live call loopback --fps -30", &["--fps", "'-30'"]),
        ("live call loopback --clip nowhere", &["--clip", "nowhere", "talking-head"]),
        ("live call loopback --codec av1", &["--codec", "'av1'", "h264, vp8, vp9, model"]),
        ("live call loopback --encoder-threads 0", &["threads"]),
        ("live call loopback --transport dccp --ccid 9", &["--ccid", "9"]),
        ("live call loopback --streams video", &["--streams", "\"video\"", "audio, camera, camera:N or screen"]),
        ("live call connect --signal foo", &["--signal", "\"foo\"", "tls:HOST:PORT, tcp:HOST:PORT or file:PREFIX"]),
        // At once, before the listener is asked.
        ("live call connect --signal tcp:127.0.0.1:9 --path nowhere0", &["--path", "nowhere0", "lo"]),
        ("live call connect --signal tcp:127.0.0.1:99999", &["--signal", "99999", "0 to 65535"]),
        ("live call connect --signal tcp:192.0.2.1:5060", &["--signal", "192.0.2.1:5060", "--insecure"]),
        ("live call connect --signal tls:127.0.0.1:1", &["--fingerprint", "127.0.0.1:1", "--insecure"]),
        ("live call connect --signal tls:127.0.0.1:1 --fingerprint AB", &["--fingerprint", "\"AB\"", "64 hexadecimal"]),
        ("live call connect --token short", &["--token", "16 letters and digits or more"]),
        ("live call connect --port 99999", &["--port", "99999", "0..=65535"]),
        ("live call connect --address nowhere", &["--address", "'nowhere'", "such as 192.0.2.7"]),
        ("live call connect --path 127.0.0.1=cheap", &["--path", "\"cheap\"", "preferred"]),
        ("live call connect --path 127.0.0.1 --scheduler x", &["--scheduler", "`x`", "earliest"]),
        ("live call listen --signal tcp:0.0.0.0:0", &["--signal", "0.0.0.0:0", "--insecure"]),
        ("live call listen --signal file:x --token 0123456789abcdef", &["--token", "file:"]),
        ("live call listen --codec model", &["--codec", "model", "h264, vp8 or vp9"]),
        ("live call listen --direction up", &["--direction", "'up'", "send, receive, both"]),
        ("live dccp serve --ccid 9", &["--ccid", "9", "weir show ccids"]),
        ("live dccp serve --idle 0", &["--idle", "not a time above zero"]),
        ("live dccp serve --max-connections 0", &["--max-connections", "'0'", "from 1 on"]),
        ("live dccp serve --listen nowhere:x", &["--listen", "nowhere:x", "HOST, HOST:PORT"]),
        ("live dccp serve --service words", &["--service", "words", "four letters"]),
        ("live dccp send 127.0.0.1 --size 3apples", &["--size", "`apples` is no unit of data"]),
        ("live dccp send 127.0.0.1 --rate 5", &["--rate", "`5` has no unit"]),
        ("live dccp send 127.0.0.1 --packet-size 4", &["--packet-size", "4", "to 65000"]),
        ("live dccp send 127.0.0.1 --param x", &["--param", "x", "expected NAME=VALUE"]),
        ("live dccp send 127.0.0.1 --queue 0", &["--queue", "0", "1 to 100000"]),
    ]);
}

#[cfg(all(target_os = "linux", feature = "webrtc"))]
#[test]
fn of_the_page_for_browsers() {
    refused(&[
        ("live webrtc --controller ncc", &["--controller", "`ncc`", "did you mean `gcc`?"]),
        ("live webrtc --controller omniscient", &["--controller", "gets no forecast", "name sluice"]),
        ("live webrtc --controller late-scheduling", &["--controller", "gets no forecast"]),
        ("live webrtc --controller rate-switching", &["--controller", "gets no forecast"]),
        ("live webrtc --controller gcc+map", &["--controller", "gets no forecast", "name gcc"]),
        ("live webrtc --controller tmmbr", &["--controller", "`tmmbr` needs more", "sluice"]),
        ("live webrtc --start-rate 999gbps", &["--start-rate", "expected 50 kbit/s to 2500 kbit/s", "--max-rate"]),
        ("live webrtc --token abc", &["--token", "16 letters and digits or more"]),
        ("live webrtc --clip sport", &["--clip", "`sport`", "did you mean `sports`?"]),
        ("live webrtc --calls 0", &["--calls", "0", "1 to 64"]),
        ("live webrtc --listen 127.0.0.1", &["--listen", "'127.0.0.1'", "127.0.0.1:8090"]),
        ("live webrtc --link nowhere", &["nowhere", "weir show scenarios"]),
    ]);
}

#[cfg(feature = "tune")]
#[test]
fn of_the_search() {
    refused(&[
        ("search tune ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
        ("search tune gcc --parameters bta", &["bta"]),
        ("search tune gcc --evaluations 0", &["--evaluations", "expected a whole number above zero"]),
    ]);
}

#[cfg(feature = "coverage")]
#[test]
fn of_the_coverage_map() {
    refused(&[
        ("coverage serve --listen 0.0.0.0:0", &["--listen", "0.0.0.0:0", "--cert"]),
        ("coverage serve --listen localhost", &["--listen", "'localhost'", "127.0.0.1:8090"]),
        ("coverage serve --retention -1", &["--retention", "'-1'", "is not in 0.."]),
        ("coverage serve --database postgres://a@localhost/b --max-size 5", &["--max-size", "tablespace"]),
        ("coverage keys add king", &["'king'", "reporter, fleet, reader, admin"]),
        ("coverage keys list", &["--database", "coverage.db", "weir coverage serve makes one"]),
        ("coverage import --format norway nofile.log", &["nofile.log"]),
        ("coverage forecast --format ireland --out o --interval 5x nofile.csv", &["--interval", "`x` is no unit"]),
    ]);
}

#[cfg(feature = "coverage")]
#[test]
fn a_port_that_is_taken_leaves_no_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = taken.local_addr().expect("an address").to_string();
    let output = weir(folder.path(), &["coverage", "serve", "--listen", &at]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&at) && said.contains("in use"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "no database");
}

#[cfg(target_os = "linux")]
#[test]
fn help_says_how_long_a_token_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let lines: &[&[&str]] = if cfg!(feature = "webrtc") {
        &[&["live", "call", "listen", "--help"], &["live", "webrtc", "--help"]]
    } else {
        &[&["live", "call", "listen", "--help"]]
    };
    for line in lines {
        let help = String::from_utf8_lossy(&weir(folder.path(), line).stdout).into_owned();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains("16 letters and digits or more"), "{line:?}");
    }
}

#[test]
fn of_recordings_windows_and_rules() {
    refused(&[
        ("open a.log --from 5x", &["--from", "`x` is no unit of time: ms, s, min or h"]),
        ("open a.log --from -5s", &["--from", "'-5s'", "not below zero"]),
        ("open a.log --from 9 --to 8", &["--to", "8 s is not behind --from, 9 s", "give a later time"]),
        ("open a.log --rules absent.toml", &["absent.toml"]),
        ("open absent.log", &["absent.log"]),
        ("open absent.log --report absent/a.html", &["--report", "absent/a.html", "its folder is not there"]),
        ("fit absent.log", &["absent.log"]),
        ("fit absent.log --controller ncc", &["--controller", "no controller is named `ncc`", "did you mean `gcc`?"]),
        ("fit absent.log --ceiling 2MB", &["--ceiling", "`2MB` is in bytes; rates are in bits"]),
        ("whatif absent.log --controllers ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
        ("whatif absent.log --draws 1001", &["--draws", "1001", "1..=1000"]),
        (
            "whatif absent.log --controller ncc",
            &["--controller", "no controller is named `ncc`", "did you mean `gcc`?"],
        ),
        (
            "whatif absent.log --set ceilng=1",
            &["--set", "`ceilng`", "did you mean `ceiling`?", "known: audio, ceiling"],
        ),
        ("whatif absent.log --set ceiling", &["--set", "no KEY=VALUE", "ceiling=3Mbps"]),
        ("whatif absent.log --set ceiling=3MB", &["--set", "ceiling", "3MB", "rates are in bits"]),
        ("whatif absent.log --set repair=fec", &["--set", "repair", "fec", "nack,uep"]),
        ("whatif absent.log --set queue=cdel", &["--set", "queue", "`cdel`", "did you mean `codel`?"]),
        ("whatif absent.log --set fps=15 --set fps=30", &["--set", "fps", "twice"]),
        ("search calls absent", &["absent", "there is no such file or folder"]),
        ("search calls .", &[".", "no recording is in it", "weir help open"]),
        ("search calls . --controllers ncc", &["--controllers", "no controller is named `ncc`", "did you mean `gcc`?"]),
        ("search calls . --set x=1", &["--set", "`x`", "known: audio"]),
        ("search calls . --draws 0", &["--draws", "0 is not in 1..=1000"]),
        ("whatif absent.log --draws 0", &["--draws", "0 is not in 1..=1000"]),
        (
            "open absent.log --controllers ncc",
            &["--controllers", "no controller is named `ncc`", "did you mean `gcc`?"],
        ),
        ("open absent.log --controllers exec:cat", &["--controllers", "`exec:cat`", "cannot be fed", "weir whatif"]),
        ("judge causes --controllers ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
        ("judge causes --cause rain", &["--cause", "no cause is named `rain`", "delay-step"]),
        ("judge fits --links 0", &["--links", "0", "1..=10000"]),
        ("judge fits --recorded ncc", &["no controller is named `ncc`", "did you mean `gcc`?"]),
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    // 20 packets a second, and half as many from 20 s on.
    let line = |i: u64| format!("{},102,7,{i},0,false,1250,0,{i},1\n", 1_700_000_000_000 + i * 50);
    let log: String = (0..800).filter(|i| *i < 400 || i % 2 == 0).map(line).collect();
    std::fs::write(folder.path().join("rtp.log"), log).expect("written");
    let rule =
        "[[rules]]\nname = \"odd\"\nconfidence = 0.7\n[[rules.when]]\nquantity = \"sent_kbps\"\nstatistic = \"mean\"\n";
    std::fs::write(folder.path().join("good.toml"), format!("{rule}of = \"in\"\nbelow = 1000\n")).expect("written");
    std::fs::write(folder.path().join("bad.toml"), format!("{rule}of = \"in\"\nbelow = inf\n")).expect("written");
    let bad = weir(folder.path(), &["open", "rtp.log", "--rules", "bad.toml"]);
    let said = String::from_utf8_lossy(&bad.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(bad.status.code(), Some(2), "{said}");
    for part in ["bad.toml", "rules[0].when[0].below", "inf", ":8:", "leave out a bound"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let behind = weir(folder.path(), &["open", "rtp.log", "--from", "3000"]);
    let said = String::from_utf8_lossy(&behind.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(behind.status.code(), Some(2), "{said}");
    assert!(said.contains("--from") && said.contains("behind the call's end: it is 39.9 s long"), "{said}");
    let no_fates = weir(folder.path(), &["fit", "rtp.log"]);
    let said = String::from_utf8_lossy(&no_fates.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(no_fates.status.code(), Some(2), "{said}");
    assert!(said.contains("captures at both ends, one log with feedback") && said.contains("rtp.log"), "{said}");
    let good = weir(folder.path(), &["open", "rtp.log", "--rules", "good.toml", "--from", "5", "--to", "10", "--json"]);
    assert_eq!(good.status.code(), Some(0), "{}", String::from_utf8_lossy(&good.stderr));
    let json: serde_json::Value = serde_json::from_slice(&good.stdout).expect("JSON");
    let packets = &json["sources"][0]["packets"];
    let all = ["sent", "received", "passing"].map(|way| packets[way].as_u64().expect("a count")).iter().sum::<u64>();
    assert_eq!((all, json["sources"][0]["from_ms"].as_i64()), (100, Some(1_700_000_005_000)), "{json}");
    let alone = weir(folder.path(), &["open", "rtp.log", "--why"]);
    let said = String::from_utf8_lossy(&alone.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(alone.status.code(), Some(0), "{said}");
    for part in ["one end's packets, without feedback", "the other end's capture", "19.5 to 39", "the rate fell"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_file_that_is_read_is_never_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let line = |i: u64| format!("{},102,7,{i},0,false,1250,0,{i},1\n", 1_700_000_000_000 + i * 50);
    let scenario = "title = \"x\"\nduration = \"1 s\"\n[links.a]\nrate = \"1 Mbps\"\ndelay = \"9 ms\"\n[rtp.v]\ncontroller = \"gcc\"\n";
    let gate = "controllers = [\"gcc\"]\nruns = 6\n[[suites]]\nscenario = \"quick\"\nbudgets = [\"loss <= 1\"]\n";
    let written =
        [("rtp.log", (0..400).map(line).collect::<String>()), ("a.toml", scenario.into()), ("gate.toml", gate.into())];
    for (name, text) in &written {
        std::fs::write(at(name), text).expect("written");
    }
    std::fs::hard_link(at("rtp.log"), at("other.log")).expect("a link");
    for (line, option) in [
        ("open rtp.log --report rtp.log", "--report"),
        ("open rtp.log --report ./other.log", "--report"),
        ("open rtp.log --rules a.toml --report a.toml", "--report"),
        ("fit rtp.log --report rtp.log", "--report"),
        ("whatif rtp.log --report other.log", "--report"),
        ("run a.toml --pcap a.toml", "--pcap"),
        ("run a.toml --explain --plot ./a.toml", "--plot"),
        ("gate gate.toml --junit gate.toml", "--junit"),
        ("gate gate.toml --save-baseline gate.toml", "--save-baseline"),
        ("media quality a.toml a.toml --frames a.toml", "--frames"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let output = weir(folder.path(), &words);
        let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        for part in [option, "would be written over", "name another file"] {
            assert!(said.contains(part), "{line}: {part}: {said}");
        }
    }
    for (name, text) in &written {
        assert_eq!(std::fs::read_to_string(at(name)).expect("there"), *text, "{name}");
    }
    // Two outputs in one file, and a copy where one is already.
    for (line, parts) in [
        ("gate gate.toml --junit o.xml --sarif o.xml", ["--sarif", "--junit is written there"]),
        ("open rtp.log --redact a.toml", ["--redact: a.toml: is there already", "remove it"]),
    ] {
        let output = weir(folder.path(), &line.split(' ').collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{line}: {said}");
    }
    // A baseline may be replaced by its successor.
    for _ in 0..2 {
        let args = ["gate", "gate.toml", "--save-baseline", "b.json", "-q"];
        assert_eq!(weir(folder.path(), &args).status.code(), Some(0));
    }
    let args = ["gate", "gate.toml", "--baseline", "b.json", "--save-baseline", "b.json", "-q"];
    let output = weir(folder.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn of_recordings_that_are_damaged_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("package.json", "{\"name\": \"x\", \"type\": \"module\"}\n");
    let good = "{\"epoch_ms\":1700000000000,\"stats\":{\"O\":{\"type\":\"outbound-rtp\",\"packetsSent\":7}}}\n";
    write("damaged.jsonl", &format!("{good}{{\"epoch_ms\n{good}"));
    let long = format!("{}.log", "name-of-a-file-".repeat(4));
    // Numbers that jump, which breaks a rule.
    let number = |i: u64| if i < 100 { i } else { i + 5_000 };
    let line =
        |i: u64| format!("{},102,7,{},{},false,1250,0,{i},1\n", 1_700_000_000_000 + i * 50, number(i), 4_500 * (i + 1));
    write(&long, &(0..200).map(line).collect::<String>());
    let of = |args: &[&str]| {
        let done = weir(folder.path(), args);
        let said = String::from_utf8_lossy(&done.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        (done.status.code(), said, String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let (code, said, _) = of(&["open", "package.json"]);
    assert!(code == Some(2) && said.contains("not a recording that Weir knows"), "{said}");
    let (code, said, text) = of(&["open", "damaged.jsonl"]);
    assert!(code == Some(3) && said.contains(&format!("damaged at byte {}", good.len())), "{said}");
    assert!(text.contains("7 sent") && text.contains("1 lines that are not JSON"), "{text}");
    let mut narrow = Command::new(env!("CARGO_BIN_EXE_weir"));
    narrow.current_dir(folder.path()).args(["open", &long, "--lint"]).env("COLUMNS", "80");
    let text = String::from_utf8_lossy(&narrow.output().expect("starts").stdout).into_owned();
    assert!(text.contains("sequence-jump"), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
}
