//! Who is believed, and what they may do.

mod oidc;
