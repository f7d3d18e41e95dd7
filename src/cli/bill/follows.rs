//! Whether a bill goes on from an older one. A chain that was rewritten and sealed anew holds by itself; only somebody who
//! kept an older end of it can tell.

use api_types::Bill;

/// How the bill contradicts the older one. Whatever the older one's head sealed, the same head seals here.
pub fn contradiction(bill: &Bill, older: &Bill) -> Option<String> {
    let (now, then) = (&bill.balance, &older.balance);
    if now.project_id != then.project_id {
        return Some("the older bill is of another project".to_owned());
    }
    if then.entries == 0 {
        return None;
    }
    match bill.entries.iter().find(|entry| entry.seq == then.entries) {
        Some(entry) if entry.hash == then.head_hash => None,
        Some(entry) => Some(format!("entry {} is not the one that the older bill ends with", entry.seq)),
        None => Some(format!("the older bill has {} entries, and this one {}", then.entries, now.entries)),
    }
}
