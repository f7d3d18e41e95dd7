//! A set of permission keys as one number: asking whether a key is in it costs nothing, at every request.

use std::fmt;

use serde::{Serialize, Serializer};

use super::{COUNT, Permission};

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PermissionSet(u64);

/// One bit per key.
const _: () = assert!(COUNT <= 64);

impl PermissionSet {
    pub const EMPTY: PermissionSet = PermissionSet(0);

    pub fn all() -> PermissionSet {
        Permission::all().collect()
    }

    pub const fn contains(self, key: Permission) -> bool {
        self.0 & bit(key) != 0
    }

    pub const fn with(self, key: Permission) -> PermissionSet {
        PermissionSet(self.0 | bit(key))
    }

    pub const fn and(self, other: PermissionSet) -> PermissionSet {
        PermissionSet(self.0 | other.0)
    }

    /// What is in this set and not in `other`.
    pub const fn beyond(self, other: PermissionSet) -> PermissionSet {
        PermissionSet(self.0 & !other.0)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::all().filter(move |key| self.contains(*key))
    }

    /// The names in the order of the list, as tables and tokens keep them.
    pub fn names(self) -> Vec<String> {
        self.iter().map(|key| key.as_str().to_owned()).collect()
    }

    /// The keys among `names` that this release knows: a newer one may have stored others, which grant nothing here.
    pub fn known_among<S: AsRef<str>>(names: &[S]) -> PermissionSet {
        names.iter().filter_map(|name| name.as_ref().parse::<Permission>().ok()).collect()
    }
}

const fn bit(key: Permission) -> u64 {
    1 << key as u64
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(keys: I) -> PermissionSet {
        keys.into_iter().fold(PermissionSet::EMPTY, PermissionSet::with)
    }
}

impl fmt::Debug for PermissionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Permission::as_str)).finish()
    }
}

impl Serialize for PermissionSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Permission::{AuditRead, WorkflowsOperate, WorkflowsRead};

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        let set = PermissionSet::from_iter([WorkflowsRead, AuditRead]);
        assert!(set.contains(WorkflowsRead) && set.contains(AuditRead) && !set.contains(WorkflowsOperate));
        assert_eq!(set.names(), ["workflows.read", "audit.read"]);
        assert_eq!(PermissionSet::known_among(&set.names()), set);
    }

    #[test]
    fn what_goes_beyond_another_set_is_told() {
        let small = PermissionSet::from_iter([WorkflowsRead]);
        let large = small.with(WorkflowsOperate);
        assert_eq!(large.beyond(small).names(), ["workflows.operate"]);
        assert!(small.beyond(large).is_empty());
    }
}
