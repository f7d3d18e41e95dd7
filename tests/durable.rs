//! The engine's promises, told as stories about scripted workflows.

mod berths;
mod fairness;
mod ferries;
mod given_up;
mod heirs;
mod held;
mod history;
mod kill;
mod misbehaviour;
mod operators;
mod outage;
mod poison;
mod pooler;
mod promises;
mod races;
mod schedules;
mod simulate;
mod steps;
mod targets;
mod undo;
mod waits;
mod zombie;
