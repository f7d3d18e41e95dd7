//! The console's door: who signs in by a browser, what the cookie is worth, and what is served to whom.

mod browser;
mod desk;
mod journeys;
mod pages;
mod sessions;
mod signing_in;
