//! The corpus under `tests/manifests`: every good manifest is accepted, every bad one refused for exactly the reasons
//! that stand beside it. `UPDATE_SNAPSHOTS=1` writes those files anew; read the difference before you commit it.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

mod laws;

fn corpus(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/manifests").join(kind);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml" || extension == "json"));
    files.sort();
    files
}

fn read_file(file: &Path) -> Result<Accepted, Rejected> {
    let text = fs::read_to_string(file).unwrap();
    let json = file.extension().is_some_and(|extension| extension == "json");
    read(&text, if json { Format::Json } else { Format::Yaml })
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

fn assert_expected(file: &Path, extension: &str, said: &str) {
    let beside = file.with_extension(extension);
    #[expect(clippy::disallowed_methods, reason = "a switch of this test alone")]
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&beside, said).unwrap();
    }
    let expected = fs::read_to_string(&beside).unwrap_or_default();
    assert_eq!(said, expected, "{}", file.display());
}

#[test]
fn bad_manifests_are_refused_for_exactly_the_reasons_beside_them() {
    let files = corpus("bad");
    assert!(files.len() >= 45, "{}", files.len());
    for file in files {
        let rejected = read_file(&file).expect_err(&file.display().to_string());
        assert_expected(&file, "errors", &lines(&rejected.problems));
    }
}

#[test]
fn good_manifests_are_accepted_with_only_the_warnings_beside_them() {
    let files = corpus("good");
    assert!(files.len() >= 15, "{}", files.len());
    for file in files {
        let accepted = read_file(&file)
            .unwrap_or_else(|rejected| panic!("{}:\n{}", file.display(), lines(&rejected.problems)));
        assert_expected(&file, "warnings", &lines(&accepted.warnings));
    }
}

#[test]
fn the_reference_apps_are_valid_without_a_warning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apps");
    let mut slugs = Vec::new();
    for app in fs::read_dir(folder).unwrap() {
        let file = app.unwrap().path().join("manifest.yaml");
        let accepted =
            read_file(&file).unwrap_or_else(|r| panic!("{}:\n{}", file.display(), lines(&r.problems)));
        assert_eq!(lines(&accepted.warnings), "", "{}", file.display());
        slugs.push(accepted.manifest.app.slug);
    }
    slugs.sort();
    assert_eq!(slugs, ["hello", "jupyterlab", "slurm-reference", "vllm-openai"]);
}

#[test]
fn the_normal_forms_of_the_printed_samples() {
    for name in ["jupyter-cuda-dev.json", "slurm-reference.yaml"] {
        let file = corpus("good").into_iter().find(|file| file.ends_with(name)).unwrap();
        let normal = serde_json::to_string_pretty(&read_file(&file).unwrap().manifest).unwrap();
        assert_expected(&file, "normal", &format!("{normal}\n"));
    }
}

/// The normal form is a manifest like any other: it is accepted, it is its own normal form, and it has the same digest.
#[test]
fn normalizing_twice_changes_nothing() {
    for file in corpus("good") {
        let once = read_file(&file).unwrap().manifest;
        let text = serde_json::to_string(&once).unwrap();
        for format in [Format::Json, Format::Yaml] {
            let twice =
                read(&text, format).unwrap_or_else(|r| panic!("{}: {}", file.display(), lines(&r.problems)));
            assert_eq!(twice.manifest, once, "{}", file.display());
            assert_eq!(twice.manifest.digest(), once.digest());
        }
        assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), once, "{}", file.display());
    }
}

#[test]
fn the_same_content_has_one_digest_however_it_is_written() {
    let yaml =
        "app: {slug: demo-app, display_name: Demo, runtime_backend: slurm}\nversion: {version: '1.0'}\n";
    let json = r#"{"version": {"runtime_backend": "slurm", "version": "1.0", "artifacts": [{"name": "runtime"}]},
        "app": {"runtime_backend": "slurm", "display_name": "Demo", "slug": "demo-app"}}"#;
    let digest = |text: &str, format| read(text, format).unwrap().manifest.digest();
    assert_eq!(digest(yaml, Format::Yaml), digest(json, Format::Json));
    assert_ne!(digest(yaml, Format::Yaml), digest(&yaml.replace("Demo", "Demo 2"), Format::Yaml));
}

#[test]
fn the_schema_is_one_and_describes_every_field() {
    assert!(jsonschema::draft202012::meta::is_valid(schema()));
    let mut bare = Vec::new();
    for (name, definition) in schema()["$defs"].as_object().unwrap() {
        for (field, shape) in definition["properties"].as_object().into_iter().flatten() {
            let told = |shape: &serde_json::Value| shape["description"].is_string();
            let target = shape["$ref"].as_str().and_then(|r| schema().pointer(r.trim_start_matches('#')));
            if !told(shape) && !target.is_some_and(told) && shape["enumDescriptions"].is_null() {
                bare.push(format!("{name}.{field}"));
            }
        }
    }
    assert_eq!(bare, Vec::<String>::new(), "fields without a word for editors to show");
}
