//! What a session is worth: reads, and changes with its token; until it ends, which is at once.

use axum::http::Method;

use super::browser::Browser;
use super::desk;
use crate::http::{Http, project};
use crate::support::story::Story;

async fn platform(story: &Story) -> Http {
    let http = Http::over(story).await;
    let console = desk::console(&http.realm, false).await;
    http.with_console(console)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_by_cookie_needs_the_token_that_only_our_page_can_read() {
    let story = Story::new().await;
    let http = platform(&story).await;
    let mut admin = Browser::at(&http);
    admin.sign_in("project-admin").await;
    let csrf = admin.csrf().await;
    let mut other = Browser::at(&http);
    other.sign_in("operator").await;
    let of_another = other.csrf().await;
    let path = project("/service-accounts");
    assert_eq!(admin.get(&path).await.status, 200, "reading needs no token");
    let refused: [&[(&str, &str)]; 3] = [&[], &[("x-csrf-token", "x")], &[("x-csrf-token", &of_another)]];
    for headers in refused {
        let page = admin.send(Method::POST, &path, headers).await;
        assert_eq!(
            (page.status.as_u16(), &page.json()["code"]),
            (401, &"token_invalid".into()),
            "{}",
            page.text
        );
    }
    let page = admin.send(Method::POST, &path, &[("x-csrf-token", &csrf)]).await;
    assert_eq!(page.status, 400, "it came in, and its body was looked at: {}", page.text);
    assert_eq!(page.json()["code"], "validation_error");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_out_ends_the_session_at_once_and_in_every_process() {
    let story = Story::new().await;
    let http = platform(&story).await;
    let elsewhere = http.elsewhere().with_console(desk::console(&http.realm, false).await);
    let mut browser = Browser::at(&http);
    browser.sign_in("viewer").await;
    let mut thief = Browser { http: elsewhere, ..browser.clone() };
    assert_eq!(thief.get("/api/v1/me").await.status, 200, "a session is not tied to a process");

    let refused = browser.send(Method::POST, "/console/logout", &[]).await;
    assert_eq!(refused.status, 401, "another site cannot sign people out");
    let csrf = browser.csrf().await;
    let out = browser.send(Method::POST, "/console/logout", &[("x-csrf-token", &csrf)]).await;
    assert_eq!(out.status, 204);
    assert!(browser.cookies.is_empty(), "{:?}", browser.cookies);
    let late = thief.get("/api/v1/me").await;
    assert_eq!((late.status.as_u16(), &late.json()["code"]), (401, &"token_expired".into()));
    assert_eq!(
        browser.send(Method::POST, "/console/logout", &[]).await.status,
        204,
        "signed out is signed out"
    );
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_by_itself() {
    let story = Story::new().await;
    let mut browser = Browser::at(&platform(&story).await);
    browser.sign_in("viewer").await;
    assert_eq!(browser.get("/api/v1/me").await.status, 200);
    let ended = "update console_sessions set expires_at = engine.now()";
    sqlx::query(ended).execute(&story.pool).await.unwrap();
    assert_eq!(browser.get("/api/v1/me").await.status, 401);
    assert!(browser.get("/console/session").await.json()["session"].is_null());
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_sent_decides_whatever_the_cookies_say() {
    let story = Story::new().await;
    let http = platform(&story).await;
    let mut browser = Browser::at(&http);
    browser.sign_in("admin").await;
    let token = format!("Bearer {}", http.realm.token("viewer"));
    let me = browser.send(Method::GET, "/api/v1/me", &[("authorization", &token)]).await;
    assert_eq!(me.json()["name"], "viewer");
    let nonsense = browser.send(Method::GET, "/api/v1/me", &[("authorization", "Bearer x")]).await;
    assert_eq!(nonsense.status, 401);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_holds_nothing_that_signs_in_and_the_audit_log_tells_both_ends() {
    let story = Story::new().await;
    let mut browser = Browser::at(&platform(&story).await);
    browser.sign_in("viewer").await;
    let secret = browser.cookies["gpuaas_session"].clone();
    let rows: Vec<String> = sqlx::query_scalar("select row_to_json(s)::text from console_sessions s")
        .fetch_all(&story.pool)
        .await
        .unwrap();
    assert!(rows.len() == 1 && !rows[0].contains(&secret), "{rows:?}");
    let csrf = browser.csrf().await;
    browser.send(Method::POST, "/console/logout", &[("x-csrf-token", &csrf)]).await;
    let told: Vec<String> =
        sqlx::query_scalar("select action from audit where action like 'console%' order by id")
            .fetch_all(&story.pool)
            .await
            .unwrap();
    assert_eq!(told, ["console_sign_in", "console_sign_out"]);
    story.end().await;
}
