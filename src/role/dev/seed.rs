//! Organization `demo`, project `example` and the people in it, as every `gpuaas dev` has them. Memberships
//! that are already there stay as they are, so a role that was changed since is not changed back.

use engine::Pool;

use super::issuer::{self, PEOPLE, Person, Role};
use super::ready::{ORG_ID, PROJECT_ID};

pub async fn plant(pool: &Pool) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    store::organizations::ensure(&mut transaction, ORG_ID, "demo", "Demo").await?;
    store::projects::ensure(&mut transaction, PROJECT_ID, ORG_ID, "example", "Example").await?;
    for Person { username, role } in &PEOPLE {
        let user = store::users::sign_in(&mut transaction, issuer::NAME, username, username).await?;
        match *role {
            Role::Platform(role) => {
                store::users::set_platform_role(&mut transaction, user.id, role).await?;
            }
            Role::Project(role) => {
                store::memberships::ensure_in_project(&mut transaction, PROJECT_ID, user.id, role).await?;
            }
        }
    }
    transaction.commit().await
}
