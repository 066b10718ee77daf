//! The tests of weir-cc from outside, in one program: each file or folder is a module of it.

mod call;
mod circuit_breaker_closed_loop;
mod dpfec_closed_loop;
mod embed;
mod fec_probing_closed_loop;
mod gcc_remb_closed_loop;
mod interactive_closed_loop;
mod link;
mod nada_closed_loop;
mod one_line;
#[path = "operations/main.rs"]
mod operations;
mod receiver_estimate_closed_loop;
mod sluice_vectors;
mod tfrc_closed_loop;
