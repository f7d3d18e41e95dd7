//! A process that was frozen past its lease and goes on: every stale write is refused, and it begins again as another.

use engine::RunState;

use crate::support::outsider::{Blow, Orders, Outsider, short_lease};
use crate::support::slow::short_or_slow;
use crate::support::story::Story;
use crate::support::world::{Do, Trouble, hold, touch};

/// Freezes the outsider at the point, lets the story's own workers finish the run, and thaws it.
async fn frozen_at(point: &str) {
    let mut story = Story::idle(short_lease(), None).await;
    let run = story.start([touch("a"), hold("b"), Do::Write("c".into()), touch("d")]).await;
    let zombie = Outsider::start(&story.database, &Orders::strike(Blow::Stop, point));
    story
        .until_true(
            "the outsider froze and its lease ran out",
            "select exists (select 1 from engine.incarnation i join engine.run r on r.owner = i.id
                 where r.id = $1 and i.expires_at < clock_timestamp()) and $2::text[] is not null",
            run,
            &[],
        )
        .await;
    story.work();
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    let before = story.describe(run).await;
    zombie.send(Blow::Continue);

    // Thawed, it serves under a new name; that it finishes another run alone shows that it gave up the first.
    story.rest().await;
    let next = story.start([touch("a"), hold("b")]).await;
    assert_eq!(story.ends(next).await, RunState::Succeeded);
    let lives: i64 =
        sqlx::query_scalar("select count(*) from engine.incarnation where name like '%-' || $1 || '-%'")
            .bind(zombie.pid().to_string())
            .fetch_one(&story.pool)
            .await
            .unwrap();
    assert!(lives >= 2, "dead never revives: the process is another incarnation");
    assert_eq!(story.describe(run).await, before, "nothing stale was written");
    let effects = story.effects(run).await;
    assert!(
        effects.len() == 4 && effects.iter().all(|(_, held, _, undos)| *held && *undos == 0),
        "{effects:?}"
    );
    drop(zombie);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_frozen_before_its_commit_is_refused() {
    frozen_at("test.script/hold/do/before-commit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_frozen_after_its_effect_is_refused() {
    frozen_at("test.script/hold/do/after-effect").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_frozen_before_its_transaction_is_refused() {
    frozen_at("test.script/write/do/before-commit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_cannot_renew_its_lease_gives_up_by_its_own_clock() {
    let story = Story::with(short_lease(), None).await;
    story.world.trouble("b", [Trouble::Hang]);
    let run = story.start([touch("a"), hold("b"), touch("c")]).await;
    story.until_step(run, "b", "running").await;
    // While its row is held, the process cannot renew, and nobody can declare it dead.
    let mut held = story.pool.begin().await.unwrap();
    let first: uuid::Uuid = sqlx::query_scalar("select id from engine.incarnation for update")
        .fetch_one(&mut *held)
        .await
        .unwrap();
    let another =
        "select exists (select 1 from engine.incarnation where id <> $1) and $2::text[] is not null";
    story.until_true("the process began again as another", another, first, &[]).await;
    let dead: bool = sqlx::query_scalar("select died_at is not null from engine.incarnation where id = $1")
        .bind(first)
        .fetch_one(&mut *held)
        .await
        .unwrap();
    assert!(!dead, "it was told by nobody");
    held.commit().await.unwrap();
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    let effects = story.effects(run).await;
    assert!(effects.len() == 3 && effects.iter().all(|(_, held, ..)| *held), "{effects:?}");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_the_work_and_neither_holds_more_than_its_slots() {
    const SLOTS: usize = 8;
    let story = Story::idle(short_lease(), None).await;
    let orders = Orders { slots: SLOTS, ..Orders::work() };
    let workers = [Outsider::start(&story.database, &orders), Outsider::start(&story.database, &orders)];
    let load = short_or_slow(200, 1000);
    let runs = futures::future::join_all(
        (0..load).map(|_| story.start([touch("a"), hold("b"), Do::Sleep(1), touch("c")])),
    );
    let runs = runs.await;
    loop {
        let most: Option<i64> = sqlx::query_scalar(
            "select max(n) from (select count(*) as n from engine.run where owner is not null group by owner) held",
        )
        .fetch_one(&story.pool)
        .await
        .unwrap();
        assert!(most.unwrap_or(0) <= SLOTS as i64, "a process holds {most:?} runs with {SLOTS} slots");
        let live: bool =
            sqlx::query_scalar("select exists (select 1 from engine.run where finished_at is null)")
                .fetch_one(&story.pool)
                .await
                .unwrap();
        if !live {
            break;
        }
    }
    for run in runs {
        assert_eq!(story.state(run).await, RunState::Succeeded);
        assert_eq!(story.steps(run).await.len(), 4);
    }
    drop(workers);
    story.end().await;
}
