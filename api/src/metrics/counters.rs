//! What this process counts in memory, read at the moment of the scrape: the engine's counters, how each workflow and step
//! fared, the events that were numbered here, and what became of those that were sent to webhooks.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use engine::{Durations, Engine, StepLabel};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use workflows::sequencer::Hints;
use workflows::webhook;

pub(super) struct Counters {
    pub(super) engine: Engine,
    pub(super) hints: Hints,
}

impl Collector for Counters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.totals(&mut encoder)?;
        self.gauges(&mut encoder)?;
        self.runs(&mut encoder)?;
        self.steps(&mut encoder)?;
        self.relays(&mut encoder)?;
        let tried = webhook::results().map(|(result, count)| ([("result", result)], count));
        counters(
            &mut encoder,
            "webhook_tries",
            "Tries to deliver an event to a webhook, by how they ended",
            tried,
        )?;
        let told = self.hints.told().map(|(kind, count)| ([("type", kind.as_str())], count));
        counters(&mut encoder, "events", "Events that were given their numbers here", told)
    }
}

impl Counters {
    fn totals(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let stats = self.engine.stats();
        for (name, help, counter) in [
            ("engine_commits", "Transactions of the committer", &stats.commits),
            ("engine_checkpoints", "Checkpoints written by the committer", &stats.checkpoints),
            (
                "engine_contentions",
                "Committer batches tried again after a deadlock or conflict",
                &stats.contentions,
            ),
            ("engine_splits", "Committer batches split to isolate a failing checkpoint", &stats.splits),
            ("engine_drives", "Drives begun", &stats.drives),
            ("engine_fenced", "Drives stopped because another owner had taken the run", &stats.fenced),
            ("engine_runs_finished", "Runs that reached a terminal state here", &stats.runs_finished),
            ("engine_steps_finished", "Steps finished here", &stats.steps_finished),
            ("engine_steps_failed", "Tries of steps that failed here", &stats.steps_failed),
            ("engine_runs_reaped", "Runs taken back from dead processes", &stats.runs_reaped),
            ("engine_processes_reaped", "Processes found dead", &stats.processes_reaped),
            ("engine_fetches", "Looks into the queue", &stats.fetches),
            ("engine_jobs_fetched", "Jobs taken from the queue", &stats.jobs_fetched),
            ("engine_schedules_fired", "Ticks of schedules that started a run", &stats.schedules_fired),
            (
                "engine_promises_broken",
                "Broken promises found by the checker; any is an alarm",
                &stats.promises_broken,
            ),
        ] {
            let mut one = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            one.encode_counter::<NoLabelSet, _, u64>(&counter.load(Relaxed), None)?;
        }
        Ok(())
    }

    fn relays(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let [sent, failures] = self.hints.relays();
        for (name, help, count) in [
            ("relay_sent", "Events that were passed on to NATS here", sent),
            ("relay_failures", "How often events could not be passed on here", failures),
        ] {
            let mut one = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            one.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }

    fn gauges(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let stats = self.engine.stats();
        let help = "Drives running now";
        encoder
            .encode_descriptor("engine_drives_in_flight", help, None, MetricType::Gauge)?
            .encode_gauge(&stats.drives_in_flight.load(Relaxed))?;
        let pressed = stats.pressed_for().map_or(0.0, |long| long.as_secs_f64());
        let help = "How long the database has not kept up; 0 while it does";
        encoder
            .encode_descriptor("engine_database_pressure", help, Some(&Unit::Seconds), MetricType::Gauge)?
            .encode_gauge(&pressed)
    }

    fn runs(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let tallies = &self.engine.stats().tallies;
        let ended = tallies.runs.read(|(workflow, state), count| {
            ([("workflow", workflow), ("state", state)], count.load(Relaxed))
        });
        counters(encoder, "workflow_runs_ended", "Runs that ended here, by how they ended", ended)?;
        let times = tallies.run_times.read(|workflow, times| ([("workflow", workflow)], Times::of(times)));
        histograms(encoder, "workflow_run_duration", "From a run's first step to its end", &times)
    }

    fn steps(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let tallies = &self.engine.stats().tallies;
        let tried = tallies.tries.read(|(of, outcome), count| {
            let [workflow, step, direction] = labels(of);
            ([workflow, step, direction, ("outcome", outcome)], count.load(Relaxed))
        });
        counters(encoder, "workflow_step_tries", "Tries of steps here, by how they ended", tried)?;
        let times = tallies.try_times.read(|of, times| (labels(of), Times::of(times)));
        histograms(encoder, "workflow_step_duration", "How long tries of steps took", &times)
    }
}

fn labels(of: StepLabel) -> [(&'static str, &'static str); 3] {
    let direction = if of.undo { "undo" } else { "do" };
    [("workflow", of.workflow), ("step", of.step), ("direction", direction)]
}

struct Times {
    seconds: f64,
    buckets: Vec<(f64, u64)>,
}

impl Times {
    fn of(durations: &Durations) -> Times {
        Times { seconds: durations.seconds(), buckets: durations.buckets() }
    }
}

fn counters<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: impl IntoIterator<Item = (L, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, count) in rows {
        family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
    }
    Ok(())
}

fn histograms<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: &[(L, Times)],
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
    for (labels, Times { seconds, buckets }) in rows {
        let count = buckets.iter().map(|(_, count)| count).sum();
        family.encode_family(labels)?.encode_histogram::<NoLabelSet>(*seconds, count, buckets, None)?;
    }
    Ok(())
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counters")
    }
}
