//! The app manifest: what an app team writes down so that everybody else can review, deploy and bill its app.
//!
//! These types are the one source of its shape. The JSON Schema that editors use is made from them, validation asks that
//! schema, and what is stored is these types written out: the normal form, with every default filled in.
//!
//! `read` and `take` are the way in. A stored manifest is read back with serde; `Version` then says what its instances
//! may be.

mod app;
mod artifact;
mod author;
mod canonical;
mod check;
mod document;
mod explain;
mod health;
mod instance;
mod normal;
pub mod number;
mod optional;
mod package;
mod problem;
mod profile;
mod reference;
mod requirements;
mod resources;
mod schema;
mod smoke;
mod spot;
mod topology;
mod user_schema;
mod validate;
mod version;
mod worker;

pub use app::{App, Manifest, SupportedModes, Ui, UiExtensionKind};
pub use artifact::{ArtifactKind, ArtifactSlot, SourceType};
pub use document::{Format, MAX_BYTES, value};
pub use health::{Health, HealthKind};
pub use instance::{Granted, LaunchValues, Wanted};
pub use package::{MAX_PACKAGES, package_problem};
pub use problem::Problem;
pub use profile::{EnvVar, Exposure, LaunchParameter, Port, ProfileKind, RuntimeProfile, Variant};
pub use requirements::{AccessCredentialKind, CredentialClass, OperatorIdentity, RuntimeRequirements};
pub use resources::{Amount, Resources};
pub use schema::{DIALECT, schema};
pub use smoke::{SmokeMethod, SmokeTest};
pub use topology::{Endpoint, Mount, Renderer, Service, Topology};
pub use validate::{Accepted, Rejected, read, take};
pub use version::{Bootstrap, BootstrapKind, Compatibility, Metering, MeteringKind, Version};
pub use worker::{
    ChildOperation, ChildRole, Delivery, ExternalWorkerContract, MemberOperation, RootComponent, RootRole,
};

#[cfg(test)]
mod tests;
