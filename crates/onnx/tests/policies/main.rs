//! Learned policies: which files are accepted, and what they do in calls.

mod calls;
mod files;
mod models;
