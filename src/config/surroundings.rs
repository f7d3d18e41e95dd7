//! What the environment says to the commands that speak to a platform from outside: where a person's files are kept,
//! and what scripts set instead of flags.

use std::path::PathBuf;

use super::ConfigError;

#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Where configuration lives: `$XDG_CONFIG_HOME`, or `~/.config`.
    pub config_home: PathBuf,
    /// Where what a program remembers lives: `$XDG_STATE_HOME`, or `~/.local/state`.
    pub state_home: PathBuf,
    pub profile: Option<String>,
    pub url: Option<String>,
    pub token: Option<String>,
    pub project: Option<String>,
    /// Said by `NO_COLOR`, whatever its value.
    pub no_color: bool,
}

impl Surroundings {
    pub fn read() -> Result<Surroundings, ConfigError> {
        let named = |name: &str| std::env::vars_os().find(|(given, _)| given == name);
        Surroundings::among(|name| named(name).and_then(|(_, value)| value.into_string().ok()))
    }

    /// Empty variables are as good as none, and relative folders are to be ignored: so says the XDG specification.
    fn among(variable: impl Fn(&str) -> Option<String>) -> Result<Surroundings, ConfigError> {
        let text = |name: &str| variable(name).filter(|value| !value.is_empty());
        let folder = |name: &str| text(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = |below: &str| folder("HOME").map(|home| home.join(below));
        let missing =
            || ConfigError(vec!["HOME is not set: there is no place for profiles and tokens".into()]);
        Ok(Surroundings {
            config_home: folder("XDG_CONFIG_HOME").or_else(|| home(".config")).ok_or_else(missing)?,
            state_home: folder("XDG_STATE_HOME").or_else(|| home(".local/state")).ok_or_else(missing)?,
            profile: text("GPUAAS_PROFILE"),
            url: text("GPUAAS_BASE_URL"),
            token: text("GPUAAS_TOKEN"),
            project: text("GPUAAS_PROJECT"),
            no_color: text("NO_COLOR").is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(pairs: &[(&str, &str)]) -> Result<Surroundings, ConfigError> {
        Surroundings::among(|name| {
            pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn folders_follow_the_xdg_specification() {
        let usual = among(&[("HOME", "/home/somebody"), ("XDG_STATE_HOME", "relative")]).unwrap();
        assert_eq!(usual.config_home, PathBuf::from("/home/somebody/.config"));
        assert_eq!(usual.state_home, PathBuf::from("/home/somebody/.local/state"));
        let chosen = among(&[("HOME", "/home/somebody"), ("XDG_CONFIG_HOME", "/etc/somebody")]).unwrap();
        assert_eq!(chosen.config_home, PathBuf::from("/etc/somebody"));
        assert!(among(&[]).is_err());
    }

    #[test]
    fn an_empty_variable_is_none() {
        let said =
            among(&[("HOME", "/home/somebody"), ("GPUAAS_TOKEN", ""), ("GPUAAS_PROJECT", "p")]).unwrap();
        assert_eq!((said.token, said.project.as_deref()), (None, Some("p")));
    }
}
