//! Paragraphs of help texts, which are broken into lines for the terminal alone.

/// Length from which a line goes on in the next one: shorter ones end where they should.
const BROKEN: usize = 80;

/// The same grammar, whose paragraphs below the options are one line each, so that they are not broken twice.
pub(crate) fn with_whole_paragraphs(mut command: clap::Command) -> clap::Command {
    if let Some(text) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(joined(&text));
    }
    command.mut_subcommands(with_whole_paragraphs)
}

/// Joins lines that were broken in the source. Examples, which are indented, headings and empty lines stay.
fn joined(text: &str) -> String {
    let mut out = String::new();
    let mut last = "";
    for line in text.lines() {
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        let begins = last.ends_with(':') || line.split(' ').next().is_some_and(|word| word.ends_with(':'));
        if is_prose(last) && is_prose(line) && !begins && last.chars().count() >= BROKEN {
            out.push(' ');
        } else if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(line);
        last = line;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_lines_are_joined_and_others_stay() {
        let long = "a".repeat(BROKEN - 2);
        let text = format!("{long} b\ngoes on:\nTerms: c\n\nExamples:\n  weir run\n  {long} d\n  e");
        let whole = format!("{long} b goes on:\nTerms: c\n\nExamples:\n  weir run\n  {long} d\n  e");
        assert_eq!(joined(&text), whole);
        assert_eq!(joined("short\nlines\nstay"), "short\nlines\nstay");
    }

    #[test]
    fn paragraphs_of_commands_are_one_line() {
        let grammar = crate::grammar();
        let of = |command: &clap::Command| command.get_after_help().map(ToString::to_string).expect("examples");
        let help = of(&grammar);
        assert!(help.contains("or the command is not in this build; 3 a recording"), "{help}");
        assert!(help.contains("are whole).\nEnvironment: NO_COLOR"), "{help}");
        let open = of(grammar.find_subcommand("open").expect("a command"));
        assert!(open.contains("dumps of chrome://webrtc-internals, getStats reports"), "{open}");
    }
}
