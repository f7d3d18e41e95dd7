//! Pages of lists: `?limit=` and `?cursor=`, the same everywhere. Most lists are ordered by id; whatever else orders one
//! is a [`Bookmark`] too.

use api_types::Page;
use store::Slice;
use uuid::Uuid;

use crate::params::Params;

const LIMIT: i64 = 50;
const MOST: i64 = 200;

/// What a list is ordered by, and so where one of its pages ends.
pub(crate) trait Bookmark: Sized {
    fn written(&self) -> String;
    fn read(text: &str) -> Option<Self>;
}

impl Bookmark for Uuid {
    fn written(&self) -> String {
        self.simple().to_string()
    }

    fn read(text: &str) -> Option<Uuid> {
        Uuid::try_parse(text).ok()
    }
}

/// The number of an event.
impl Bookmark for i64 {
    fn written(&self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Option<i64> {
        text.parse().ok().filter(|number| *number >= 0)
    }
}

pub(crate) struct Paging<B = Uuid> {
    /// Names the list and the format of its cursors, so that a cursor of another list is refused and the format can
    /// change.
    list: &'static str,
    /// Where the page before ended.
    pub(crate) after: Option<B>,
    limit: i64,
}

impl<B: Bookmark> Paging<B> {
    pub(crate) fn read(params: &mut Params, list: &'static str) -> Paging<B> {
        let limit = params.parsed("limit", format!("a number from 1 to {MOST}")).unwrap_or(LIMIT);
        if !(1..=MOST).contains(&limit) {
            params.problem("limit", format!("must be a number from 1 to {MOST}"));
        }
        let after = params.text("cursor").and_then(|text| {
            let end = end_of(list, &text);
            if end.is_none() {
                params.problem("cursor", "is not a cursor of this list");
            }
            end
        });
        Paging { list, after, limit }
    }

    /// How many rows to read: one more than shown tells whether there is a next page.
    pub(crate) fn rows(&self) -> i64 {
        self.limit + 1
    }

    pub(crate) fn page<Row, T>(
        &self,
        rows: Vec<Row>,
        end: impl Fn(&Row) -> B,
        shown: impl Fn(Row) -> T,
    ) -> Page<T> {
        let cut = Page::cut(rows, self.limit.unsigned_abs() as usize, |last| cursor(self.list, &end(last)));
        Page { items: cut.items.into_iter().map(shown).collect(), next_cursor: cut.next_cursor }
    }
}

impl Paging {
    pub(crate) fn slice(&self) -> Slice {
        Slice { after: self.after, limit: self.rows() }
    }
}

/// Cursors are opaque to callers.
fn cursor<B: Bookmark>(list: &str, last: &B) -> String {
    format!("{list}.{}", last.written())
}

fn end_of<B: Bookmark>(list: &str, cursor: &str) -> Option<B> {
    B::read(cursor.strip_prefix(list)?.strip_prefix('.')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_item() {
        let id = Uuid::now_v7();
        assert_eq!(end_of("r1", &cursor("r1", &id)), Some(id));
        assert_eq!(end_of("e1", &cursor("e1", &7_i64)), Some(7));
    }

    #[test]
    fn texts_that_are_no_cursor_of_the_list_lead_nowhere() {
        for text in
            ["", "r1.", "r1.zz", "r2.00000000000000000000000000000000", "00000000000000000000000000000000"]
        {
            assert_eq!(end_of::<Uuid>("r1", text), None, "{text}");
            assert_eq!(end_of::<i64>("r1", text), None, "{text}");
        }
    }
}
