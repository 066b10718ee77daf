//! Former names of commands. They work for one version, and say on standard error what they are called now.

use std::ffi::OsString;

/// Former words of a command, and those of today; longer ones first.
const RENAMED: [(&[&str], &[&str]); 22] = [
    (&["scenario", "check"], &["show", "scenario", "--check"]),
    (&["scenario", "show"], &["show", "scenario"]),
    (&["scenario", "schema"], &["show", "schema", "scenario"]),
    (&["scenario"], &["show", "scenario"]),
    (&["schema"], &["show", "schema"]),
    (&["list"], &["show"]),
    (&["twin", "list"], &["show", "twins"]),
    (&["twin", "run"], &["judge", "twins"]),
    (&["twin"], &["judge", "twins"]),
    (&["scorecard"], &["judge", "rfc"]),
    (&["scoreboard"], &["judge", "rows"]),
    (&["reproduce"], &["judge", "paper"]),
    (&["sweep"], &["search", "sweep"]),
    (&["tune"], &["search", "tune"]),
    (&["call", "webrtc"], &["live", "webrtc"]),
    (&["call"], &["live", "call"]),
    (&["emulate"], &["live", "emulate"]),
    (&["testbed"], &["live", "testbed"]),
    (&["dccp", "list"], &["show", "ccids"]),
    (&["dccp"], &["live", "dccp"]),
    (&["quality"], &["media", "quality"]),
    (&["clip"], &["media", "clip"]),
];

/// Options of calls that were numbers of kbit/s.
const KBPS: [&str; 3] = ["--start-rate", "--min-rate", "--max-rate"];

/// A command line under today's names.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Renamed {
    /// All words behind the program's name.
    pub(crate) words: Vec<OsString>,
    /// Message that states the former and the present name of the command.
    pub(crate) note: String,
}

/// The command line, without the program's name, under today's names; `None` where it has no former one.
pub(crate) fn renamed(words: &[OsString]) -> Option<Renamed> {
    let is_help = words.first().is_some_and(|w| w == "help");
    let given = if is_help { &words[1..] } else { words };
    let (old, new, rest) = rewritten(given)?;
    let help = is_help.then(|| OsString::from("help"));
    // `help` takes names alone.
    let named = new.iter().filter(|w| !is_help || !w.starts_with('-')).map(OsString::from);
    let rest = if is_help { vec![] } else { rest };
    let note = format!("`weir {old}` is now `weir {}`; the former name works in this version only", new.join(" "));
    Some(Renamed { words: help.into_iter().chain(named).chain(rest).collect(), note })
}

type Rewritten = (String, Vec<&'static str>, Vec<OsString>);

/// The former name, that of today, and the rest of the words under today's options.
fn rewritten(words: &[OsString]) -> Option<Rewritten> {
    let first = words.first()?.to_str()?;
    match first {
        "explain" => return Some(("explain".into(), vec!["run", "--explain"], words[1..].to_vec())),
        "pcap" => return Some(("pcap".into(), vec!["run", "--pcap"], capture(&words[1..]))),
        _ => {}
    }
    let begins = |old: &&[&str]| words.len() >= old.len() && old.iter().zip(words).all(|(o, w)| w == o);
    let (old, new) = RENAMED.iter().find(|(old, _)| begins(old))?;
    let rest = &words[old.len()..];
    let (old, new) = (old.join(" "), new.to_vec());
    Some(match first {
        "scoreboard" => stability(rest).map_or_else(
            || (old.clone(), new, rest.to_vec()),
            |rest| ("scoreboard --stability".into(), vec!["judge", "stability"], rest),
        ),
        // The kind of a list stood anywhere among the options.
        "list" => {
            let (kinds, options): (Vec<_>, Vec<_>) =
                rest.iter().cloned().partition(|w| !w.as_encoded_bytes().starts_with(b"-"));
            (old, new, [kinds, options].concat())
        }
        "call" => (old, new, with_units(rest)),
        _ => (old, new, rest.to_vec()),
    })
}

/// The value of an option, which is the next word or follows `=`, and how many words that takes.
fn value(words: &[OsString], option: &str) -> Option<(String, usize)> {
    let word = words.first()?.to_str()?;
    if word == option {
        return words.get(1).and_then(|w| w.to_str()).map(|v| (v.to_owned(), 2));
    }
    word.strip_prefix(option)?.strip_prefix('=').map(|v| (v.to_owned(), 1))
}

/// `weir pcap`: no table, and a file named after the run where none was named.
fn capture(words: &[OsString]) -> Vec<OsString> {
    let (mut file, mut rest, mut at) = (OsString::from("."), vec![], 0);
    while at < words.len() {
        match value(&words[at..], "--out") {
            Some((given, taken)) => {
                file = given.into();
                at += taken;
            }
            None => {
                rest.push(words[at].clone());
                at += 1;
            }
        }
    }
    [vec![file], rest, vec!["--no-table".into()]].concat()
}

/// `weir scoreboard --stability`: the grid, and the first of the controllers; `None` without that option.
fn stability(words: &[OsString]) -> Option<Vec<OsString>> {
    let mut is_asked = false;
    let (mut rest, mut at) = (Vec::<OsString>::new(), 0);
    while at < words.len() {
        let word = words[at].to_str().unwrap_or_default();
        if word == "--stability" || word.starts_with("--stability=") {
            is_asked = true;
            match value(&words[at..], "--stability").filter(|v| v.0 == "whole" || v.0 == "coarse") {
                Some((grid, taken)) => {
                    rest.extend(["--grid".into(), grid.into()]);
                    at += taken;
                }
                None => at += 1,
            }
        } else if let Some((all, taken)) = value(&words[at..], "--controllers") {
            rest.extend(["--controller".into(), all.split(',').next().unwrap_or_default().into()]);
            at += taken;
        } else {
            rest.push(words[at].clone());
            at += 1;
        }
    }
    is_asked.then_some(rest)
}

/// `weir call`: rates were numbers of kbit/s, the playout delay one of milliseconds.
fn with_units(words: &[OsString]) -> Vec<OsString> {
    let is_number = |v: &str| v.parse::<f64>().is_ok();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let units = KBPS.iter().map(|name| (*name, "kbps")).chain([("--playout-delay", "ms")]);
        let found = units.into_iter().find_map(|(name, unit)| Some((name, unit, value(&words[at..], name)?)));
        match found {
            Some((name, unit, (given, taken))) => {
                let unit = if is_number(&given) { unit } else { "" };
                out.extend([name.into(), format!("{given}{unit}").into()]);
                at += taken;
            }
            None => {
                out.push(words[at].clone());
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words and note under today's names.
    fn today(line: &str) -> Option<(String, String)> {
        let words: Vec<OsString> = line.split(' ').filter(|w| !w.is_empty()).map(OsString::from).collect();
        let renamed = renamed(&words)?;
        let words: Vec<String> = renamed.words.into_iter().map(|w| w.into_string().expect("UTF-8")).collect();
        Some((words.join(" "), renamed.note))
    }

    #[test]
    fn former_names_become_those_of_today() {
        for (old, new) in [
            ("list controllers --params", "show controllers --params"),
            ("list --json scenarios", "show scenarios --json"),
            ("scenario check a.toml quick", "show scenario --check a.toml quick"),
            ("scenario schema", "show schema scenario"),
            ("schema run", "show schema run"),
            ("twin list", "show twins"),
            ("twin run gcc/three -q", "judge twins gcc/three -q"),
            ("scorecard gcc --suite rfc8869", "judge rfc gcc --suite rfc8869"),
            ("scoreboard --rows e", "judge rows --rows e"),
            ("scoreboard --stability=coarse --controllers gcc,nada", "judge stability --grid coarse --controller gcc"),
            ("scoreboard --stability --json", "judge stability --json"),
            ("reproduce fbra --runs 1", "judge paper fbra --runs 1"),
            ("tune sluice", "search tune sluice"),
            ("call webrtc --max-rate=4000", "live webrtc --max-rate 4000kbps"),
            (
                "call loopback --min-rate 100 --playout-delay 150",
                "live call loopback --min-rate 100kbps --playout-delay 150ms",
            ),
            ("call listen --start-rate 2mbps", "live call listen --start-rate 2mbps"),
            ("dccp list", "show ccids"),
            ("dccp send HOST", "live dccp send HOST"),
            ("emulate quick -- list x", "live emulate quick -- list x"),
            ("clip sports --rate 15", "media clip sports --rate 15"),
            ("explain row:e --from 3", "run --explain row:e --from 3"),
            ("pcap quick --at sender", "run --pcap . quick --at sender --no-table"),
            ("pcap --out=x.pcapng quick", "run --pcap x.pcapng quick --no-table"),
            ("help scoreboard", "help judge rows"),
            ("help pcap", "help run"),
        ] {
            assert_eq!(today(old).map(|t| t.0).as_deref(), Some(new), "{old}");
        }
    }

    #[test]
    fn the_note_has_both_names() {
        let note = today("scorecard gcc").expect("renamed").1;
        assert_eq!(note, "`weir scorecard` is now `weir judge rfc`; the former name works in this version only");
        assert!(today("pcap quick").expect("renamed").1.contains("is now `weir run --pcap`;"));
    }

    #[test]
    fn names_of_today_stay() {
        for line in
            ["", "run list", "compare", "--controllers gcc", "show scenarios", "help run", "bench", "judge paper fbra"]
        {
            assert_eq!(today(line), None, "{line}");
        }
    }
}
