//! The client side of the command line: one file per verb, data on stdout, talk on stderr.

pub mod config;
pub mod output;
