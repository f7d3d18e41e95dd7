//! What a node's answer to a removal is worth. Only evidence that nothing is left counts; everything else is a removal that is
//! still to be done.

use node_protocol::{Evidence, Generations, Outcome, Output, Refusal, Signed};
use uuid::Uuid;

/// The evidence that nothing of what was meant is left of the instance, or why there is none. It came from the node itself;
/// whoever keeps it checks the node's signature too.
pub fn gone(instance: Uuid, outcome: &Outcome) -> Result<&Signed, String> {
    match outcome {
        Outcome::Succeeded { output: Output::Removed { evidence } } => match evidence.said::<Evidence>() {
            Some(said) if said.instance_id != instance => {
                Err("the evidence is of another instance".to_owned())
            }
            Some(said) if said.is_clean() => Ok(evidence),
            Some(said) => Err(format!("still there after the removal: {}", said.remaining.join(", "))),
            None => Err("the node's evidence cannot be read".to_owned()),
        },
        Outcome::Succeeded { output } => Err(format!("the node answered something else: {output:?}")),
        Outcome::Failed { message, .. } => Err(message.clone()),
        Outcome::Refused { refusal } => Err(format!("the node refused: {refusal}")),
    }
}

/// The same of this very task, all of whose generations it is about: what shows less ends nothing.
pub fn gone_as_asked(
    instance: Uuid,
    (task, generations): (Uuid, Generations),
    outcome: &Outcome,
) -> Result<&Signed, String> {
    let evidence = gone(instance, outcome)?;
    match evidence.said::<Evidence>() {
        Some(said) if said.task_id != task => Err("the evidence is of another task".to_owned()),
        Some(said) if !said.generations.cover(generations) => {
            Err(format!("the evidence is of {:?}, not of {generations:?}", said.generations))
        }
        _ => Ok(evidence),
    }
}

/// The same, or a node that knows of a newer generation, which is somebody else's to take away.
pub(super) fn gone_or_newer(instance: Uuid, outcome: &Outcome) -> Result<(), String> {
    match outcome {
        Outcome::Refused { refusal: Refusal::StaleGeneration } => Ok(()),
        other => gone(instance, other).map(drop),
    }
}
