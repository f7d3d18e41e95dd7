//! Artifacts: each name and variant once, kinds that fit their source, images by digest.

use super::unique;
use crate::manifest::artifact::{ArtifactKind, ArtifactSlot};
use crate::manifest::author::{Author, Form};
use crate::manifest::check::Findings;
use crate::manifest::reference::Reference;
use crate::manifest::spot::Spot;

pub(super) fn check(author: &Author<'_>, found: &mut Findings) {
    let slots = author.version.at("artifacts").items();
    let key = |slot: &Spot<'_>| {
        Some(format!("{}\n{}", slot.at("name").text()?, slot.at("variant").text().unwrap_or("")))
    };
    let keyed = slots.iter().filter_map(|slot| Some((key(slot)?, slot.at("name"))));
    unique(keyed, "is the name of an artifact above, with the same variant", found);
    for slot in &slots {
        source(slot, found);
    }
    if !slots.is_empty() && author.backend().is_some_and(|backend| backend.runs_on_agent()) {
        runtime(author, &slots, found);
    }
    variants(author, &slots, found);
    if author.form == Form::Flat {
        references(author, found);
    }
}

fn source(slot: &Spot<'_>, found: &mut Findings) {
    let kind = match slot.at("artifact_kind").text() {
        Some("blob") => ArtifactKind::Blob,
        None | Some("oci") => ArtifactKind::Oci,
        Some(_) => return,
    };
    let (source, fits) = (slot.at("source_type"), kind.source_type().as_str());
    if source.text().is_some_and(|word| word != fits) {
        found.refuse(source.problem(format!("must be `{fits}` for an artifact of kind `{}`", kind.as_str())));
    }
}

/// The node agent starts the image named `runtime`.
fn runtime(author: &Author<'_>, slots: &[Spot<'_>], found: &mut Findings) {
    let named = |slot: &&Spot<'_>| slot.at("name").is(ArtifactSlot::RUNTIME);
    match slots.iter().find(named) {
        Some(slot) if slot.at("artifact_kind").is("blob") => {
            found.refuse(slot.at("artifact_kind").problem("must be `oci`: the node agent starts `runtime`"));
        }
        Some(_) => {}
        None if author.version.at("artifact_ref").exists() || author.profile().at("topology").exists() => {}
        None => {
            let artifacts = author.version.at("artifacts");
            found.refuse(
                artifacts.problem("must have an image named `runtime`, which is what the node agent starts"),
            );
        }
    }
}

/// A launch chooses a variant by name, so that variant must have an image.
fn variants(author: &Author<'_>, slots: &[Spot<'_>], found: &mut Findings) {
    let variants = author.profile().at("variants").items();
    let named = variants.iter().filter_map(|v| Some((v.at("name").text()?.to_owned(), v.at("name"))));
    unique(named, "is the name of a variant above", found);
    for variant in &variants {
        let Some(name) = variant.at("name").text() else { continue };
        if !slots.iter().any(|slot| slot.at("variant").is(name)) {
            found.refuse(variant.at("name").problem("is carried by no artifact: give one this `variant`"));
        }
    }
    for slot in slots {
        let carried = slot.at("variant");
        let known = carried.text().is_none_or(|name| variants.iter().any(|v| v.at("name").is(name)));
        if !variants.is_empty() && !known {
            found.refuse(carried.problem("is not among runtime_profile.variants"));
        }
    }
}

/// The flat form names the image itself, in one or two places.
fn references(author: &Author<'_>, found: &mut Findings) {
    let (artifact, image) = (author.version.at("artifact_ref"), author.profile().at("image_ref"));
    let mut readable = true;
    for spot in [&artifact, &image] {
        let Some(text) = spot.text() else { continue };
        let reference = Reference::parse(text);
        readable &= reference.is_ok();
        match reference {
            Err(why) => found.refuse(spot.problem(why)),
            Ok(reference) if reference.digest.is_none() => {
                found.warn(spot.problem(
                    "has an abbreviated digest, which pins nothing; the digest that is registered will",
                ));
            }
            Ok(_) => {}
        }
    }
    if let (Some(one), Some(other)) = (artifact.text(), image.text())
        && one != other
        && readable
    {
        found.refuse(image.problem("must equal artifact_ref"));
    }
}
