//! Which organizations and projects there are. Projects neither move nor vanish, so what was seen once stays true
//! and is not asked of the database again.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use domain::Scope;
use store::{organizations, projects};
use uuid::Uuid;

use crate::error::ApiError;
use crate::state::State;

#[derive(Default)]
pub(crate) struct Places {
    /// Project → organization.
    projects: RwLock<HashMap<Uuid, Uuid>>,
    organizations: RwLock<HashSet<Uuid>>,
    /// Project → slug, which never changes either.
    slugs: RwLock<HashMap<Uuid, String>>,
}

impl Places {
    pub(crate) async fn project(&self, state: &State, project: Uuid) -> Result<Option<Scope>, ApiError> {
        let known = self.projects.read().unwrap_or_else(PoisonError::into_inner).get(&project).copied();
        let org = match known {
            Some(org) => Some(org),
            None => Box::pin(self.find_project(state, project)).await?,
        };
        Ok(org.map(|org| Scope::Project { org, project }))
    }

    async fn find_project(&self, state: &State, project: Uuid) -> Result<Option<Uuid>, ApiError> {
        let mut tx = state.read().await?;
        let org = projects::org_of(&mut tx, project).await?;
        tx.rollback().await?;
        if let Some(org) = org {
            self.projects.write().unwrap_or_else(PoisonError::into_inner).insert(project, org);
        }
        Ok(org)
    }

    pub(crate) async fn slug(&self, state: &State, project: Uuid) -> Result<String, ApiError> {
        let known = self.slugs.read().unwrap_or_else(PoisonError::into_inner).get(&project).cloned();
        match known {
            Some(slug) => Ok(slug),
            None => Box::pin(self.find_slug(state, project)).await,
        }
    }

    async fn find_slug(&self, state: &State, project: Uuid) -> Result<String, ApiError> {
        let mut tx = state.read().await?;
        let slug = projects::slug_of(&mut tx, project).await?;
        tx.rollback().await?;
        self.slugs.write().unwrap_or_else(PoisonError::into_inner).insert(project, slug.clone());
        Ok(slug)
    }

    pub(crate) async fn organization(&self, state: &State, org: Uuid) -> Result<Option<Scope>, ApiError> {
        let known = self.organizations.read().unwrap_or_else(PoisonError::into_inner).contains(&org);
        let exists = known || Box::pin(self.find_organization(state, org)).await?;
        Ok(exists.then_some(Scope::Organization { org }))
    }

    async fn find_organization(&self, state: &State, org: Uuid) -> Result<bool, ApiError> {
        let mut tx = state.read().await?;
        let exists = organizations::exists(&mut tx, org).await?;
        tx.rollback().await?;
        if exists {
            self.organizations.write().unwrap_or_else(PoisonError::into_inner).insert(org);
        }
        Ok(exists)
    }
}
