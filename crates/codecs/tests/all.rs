//! The tests of weir-codecs from outside, in one program: each file or folder is a module of it.

mod audio;
mod common;
mod decoders;
mod encoders;
mod layers;
mod outages;
mod references;
mod slices;
