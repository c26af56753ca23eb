// The documentation as a site: every link and anchor leads somewhere, and the search finds pages by words that people use.
// In: FANWIRE_SITE, the folder that `cargo xtask site` built → out: links without a target, words without a page.
// May use Node and mdBook's own search; never the network.
// The navigation is docs/SUMMARY.md.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import vm from 'node:vm';

const SITE = process.env.FANWIRE_SITE;
const pages = readdirSync(SITE, { recursive: true }).filter((name) => name.endsWith('.html'));
/** These show parts of other pages, or all of them. */
const MADE = ['print.html', '404.html', 'toc.html'];
const text = (page) => readFileSync(path.join(SITE, page), 'utf8');

test('every link and anchor of every page leads somewhere', () => {
  const ids = new Map(pages.map((page) => [page, new Set([...text(page).matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id))]));
  const broken = [];
  for (const page of pages.filter((name) => !MADE.includes(name))) {
    for (const [, link] of text(page).matchAll(/<a [^>]*href="([^"]+)"/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      const [file, anchor] = link.replaceAll('&amp;', '&').split('#');
      const target = file ? path.join(path.dirname(page), decodeURI(file)) : page;
      if (!existsSync(path.join(SITE, target))) broken.push(`${page}: ${link}`);
      else if (anchor && ids.has(target) && !ids.get(target).has(decodeURIComponent(anchor))) broken.push(`${page}: ${link}`);
    }
  }
  assert.deepEqual(broken, []);
  assert.ok(pages.length > 40, `${pages.length} pages`);
});

test('the search finds the page for words that people use', () => {
  const find = search();
  for (const [words, page] of [
    ['slow client', 'operation.html'],
    ['reconnect storm', 'kubernetes.html'],
    ['kick a user', 'tokens.html'],
    ['apt install', 'install.html'],
  ]) {
    const found = find(words).slice(0, 8);
    assert.ok(found.some((url) => url.startsWith(page)), `${words}: ${found.join(', ')}`);
  }
});

/** mdBook's index in its own search engine, asked as its page does. */
function search() {
  const named = (pattern) => readdirSync(SITE).find((name) => pattern.test(name)) ?? assert.fail(`no ${pattern}`);
  const sandbox = { window: { search: {} } };
  sandbox.self = sandbox;
  vm.createContext(sandbox);
  vm.runInContext(text(named(/^elasticlunr.*\.js$/)), sandbox);
  vm.runInContext(text(named(/^searchindex.*\.js$/)), sandbox);
  const { index, doc_urls: urls, search_options: options } = sandbox.window.search;
  const engine = sandbox.elasticlunr.Index.load(index);
  return (words) => engine.search(words, options).map(({ ref }) => urls[ref]);
}
