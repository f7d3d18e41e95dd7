//! From the engine's rows to the public words: names, redaction, planned steps, and what an operator may ask.

use std::collections::HashSet;

use api_types::{
    Attempt, AttemptOutcome, LateSignal, RunStatus, Step, StepKind, StepProgress, StepState, StuckCause,
    StuckCode, WorkflowHandle, WorkflowRun, WorkflowRunDetail,
};
use domain::Scope;
use domain::redact::redacted;
use engine::inspect::{AttemptView, RunDetail, RunView, StepView};
use engine::{Cause, Kind, PlannedStep, RunHandle, RunState};
use node_protocol::Progress;
use serde::Deserialize;
use serde_json::Value;

use super::href;

pub(crate) fn run(view: RunView) -> WorkflowRun {
    WorkflowRun {
        id: view.id,
        status: status(view.state),
        allowed_actions: engine::allowed_actions(view.state, view.wakes, view.pivoted, view.unwinding)
            .into_iter()
            .map(str::to_owned)
            .collect(),
        kind: view.kind,
        version: view.version,
        org_id: view.org_id,
        project_id: view.project_id,
        subject: view.target,
        requested: view.request,
        stuck_cause: view.stuck_cause.map(stuck_cause),
        error: view.error,
        correlation_id: view.correlation_id,
        trace_id: view.trace_id,
        parent_id: view.parent_id,
        parent_step: view.parent_step,
        retry_of: view.retry_of,
        worker: view.worker,
        seq: view.seq,
        created_at: view.created_at,
        started_at: view.started_at,
        updated_at: view.updated_at,
        finished_at: view.finished_at,
    }
}

/// The run with its journal, followed by the steps of its plan that it has not reached.
pub(crate) fn detail(detail: RunDetail, kinds: &[Kind]) -> WorkflowRunDetail {
    let plan = kinds.iter().find(|kind| kind.name == detail.run.kind && kind.version == detail.run.version);
    let reached: HashSet<String> = detail.steps.iter().map(|step| step.name.clone()).collect();
    // A run that has ended or turned back will not reach them any more.
    let never = detail.run.state.is_terminal() || detail.run.unwinding;
    let ahead = plan.map_or(&[][..], |kind| kind.plan).iter().filter(|step| !reached.contains(step.name));
    // Where earlier steps are left out nobody can tell from here what was reached.
    let ahead = ahead.filter(|_| detail.steps_left_out == 0);
    let ahead: Vec<Step> = ahead.map(|step| planned(step, never)).collect();
    WorkflowRunDetail {
        run: run(detail.run),
        input: redacted(detail.input),
        output: detail.output.map(redacted),
        steps: detail.steps.into_iter().map(step).chain(ahead).collect(),
        steps_left_out: detail.steps_left_out,
        late_signals: detail.late_signals.into_iter().map(late_signal).collect(),
        late_signals_total: detail.late_signals_total,
    }
}

pub(crate) fn handle(handle: &RunHandle, scope: Scope) -> WorkflowHandle {
    WorkflowHandle {
        id: handle.id,
        kind: handle.kind.clone(),
        status: status(handle.state),
        correlation_id: handle.correlation_id.clone(),
        href: href(scope, handle.id),
    }
}

/// The handle of a run that was read again after the act.
pub(crate) fn handle_of(run: &WorkflowRun, scope: Scope) -> WorkflowHandle {
    WorkflowHandle {
        id: run.id,
        kind: run.kind.clone(),
        status: run.status,
        correlation_id: run.correlation_id.clone(),
        href: href(scope, run.id),
    }
}

fn planned(step: &PlannedStep, never: bool) -> Step {
    Step {
        name: step.name.to_owned(),
        key: String::new(),
        kind: step_kind(step.op),
        state: if never { StepState::Skipped } else { StepState::Pending },
        seq: None,
        undoable: step.undoable,
        attempt: 0,
        undo_attempt: 0,
        input: None,
        output: None,
        error: None,
        worker: None,
        correlation_id: None,
        trace_id: None,
        started_at: None,
        deadline_at: None,
        finished_at: None,
        progress: None,
        attempts: Vec::new(),
    }
}

fn step(view: StepView) -> Step {
    Step {
        name: view.name,
        key: view.key,
        kind: step_kind(view.op),
        state: step_state(view.state),
        seq: Some(view.seq),
        undoable: view.undoable,
        attempt: view.attempt,
        undo_attempt: view.undo_attempt,
        input: view.input.map(redacted),
        output: view.output.map(redacted),
        error: view.error,
        worker: view.worker,
        correlation_id: Some(view.correlation_id),
        trace_id: view.trace_id,
        started_at: Some(view.started_at),
        deadline_at: view.deadline_at,
        finished_at: view.finished_at,
        progress: None,
        attempts: view.attempts.into_iter().map(attempt).collect(),
    }
}

fn late_signal(view: engine::inspect::LateSignal) -> LateSignal {
    let engine::inspect::LateSignal { name, key, payload, at } = view;
    LateSignal { name, key, payload: redacted(payload), received_at: at }
}

/// What nodes told of what the run waits for, at the steps that wait for it. What a newer agent tells and cannot be read here is
/// left out.
pub(crate) fn how_far(steps: &mut [Step], told: &[(String, Value)]) {
    let waits = |step: &&mut Step| step.kind == StepKind::Wait && step.state == StepState::Waiting;
    for step in steps.iter_mut().filter(waits) {
        let last = told.iter().rfind(|(signal, _)| *signal == step.name);
        let progress = last.and_then(|(_, progress)| Progress::deserialize(progress).ok());
        step.progress = progress.map(|Progress { phase, bytes_done, bytes_total }| StepProgress {
            phase,
            bytes_done,
            bytes_total: (bytes_total > 0).then_some(bytes_total),
        });
    }
}

fn attempt(view: AttemptView) -> Attempt {
    Attempt {
        attempt: view.attempt,
        undo: view.undo,
        outcome: outcome(&view.outcome),
        error: view.error,
        worker: view.worker,
        correlation_id: view.correlation_id,
        trace_id: view.trace_id,
        started_at: view.started_at,
        finished_at: view.finished_at,
    }
}

/// The table's check keeps the words closed; an unknown one would come from a newer release and is shown as lost.
fn outcome(word: &str) -> AttemptOutcome {
    match word {
        "succeeded" => AttemptOutcome::Succeeded,
        "retry" => AttemptOutcome::Retry,
        "terminal" => AttemptOutcome::Terminal,
        "needs_operator" => AttemptOutcome::NeedsOperator,
        "timed_out" => AttemptOutcome::TimedOut,
        "cancelled" => AttemptOutcome::Cancelled,
        "found_done" => AttemptOutcome::FoundDone,
        _ => AttemptOutcome::Lost,
    }
}

fn stuck_cause(cause: engine::inspect::StuckCause) -> StuckCause {
    StuckCause {
        code: stuck_code(cause.code),
        detail: redacted(cause.detail),
        next_action: cause.next_action,
        next_at: cause.next_at,
    }
}

pub(crate) fn status(state: RunState) -> RunStatus {
    match state {
        RunState::Queued => RunStatus::Queued,
        RunState::Running => RunStatus::Running,
        RunState::Waiting => RunStatus::Waiting,
        RunState::Paused => RunStatus::Paused,
        RunState::Compensating => RunStatus::Compensating,
        RunState::Succeeded => RunStatus::Succeeded,
        RunState::Failed => RunStatus::Failed,
        RunState::Compensated => RunStatus::Compensated,
        RunState::Cancelled => RunStatus::Cancelled,
        RunState::Stuck => RunStatus::Stuck,
    }
}

fn step_state(state: engine::StepState) -> StepState {
    match state {
        engine::StepState::Pending => StepState::Pending,
        engine::StepState::Running => StepState::Running,
        engine::StepState::Waiting => StepState::Waiting,
        engine::StepState::Succeeded => StepState::Succeeded,
        engine::StepState::Failed => StepState::Failed,
        engine::StepState::Ambiguous => StepState::Ambiguous,
        engine::StepState::Skipped => StepState::Skipped,
        engine::StepState::Compensating => StepState::Compensating,
        engine::StepState::Compensated => StepState::Compensated,
    }
}

fn step_kind(op: engine::Op) -> StepKind {
    match op {
        engine::Op::Activity => StepKind::Activity,
        engine::Op::Transact => StepKind::Transact,
        engine::Op::Sleep => StepKind::Sleep,
        engine::Op::Wait => StepKind::Wait,
        engine::Op::Child => StepKind::Child,
    }
}

/// The engine's word for a public one.
pub(crate) fn cause(code: StuckCode) -> Cause {
    match code {
        StuckCode::LeaseLost => Cause::LeaseLost,
        StuckCode::Backoff => Cause::Backoff,
        StuckCode::ProjectLimit => Cause::ProjectLimit,
        StuckCode::WaitingSignal => Cause::WaitingSignal,
        StuckCode::WaitingTimer => Cause::WaitingTimer,
        StuckCode::PausedByOperator => Cause::PausedByOperator,
        StuckCode::RetriesExhausted => Cause::RetriesExhausted,
        StuckCode::UndoFailed => Cause::UndoFailed,
        StuckCode::UnknownVersion => Cause::UnknownVersion,
        StuckCode::WaitingForRun => Cause::WaitingForRun,
        StuckCode::DatabasePressure => Cause::DatabasePressure,
        StuckCode::CrashLoop => Cause::CrashLoop,
        StuckCode::Nondeterministic => Cause::Nondeterministic,
    }
}

fn stuck_code(cause: Cause) -> StuckCode {
    match cause {
        Cause::LeaseLost => StuckCode::LeaseLost,
        Cause::Backoff => StuckCode::Backoff,
        Cause::ProjectLimit => StuckCode::ProjectLimit,
        Cause::WaitingSignal => StuckCode::WaitingSignal,
        Cause::WaitingTimer => StuckCode::WaitingTimer,
        Cause::PausedByOperator => StuckCode::PausedByOperator,
        Cause::RetriesExhausted => StuckCode::RetriesExhausted,
        Cause::UndoFailed => StuckCode::UndoFailed,
        Cause::UnknownVersion => StuckCode::UnknownVersion,
        Cause::WaitingForRun => StuckCode::WaitingForRun,
        Cause::DatabasePressure => StuckCode::DatabasePressure,
        Cause::CrashLoop => StuckCode::CrashLoop,
        Cause::Nondeterministic => StuckCode::Nondeterministic,
    }
}
