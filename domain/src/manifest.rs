//! The app manifest: what an app team writes down so that everybody else can review, deploy and bill its app.
//!
//! These types are the one source of its shape. The JSON Schema that editors use is made from them, validation asks that
//! schema, and what is stored is these types written out: the normal form, with every default filled in.

mod app;
mod artifact;
mod health;
pub mod number;
mod optional;
mod profile;
mod requirements;
mod resources;
mod smoke;
mod topology;
mod version;
mod worker;

pub use app::{App, Manifest, SupportedModes, Ui, UiExtensionKind};
pub use artifact::{ArtifactKind, ArtifactSlot, SourceType};
pub use health::{Health, HealthKind};
pub use profile::{EnvVar, Exposure, LaunchParameter, Port, ProfileKind, RuntimeProfile, Variant};
pub use requirements::{AccessCredentialKind, CredentialClass, OperatorIdentity, RuntimeRequirements};
pub use resources::{Amount, Resources};
pub use smoke::{SmokeMethod, SmokeTest};
pub use topology::{Endpoint, Mount, Renderer, Service, Topology};
pub use version::{Bootstrap, BootstrapKind, Compatibility, Metering, MeteringKind, Version};
pub use worker::{
    ChildOperation, ChildRole, Delivery, ExternalWorkerContract, MemberOperation, RootComponent, RootRole,
};
