//! A page of a list: items in a stable order and where the next page starts.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Hand it back as `?cursor=` for the next page; `null` on the last one.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Lists page by key: they read one row more than asked for, and that row's presence says there is a next page.
    /// The cursor is made of the last item shown.
    pub fn cut(mut items: Vec<T>, limit: usize, cursor: impl FnOnce(&T) -> String) -> Page<T> {
        let more = items.len() > limit;
        items.truncate(limit);
        let next_cursor = if more { items.last().map(cursor) } else { None };
        Page { items, next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_points_at_the_last_item_shown() {
        let page = Page::cut(vec![9, 8, 7], 2, i32::to_string);
        assert_eq!((page.items, page.next_cursor), (vec![9, 8], Some("8".to_owned())));
    }

    #[test]
    fn a_page_that_holds_everything_has_no_cursor() {
        assert_eq!(Page::cut(vec![9, 8], 2, i32::to_string).next_cursor, None);
        assert_eq!(Page::cut(vec![], 2, i32::to_string).next_cursor, None);
    }
}
