//! `[auth]`: whose people are believed, by which keys the platform signs its own tokens and seals its secrets, and
//! whether that is enough to serve. Keys come from a file or from a value, never from the database.

use std::net::SocketAddr;

use clients::oidc::{Issuer, IssuerKeys};
use clients::seal::Sealer;
use clients::signing::SigningKeys;

use super::{ConfigError, Values, read, variable_name};

#[derive(Debug, Clone)]
pub struct Auth {
    pub issuers: Vec<Issuer>,
    /// The client of the first issuer by which people sign in to the console, if it is not named as the audience.
    pub console_client_id: Option<String>,
    pub loopback_http: bool,
    /// Where callers reach the API: what the platform calls itself in its own tokens.
    pub public_url: Option<String>,
    pub audience: String,
    pub signing_keys: Option<SigningKeys>,
    pub sealer: Option<Sealer>,
    /// Serve on loopback although nobody could sign in.
    pub allow_nobody: bool,
}

impl Auth {
    pub fn load(values: &Values) -> Result<Auth, ConfigError> {
        let signing_keys = match key_text(values, "auth.signing_keys", "auth.signing_keys_file")? {
            Some((key, text)) => Some(SigningKeys::from_pem(&text).map_err(|why| values.wrong(key, &why))?),
            None => None,
        };
        let sealer = match key_text(values, "auth.sealing_keys", "auth.sealing_keys_file")? {
            Some((key, text)) => Some(Sealer::from_lines(&text).map_err(|why| values.wrong(key, &why))?),
            None => None,
        };
        Ok(Auth {
            issuers: issuers(values)?,
            console_client_id: values.optional("auth.console_client_id")?,
            loopback_http: values.parse("auth.loopback_http")?,
            public_url: public_url(values)?,
            audience: values.text("auth.audience")?,
            signing_keys,
            sealer,
            allow_nobody: values.parse("auth.allow_nobody")?,
        })
    }

    /// Whether there is what it takes to answer requests on this address; everything missing is said at once.
    pub fn check_for(&self, listen: SocketAddr) -> Result<(), ConfigError> {
        if self.allow_nobody && listen.ip().is_loopback() {
            return Ok(());
        }
        let mut problems = Vec::new();
        let mut missing = |present: bool, keys: &[&str], what: &str| {
            if !present {
                let variables: Vec<String> = keys.iter().map(|key| variable_name(key)).collect();
                let keys = keys.join("` or `");
                problems.push(format!("{what}: set `{keys}` ({})", variables.join(", ")));
            }
        };
        missing(!self.issuers.is_empty(), &["auth.issuers"], "no issuer is trusted, so nobody could sign in");
        missing(
            self.public_url.is_some(),
            &["auth.public_url"],
            "the platform does not know its own address",
        );
        let signing = ["auth.signing_keys_file", "auth.signing_keys"];
        missing(self.signing_keys.is_some(), &signing, "there is no key to sign tokens with");
        let sealing = ["auth.sealing_keys_file", "auth.sealing_keys"];
        missing(self.sealer.is_some(), &sealing, "there is no key to seal secrets with");
        if problems.is_empty() {
            return Ok(());
        }
        problems.push(if self.allow_nobody {
            format!("`auth.allow_nobody` holds on a loopback address only, and {listen} is none")
        } else {
            "to serve on a loopback address without these, where nobody can sign in: auth.allow_nobody = true"
                .to_owned()
        });
        Err(ConfigError(problems))
    }
}

/// One issuer on a line, or between commas: its address, then the audiences its tokens may be meant for.
fn issuers(values: &Values) -> Result<Vec<Issuer>, ConfigError> {
    let text = values.text("auth.issuers")?;
    let lines = text.split(['\n', ',']).map(str::trim).filter(|line| !line.is_empty());
    let read = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let url = words.next().unwrap_or_default();
        let audiences: Vec<String> = words.collect();
        if audiences.is_empty() {
            let why = format!("{url} needs an audience: write `{url} AUDIENCE`");
            return Err(values.wrong("auth.issuers", &why));
        }
        Ok(Issuer { name: url.clone(), url, audiences, keys: IssuerKeys::Discovered })
    };
    lines.map(read).collect()
}

fn public_url(values: &Values) -> Result<Option<String>, ConfigError> {
    let url = values.optional("auth.public_url")?.map(|url| url.trim_end_matches('/').to_owned());
    match &url {
        Some(address) if !address.starts_with("https://") && !address.starts_with("http://") => {
            Err(values.wrong("auth.public_url", &"must begin with https:// or http://"))
        }
        _ => Ok(url),
    }
}

/// The keys themselves and the setting they came from.
pub(super) fn key_text<'a>(
    values: &Values,
    direct: &'a str,
    file: &'a str,
) -> Result<Option<(&'a str, String)>, ConfigError> {
    match (values.optional(direct)?, values.optional(file)?) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some((direct, text))),
        (None, Some(path)) => {
            let text = read(path.as_ref(), "key file").map_err(|error| values.wrong(file, &error))?;
            Ok(Some((file, text)))
        }
        (Some(_), Some(_)) => Err(values.wrong(file, &format!("`{direct}` is set as well; choose one"))),
    }
}

#[cfg(test)]
mod tests {
    use clients::signing::SigningKey;

    use super::super::tests::load;

    const LOOPBACK: &str = "127.0.0.1:8080";

    #[test]
    fn serving_needs_an_issuer_an_address_and_both_keys_and_says_so_at_once() {
        let error = load("", &[], &[]).unwrap().auth.check_for(LOOPBACK.parse().unwrap()).unwrap_err();
        let text = error.to_string();
        for key in ["auth.issuers", "auth.public_url", "auth.signing_keys_file", "auth.sealing_keys_file"] {
            assert!(text.contains(key), "{text}");
        }
        assert!(text.contains("GPUAAS_AUTH_SIGNING_KEYS") && text.contains("auth.allow_nobody"), "{text}");
    }

    #[test]
    fn a_complete_configuration_may_serve_anywhere() {
        let pem = SigningKey::generate().unwrap().private_key_pem().unwrap();
        let sealing = clients::seal::Sealer::generate_line("k1");
        let environment = [
            ("GPUAAS_AUTH_SIGNING_KEYS", pem.expose().as_str()),
            ("GPUAAS_AUTH_SEALING_KEYS", sealing.expose()),
            ("GPUAAS_AUTH_PUBLIC_URL", "https://gpuaas.example/"),
        ];
        let file = "[auth]\nissuers = \"\"\"\nhttps://one.example a b\nhttps://two.example c\n\"\"\"\n";
        let auth = load(file, &environment, &[]).unwrap().auth;
        auth.check_for("0.0.0.0:8080".parse().unwrap()).unwrap();
        assert_eq!(auth.public_url.as_deref(), Some("https://gpuaas.example"));
        let read: Vec<(&str, usize)> =
            auth.issuers.iter().map(|one| (one.url.as_str(), one.audiences.len())).collect();
        assert_eq!(read, [("https://one.example", 2), ("https://two.example", 1)]);
    }

    #[test]
    fn nobody_at_all_is_a_choice_that_never_leaves_the_machine() {
        let auth = load("", &[], &[("auth.allow_nobody", "true")]).unwrap().auth;
        assert!(auth.check_for(LOOPBACK.parse().unwrap()).is_ok());
        let error = auth.check_for("0.0.0.0:8080".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("loopback address only"), "{error}");
    }

    #[test]
    fn keys_are_neither_shown_nor_printed_nor_quoted_in_mistakes() {
        let pem = SigningKey::generate().unwrap().private_key_pem().unwrap();
        let secret = pem.expose().lines().nth(1).unwrap();
        let config = load("", &[("GPUAAS_AUTH_SIGNING_KEYS", pem.expose())], &[]).unwrap();
        let (key, setting) = config.values.iter().find(|(key, _)| *key == "auth.signing_keys").unwrap();
        assert_eq!(setting.shown(key), "***");
        assert!(!format!("{config:?}").contains(secret));
        let broken = format!("{secret} hunter2");
        for name in ["GPUAAS_AUTH_SIGNING_KEYS", "GPUAAS_AUTH_SEALING_KEYS"] {
            let error = load("", &[(name, &broken)], &[]).unwrap_err().to_string();
            assert!(error.contains(name) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn mistakes_name_their_place() {
        let of = |file: &str| load(file, &[], &[]).unwrap_err().to_string();
        let error = of("[auth]\nissuers = \"https://one.example\"\n");
        assert!(error.contains("gpuaas.toml:2") && error.contains("needs an audience"), "{error}");
        let error = of("[auth]\nsigning_keys_file = \"/nowhere/key.pem\"\n");
        assert!(error.contains("cannot read the key file /nowhere/key.pem"), "{error}");
        let error = of("[auth]\nsealing_keys = \"a\"\nsealing_keys_file = \"b\"\n");
        assert!(error.contains("choose one"), "{error}");
    }
}
