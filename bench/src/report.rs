//! The figures: each with its bar, whether it was met, and the reference measured beside it. A table for people, JSON
//! for whoever compares one release with the next.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::failure::Failure;

/// What a figure is held to.
#[derive(Debug, Clone, Copy)]
pub enum Bar {
    AtLeast(f64),
    AtMost(f64),
    /// Told for its own sake.
    None,
}

#[derive(Debug)]
pub struct Figure {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub bar: Bar,
    /// What it was measured against, or how it comes about.
    pub beside: String,
}

impl Bar {
    fn met_by(self, value: f64) -> bool {
        match self {
            Bar::AtLeast(least) => value >= least,
            Bar::AtMost(most) => value <= most,
            Bar::None => true,
        }
    }

    fn json(self) -> Value {
        match self {
            Bar::AtLeast(least) => json!({"at_least": least}),
            Bar::AtMost(most) => json!({"at_most": most}),
            Bar::None => Value::Null,
        }
    }
}

#[derive(Debug, Default)]
pub struct Report {
    figures: Vec<Figure>,
}

impl Report {
    pub fn add(&mut self, figures: Vec<Figure>) {
        self.figures.extend(figures);
    }

    pub fn all_met(&self) -> bool {
        self.figures.iter().all(|figure| figure.bar.met_by(figure.value))
    }

    pub fn table(&self) -> String {
        let mut table =
            format!("\n{:<34} {:>10} {:<14} {:>9}  {:<5} beside\n", "figure", "value", "unit", "bar", "");
        for figure in &self.figures {
            let (bar, verdict) = match figure.bar {
                Bar::AtLeast(least) => (format!("≥ {least}"), verdict(figure)),
                Bar::AtMost(most) => (format!("≤ {most}"), verdict(figure)),
                Bar::None => (String::new(), ""),
            };
            let Figure { name, value, unit, beside, .. } = figure;
            // Writing to a String cannot fail.
            let _ = writeln!(
                table,
                "{name:<34} {:>10} {unit:<14} {bar:>9}  {verdict:<5} {beside}",
                shown(*value)
            );
        }
        table
    }

    pub fn write(&self, path: &Path, environment: &BTreeMap<&str, Value>) -> Result<(), Failure> {
        let mut all = serde_json::Map::new();
        for figure in &self.figures {
            let pass = figure.bar.met_by(figure.value);
            let entry = json!({"value": figure.value, "unit": figure.unit, "bar": figure.bar.json(), "pass": pass,
                "beside": figure.beside});
            all.insert(slug(figure.name), entry);
        }
        all.insert("environment".into(), json!(environment));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Failure::io(format!("make {}", folder.display())))?;
        }
        let text = format!("{:#}\n", Value::Object(all));
        fs::write(path, text).map_err(Failure::io(format!("write {}", path.display())))
    }
}

/// A name as a key: words of letters and digits, joined by underscores, whatever stood between them.
fn slug(name: &str) -> String {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

fn verdict(figure: &Figure) -> &'static str {
    if figure.bar.met_by(figure.value) { "ok" } else { "MISS" }
}

fn shown(value: f64) -> String {
    match value.abs() {
        big if big >= 1000.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Progress and trouble go to stderr; stdout is for the table.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

pub fn show(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50.0)
}

/// The nearest rank: a value that was really measured. Nothing measured gives NaN, which meets no bar.
pub fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(
            (percentile(&values, 50.0), percentile(&values, 99.0), percentile(&values, 100.0)),
            (50.0, 99.0, 100.0)
        );
        assert_eq!(median(&[3.0]), 3.0);
    }

    #[test]
    fn the_record_holds_every_figure_with_its_bar() {
        let path =
            std::env::temp_dir().join(format!("gpuaas-bench-record-{}/engine.json", std::process::id()));
        let mut report = Report::default();
        let bar = Bar::AtMost(60.0);
        report.add(vec![Figure { name: "idle memory", value: 61.0, unit: "MB", bar, beside: String::new() }]);
        report.write(&path, &BTreeMap::from([("cores", json!(2))])).unwrap();
        let record: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        assert_eq!(
            (&record["idle_memory"]["pass"], &record["environment"]["cores"]),
            (&json!(false), &json!(2))
        );
        assert_eq!(record["idle_memory"]["bar"], json!({"at_most": 60.0}));
        assert!(!report.all_met());
    }

    #[test]
    fn keys_are_plain_words_whatever_the_names_hold() {
        let slugs = ["claim p99, at most", "Postgres CPU", " idle  CPU (60 s) "].map(slug);
        assert_eq!(slugs, ["claim_p99_at_most", "postgres_cpu", "idle_cpu_60_s"]);
    }

    #[test]
    fn nothing_measured_meets_no_bar() {
        let nothing = median(&[]);
        assert!(!Bar::AtLeast(0.0).met_by(nothing) && !Bar::AtMost(9.0).met_by(nothing));
    }
}
