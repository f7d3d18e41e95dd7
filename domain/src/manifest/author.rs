//! The author's document seen as an app and a version, whichever form it has. In the flat form both are the same object.

use serde_json::Value;

use super::schema;
use super::spot::Spot;
use crate::runtime::RuntimeBackend;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `{app, version}`.
    Package,
    /// The fields of both, side by side.
    Flat,
}

impl Form {
    pub(super) fn of(value: &Value) -> Form {
        let package = value.get("app").is_some() || value.get("version").is_some_and(Value::is_object);
        if package { Form::Package } else { Form::Flat }
    }

    pub(super) fn schema_name(self) -> &'static str {
        match self {
            Form::Package => schema::PACKAGE,
            Form::Flat => schema::FLAT,
        }
    }
}

pub(super) struct Author<'a> {
    pub(super) form: Form,
    pub(super) root: Spot<'a>,
    pub(super) app: Spot<'a>,
    pub(super) version: Spot<'a>,
}

impl<'a> Author<'a> {
    pub(super) fn of(value: &'a Value) -> Author<'a> {
        let (form, root) = (Form::of(value), Spot::root(value));
        let (app, version) = match form {
            Form::Package => (root.at("app"), root.at("version")),
            Form::Flat => (root.clone(), root.clone()),
        };
        Author { form, root, app, version }
    }

    pub(super) fn profile(&self) -> Spot<'a> {
        self.version.at("runtime_profile")
    }

    /// What runs the app, if the document says it and says it right.
    pub(super) fn backend(&self) -> Option<RuntimeBackend> {
        let said = self.app.at("runtime_backend").text();
        let said = said.or_else(|| match self.form {
            Form::Package => None,
            Form::Flat => self.profile().at("kind").text(),
        });
        said.and_then(|word| word.parse().ok())
    }
}
