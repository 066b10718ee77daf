//! The tests of weir-report from outside, in one program: each file is a module of it.

mod capture_dccp;
mod capture_points;
mod explained_moves;
mod opened;
mod recorded;
