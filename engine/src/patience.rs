//! Waits between tries of what must succeed in the end: long enough to spare a database in trouble, short enough to go on
//! soon after it, and never in step with others.

use std::time::Duration;

/// Grows from 10 ms to half a second.
#[derive(Debug, Default)]
pub(crate) struct Patience(u32);

impl Patience {
    pub(crate) async fn wait(&mut self) {
        let longest = Duration::from_millis(10 << self.0.min(6)).min(Duration::from_millis(500));
        self.0 += 1;
        tokio::time::sleep(longest.mul_f64(0.5 + rand::random::<f64>() / 2.0)).await;
    }
}
