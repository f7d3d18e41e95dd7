//! Signing in: only the browser that began can finish, once, and it ends up nowhere but in the console.

use serde_json::json;

use super::browser::Browser;
use super::desk;
use crate::http::Http;
use crate::support::story::Story;

async fn platform(story: &Story, https: bool) -> Http {
    let http = Http::over(story).await;
    let console = desk::console(&http.realm, https).await;
    http.with_console(console)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_signs_in_and_is_who_they_are_everywhere_else() {
    let story = Story::new().await;
    let http = platform(&story, false).await;
    let mut browser = Browser::at(&http);
    assert_eq!(browser.get("/api/v1/me").await.status, 401);
    let landed = browser.sign_in("viewer").await;
    assert_eq!(landed.location(), "/console/");
    let me = browser.get("/api/v1/me").await;
    assert_eq!((me.status.as_u16(), &me.json()["name"]), (200, &json!("viewer")), "{}", me.text);
    assert_eq!(me.json()["id"], http.acting("viewer").get("/api/v1/me").await.with(200)["id"]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_https_the_cookies_are_tied_to_the_host_and_hidden_from_scripts_and_other_sites() {
    let story = Story::new().await;
    let mut browser = Browser::at(&platform(&story, true).await);
    let login = browser.get("/console/login").await;
    let attempt = login.set_cookie("__Host-gpuaas_sign_in");
    assert!(attempt.ends_with("Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"), "{attempt}");
    let landed = browser.sign_in("viewer").await;
    let session = landed.set_cookie("__Host-gpuaas_session");
    assert!(session.ends_with("Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure"), "{session}");
    assert!(landed.set_cookie("__Host-gpuaas_sign_in").contains("Max-Age=0"), "the attempt is over");
    assert_eq!(landed.headers["cache-control"], "no-store");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_only_in_the_browser_that_asked() {
    let story = Story::new().await;
    let http = platform(&story, false).await;
    let mut mallory = Browser::at(&http);
    let link = mallory.begin("viewer", "/console/").await;
    let mut without = Browser::at(&http);
    let mut with_another = Browser::at(&http);
    with_another.begin("operator", "/console/").await;
    for victim in [&mut without, &mut with_another] {
        let page = victim.get(&link).await;
        assert_eq!(page.status, 400, "{}", page.text);
        assert!(page.text.contains("was not begun here"), "{}", page.text);
        assert!(!victim.cookies.contains_key("gpuaas_session"));
    }
    assert_eq!(mallory.get(&link).await.status, 303, "it was a good link, in its own browser");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_once() {
    let story = Story::new().await;
    let mut browser = Browser::at(&platform(&story, false).await);
    let link = browser.begin("viewer", "/console/").await;
    let mut copy = browser.clone();
    assert_eq!(browser.get(&link).await.status, 303);
    assert_eq!(browser.get(&link).await.status, 400, "the attempt is over");
    let again = copy.get(&link).await;
    assert_eq!(again.status, 400, "the issuer knows the code is used, whatever the cookies say");
    assert!(!copy.cookies.contains_key("gpuaas_session"));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_session_is_not_the_one_that_is_signed_in() {
    let story = Story::new().await;
    let http = platform(&story, false).await;
    let mut browser = Browser::at(&http);
    browser.sign_in("viewer").await;
    let before = browser.cookies["gpuaas_session"].clone();
    let mut mallory = browser.clone();
    browser.sign_in("operator").await;
    assert_ne!(browser.cookies["gpuaas_session"], before);
    assert_eq!(mallory.get("/api/v1/me").await.status, 401, "the session before has ended");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_signing_in_one_is_where_one_wanted_to_be_and_never_elsewhere() {
    let story = Story::new().await;
    let http = platform(&story, false).await;
    let wishes = [
        ("/console/platform/runs%3Fstatus%3Dstuck", "/console/platform/runs?status=stuck"),
        ("https%3A%2F%2Fevil.test%2F", "/console/"),
        ("%2F%2Fevil.test", "/console/"),
    ];
    for (wish, place) in wishes {
        let mut browser = Browser::at(&http);
        let link = browser.begin("viewer", wish).await;
        assert_eq!(browser.get(&link).await.location(), place, "{wish}");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_turns_back_at_the_issuer_reads_what_to_do() {
    let story = Story::new().await;
    let mut browser = Browser::at(&platform(&story, false).await);
    let link = browser.begin("viewer", "/console/").await;
    let state = link.split("state=").nth(1).unwrap();
    let page = browser.get(&format!("/console/callback?error=access_denied&state={state}")).await;
    assert_eq!(page.status, 400);
    assert!(page.text.contains("Try again"), "{}", page.text);
    story.end().await;
}
