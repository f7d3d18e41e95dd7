//! Addresses as they may be shown, in `gpuaas config show` and in errors: what proves who comes, a password, a token or a
//! key, is never among it. Where an address cannot be read nobody can tell what of it is secret, so then nothing is shown.

use url::Url;
use url::form_urlencoded;

const STARS: &str = "***";

/// What of a query is secret has a name with one of these in it.
const SECRETS: [&str; 6] = ["password", "token", "secret", "key", "auth", "sig"];

/// The address with stars for its secrets; none where it cannot be read.
pub(super) fn shown(address: &str) -> Option<String> {
    Url::parse(address).ok()?;
    let (scheme, rest) = address.split_once("://")?;
    let rest = query_shown(rest);
    // Whoever forgets to escape a password may have any sign in it, so all before the last @ may belong to it.
    let Some((credentials, host)) = rest.rsplit_once('@') else { return Some(format!("{scheme}://{rest}")) };
    let credentials = match credentials.split_once(':') {
        Some((user, _)) => format!("{user}:{STARS}"),
        // To Postgres a lone name is a user's; elsewhere it is a token.
        None if scheme.starts_with("postgres") => credentials.to_owned(),
        None => STARS.to_owned(),
    };
    Some(format!("{scheme}://{credentials}@{host}"))
}

/// Several servers of NATS, parted by commas; it takes them without a scheme too.
pub(super) fn servers_shown(addresses: &str) -> Option<String> {
    let one = |address: &str| match address.contains("://") {
        true => shown(address),
        false => shown(&format!("nats://{address}")),
    };
    let all: Option<Vec<String>> = addresses.split(',').map(|address| one(address.trim())).collect();
    Some(all?.join(","))
}

/// With stars for the secrets in its query, however their names are escaped.
fn query_shown(rest: &str) -> String {
    let Some((before, query)) = rest.split_once('?') else { return rest.to_owned() };
    let pairs = query.split('&').map(|pair| {
        let name = form_urlencoded::parse(pair.as_bytes()).next().map(|(name, _)| name.to_lowercase());
        let is_secret = name.is_some_and(|name| SECRETS.iter().any(|secret| name.contains(secret)));
        match pair.split_once('=') {
            Some((written, _)) if is_secret => format!("{written}={STARS}"),
            _ => pair.to_owned(),
        }
    });
    format!("{before}?{}", pairs.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_before_the_host_is_not_shown_whatever_signs_it_has() {
        for (address, as_shown) in [
            ("postgres://app:s3cret@db/gpuaas", "postgres://app:***@db/gpuaas"),
            ("postgres://app:s3@cret@db/gpuaas", "postgres://app:***@db/gpuaas"),
            ("postgres://app:s3:cret@db/gpuaas", "postgres://app:***@db/gpuaas"),
            // Read as a port and a path, and not what was meant.
            ("postgres://app:5/cret@db/gpuaas", "postgres://app:***@db/gpuaas"),
            ("postgres://app:5?cret@db/gpuaas", "postgres://app:***@db/gpuaas"),
            ("postgres://app@db/gpuaas", "postgres://app@db/gpuaas"),
            ("postgres://db/gpuaas?sslmode=require", "postgres://db/gpuaas?sslmode=require"),
            ("https://hvs.token@vault.example/", "https://***@vault.example/"),
        ] {
            assert_eq!(shown(address).as_deref(), Some(as_shown), "{address}");
        }
    }

    #[test]
    fn a_secret_in_the_query_is_not_shown() {
        for (address, as_shown) in [
            ("postgres://db/x?user=app&password=s3cret", "postgres://db/x?user=app&password=***"),
            ("postgres://db/x?p%61ssword=s3cret&a=b", "postgres://db/x?p%61ssword=***&a=b"),
            ("postgres://app:s3cret@db/x?sslpassword=c@ret", "postgres://app:***@db/x?sslpassword=***"),
            ("postgres://db/x?password=s3cret#more", "postgres://db/x?password=***"),
            ("https://h/p?access_token=a&api%4Bey=b", "https://h/p?access_token=***&api%4Bey=***"),
            ("https://h/p?client_secret=a&X-Auth=b&sv=2", "https://h/p?client_secret=***&X-Auth=***&sv=2"),
            ("https://h/p?X-Amz-Signature=a&sig=b", "https://h/p?X-Amz-Signature=***&sig=***"),
        ] {
            assert_eq!(shown(address).as_deref(), Some(as_shown), "{address}");
        }
    }

    #[test]
    fn every_server_of_several_keeps_its_secret() {
        for (addresses, as_shown) in [
            ("nats://TOKEN@h", "nats://***@h"),
            ("nats://a:one@h:4222, tls://b:two@i:4222", "nats://a:***@h:4222,tls://b:***@i:4222"),
            ("nats://h, TOKEN@i:4222", "nats://h,nats://***@i:4222"),
            ("one:4222,two:4222", "nats://one:4222,nats://two:4222"),
        ] {
            assert_eq!(servers_shown(addresses).as_deref(), Some(as_shown), "{addresses}");
        }
    }

    #[test]
    fn nothing_is_shown_of_what_cannot_be_read() {
        for address in [
            "postgres://app:s3/cret@db/gpuaas",
            "postgres://app:s3cret@db:notaport/x",
            "postgres:app:s3cret@db",
            "host=db password=s3cret",
        ] {
            assert_eq!(shown(address), None, "{address}");
        }
        assert_eq!(servers_shown("nats://a:one@h,nats://b:t/wo@i"), None);
    }
}
