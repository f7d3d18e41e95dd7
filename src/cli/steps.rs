//! A run as it goes on, for whoever set it off and waits: on a terminal the step that is under way and its seconds, elsewhere
//! a line when a step is done. All of it is talk; how the run ended is the answer.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api_types::{RunStatus, Step, StepKind, StepProgress, StepState, WorkflowRun, WorkflowRunDetail};
use serde_json::Value;
use tokio::time::sleep;
use uuid::Uuid;

use super::client::Client;
use super::output::{self, Format};
use super::progress::size;
use super::sse::{self, Event};
use super::wait::is_settled;
use super::workflows::word;
use crate::failure::{Failure, Operation};

const TICK: Duration = Duration::from_millis(500);

/// The run once it has settled. Programs are told nothing on the way.
pub async fn see_through(client: &Client, run: Uuid, format: Format) -> Result<WorkflowRunDetail, Failure> {
    see_through_at(client, &client.in_project(&format!("/workflows/{run}"))?, run, format).await
}

/// Of a run that may be of no project.
pub async fn see_through_at(
    client: &Client,
    href: &str,
    run: Uuid,
    format: Format,
) -> Result<WorkflowRunDetail, Failure> {
    let board = Mutex::new(Board::new(client, format));
    let path = format!("{href}/stream");
    let ended = tokio::select! {
        ended = sse::follow(client, &path, None, |event| held(&board).take(event)) => ended.map(|_| ()),
        never = tick(&board) => match never {},
        _ = tokio::signal::ctrl_c() => Err(Failure::server(format!(
            "nobody waits for the run {run} any more; it goes on: `gpuaas wait {run}`"
        ))),
    };
    held(&board).clear();
    ended?;
    client.get(href, &[]).await
}

/// Whether the run did what it was for; if not, where it failed, why, and how to go on.
pub fn verdict(detail: &WorkflowRunDetail, what: &str, next: Vec<String>) -> Result<(), Failure> {
    let run = &detail.run;
    if run.status == RunStatus::Succeeded {
        return Ok(());
    }
    let step = failed_step(detail).map(name);
    let at = step.as_ref().map(|step| format!(" at {step}")).unwrap_or_default();
    let why = match (&run.error, &run.stuck_cause) {
        (Some(error), _) => message(error),
        (None, Some(cause)) => format!("{}: {}", word(&cause.code), cause.next_action),
        (None, None) => format!("the run is {}", word(&run.status)),
    };
    let how = match run.status {
        RunStatus::Paused => "is paused",
        RunStatus::Stuck => "is stuck",
        RunStatus::Cancelled => "was cancelled",
        _ => "failed",
    };
    let mut failure = Failure::failed(format!("{what} {how}{at}: {why}"));
    failure.operation = Some(Box::new(Operation {
        workflow_id: run.id,
        kind: run.kind.clone(),
        status: run.status,
        step,
        cause: run.error.clone(),
        correlation_id: run.correlation_id.clone(),
        next,
    }));
    Err(failure)
}

/// The step that says so, or else the last that was reached: what it brought was bad news.
fn failed_step(detail: &WorkflowRunDetail) -> Option<&Step> {
    let reached = || detail.steps.iter().filter(|step| step.seq.is_some());
    reached().find(|step| step.error.is_some()).or_else(|| reached().max_by_key(|step| step.seq))
}

fn message(error: &Value) -> String {
    match (error["message"].as_str(), error["code"].as_str()) {
        (Some(message), Some(code)) => format!("{message} ({code})"),
        (Some(word), None) | (None, Some(word)) => word.to_owned(),
        (None, None) => error.to_string(),
    }
}

fn name(step: &Step) -> String {
    if step.key.is_empty() { step.name.clone() } else { format!("{}/{}", step.name, step.key) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Screen {
    Terminal,
    Lines,
    Nothing,
}

struct Board {
    screen: Screen,
    paints: bool,
    run: Option<WorkflowRun>,
    steps: Vec<Step>,
    /// Steps whose end has been told, and those whose undoing has.
    told: HashSet<(String, bool)>,
    /// Steps and the quarters of their bytes that have been told.
    quarters: HashSet<(String, u64)>,
    /// The step that is under way, and since when by this machine's clock.
    under_way: Option<(String, Instant)>,
}

impl Board {
    fn new(client: &Client, format: Format) -> Board {
        let screen = match format {
            Format::Table if io::stderr().is_terminal() => Screen::Terminal,
            Format::Table => Screen::Lines,
            Format::Json | Format::Yaml | Format::Name | Format::Csv => Screen::Nothing,
        };
        Board {
            screen,
            paints: client.may_paint(),
            run: None,
            steps: Vec::new(),
            told: HashSet::new(),
            quarters: HashSet::new(),
            under_way: None,
        }
    }

    /// Answers the status of a run that has settled.
    fn take(&mut self, event: &Event) -> Result<Option<RunStatus>, Failure> {
        match event.name.as_str() {
            "snapshot" => {
                let detail: WorkflowRunDetail = event.read()?;
                (self.run, self.steps) = (Some(detail.run), detail.steps);
            }
            "step" => {
                self.put(event.read()?);
                return Ok(None);
            }
            "run" => self.run = Some(event.read()?),
            _ => return Ok(None),
        }
        self.tell();
        Ok(self.run.as_ref().map(|run| run.status).filter(|status| is_settled(*status)))
    }

    fn put(&mut self, step: Step) {
        match self.steps.iter_mut().find(|known| (&known.name, &known.key) == (&step.name, &step.key)) {
            Some(known) => *known = step,
            None => self.steps.push(step),
        }
    }

    /// Everything that is over and was not told yet: first what was done, in its order, then what was undone, last first.
    fn tell(&mut self) {
        let mut reached: Vec<Step> = self.steps.iter().filter(|step| step.seq.is_some()).cloned().collect();
        reached.sort_by_key(|step| step.seq);
        let error = self.run.as_ref().and_then(|run| run.error.clone());
        for (at, step) in reached.iter().enumerate() {
            let last = at + 1 == reached.len();
            // What a wait brought is known only by what comes after it.
            if !is_over(step)
                || (last && step.kind == StepKind::Wait && !self.is_settled() && error.is_none())
            {
                continue;
            }
            let blamed = last && reached.iter().all(|step| step.error.is_none());
            let error = step.error.clone().or_else(|| error.clone().filter(|_| blamed));
            self.line(step, false, error.as_ref());
        }
        for step in reached.iter().rev().filter(|step| step.state == StepState::Compensated) {
            self.line(step, true, None);
        }
        self.tell_quarters();
        self.draw();
    }

    fn is_settled(&self) -> bool {
        self.run.as_ref().is_some_and(|run| is_settled(run.status))
    }

    fn line(&mut self, step: &Step, undone: bool, error: Option<&Value>) {
        let name = name(step);
        if self.screen == Screen::Nothing || !self.told.insert((name.clone(), undone)) {
            return;
        }
        let (sign, colour, word) = match (undone, error) {
            (true, _) => ('↩', "33", "undone"),
            (false, Some(_)) => ('✗', "31", "failed"),
            (false, None) => ('✓', "32", "done"),
        };
        let end = match (undone, error) {
            (true, _) => String::new(),
            (false, Some(error)) => format!("  {}", message(error)),
            (false, None) => took(step).map(|took| format!("  {took}")).unwrap_or_default(),
        };
        self.clear();
        output::say(&match self.screen {
            Screen::Terminal if self.paints => format!("\x1b[{colour}m{sign}\x1b[0m {name}{end}"),
            Screen::Terminal => format!("{sign} {name}{end}"),
            _ => format!("  {name:20}  {word:6}{end}"),
        });
    }

    /// Elsewhere than on a terminal, a line for every quarter that has come.
    fn tell_quarters(&mut self) {
        let (Screen::Lines, Some(step)) =
            (self.screen, self.steps.iter().find(|step| step.progress.is_some()))
        else {
            return;
        };
        let Some((progress, far)) = step.progress.as_ref().and_then(|one| Some((one, how_far(one)?))) else {
            return;
        };
        let quarter = progress.bytes_done * 4 / progress.bytes_total.unwrap_or_default().max(1);
        if self.quarters.insert((name(step), quarter)) {
            output::say(&format!("  {:20}  waits   {far}", name(step)));
        }
    }

    /// The step that is under way, on the terminal's last line.
    fn draw(&mut self) {
        let is_under_way = |step: &&Step| {
            matches!(step.state, StepState::Running | StepState::Waiting | StepState::Compensating)
        };
        let (Screen::Terminal, Some(step)) = (self.screen, self.steps.iter().rfind(is_under_way)) else {
            return;
        };
        let doing = match step.state {
            StepState::Compensating => "is undone",
            StepState::Waiting => "waits",
            _ => "runs",
        };
        let now = format!("{} {doing}", name(step));
        let (words, since) =
            self.under_way.take().filter(|(words, _)| *words == now).unwrap_or((now, Instant::now()));
        let far = step.progress.as_ref().and_then(how_far).map(|far| format!(", {far}")).unwrap_or_default();
        let _ = write!(io::stderr(), "\r\x1b[K… {words}{far}, {} s", since.elapsed().as_secs());
        self.under_way = Some((words, since));
    }

    fn clear(&self) {
        if self.screen == Screen::Terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// How far what the step waits for is, where it is counted.
pub fn how_far(progress: &StepProgress) -> Option<String> {
    let total = progress.bytes_total.filter(|total| progress.bytes_done < *total)?;
    Some(format!("{} {} of {}", progress.phase, size(progress.bytes_done), size(total)))
}

fn is_over(step: &Step) -> bool {
    use StepState::{Ambiguous, Compensated, Compensating, Failed, Succeeded};
    matches!(step.state, Succeeded | Failed | Ambiguous | Compensating | Compensated)
}

/// The last try to do it; of what is no activity, all of it.
fn took(step: &Step) -> Option<String> {
    let tried = step.attempts.iter().rfind(|attempt| !attempt.undo);
    let tried = tried.map(|attempt| (attempt.started_at, attempt.finished_at));
    let (from, to) = tried.or(step.started_at.zip(step.finished_at))?;
    Some(format!("{:.1}s", (to - from).num_milliseconds().max(0) as f64 / 1e3))
}

fn held(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds pass on a terminal even where nothing happens.
async fn tick(board: &Mutex<Board>) -> std::convert::Infallible {
    loop {
        sleep(TICK).await;
        held(board).draw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_come_are_told_and_those_that_have_come_are_not() {
        let told = |bytes_done, bytes_total| {
            how_far(&StepProgress { phase: "pulling".to_owned(), bytes_done, bytes_total })
        };
        assert_eq!(told(120 << 20, Some(480 << 20)).as_deref(), Some("pulling 120.0 MiB of 480.0 MiB"));
        assert_eq!((told(480 << 20, Some(480 << 20)), told(0, None)), (None, None));
    }
}
