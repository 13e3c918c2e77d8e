//! What people set once instead of typing it every time: `.config/harness.toml` of the project and `config.toml` of the
//! user's configuration folder. The command line wins over the environment, that over the project, that over the user.

use super::run_suites;
use crate::error::Error;
use crate::library::places;
use clap::Command;
use config::form::{Form, Key, Type, names};
use config::schema::FileKind;
use config::toml_reader::file;
use serde::Deserialize;
use std::path::Path;
use store::trust;

/// What stands in it.
pub(super) static KIND: FileKind =
    FileKind { name: "settings", about: "What need not be typed each time.", form, files: &[PROJECT] };

fn form() -> Form {
    let flag = |name, value, about| Key::optional(name, value, about);
    Form::new([
        flag("inventory", Type::Text, "`--inventory`: the cluster"),
        flag("color", Type::OneOf(|_| names(&COLORS)), "`--color` of runs"),
        flag("junit", Type::Text, "`--junit` of runs: where the JUnit file is written"),
        flag("json", Type::Text, "`--json` of runs: where the summary is written"),
        flag("recipe_path", Type::Text, "`--recipe-path`: a folder of recipes of your own"),
        flag("ssh_fanout", Type::WHOLE, "`--ssh-fanout`: how many hosts are asked at once"),
    ])
}

/// In the project's folder.
const PROJECT: &str = ".config/harness.toml";
/// In the user's configuration folder.
const USER: &str = "config.toml";

/// The keys of such a file; each is a flag.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    inventory: Option<String>,
    color: Option<Color>,
    junit: Option<String>,
    json: Option<String>,
    recipe_path: Option<String>,
    ssh_fanout: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Color {
    Auto,
    Always,
    Never,
}

const COLORS: [(&str, Color); 3] =
    [("auto", Color::Auto), ("always", Color::Always), ("never", Color::Never)];

impl Settings {
    /// Of a project in this folder, and of the user.
    pub(super) fn load(project: &Path) -> Result<Settings, Error> {
        let of_project = read(&project.join(PROJECT), PROJECT, &|path| {
            let folders = [path.parent(), Some(project)];
            folders.into_iter().flatten().find_map(trust::distrusted)
        })?;
        let of_user = match places::user() {
            Some(folder) => {
                let path = folder.join(USER);
                read(&path, &path.display().to_string(), &|_| trust::distrusted(&folder))?
            }
            None => Settings::default(),
        };
        Ok(of_project.or(of_user))
    }

    /// Whether a verb, or one of its own verbs, has a flag that can be set.
    pub(super) fn concern(verb: &Command) -> bool {
        let is_set = |id: &str| ["inventory", "recipe_path", "ssh_fanout"].contains(&id);
        verb.get_arguments().any(|argument| is_set(argument.get_id().as_str()))
            || verb.get_subcommands().any(Settings::concern)
    }

    fn or(self, other: Settings) -> Settings {
        Settings {
            inventory: self.inventory.or(other.inventory),
            color: self.color.or(other.color),
            junit: self.junit.or(other.junit),
            json: self.json.or(other.json),
            recipe_path: self.recipe_path.or(other.recipe_path),
            ssh_fanout: self.ssh_fanout.or(other.ssh_fanout),
        }
    }

    /// The verb with these as its defaults, where it has such flags: clap lets the command line and the environment win.
    pub(super) fn apply(&self, verb: Command) -> Command {
        let verb = verb.mut_subcommands(|verb| self.apply(verb));
        let is_run = verb.get_arguments().any(|argument| argument.get_id() == run_suites::MEANINGLESS[0]);
        let name =
            |color| COLORS.iter().find(|(_, known)| *known == color).map(|(name, _)| (*name).to_owned());
        let color = self.color.and_then(name);
        let fanout = self.ssh_fanout.map(|fanout| fanout.to_string());
        // Of other verbs flags of these names may be something else.
        let values = [
            ("inventory", &self.inventory, true),
            ("recipe_path", &self.recipe_path, true),
            ("ssh_fanout", &fanout, true),
            ("color", &color, is_run),
            ("junit", &self.junit, is_run),
            ("json", &self.json, is_run),
        ];
        values.into_iter().fold(verb, |verb, (id, value, applies)| {
            let has = verb.get_arguments().any(|argument| argument.get_id() == id);
            match value {
                Some(value) if applies && has => {
                    verb.mut_arg(id, |argument| argument.default_value(value.clone()))
                }
                _ => verb,
            }
        })
    }
}

/// Nothing is set where there is no file. One that cannot be read is an error: what it sets must not get lost.
fn read(path: &Path, shown: &str, distrusted: &dyn Fn(&Path) -> Option<String>) -> Result<Settings, Error> {
    if path.symlink_metadata().is_err() {
        return Ok(Settings::default());
    }
    if let Some(why) = distrusted(path) {
        return Err(Error::Usage(format!("{shown} is not used: {why}")));
    }
    let text = file::read(path).map_err(|error| Error::Usage(format!("{shown}: {error}")))?;
    toml::from_str(&text).map_err(|error| {
        let at = error.span().map(|span| span.start).unwrap_or_default();
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Error::Usage(format!("{shown}:{line}:{column}: {}", error.message()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::schema::{Agreement, SchemaCheck};
    use recipes::catalogue::Catalogue;

    #[test]
    fn the_schema_has_the_keys_that_are_read() {
        let unknown = toml::from_str::<Settings>("zzz = 1").expect_err("no such key").to_string();
        let known: Vec<&str> = unknown.split('`').skip(3).step_by(2).collect();
        let form = form();
        assert_eq!(known, form.keys.iter().map(|key| key.name).collect::<Vec<_>>(), "{unknown}");
    }

    #[test]
    fn the_schema_accepts_what_is_read_and_refuses_what_is_wrong() {
        let check = SchemaCheck::new(&KIND.schema(&Catalogue::built_in()));
        let good = "inventory = \"mine\"\ncolor = \"never\"\nssh_fanout = 8\n";
        assert!(toml::from_str::<Settings>(good).is_ok());
        assert_eq!(check.compare(good, &[]), Ok(Agreement::Sound));
        for (wrong, message) in [
            ("inventroy = \"mine\"", "unknown key: `inventroy`"),
            ("color = \"red\"", "unknown color: `red`"),
            ("ssh_fanout = \"8\"", "`ssh_fanout` needs a whole number, not a text"),
        ] {
            assert!(toml::from_str::<Settings>(wrong).is_err(), "{wrong}");
            assert_eq!(check.compare(wrong, &[message.to_owned()]), Ok(Agreement::WrongInForm));
        }
    }
}
