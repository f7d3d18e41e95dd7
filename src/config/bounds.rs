//! The least and the most that numbers may be. Whatever is beyond is said at once, before any of them is used.

use super::{ConfigError, Values};

/// With less of these nothing would ever be done, or what was done be forgotten at once.
const AT_LEAST: [(&str, i64); 25] = [
    ("server.receive_ms", 100),
    ("server.anonymous_per_minute", 1),
    ("engine.slots", 1),
    ("engine.lease_ms", 100),
    ("engine.poll_ms", 10),
    ("engine.project_cap", 1),
    ("engine.project_backlog", 1),
    ("engine.batch", 1),
    ("engine.lanes", 1),
    ("engine.lane_rows", 1),
    ("engine.lane_kib", 1),
    ("engine.lane_queue", 1),
    ("engine.pressure_ms", 100),
    ("engine.max_claims", 1),
    // An effect of the platform's own database may take a minute.
    ("engine.lost_step_grace_ms", 61_000),
    ("engine.max_input_kib", 1),
    ("engine.max_signal_kib", 1),
    ("engine.max_error_kib", 1),
    ("engine.max_depth", 8),
    ("engine.max_journal_rows", 100),
    ("engine.keep_runs_days", 1),
    ("engine.keep_attempt_days", 1),
    ("database.api_connections", 1),
    ("database.drive_connections", 1),
    ("database.statement_timeout_ms", 100),
];

/// A hundred years: what is kept for longer is beyond the database's calendar.
const AT_MOST: [(&str, i64); 2] = [("engine.keep_runs_days", 36_525), ("engine.keep_attempt_days", 36_525)];

pub(super) fn check(values: &Values) -> Result<(), ConfigError> {
    let mut problems = Vec::new();
    for (key, least) in AT_LEAST {
        if values.parse::<i64>(key)? < least {
            problems.extend(values.wrong(key, &format_args!("must be at least {least}")).0);
        }
    }
    for (key, most) in AT_MOST {
        if values.parse::<i64>(key)? > most {
            problems.extend(values.wrong(key, &format_args!("must be at most {most}")).0);
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigError(problems)) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;

    #[test]
    fn too_little_to_do_anything_is_refused_at_once() {
        let error = load("[engine]\nslots = 0\npoll_ms = 0\n", &[], &[]).unwrap_err();
        assert_eq!(error.0.len(), 2, "{error}");
        assert!(error.to_string().contains("`engine.slots` = \"0\": must be at least 1"), "{error}");
    }

    #[test]
    fn nothing_is_kept_for_no_time_and_nobody_is_given_none() {
        let file = "[server]\nreceive_ms = 0\n[engine]\nkeep_runs_days = 0\nkeep_attempt_days = -1\n";
        let error = load(file, &[], &[]).unwrap_err();
        assert_eq!(error.0.len(), 3, "{error}");
        let text = error.to_string();
        assert!(text.contains("`server.receive_ms` = \"0\": must be at least 100"), "{text}");
        assert!(text.contains("`engine.keep_runs_days` = \"0\": must be at least 1"), "{text}");
        assert!(text.contains("`engine.keep_attempt_days` = \"-1\": must be at least 1"), "{text}");
        let error = load("[engine]\nkeep_runs_days = 9223372036854775807\n", &[], &[]).unwrap_err();
        assert!(error.to_string().contains("must be at most 36525"), "{error}");
    }
}
