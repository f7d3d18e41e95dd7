//! Fields that authors may leave out because the normal form fills them: they are no `Option` in Rust, and not
//! `required` in the schema.

use schemars::Schema;
use schemars::transform::Transform;
use serde_json::Value;

#[derive(Clone)]
pub(super) struct Optional(pub(super) &'static [&'static str]);

impl Transform for Optional {
    fn transform(&mut self, schema: &mut Schema) {
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.retain(|name| !self.0.iter().any(|optional| name == optional));
        }
    }
}
