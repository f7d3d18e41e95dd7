//! The same commands on a terminal: they ask before they act, and show the step that is under way.

use super::instances::Town;
use super::{Running, Shell};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_the_plan_is_asked_and_watches_the_steps() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    let declined = operator.types(&["up", "hello"], "n\n").await;
    assert_eq!(declined.code, Some(1), "{declined:?}");
    assert!(declined.stdout.contains("STEP") && declined.stdout.contains("PREDICATE"), "{declined:?}");
    assert!(declined.stdout.contains("deploy hello 1.0.0 as hello? [y/N]"), "{declined:?}");
    assert!(declined.stdout.contains("nothing was done"), "{declined:?}");
    assert_eq!(operator.ask(&["ps", "--all", "-o", "name"]).await.stdout, "", "nothing was done");

    let agreed = operator.types(&["up", "hello"], "y\n").await;
    assert_eq!(agreed.code, Some(0), "{agreed:?}");
    assert!(agreed.stdout.contains("\x1b[32m✓\x1b[0m mark_running"), "{agreed:?}");
    assert!(agreed.stdout.contains("http://127.0.0.1:30000"), "{agreed:?}");
    let silent = operator.types(&["down", "hello", "--no-input"], "").await;
    assert_eq!(silent.code, Some(0), "{silent:?}");
    assert!(!silent.stdout.contains("[y/N]"), "{silent:?}");
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_colours_there_are_none() {
    let town = Town::new().await;
    let mut operator = town.shell("operator");
    town.version().await;
    operator.variables.push(("NO_COLOR", "1".to_owned()));
    let said = operator.types(&["up", "hello", "--yes"], "").await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("✓ mark_running") && !said.stdout.contains("\x1b[3"), "{said:?}");
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_drawn_anew_when_it_changes() {
    let town = Town::new().await;
    let operator: Shell = town.shell("operator");
    town.version().await;
    let mut watching = Running::start(operator.on_terminal(&["ps", "-w"]));
    watching.says("REMARK").await;
    let up = operator.ask(&["up", "hello"]).await;
    assert_eq!(up.code, Some(0), "{up:?}");
    let seen = watching.says("running").await;
    assert!(seen.contains("\x1b[H\x1b[2J"), "{seen:?}");
    watching.end().await;
    town.end().await;
}
