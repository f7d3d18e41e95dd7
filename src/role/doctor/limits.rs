//! The numbers the engine of this configuration runs by.

use std::time::Duration;

use engine::Settings;

use super::Finding;

pub(super) fn in_words(settings: &Settings) -> Finding {
    let kib = |bytes: usize| bytes / 1024;
    let seconds = |time: Duration| time.as_secs_f64();
    Finding::well(
        "limits",
        format!(
            "{} drives at once, {} of one project, {} of one waiting; inputs and outputs {} KiB, signals {} KiB, \
             errors {} KiB, {} journal rows; {} lanes of {} rows or {} MiB; lease {} s; \
             statements {} s, locks {} s, idle transactions {} s; the database is behind after {} s; \
             runs kept {} days, attempts {}",
            settings.slots,
            settings.project_cap,
            settings.project_backlog,
            kib(settings.max_input),
            kib(settings.max_signal),
            kib(settings.max_error),
            settings.max_journal_rows,
            settings.lanes,
            settings.lane_rows,
            settings.lane_bytes >> 20,
            seconds(settings.lease),
            seconds(settings.statement_timeout),
            seconds(settings.lock_timeout),
            seconds(settings.idle_in_transaction),
            seconds(settings.pressure_after),
            settings.keep_runs.as_secs() / 86_400,
            settings.keep_attempt_days,
        ),
    )
}
