//! The documentation page and the sample file, generated from the table of keys.
//! In: the catalog → out: Markdown, JSON, YAML or TOML text.
//! Uses `catalog`. Never: values of a running server.
//! Changed here: layout; every name, default and sentence comes from its row.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use fanwire_telemetry::duration;
use serde_json::Value as Json;

use super::catalog::{Entry, api_keys, consumers, entries, sections, variable};
use super::file::{self, FileError, Format};
use super::key::{Key, Kind, Row, Support, Value, Weight};
use super::keys::{RPC_PROXY, WITHOUT_NAMESPACE, proxy};
use super::reload::LoadedConfig;
use super::renamed::FORMER;
use super::settings::{DEVELOPMENT, MemberSettings};

#[cfg(test)]
mod tests;

/// A file with every key that works, at its default, and its sentence where the format has comments.
pub fn sample(format: Format) -> String {
    let tree = Branch::of(entries().iter().filter(|entry| entry.works() && !is_former(entry)));
    let mut text = String::new();
    match format {
        Format::Json => json(&tree, 0, &mut text),
        Format::Yaml => yaml(&tree, 0, &mut text),
        Format::Toml => toml(&tree, "", &mut text),
    }
    text.trim_start().to_owned() + if format == Format::Json { "\n" } else { "" }
}

/// The same as a tree, with the values of a file over the defaults.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn sample_over(base: &Path) -> Result<Json, FileError> {
    let mut tree = file::parse(Format::Json, &sample(Format::Json)).expect("the sample is JSON");
    put_over(&mut tree, Json::Object(file::read(base)?));
    Ok(tree)
}

fn put_over(below: &mut Json, above: Json) {
    match (below, above) {
        (Json::Object(below), Json::Object(above)) => {
            for (name, value) in above {
                put_over(below.entry(name).or_insert(Json::Null), value);
            }
        }
        // An empty section or value of YAML says nothing.
        (_, Json::Null) => {}
        (below, above) => *below = above,
    }
}

/// A line `NAME=value` for every key, sorted: with its default, or as `base` sets it; `is_set_only` leaves defaults out.
pub fn variables(prefix: &str, base: Option<&LoadedConfig>, is_set_only: bool) -> String {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    if !is_set_only {
        let working = entries().iter().filter(|entry| entry.works() && !is_former(entry));
        values.extend(working.map(|entry| (entry.name.clone(), entry.key.default.to_owned())));
    }
    if let Some(LoadedConfig { settings, .. }) = base {
        let set = settings.values.iter();
        values.extend(set.map(|(name, setting)| (name.clone(), setting.raw.as_text())));
        for (list, members) in &settings.lists {
            let names: Vec<&str> = members.iter().map(MemberSettings::name).collect();
            values.insert((*list).to_owned(), names.join(" "));
            for MemberSettings { path, values: inner, .. } in members {
                let inner = inner.iter().filter(|(name, _)| *name != "name");
                values.extend(
                    inner.map(|(name, setting)| (format!("{path}.{name}"), setting.raw.as_text())),
                );
            }
        }
    }
    let line = |(name, value): (&String, &String)| {
        format!("{prefix}{}={}\n", variable(name), quoted(value))
    };
    values.iter().map(line).collect::<BTreeSet<String>>().into_iter().collect()
}

/// A value as a shell and a file `.env` read it alike: in quotes only if it needs some, because Docker leaves them there.
fn quoted(value: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "+,-./:@_".contains(character);
    if value.chars().all(is_plain) {
        return value.to_owned();
    }
    let mut quoted = String::from("\"");
    for character in value.chars() {
        quoted.extend("$\"\\`".contains(character).then_some('\\'));
        quoted.push(character);
    }
    quoted + "\""
}

/// The page `docs/configuration.md`.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (name, value) in DEVELOPMENT {
        let _ = writeln!(page, "- `{name}`: `{value}`");
    }
    page.push_str("\n## Keys\n");
    for section in sections() {
        let title = if section.name.is_empty() { "on their own" } else { section.name };
        let _ = writeln!(page, "\n### {title}\n\n{TABLE_HEAD}");
        for entry in section.entries.into_iter().filter(|entry| !is_of_a_proxy(entry)) {
            row(&entry.name, entry.key, &mut page);
        }
    }
    page.push_str(NAMESPACES);
    let places = proxy::PLACES.map(|place| format!("- `{place}`\n")).concat();
    let _ = writeln!(
        page,
        "{PROXIES}{places}- each member of `proxies`, with a `name`\n\n{TABLE_HEAD}"
    );
    for Row { key, .. } in proxy::PROXY {
        row(key.name, key, &mut page);
    }
    let _ = writeln!(page, "{API_KEYS}{TABLE_HEAD}");
    for entry in api_keys() {
        row(&entry.name, entry.key, &mut page);
    }
    let _ = writeln!(page, "{CONSUMERS}{TABLE_HEAD}");
    for entry in consumers().iter().filter(|entry| entry.works()) {
        row(&entry.name, entry.key, &mut page);
    }
    page.push_str(NOT_YET);
    not_yet_rows(entries().iter().filter(|entry| !is_of_a_proxy(entry)), &mut page);
    page.push_str("\nIn an event proxy:\n\n");
    page.push_str(NOT_YET_HEAD);
    let within = entries().iter().filter(|entry| entry.name.starts_with(RPC_PROXY));
    not_yet_rows(within, &mut page);
    page.push_str("\nIn a consumer:\n\n");
    page.push_str(NOT_YET_HEAD);
    not_yet_rows(consumers().iter(), &mut page);
    page
}

/// A kind in a few words, with its limits.
pub fn words(kind: &Kind) -> String {
    match kind {
        Kind::Switch => "true or false".to_owned(),
        Kind::Integer { min, max: u64::MAX } => format!("integer from {min}"),
        Kind::Integer { min, max } => format!("integer, {min} to {max}"),
        Kind::Duration { min, max } => {
            format!("duration, {} to {}", duration::format(*min), duration::format(*max))
        }
        Kind::Text => "text".to_owned(),
        Kind::Secret => "text, secret".to_owned(),
        Kind::Choice(choices) => {
            let quoted: Vec<String> = choices.iter().map(|one| format!("`{one:?}`")).collect();
            quoted.join(", ")
        }
        Kind::Path => "path".to_owned(),
        Kind::PortText => "port or nothing".to_owned(),
        Kind::List => "list of texts".to_owned(),
        Kind::Block => "section".to_owned(),
        Kind::Objects => "list of sections".to_owned(),
        Kind::Texts => "texts by name".to_owned(),
        Kind::Transforms(_) => format!("`{kind}`"),
    }
}

/// A line of the table of a section.
fn row(name: &str, key: &Key, page: &mut String) {
    let default = match key.default {
        "" => "empty".to_owned(),
        default => format!("`{default}`"),
    };
    let _ = writeln!(page, "| `{name}` | {} | {default} | {} |", words(&key.kind), key.doc);
}

/// Whether a key has a new name and is read under this one for files from before.
fn is_former(entry: &Entry) -> bool {
    FORMER.iter().any(|(name, _)| entry.name == *name)
}

/// Whether a key is one of those that every event proxy has.
fn is_of_a_proxy(entry: &Entry) -> bool {
    proxy::PLACES
        .iter()
        .any(|place| entry.name.strip_prefix(place) == Some(&format!(".{}", entry.key.name)))
}

fn not_yet_rows<'a>(entries: impl Iterator<Item = &'a Entry>, page: &mut String) {
    for entry in entries {
        let weight = match entry.key.support {
            Support::Works => continue,
            Support::NotYet(Weight::Tuning) => "noted",
            Support::NotYet(Weight::Feature) => "warning",
            Support::NotYet(Weight::Refused) => "start refused",
        };
        let section = [WITHOUT_NAMESPACE, RPC_PROXY];
        let name = section
            .iter()
            .find_map(|section| entry.name.strip_prefix(section))
            .unwrap_or(&entry.name)
            .trim_start_matches('.');
        let _ = writeln!(page, "| `{name}` | {weight} | {} |", entry.key.doc);
    }
}

/// Entries as a file nests them: leaves first, then sections, each in the catalog's order.
#[derive(Default)]
struct Branch {
    leaves: Vec<(String, &'static Entry)>,
    sections: Vec<(String, Branch)>,
}

impl Branch {
    fn of(entries: impl Iterator<Item = &'static Entry>) -> Self {
        let mut root = Branch::default();
        for entry in entries {
            let mut parts: Vec<&str> = entry.name.split('.').collect();
            let leaf = parts.pop().unwrap_or_default().to_owned();
            let branch = parts.into_iter().fold(&mut root, Branch::section);
            branch.leaves.push((leaf, entry));
        }
        root
    }

    fn section(&mut self, name: &str) -> &mut Branch {
        let index = match self.sections.iter().position(|(known, _)| known == name) {
            Some(index) => index,
            None => {
                self.sections.push((name.to_owned(), Branch::default()));
                self.sections.len() - 1
            }
        };
        &mut self.sections[index].1
    }
}

fn json(branch: &Branch, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth + 1);
    let mut members: Vec<String> = Vec::new();
    for (name, entry) in &branch.leaves {
        members.push(format!("{indent}{name:?}: {}", literal(entry)));
    }
    for (name, section) in &branch.sections {
        let mut inner = String::new();
        json(section, depth + 1, &mut inner);
        members.push(format!("{indent}{name:?}: {inner}"));
    }
    let _ = write!(text, "{{\n{}\n{}}}", members.join(",\n"), "  ".repeat(depth));
}

fn yaml(branch: &Branch, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    for (name, entry) in &branch.leaves {
        let _ = writeln!(text, "{indent}# {}", entry.key.doc);
        let _ = writeln!(text, "{indent}{name}: {}", literal(entry));
    }
    for (name, section) in &branch.sections {
        let blank = if depth == 0 { "\n" } else { "" };
        let _ = writeln!(text, "{blank}{indent}{name}:");
        yaml(section, depth + 1, text);
    }
}

fn toml(branch: &Branch, path: &str, text: &mut String) {
    for (name, entry) in &branch.leaves {
        let _ = writeln!(text, "# {}\n{name} = {}", entry.key.doc, literal(entry));
    }
    for (name, section) in &branch.sections {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if !section.leaves.is_empty() {
            let _ = writeln!(text, "\n[{path}]");
        }
        toml(section, &path, text);
    }
}

/// The default as a value that all three formats read alike.
fn literal(entry: &Entry) -> String {
    let key = entry.key;
    let value = key.kind.read_text(key.default).expect("every row's default fits its kind");
    match value {
        Value::Switch(on) => on.to_string(),
        Value::Integer(count) => count.to_string(),
        Value::Duration(length) => format!("{:?}", duration::format(length)),
        Value::Text(text) => format!("{text:?}"),
        Value::List(items) => format!("{items:?}"),
        Value::Tree(tree) => tree.to_string(),
    }
}

const TABLE_HEAD: &str = "| key | value | default | meaning |\n|---|---|---|---|";

const NOT_YET_HEAD: &str = "| key | when set | what it is |\n|---|---|---|\n";

const INTRODUCTION: &str = "\
# Configuration

<!-- Generated by `fanwire config-doc`; a key is changed in crates/config/src/keys/. -->

Fanwire reads the configuration of Centrifugo v6: the same keys, in JSON, YAML or TOML by the file's
extension.

```
fanwire init --for chat                # a first file, with random secrets; `fanwire init --help` lists other jobs
fanwire --config fanwire.yaml          # start with a file
fanwire check-config fanwire.yaml      # what is wrong with it, and what is not supported yet
fanwire sample-config --format yaml    # a file with every key at its default
```

Flags win over the environment, the environment over the file, the file over the defaults.

- **Flags** have the key's name: `--client.insecure`, `--http_api.key=secret`.
- **Environment variables** are `FANWIRE_` and the key in capitals with `_` for `.`:
  `FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY`. `CENTRIFUGO_` is read as well; of two that mean the same key
  Fanwire's wins. Lists are separated by spaces or JSON, lists of sections are JSON. The file `.env` of the working
  directory is read, too, as godotenv reads it, and a variable of the process wins. An empty variable is not set.
- **Secrets** may be in a file: every key that is a secret has one with `_file` behind it, `http_api.key_file`, with the name of the file.
- **Durations** are texts such as `300ms`, `25s` or `1m30s`. Numbers, `true` and `false` may stand in quotes, too.
- **Unknown keys** are warned about and ignored (`check-config --strict` fails on them, and a reload changes nothing); wrong types and values stop the start.
- **Keys of Centrifugo before v6**, which had no sections (`token_hmac_secret_key`, `admin: true`), are named with what they are
  called today, and not obeyed. A file that has nothing else stops the start;
  [Centrifugo's migration page](https://centrifugal.dev/docs/getting-started/migration_v6) converts it, and variables.

Without `--config` the file is `fanwire.yaml` of the working directory, or a `config.json` there that has a section of the
configuration. Under the name `centrifugo` ([migration.md](migration.md)) it is `config.json` alone. The first line of the log names the file.

Without a file, when no variable begins with `CENTRIFUGO_`, and when nothing sets a key of `admin`, `channel`, `client`, `consumers`, `engine`,
`grpc_api`, `http_api`, `proxies`, `rpc` or `uni_grpc` or another address than loopback, Fanwire runs in **development mode**. Keys of
the log, ports, `health`, `shards` and `pid_file` leave it on; a variable that looks like a mistyped key and the name `centrifugo` end it. In that mode
Fanwire answers under no other name than `localhost` and addresses (a foreign page whose name leads here could do anything), and
changes these defaults:

";

const NAMESPACES: &str = "
### Namespaces

`channel.namespaces` is a list. Every member has a `name` and any of the keys shown above under
`channel.without_namespace`:

```yaml
channel:
  namespaces:
    - name: chat
      allow_subscribe_for_client: true
      allow_publish_for_subscriber: true
```

In the environment it is either JSON, or names and one variable per key:

```
FANWIRE_CHANNEL_NAMESPACES=\"chat news\"
FANWIRE_CHANNEL_NAMESPACES_CHAT_ALLOW_SUBSCRIBE_FOR_CLIENT=true
```
";

const PROXIES: &str = "
### Event proxies

An event proxy is a backend that decides about events of clients. Namespaces name the one that is asked; where they name none,
it is that of `channel.proxy` or `rpc.proxy`. In the environment `proxies` is as `channel.namespaces` is:
`FANWIRE_PROXIES=\"pay\"` and `FANWIRE_PROXIES_PAY_ENDPOINT=http://pay.example/events`. There is an event proxy in

";

const API_KEYS: &str = "
### Keys of the server API

Each member of `http_api.keys` has a `name`, which is in log lines and metrics. `http_api.key` is called `default` and permits
everything. In the environment: `FANWIRE_HTTP_API_KEYS='[{\"name\":\"shop\",\"methods\":[\"publish\"]}]'` and
`FANWIRE_HTTP_API_KEYS_SHOP_KEY`.

";

const CONSUMERS: &str = "
### Consumers

Each member of `consumers` takes messages from a queue ([consumers.md](consumers.md)). In the environment the list is
`FANWIRE_CONSUMERS`, as JSON, and its members have variables by their names: `FANWIRE_CONSUMERS_MY_OUTBOX_POSTGRESQL_DSN`.

";

const NOT_YET: &str = "
## Not supported yet

Fanwire knows these keys of Centrifugo and does not obey them yet. At their defaults they say nothing.
Otherwise a tuning knob is noted, a missing feature is warned about, and where going on would be unsafe
or wrong the start is refused.

| key | when set | what it is |
|---|---|---|
";
