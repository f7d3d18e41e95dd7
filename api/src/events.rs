//! `GET P/events`: what a project was told, in its order: by pages, or as it happens for those who accept
//! `text/event-stream`. Both take the same filters and the same numbers.

mod list;
mod stream;
mod watch;

pub(crate) use list::list;
pub(crate) use watch::EventWatch;
