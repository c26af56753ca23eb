// Debian's Prometheus, which scrapes a server, and its promtool, which checks metrics and rules.
// In: a server → out: results of queries; what promtool says.
// May take the programs out of Debian's package (debian.js); keeps what it scrapes in a folder of its own.
// How Prometheus is started for the suites is changed here, the rules in deploy/prometheus.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { inCharge } from './children.js';
import { program, whyWithout } from './debian.js';
import { freePort } from './ports.js';
import { eventually } from './server.js';

const tool = (name) => program(name, ['prometheus'], 'usr/bin');

/** Why there is no Prometheus here; false if there is one. */
export const withoutPrometheus = () => whyWithout(() => tool('prometheus'));

/** The output of promtool; throws if it finds fault. */
export function promtool(words, input) {
  const { file, env } = tool('promtool');
  return execFileSync(file, words, { input, env, encoding: 'utf8' });
}

/** A Prometheus that scrapes `server` each second as the job `fanwire`. */
export async function startPrometheus(t, server) {
  const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-prometheus-'));
  const config = { scrape_configs: [{ job_name: 'fanwire', scrape_interval: '1s', static_configs: [{ targets: [server.host] }] }] };
  writeFileSync(path.join(folder, 'prometheus.yml'), JSON.stringify(config));
  const { file, env } = tool('prometheus');
  const address = `127.0.0.1:${await freePort()}`;
  const words = ['--config.file=prometheus.yml', `--storage.tsdb.path=${folder}`, `--web.listen-address=${address}`];
  const child = inCharge(spawn(file, words, { cwd: folder, env, stdio: 'ignore' }));
  t.after(() => {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  const query = async (text) => {
    const response = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(text)}`);
    const answer = await response.json();
    if (answer.status !== 'success') throw new Error(`${text}: ${answer.error}`);
    return answer.data.result;
  };
  const isUp = () => query('up == 1').then((found) => found.length === 1, () => false);
  await eventually(isUp, 'Prometheus to scrape the server', 30_000);
  return query;
}
