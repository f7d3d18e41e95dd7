//! A plan as people read it: what would be decided, the steps with what each touches, and where it could stand.

use std::fmt::Write;

use api_types::{EffectiveInstance, InstancePlan, InstancePlanStep, InstancePrice};
use domain::entitlement::{Choice, Effective, Layer};
use domain::placement::Strategy;
use serde_json::Value;

use crate::cli::workflows::word;
use crate::cli::{matrix, output};

/// All of it.
pub fn picture(plan: &InstancePlan) -> String {
    let rows: Vec<Vec<String>> = plan.steps.iter().map(step).collect();
    let steps = output::table(&["step", "usually", "undone if a later one fails", "touches"], &rows);
    let taken = plan.effective.as_ref().and_then(|effective| effective.allocation_id);
    let placement = matrix::table(&plan.placement, taken);
    let gap = if placement.is_empty() { "" } else { "\n" };
    format!("{}\n{steps}{gap}{placement}", brief(plan))
}

/// What would be decided, without the steps.
pub fn brief(plan: &InstancePlan) -> String {
    let mut lines = vec![("plan", format!("{}, {} steps", plan.workflow_kind, plan.steps.len()))];
    if plan.changes_nothing {
        let ends = plan.action == "decommission";
        let why = if ends { "it has ended already" } else { "this very version serves already" };
        lines.push(("changes", format!("nothing: {why}")));
    }
    match plan.strategy.filter(|_| !plan.changes_nothing) {
        Some(Strategy::SideBySide) => {
            lines.push(("switch", "the old version serves until the new one is healthy".to_owned()));
        }
        Some(Strategy::StopThenStart) => {
            lines.push((
                "switch",
                "both do not fit: the old version stops before the new one starts".to_owned(),
            ));
        }
        None => {}
    }
    if let Some(effective) = &plan.effective {
        decided(&mut lines, effective);
    }
    if let Some(policy) = &plan.policy {
        lines.push(("policy", allowed(policy)));
    }
    if let Some(seconds) = plan.expected_seconds {
        lines.push(("takes", format!("about {seconds:.1}s on the node, as it did before")));
    }
    if let Some(price) = &plan.price_per_hour {
        lines.push(("price", per_hour(price)));
    }
    let mut text = String::new();
    for (name, value) in lines {
        let _ = writeln!(text, "{name:10}  {value}");
    }
    text
}

fn decided(lines: &mut Vec<(&'static str, String)>, effective: &EffectiveInstance) {
    lines.push(("version", effective.version.clone()));
    lines.push((
        "mode",
        format!("{}, scope {}", word(&effective.operating_mode), word(&effective.control_plane_scope)),
    ));
    if let Some(allocation) = effective.allocation_id {
        lines.push(("allocation", allocation.to_string()));
    }
    lines.push(("resources", fields(&effective.resources)));
    if effective.config.as_object().is_some_and(|config| !config.is_empty()) {
        lines.push(("config", fields(&effective.config)));
    }
    for artifact in &effective.artifacts {
        lines.push(("artifact", format!("{} {}", artifact.name, artifact.digest)));
    }
}

/// `name=value`, without what is null.
fn fields(object: &Value) -> String {
    let fields = object.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    fields.map(|(name, value)| format!("{name}={value}")).collect::<Vec<String>>().join(" ")
}

fn allowed(policy: &Effective) -> String {
    let modes: Vec<String> = policy.operating_modes.iter().map(word).collect();
    let scopes: Vec<String> = policy.control_plane_scopes.iter().map(word).collect();
    let gpus = policy.max_gpu_count.map(|most| format!(", at most {most} GPUs")).unwrap_or_default();
    // What the app itself cannot do is nobody's policy.
    let taken = policy.removed.iter().filter(|removal| removal.layer != Layer::Manifest).map(|removal| {
        let what = match removal.option {
            Choice::Mode(mode) => word(&mode),
            Choice::Scope(scope) => word(&scope),
            Choice::GpusAbove(most) => format!("more than {most} GPUs"),
        };
        format!("{what} (by {})", word(&removal.layer))
    });
    let taken: Vec<String> = taken.collect();
    let without = if taken.is_empty() { String::new() } else { format!("; not {}", taken.join(", ")) };
    format!("{} with scope {}{gpus}{without}", modes.join(" or "), scopes.join(" or "))
}

/// As money is told everywhere.
fn per_hour(price: &InstancePrice) -> String {
    let own = domain::currency::written(price.amount_minor, &price.currency);
    match price.allocation_amount_minor {
        0 => format!("{own} an hour"),
        minor => {
            format!(
                "{own} an hour, beside {} for its allocation",
                domain::currency::written(minor, &price.currency)
            )
        }
    }
}

fn step(step: &InstancePlanStep) -> Vec<String> {
    let usually = step.expected_seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.1}s"));
    let undone = if step.undo { "yes" } else { "-" };
    vec![step.name.clone(), usually, undone.to_owned(), step.touches.clone()]
}
