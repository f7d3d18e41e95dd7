//! Where artifacts are kept, and how credentials for it are handed over.

use clients::registry::Registry;
use clients::wrapping::Wrapping;

pub struct Depot {
    pub registry: Registry,
    pub wrapping: Wrapping,
}
