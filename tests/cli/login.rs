//! Signing in at the issuer of `gpuaas dev`: by password, and by a code that somebody types into a page.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::Shell;
use crate::support::process::{Dev, Said};

fn by_password(shell: &Shell, url: &str, name: &str, password: &str) -> Said {
    let arguments = ["login", "--url", url, "--username", name, "--password-stdin", "-o", "json"];
    let mut command = shell.command(&arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{password}\n").as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_person_signs_in_and_stays_signed_in() {
    let shell = Shell::new();
    let dev = Dev::start(&shell.path("data"), &[]);
    let url = dev.ready["api_url"].as_str().unwrap();
    let said = by_password(&shell, url, "operator", "operator");
    assert_eq!(said.code, Some(0), "{said:?}");
    let shown: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&shown["name"], &shown["project"]), (&"operator".into(), &dev.ready["project_id"]));

    let session = shell.path(".local/state/gpuaas/sessions/default.json");
    assert_eq!(fs::metadata(&session).unwrap().permissions().mode() & 0o777, 0o600);
    // Address and project come from the profile from now on.
    let said = shell.run(&["workflows", "list", "--kind", "demo.tour", "-o", "name"]);
    assert_eq!((said.code, said.stdout.lines().count()), (Some(0), 3), "the demo's runs: {said:?}");

    let refused = by_password(&shell, url, "operator", "wrong-password");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.stderr.contains("nobody has this name and password"), "{refused:?}");
    assert!(!format!("{refused:?}").contains("wrong-password"));
    assert_eq!(shell.run(&["whoami"]).code, Some(0), "a failed sign-in leaves the last one alone");
    let told = shell.run(&["login", "--no-input"]);
    assert_eq!(told.code, Some(1), "{told:?}");
}

#[test]
fn a_code_typed_into_a_page_signs_the_program_in() {
    let shell = Shell::new();
    let dev = Dev::start(&shell.path("data"), &[]);
    let url = dev.ready["api_url"].as_str().unwrap();
    let mut command = shell.command(&["login", "--url", url]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = talk.next().unwrap().unwrap();
    let code = first.rsplit(' ').next().unwrap();
    let page =
        dev.post_form("/realms/gpuaas/device", &format!("user_code={code}&username=viewer&password=viewer"));
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let said: Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("viewer"), "{said:?}");
    let me = shell.run(&["whoami", "-o", "name"]);
    assert_eq!(me.stdout, "viewer\n");
}
