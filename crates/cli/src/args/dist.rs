//! Arguments of `weir completions` and `weir manual`.

use clap_complete::Shell;
use std::path::PathBuf;

pub(super) const COMPLETIONS: &str = "\
Packages of Weir have the files of Bash, Zsh and Fish where these shells look for them.

Examples:
  weir completions bash > ~/.local/share/bash-completion/completions/weir
  weir completions zsh > ~/.zfunc/_weir     with fpath+=~/.zfunc before compinit in ~/.zshrc
  weir completions fish > ~/.config/fish/completions/weir.fish
  weir completions powershell >> $PROFILE";

pub(super) const MANUAL: &str = "\
A command of two words has the page of both: man weir-live-call.

Examples:
  weir manual
  weir manual --out ~/.local/share/man/man1";

#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Shell that reads it
    pub(crate) shell: Shell,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ManualArgs {
    /// Folder for the pages
    #[arg(long, value_name = "DIR", default_value = "weir-manual")]
    pub(crate) out: PathBuf,
}
