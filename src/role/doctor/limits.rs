//! The numbers the engine of this configuration runs by.

use std::time::Duration;

use engine::Settings;

use super::Finding;

pub(super) fn in_words(settings: &Settings) -> Finding {
    let kib = |bytes: usize| bytes / 1024;
    let seconds = |time: Duration| time.as_secs_f64();
    let connections = settings.connections();
    let all: usize = connections.iter().map(|(_, count)| count).sum();
    let each: Vec<String> = connections.iter().map(|(what, count)| format!("{count} for {what}")).collect();
    Finding::well(
        "limits",
        format!(
            "{} drives at once, {} of one project, {} of one waiting; inputs and outputs {} KiB, signals {} KiB, \
             errors {} KiB, {} deep, {} journal rows; {} connections: {}; {} lanes of {} rows or {} KiB, {} waiting; \
             lease {} s; statements {} s, locks {} s, idle transactions {} s; the database is behind after {} s; \
             a step is lost {} s past its timeout, a run quarantined after {} claims; runs kept {} days, attempts {}",
            settings.slots,
            settings.project_cap,
            settings.project_backlog,
            kib(settings.max_input),
            kib(settings.max_signal),
            kib(settings.max_error),
            settings.max_depth,
            settings.max_journal_rows,
            all,
            each.join(", "),
            settings.lanes,
            settings.lane_rows,
            kib(settings.lane_bytes),
            settings.lane_queue,
            seconds(settings.lease),
            seconds(settings.statement_timeout),
            seconds(settings.lock_timeout),
            seconds(settings.idle_in_transaction),
            seconds(settings.pressure_after),
            seconds(settings.lost_step_grace),
            settings.max_claims,
            settings.keep_runs.as_secs() / 86_400,
            settings.keep_attempt_days,
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_configuration_says_is_what_is_shown() {
        let settings = Settings {
            lanes: 3,
            api_connections: 7,
            drive_connections: 11,
            lane_bytes: 5 << 20,
            ..Settings::default()
        };
        let said = in_words(&settings).detail;
        let pools = "27 connections: 7 for requests, 11 for drives, 5 for checkpoints, 2 for the queue, 2 for lease and recovery";
        assert!(said.contains(pools), "{said}");
        assert!(said.contains("3 lanes of 512 rows or 5120 KiB, 4096 waiting"), "{said}");
    }
}
