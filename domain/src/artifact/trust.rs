//! How far an artifact is trusted: `unverified → verified | failed_verification`, and from anywhere `revoked`, for good.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::IllegalMove;
use crate::word::UnknownWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    Unverified,
    /// Passed every check that the policy required at that time.
    Verified,
    FailedVerification,
    Revoked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustMove {
    Pass,
    Fail,
    Revoke,
}

impl Trust {
    pub const ALL: [Trust; 4] =
        [Trust::Unverified, Trust::Verified, Trust::FailedVerification, Trust::Revoked];

    pub const fn as_str(self) -> &'static str {
        match self {
            Trust::Unverified => "unverified",
            Trust::Verified => "verified",
            Trust::FailedVerification => "failed_verification",
            Trust::Revoked => "revoked",
        }
    }

    /// The table of legal moves. A check may be repeated and may turn out otherwise; a revocation stands.
    pub fn after(self, act: TrustMove) -> Result<Trust, IllegalMove> {
        match (self, act) {
            (_, TrustMove::Revoke) => Ok(Trust::Revoked),
            (Trust::Revoked, act) => {
                Err(IllegalMove { from: self.as_str(), act: act.as_str(), allowed: &[] })
            }
            (_, TrustMove::Pass) => Ok(Trust::Verified),
            (_, TrustMove::Fail) => Ok(Trust::FailedVerification),
        }
    }
}

impl TrustMove {
    pub const fn as_str(self) -> &'static str {
        match self {
            TrustMove::Pass | TrustMove::Fail => "verify",
            TrustMove::Revoke => "revoke",
        }
    }
}

impl FromStr for Trust {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Trust, UnknownWord> {
        let named = Trust::ALL.into_iter().find(|state| state.as_str() == word);
        named.ok_or_else(|| UnknownWord::new(word, "the trust state of an artifact"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revocation_is_for_good_and_every_other_verdict_can_be_renewed() {
        for from in Trust::ALL {
            assert_eq!(from.after(TrustMove::Revoke), Ok(Trust::Revoked));
            let (pass, fail) = (from.after(TrustMove::Pass), from.after(TrustMove::Fail));
            if from == Trust::Revoked {
                assert!(pass.is_err() && fail.is_err());
            } else {
                assert_eq!((pass, fail), (Ok(Trust::Verified), Ok(Trust::FailedVerification)));
            }
        }
    }
}
