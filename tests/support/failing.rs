//! Trouble at the engine's own failpoints, said as a closure.

use std::sync::{Arc, Mutex};

use engine::{Faults, Point, Strike};

struct When<F>(F);

impl<F: Fn(&Point<'_>) -> Option<Strike> + Send + Sync> Faults for When<F> {
    fn strike(&self, point: &Point<'_>) -> Option<Strike> {
        (self.0)(point)
    }
}

pub fn when<F>(strike: F) -> Option<Arc<dyn Faults>>
where
    F: Fn(&Point<'_>) -> Option<Strike> + Send + Sync + 'static,
{
    Some(Arc::new(When(strike)))
}

/// The drive dies whenever it comes to this point.
pub fn crash_at(place: &'static str) -> Option<Arc<dyn Faults>> {
    when(move |point| (point.to_string() == place).then_some(Strike::Crash))
}

/// The drive dies at each of these points, the first time it comes by.
pub fn crash_once_at(places: &[&'static str]) -> Option<Arc<dyn Faults>> {
    let left = Mutex::new(places.to_vec());
    when(move |point| {
        let (mut left, point) = (left.lock().unwrap(), point.to_string());
        let at = left.iter().position(|place| *place == point)?;
        left.swap_remove(at);
        Some(Strike::Crash)
    })
}
