//! The two cookies of the console. Scripts cannot read them; on https they carry the `__Host-` prefix, so that no
//! neighbouring host can set them.

use axum::http::{HeaderMap, HeaderValue, header};

/// Who the browser is signed in as. Never sent along with a request that another site caused.
pub(super) const SESSION: Cookie = Cookie { name: "gpuaas_session", same_site: "Strict" };
/// A sign-in under way. The issuer sends the browser back here, so requests caused by another site must carry it.
pub(super) const ATTEMPT: Cookie = Cookie { name: "gpuaas_sign_in", same_site: "Lax" };

#[derive(Clone, Copy)]
pub(super) struct Cookie {
    name: &'static str,
    same_site: &'static str,
}

impl Cookie {
    fn full_name(self, https: bool) -> String {
        if https { format!("__Host-{}", self.name) } else { self.name.to_owned() }
    }

    /// Its value, if it was sent exactly once: of two, nobody could say which is ours.
    pub(super) fn read(self, headers: &HeaderMap, https: bool) -> Option<&str> {
        let name = self.full_name(https);
        let sent = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut ours = sent
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(sent, _)| *sent == name)
            .map(|(_, value)| value);
        let first = ours.next()?;
        ours.next().is_none().then_some(first)
    }

    pub(super) fn set(self, value: &str, seconds: i64, https: bool) -> HeaderValue {
        let (name, same_site) = (self.full_name(https), self.same_site);
        let secure = if https { "; Secure" } else { "" };
        let text =
            format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}");
        // Names and values here are plain letters, so there is nothing a header could refuse.
        HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    pub(super) fn clear(self, https: bool) -> HeaderValue {
        self.set("", 0, https)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (header::COOKIE, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_cookie_is_found_among_others_and_not_by_a_part_of_its_name() {
        assert_eq!(SESSION.read(&sent(&["a=1; gpuaas_session=x; b=2"]), false), Some("x"));
        assert_eq!(SESSION.read(&sent(&["my_gpuaas_session=x"]), false), None);
    }

    #[test]
    fn on_https_only_the_cookie_that_this_host_alone_can_set_counts() {
        let both = sent(&["gpuaas_session=planted; __Host-gpuaas_session=ours"]);
        assert_eq!(SESSION.read(&both, true), Some("ours"));
        let set = SESSION.set("v", 60, true);
        assert_eq!(set, "__Host-gpuaas_session=v; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure");
    }

    #[test]
    fn two_cookies_of_one_name_are_none() {
        assert_eq!(SESSION.read(&sent(&["gpuaas_session=x; gpuaas_session=y"]), false), None);
        assert_eq!(SESSION.read(&sent(&["gpuaas_session=x", "gpuaas_session=y"]), false), None);
    }
}
