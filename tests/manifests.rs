//! Manifests at the platform's two doors, the API and the command line: both say the same of the whole corpus, and neither
//! ever breaks.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io::Write};

use axum::http::Method;
use serde_json::{Value, json};

use crate::http::Http;
use crate::support::story::Story;

const VALIDATE: &str = "/api/v1/apps/manifests/validate";

fn corpus(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests").join(kind);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "yaml" || kind == "json"));
    files.sort();
    files
}

fn media_type(file: &Path) -> &'static str {
    if file.extension().is_some_and(|kind| kind == "json") { "application/json" } else { "application/yaml" }
}

/// `line:column: pointer message`, as the files beside the corpus have it.
fn lines(errors: &Value) -> String {
    let line = |error: &Value| {
        let told = format!("{} {}", error["pointer"].as_str().unwrap(), error["message"].as_str().unwrap());
        let place = match (&error["line"], &error["column"]) {
            (Value::Null, _) => String::new(),
            (line, column) => format!("{line}:{column}: "),
        };
        format!("{place}{}\n", told.trim_start()).replace('\0', "\\u{0}")
    };
    errors.as_array().unwrap().iter().map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_says_of_every_manifest_what_stands_beside_it() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    for file in corpus("bad") {
        let text = fs::read_to_string(&file).unwrap();
        let headers = [("content-type", media_type(&file))];
        let answer = http.send_text(Method::POST, VALIDATE, &headers, Some(text)).await;
        let refusal = answer.with(400);
        assert_eq!(refusal["code"], "validation_error", "{}", file.display());
        let expected = fs::read_to_string(file.with_extension("errors")).unwrap();
        assert_eq!(lines(&refusal["details"]["errors"]), expected, "{}", file.display());
    }
    for file in corpus("good") {
        let text = fs::read_to_string(&file).unwrap();
        let headers = [("content-type", media_type(&file))];
        let answer = http.send_text(Method::POST, VALIDATE, &headers, Some(text)).await;
        let accepted = answer.with(200);
        assert_eq!(accepted["valid"], true);
        let again = http.send(Method::POST, VALIDATE, &[], Some(accepted["manifest"].clone())).await;
        assert_eq!(again.with(200)["digest"], accepted["digest"], "{}", file.display());
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_sent_nothing_breaks() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let deep = "[".repeat(100_000);
    let bodies = [
        "",
        "{",
        "null",
        "\0",
        "\u{feff}",
        "a: *b",
        "? ",
        "- - - -",
        "%YAML 9.9\n---\n",
        "'",
        "|\n x\n",
        &deep,
    ];
    for media_type in ["application/json", "application/yaml", "text/x-yaml; charset=utf-8"] {
        for body in bodies {
            let headers = [("content-type", media_type)];
            let answer = http.send_text(Method::POST, VALIDATE, &headers, Some(body.to_owned())).await;
            assert_eq!(answer.with(400)["code"], "validation_error", "{media_type} {body:.20}");
        }
    }
    for media_type in ["text/plain", "application/xml", ""] {
        let headers = [("content-type", media_type)];
        let answer = http.send_text(Method::POST, VALIDATE, &headers, Some("a: 1".to_owned())).await;
        assert_eq!(answer.with(415)["code"], "unsupported_media_type", "{media_type}");
    }
    let large = http.send(Method::POST, VALIDATE, &[], Some(json!("x".repeat(1 << 20)))).await;
    assert_eq!(large.with(413)["code"], "payload_too_large");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_served_to_editors_without_a_login() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let served = http.bearing("").send(Method::GET, "/api/v1/apps/manifest-schema", &[], None).await;
    assert_eq!(served.with(200), *domain::manifest::schema());
    story.end().await;
}

fn validate(arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuaas"));
    command.arg("validate").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let said = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (said.status.code(), text(said.stdout), text(said.stderr))
}

#[test]
fn the_command_line_points_at_every_problem_as_compilers_do() {
    let file = "tests/manifests/bad/everything-at-once.yaml";
    let (code, out, err) = validate(&[file], "");
    assert_eq!(code, Some(1));
    let expected =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file).with_extension("errors"))
            .unwrap();
    let pointed: String = expected
        .lines()
        .map(|line| {
            let (place, what) = line.split_once(": ").unwrap();
            format!("{file}:{place}: error: {what}\n")
        })
        .collect();
    assert_eq!(out, pointed);
    assert_eq!(err, "error: the manifest is not valid\n");
}

#[test]
fn the_command_line_takes_several_files_and_standard_input() {
    let (code, out, err) = validate(&["apps/hello/manifest.yaml", "apps/vllm-openai/manifest.yaml"], "");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out.lines().filter(|line| line.contains(" is valid, sha256:")).count(), 2, "{out}");
    let (code, out, err) = validate(&["apps/hello/manifest.yaml", "-"], "slug: 7\n");
    assert_eq!(code, Some(1));
    assert!(
        out.contains("<stdin>:1:7: error: /slug must be text, not the number 7; put quotes around it"),
        "{out}"
    );
    assert_eq!(err, "error: 1 of 2 manifests are not valid\n");
    let (code, _, err) = validate(&["no-such-file.yaml"], "");
    assert_eq!(code, Some(1));
    assert!(err.starts_with("error: no-such-file.yaml: "), "{err}");
}

#[test]
fn programs_get_the_verdict_the_digest_and_the_normal_form() {
    let (code, out, _) =
        validate(&["-o", "json", "-"], r#"{"slug": "demo", "display_name": "Demo", "version": "1"}"#);
    assert_eq!(code, Some(1));
    let reports: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(reports[0]["valid"], false);
    assert_eq!(reports[0]["errors"][0]["pointer"], "/runtime_profile");
    let (code, out, _) = validate(&["-o", "json", "apps/hello/manifest.yaml"], "");
    assert_eq!(code, Some(0));
    let reports: Value = serde_json::from_str(&out).unwrap();
    assert!(reports[0]["digest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(reports[0]["manifest"]["version"]["metering"]["unit"], "requests");
    let (code, out, _) = validate(&["--schema"], "");
    assert_eq!(code, Some(0));
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), *domain::manifest::schema());
}
