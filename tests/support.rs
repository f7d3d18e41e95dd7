//! What the stories share.

pub mod cluster;
pub mod database;
pub mod failing;
pub mod image;
pub mod outsider;
pub mod process;
pub mod proxy;
pub mod realm;
pub mod registry;
pub mod slow;
pub mod story;
pub mod world;
