//! Python packages that an instance installs: PEP 508 names, extras and version clauses, and nothing else.
//!
//! URLs, paths, version control and options are refused, because they would bring code that nobody can see in the
//! manifest; markers, because an instance has one environment.

/// The most packages an instance installs, the manifest's and its own together.
pub const MAX_PACKAGES: usize = 50;

const OPERATORS: [&str; 8] = ["===", "~=", "==", "!=", "<=", ">=", "<", ">"];

/// Why a specifier is refused; `None` if it is not.
pub fn package_problem(specifier: &str) -> Option<&'static str> {
    let text = specifier.trim();
    if text.is_empty() || specifier.len() > 200 {
        return Some("must be a package name with optional extras and versions, of at most 200 characters");
    }
    if text.starts_with('-') {
        return Some("must not be an option of the installer");
    }
    if text.contains('@') || text.contains("://") {
        return Some("must not be a URL or come from version control: name a package of the index");
    }
    if text.starts_with(['.', '/', '~', '\\']) || text.contains(['/', '\\']) {
        return Some("must not be a path: name a package of the index");
    }
    if text.contains(';') {
        return Some("must not have environment markers");
    }
    is_requirement(text)
        .is_none()
        .then_some("must be a name, optional [extras], and version clauses such as `>=1.2,<2`")
}

fn is_requirement(text: &str) -> Option<()> {
    let rest = name(text)?.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(rest) => {
            let (extras, rest) = rest.split_once(']')?;
            extras.split(',').all(|extra| name(extra.trim()).is_some_and(str::is_empty)).then_some(rest)?
        }
        None => rest,
    };
    let rest = rest.trim();
    let rest = match rest.strip_prefix('(') {
        Some(rest) => rest.strip_suffix(')')?.trim(),
        None => rest,
    };
    (rest.is_empty() || rest.split(',').all(|one| clause(one.trim()).is_some())).then_some(())
}

/// What follows a name: letters, digits and `._-`, with a letter or digit at both ends.
fn name(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let ends = |c: char| c.is_ascii_alphanumeric();
    (name.starts_with(ends) && name.ends_with(ends)).then_some(rest)
}

fn clause(text: &str) -> Option<()> {
    let operator = OPERATORS.into_iter().find(|operator| text.starts_with(operator))?;
    let version = text[operator.len()..].trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._+!*-".contains(c);
    (version.starts_with(|c: char| c.is_ascii_alphanumeric()) && version.chars().all(plain)).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_extras_and_versions_are_all_there_is() {
        for good in [
            "numpy",
            "torch==2.4.1",
            "pandas >= 2, < 3",
            "uvicorn[standard]",
            "a[b, c-d]~=1.0",
            "scikit-learn!=1.5.*",
            "jax (>=0.4)",
            "zope.interface",
            "x===1.0+local",
            "y>=1!2.0",
            "Django",
        ] {
            assert_eq!(package_problem(good), None, "{good}");
        }
        for bad in [
            "",
            " ",
            "-r requirements.txt",
            "--index-url https://example.com",
            "git+https://example.com/x.git",
            "x @ https://example.com/x.whl",
            "./x",
            "/tmp/x",
            "~/x",
            "..",
            "x; python_version<'3'",
            "x==",
            "x=1",
            "x>=1,",
            "x[",
            "x[]",
            "x[a",
            "-x",
            "x-",
            "x y",
            "x && rm",
            "x$(id)",
            "x`id`",
            "x>1 y",
            "ünï",
            "x\n-r y",
            "C:\\x",
            &"x".repeat(201),
        ] {
            assert!(package_problem(bad).is_some(), "{bad:?}");
        }
    }
}
