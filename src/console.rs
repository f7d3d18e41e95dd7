//! The files of the web console, as `build.rs` found them; none if it was not built.

pub const FILES: &[api::File] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));
