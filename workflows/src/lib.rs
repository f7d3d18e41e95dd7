//! One file per lifecycle action, and the registry that makes them known. A new action is one file and one line here.

pub mod demo;

use activities::Env;
use engine::Registry;

pub fn registry() -> Registry<Env> {
    Registry::new().with::<demo::Tour>()
}
