//! The image registry's side of the platform: what it is, whom it lets in, and what it tells of itself.

mod describe;
mod events;
mod token;

pub(crate) use describe::describe;
pub(crate) use events::events;
pub(crate) use token::token;
