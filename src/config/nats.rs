//! `[nats]`: where events are passed on to, if anywhere.

use activities::NatsSettings;
use domain::Secret;

use super::auth::key_text;
use super::{ConfigError, Values};

pub(super) fn load(values: &Values) -> Result<Option<NatsSettings>, ConfigError> {
    let Some(url) = values.optional("nats.url")? else { return Ok(None) };
    let servers = url.split(',').map(|one| one.trim().parse()).collect::<Result<_, _>>();
    // An address may hold a password, so it is not repeated.
    let servers =
        servers.map_err(|_| values.wrong("nats.url", &"must be nats://HOST:PORT or tls://HOST:PORT"))?;
    let token = key_text(values, "nats.token", "nats.token_file")?;
    let word = |key: &str| -> Result<String, ConfigError> {
        let word = values.text(key)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match !word.is_empty() && word.chars().all(plain) && !word.starts_with('.') && !word.ends_with('.') {
            true => Ok(word),
            false => Err(values.wrong(key, &"must be letters, digits, dashes and dots between them")),
        }
    };
    Ok(Some(NatsSettings {
        servers,
        token: token.map(|(_, token)| Secret::new(token.trim().to_owned())),
        stream: word("nats.stream")?,
        subject: word("nats.subject")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;

    #[test]
    fn events_are_passed_on_only_where_an_address_says_so() {
        assert!(load("", &[], &[]).unwrap().nats.is_none());
        let file = "[nats]\nurl = \"nats://one:4222, nats://two:4222\"\ntoken = \"hush\"\n";
        let nats = load(file, &[], &[]).unwrap().nats.unwrap();
        assert_eq!((nats.servers.len(), nats.stream.as_str()), (2, "gpuaas-events"));
        assert!(!format!("{nats:?}").contains("hush"));
        let error =
            load("[nats]\nurl = \"nats://one\"\nsubject = \"a b\"\n", &[], &[]).unwrap_err().to_string();
        assert!(error.contains("nats.subject"), "{error}");
    }
}
