//! `cargo xtask site`: the pages of `docs/` as a site, with mdBook.
//! In: docs/*.md and docs/SUMMARY.md → out: HTML in the folder `site` of the target folder.
//! May install mdBook with cargo; never changes a page: links that leave `docs/` point to the repository instead.
//! The navigation is docs/SUMMARY.md, to which decisions are added here; how it looks is docs/book.toml.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::Workspace;
use crate::command::{cargo, must, say};

/// Builds the site.
///
/// # Errors
/// When a page is missing in the navigation, mdBook cannot be had, or it fails.
pub(crate) fn main() -> Result<bool> {
    let workspace = Workspace::find()?;
    say(&build(&workspace)?.display().to_string());
    Ok(true)
}

/// Builds the site, and returns its folder.
///
/// # Errors
/// As [`main`].
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf> {
    let tools = workspace.target.join("dist-tools");
    let mut install = cargo(workspace);
    install.args(["install", "--quiet", "--locked", "mdbook", "--version", MDBOOK, "--root"]);
    must(install.arg(&tools).env("CARGO_TARGET_DIR", tools.join("build")))?;

    let docs = workspace.root.join("docs");
    let source = workspace.target.join("site-source");
    let site = workspace.target.join("site");
    if source.is_dir() {
        fs::remove_dir_all(&source)?;
    }
    copy(&docs, Path::new(""), &source)?;
    let mut summary = fs::read_to_string(docs.join("SUMMARY.md"))?;
    add_decisions(&mut summary, &docs)?;
    fs::write(source.join("SUMMARY.md"), &summary)?;
    let absent = pages(&source)?.into_iter().find(|page| !summary.contains(&format!("({page})")));
    if let Some(page) = absent {
        bail!("docs/SUMMARY.md does not name {page}");
    }
    let mut mdbook = Command::new(tools.join("bin/mdbook"));
    must(mdbook.arg("build").arg(&source).arg("--dest-dir").arg(&site))?;
    Ok(site)
}

/// Copies a folder of pages and pictures; `from` is its place in `docs/`.
fn copy(docs: &Path, from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.join(from))?;
    for entry in fs::read_dir(docs.join(from))? {
        let entry = entry?;
        let name = from.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(docs, &name, to)?;
        } else if name.extension().is_some_and(|extension| extension == "md") {
            let page = fs::read_to_string(entry.path())?;
            fs::write(to.join(&name), with_links(&page, from.components().count()))?;
        } else {
            fs::copy(entry.path(), to.join(&name))?;
        }
    }
    Ok(())
}

/// The page with links to files outside of `docs/`, and to folders, as links to the repository. `depth`: folders between.
fn with_links(page: &str, depth: usize) -> String {
    let outside = format!("]({}", "../".repeat(depth + 1));
    let page = page.replace(&outside, &format!("]({REPOSITORY}/"));
    page.replace("](decisions)", &format!("]({REPOSITORY}/docs/decisions)"))
}

fn add_decisions(summary: &mut String, docs: &Path) -> Result<()> {
    summary.push_str("\n# Decisions\n\n");
    let mut files = pages(&docs.join("decisions"))?;
    files.sort();
    for file in files {
        let page = fs::read_to_string(docs.join("decisions").join(&file))?;
        let title = page.lines().next().context("an empty page")?.trim_start_matches("# ");
        summary.push_str(&format!("- [{title}](decisions/{file})\n"));
    }
    Ok(())
}

/// Names of the pages in a folder and those below it, but for the navigation itself.
fn pages(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            names.extend(pages(&entry.path())?.into_iter().map(|page| format!("{name}/{page}")));
        } else if name.ends_with(".md") && name != "SUMMARY.md" {
            names.push(name);
        }
    }
    Ok(names)
}

const MDBOOK: &str = "0.5.4";
const REPOSITORY: &str = "https://github.com/fanwire/fanwire/blob/main";

#[cfg(test)]
mod tests {
    use super::with_links;

    #[test]
    fn links_out_of_the_folder_become_links_to_the_repository() {
        let to = "https://github.com/fanwire/fanwire/blob/main";
        assert_eq!(with_links("[a](../deploy/x.yaml#y)", 0), format!("[a]({to}/deploy/x.yaml#y)"));
        assert_eq!(
            with_links("[a](../tls.md) [b](../../README.md)", 1),
            format!("[a](../tls.md) [b]({to}/README.md)")
        );
    }
}
