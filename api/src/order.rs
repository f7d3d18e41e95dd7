//! `?order=`: which come first in a list that can be read from either end.

use std::str::FromStr;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use crate::endpoint::one_of;
use crate::params::Params;

const OLDEST: &str = "oldest";
const NEWEST: &str = "newest";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Oldest,
    Newest,
}

impl Order {
    pub(crate) const DESCRIPTION: &'static str = "Which come first; `oldest` unless said otherwise.";

    pub(crate) fn schema() -> RefOr<Schema> {
        one_of(&[OLDEST, NEWEST])
    }

    pub(crate) fn read(params: &mut Params) -> Order {
        params.parsed("order", "oldest or newest").unwrap_or_default()
    }

    pub(crate) fn newest_first(self) -> bool {
        self == Order::Newest
    }

    /// The list's name in its cursors: a page of one order does not go on in the other.
    pub(crate) fn list(self, oldest: &'static str, newest: &'static str) -> &'static str {
        if self.newest_first() { newest } else { oldest }
    }
}

impl FromStr for Order {
    type Err = ();

    fn from_str(word: &str) -> Result<Order, ()> {
        match word {
            OLDEST => Ok(Order::Oldest),
            NEWEST => Ok(Order::Newest),
            _ => Err(()),
        }
    }
}
