//! The console's door: who signs in by a browser, what the cookie is worth, and what is served to whom.

pub mod browser;
pub mod desk;
mod journeys;
mod lifecycle;
mod pages;
pub mod releases;
mod sessions;
mod signing_in;
