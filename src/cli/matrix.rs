//! The placement matrix as people read it: a line per predicate, a column per allocation, and a cross where it does not hold.

use domain::placement::Row;
use uuid::Uuid;

use super::output;

/// So many allocations stand beside each other on a screen.
const ACROSS: usize = 5;

/// The allocation that would be taken has a star.
pub fn table(rows: &[Row], taken: Option<Uuid>) -> String {
    rows.chunks(ACROSS).map(|some| across(some, taken)).collect::<Vec<String>>().join("\n")
}

fn across(rows: &[Row], taken: Option<Uuid>) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let name = |row: &Row| {
        let star = if taken == Some(row.allocation_id) { "* " } else { "" };
        format!("{star}{}", short(row.allocation_id))
    };
    let names: Vec<String> = rows.iter().map(name).collect();
    let heading = ["predicate", "required"].into_iter().chain(names.iter().map(String::as_str));
    let lines: Vec<Vec<String>> = first
        .predicates
        .iter()
        .enumerate()
        .map(|(at, predicate)| {
            let cells = rows.iter().map(|row| cell(row, at));
            [predicate.name.clone(), predicate.required.clone()].into_iter().chain(cells).collect()
        })
        .collect();
    output::table(&heading.collect::<Vec<&str>>(), &lines)
}

fn cell(row: &Row, at: usize) -> String {
    match row.predicates.get(at) {
        Some(predicate) if predicate.holds => predicate.actual.clone(),
        Some(predicate) => format!("✗ {}", predicate.actual),
        None => String::new(),
    }
}

/// Ids that were made one after the other begin alike and end differently.
fn short(id: Uuid) -> String {
    let id = id.to_string();
    format!("{}…{}", &id[..8], &id[id.len() - 4..])
}

#[cfg(test)]
mod tests {
    use domain::placement::Predicate;

    use super::*;

    fn row(id: u128, free: u32) -> Row {
        let predicate = |name: &str, required: &str, actual: String, holds: bool| Predicate {
            name: name.to_owned(),
            required: required.to_owned(),
            actual,
            holds,
        };
        Row {
            allocation_id: Uuid::from_u128(id),
            fits: free >= 2,
            predicates: vec![
                predicate("node_status", "active", "active".to_owned(), true),
                predicate("free_gpu_count", "at least 2", free.to_string(), free >= 2),
            ],
        }
    }

    #[test]
    fn predicates_are_lines_and_allocations_are_columns() {
        let drawn = table(&[row(1, 1), row(2, 4)], Some(Uuid::from_u128(2)));
        let expected = "\
PREDICATE       REQUIRED    00000000…0001  * 00000000…0002
node_status     active      active         active
free_gpu_count  at least 2  ✗ 1            4
";
        assert_eq!(drawn, expected);
        assert_eq!(table(&[], None), "");
    }
}
