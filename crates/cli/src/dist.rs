//! `weir completions` and `weir manual`: what packages contain beside the program, made from the command line's grammar.

use crate::Done;
use crate::args::{CompletionsArgs, ManualArgs};
use crate::output::{Failure, check_folder, print};
use clap::Command;
use std::fs;

pub(crate) fn completions(args: &CompletionsArgs) -> Done {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut with_all(crate::grammar()), "weir", &mut text);
    print(&String::from_utf8(text).map_err(Failure::work)?)
}

pub(crate) fn manual(args: &ManualArgs) -> Done {
    check_folder("--out", &args.out)?;
    fs::create_dir_all(&args.out).map_err(Failure::work)?;
    let grammar = with_all(crate::grammar()).disable_help_subcommand(true);
    clap_mangen::generate_to(grammar, &args.out).map_err(Failure::work)
}

/// The same grammar with every command listed: those that `weir --help` names apart have pages and completions as well.
fn with_all(command: Command) -> Command {
    command.mut_subcommands(|c| with_all(c.hide(false)))
}
