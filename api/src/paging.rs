//! Pages of lists that are ordered by id: `?limit=` and `?cursor=`, the same everywhere.

use api_types::Page;
use store::Slice;
use uuid::Uuid;

use crate::params::Params;

const LIMIT: i64 = 50;
const MOST: i64 = 200;

pub(crate) struct Paging {
    /// Names the list and the format of its cursors, so that a cursor of another list is refused and the format can
    /// change.
    list: &'static str,
    /// The last id of the page before.
    pub(crate) after: Option<Uuid>,
    limit: i64,
}

impl Paging {
    pub(crate) fn read(params: &mut Params, list: &'static str) -> Paging {
        let limit = params.parsed("limit", format!("a number from 1 to {MOST}")).unwrap_or(LIMIT);
        if !(1..=MOST).contains(&limit) {
            params.problem("limit", format!("must be a number from 1 to {MOST}"));
        }
        let after = params.text("cursor").and_then(|text| {
            let id = id_of(list, &text);
            if id.is_none() {
                params.problem("cursor", "is not a cursor of this list");
            }
            id
        });
        Paging { list, after, limit }
    }

    /// How many rows to read: one more than shown tells whether there is a next page.
    pub(crate) fn rows(&self) -> i64 {
        self.limit + 1
    }

    pub(crate) fn slice(&self) -> Slice {
        Slice { after: self.after, limit: self.rows() }
    }

    pub(crate) fn page<Row, T>(
        &self,
        rows: Vec<Row>,
        id: impl Fn(&Row) -> Uuid,
        shown: impl Fn(Row) -> T,
    ) -> Page<T> {
        let cut = Page::cut(rows, self.limit.unsigned_abs() as usize, |last| cursor(self.list, id(last)));
        Page { items: cut.items.into_iter().map(shown).collect(), next_cursor: cut.next_cursor }
    }
}

/// Cursors are opaque to callers.
fn cursor(list: &str, last: Uuid) -> String {
    format!("{list}.{}", last.simple())
}

fn id_of(list: &str, cursor: &str) -> Option<Uuid> {
    Uuid::try_parse(cursor.strip_prefix(list)?.strip_prefix('.')?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_item() {
        let id = Uuid::now_v7();
        assert_eq!(id_of("r1", &cursor("r1", id)), Some(id));
    }

    #[test]
    fn texts_that_are_no_cursor_of_the_list_lead_nowhere() {
        for text in
            ["", "r1.", "r1.zz", "r2.00000000000000000000000000000000", "00000000000000000000000000000000"]
        {
            assert_eq!(id_of("r1", text), None, "{text}");
        }
    }
}
