//! What is served: files with a strict policy, pages for every address inside, and a plain word where there is nothing.

use api::{Console, File};
use axum::http::Method;

use super::browser::Browser;
use crate::http::Http;
use crate::support::story::Story;

const SCRIPT: &str = "assets/index-abc.js";
pub const FILES: &[File] = &[
    File {
        path: "index.html",
        media_type: "text/html; charset=utf-8",
        bytes: b"<!doctype html>",
        gzip: None,
    },
    File { path: SCRIPT, media_type: "text/javascript", bytes: b"plain", gzip: Some(b"zipped") },
];

async fn serving(story: &Story, files: &'static [File]) -> Browser {
    let console = Console { files, ..Console::default() };
    Browser::at(&Http::over(story).await.with_console(console))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_address_inside_is_the_page_under_a_strict_policy() {
    let story = Story::new().await;
    let mut browser = serving(&story, FILES).await;
    assert_eq!(browser.get("/").await.location(), "/console/");
    for path in ["/console/", "/console/platform/runs", "/console/x/runs/y?step=z"] {
        let page = browser.get(path).await;
        assert_eq!((page.status.as_u16(), page.text.as_str()), (200, "<!doctype html>"), "{path}");
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(page.headers["x-content-type-options"], "nosniff");
        assert_eq!(page.headers["cache-control"], "no-cache");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_kept_by_browsers_and_compressed_for_those_who_can_read_it() {
    let story = Story::new().await;
    let mut browser = serving(&story, FILES).await;
    let path = format!("/console/{SCRIPT}");
    let plain = browser.get(&path).await;
    assert_eq!((plain.text.as_str(), plain.headers.get("content-encoding")), ("plain", None));
    assert!(plain.headers["cache-control"].to_str().unwrap().contains("immutable"));
    let zipped = browser.send(Method::GET, &path, &[("accept-encoding", "br, gzip;q=0.8")]).await;
    assert_eq!(
        (zipped.text.as_str(), zipped.headers["content-encoding"].to_str().unwrap()),
        ("zipped", "gzip")
    );
    assert_eq!(browser.get("/console/assets/gone.js").await.status, 404, "a page is no script");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_the_console_says_so_and_one_without_an_issuer_too() {
    let story = Story::new().await;
    let mut browser = serving(&story, &[]).await;
    for path in ["/", "/console/", "/console/platform/runs"] {
        let page = browser.get(path).await;
        assert!(page.text.contains("built without the console"), "{path}: {}", page.text);
    }
    for path in ["/console/login", "/console/callback?code=x&state=y"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 503);
        assert!(page.text.contains("auth.issuers"), "{}", page.text);
    }
    assert!(browser.get("/console/session").await.json()["session"].is_null());
    story.end().await;
}
