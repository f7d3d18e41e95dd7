//! What the stories share.

pub mod agent;
pub mod bucket;
pub mod cluster;
pub mod control_plane;
pub mod cutter;
pub mod database;
pub mod docker;
pub mod failing;
pub mod fleet;
pub mod image;
pub mod issuer;
pub mod machine;
pub mod node;
pub mod outsider;
pub mod platform;
pub mod pooler;
pub mod process;
pub mod proxy;
pub mod realm;
pub mod registry;
pub mod slow;
pub mod stand_in;
pub mod story;
pub mod told;
pub mod world;
pub mod wrapped;
