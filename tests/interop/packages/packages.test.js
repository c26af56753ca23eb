// What `cargo xtask dist` made: the package on a clean Debian, the static program without any system, AArch64 under qemu.
// In: FANWIRE_PACKAGES, the folder with the packages → out: what an installation, an upgrade and a removal leave behind.
// May use debootstrap, chroot and dpkg, as root; never installs anything on this machine.
// A promise of docs/install.md is tested here; how packages are made stands in deploy/packages.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import WebSocket from 'ws';

const PACKAGES = process.env.FANWIRE_PACKAGES;
const files = readdirSync(PACKAGES);
const find = (end) => path.join(PACKAGES, files.find((name) => name.endsWith(end)) ?? assert.fail(`no file ends with ${end}`));
const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-packages-'));
const run = (name, ...words) => execFileSync(name, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Unpacks the tarball of an architecture and returns its folder. */
function unpacked(architecture) {
  const tarball = find(`-linux-${architecture}.tar.gz`);
  run('tar', '--extract', '--file', tarball, '--directory', folder);
  return path.join(folder, path.basename(tarball, '.tar.gz'));
}

// The module reads at its start which program to start: a script that lets qemu start the one for AArch64.
const arm = path.join(folder, 'arm64');
const skip = !files.some((name) => name.endsWith('-linux-arm64.tar.gz')) && 'made without arm64';
if (!skip) {
  writeFileSync(arm, `#!/bin/sh\nexec qemu-aarch64-static ${unpacked('arm64')}/fanwire "$@"\n`);
  chmodSync(arm, 0o755);
  process.env.FANWIRE = arm;
}
const { eventually, start, token } = await import('../server.js');
const { ENCODINGS, connect, sdk, subscribe } = await import('../js/clients.js');

after(() => rmSync(folder, { recursive: true, force: true }));

test('checksums are right, and a tarball has at most 12 MB', () => {
  run('sh', '-c', `cd ${PACKAGES} && sha256sum --check --quiet SHA256SUMS`);
  for (const name of files.filter((name) => name.endsWith('.tar.gz'))) {
    assert.ok(statSync(path.join(PACKAGES, name)).size <= 12 * 1024 * 1024, `${name}: ${statSync(path.join(PACKAGES, name)).size}`);
  }
  const parts = JSON.parse(readFileSync(find('.cdx.json'), 'utf8'));
  assert.ok(parts.components.some((part) => part.name === 'rustls' && part.purl.startsWith('pkg:cargo/rustls@')));
});

test('the program runs where there is no system at all, only itself', () => {
  const root = path.join(folder, 'empty');
  mkdirSync(root);
  cpSync(path.join(unpacked('amd64'), 'fanwire'), path.join(root, 'fanwire'));
  const said = run('chroot', root, '/fanwire', 'version', '--verbose');
  assert.match(said, /target: x86_64-unknown-linux-musl/);
  const dynamic = spawnSync('ldd', [path.join(root, 'fanwire')], { encoding: 'utf8' });
  assert.match(dynamic.stdout + dynamic.stderr, /statically linked|not a dynamic executable/);
});

test('AArch64 under qemu: a subscriber gets a compressed publication', { skip }, async (t) => {
  const server = await start({ channel: { without_namespace: { allow_subscribe_for_client: true } } });
  let socket;
  class Watched extends WebSocket {
    constructor(...words) {
      super(...words);
      socket = this;
    }
  }
  try {
    const client = sdk(t, server, ENCODINGS[0], { websocket: Watched, token: token({ sub: 'qemu' }) });
    await connect(client);
    const { publications } = await subscribe(client, 'news');
    const text = 'the same words, '.repeat(400);
    const before = socket._socket.bytesRead;
    await server.api('publish', { channel: 'news', data: { text } });
    const got = await publications.find(({ data }) => data.text === text, 'the publication');
    assert.ok(got);
    assert.ok(socket._socket.bytesRead - before < 500, `${socket._socket.bytesRead - before} bytes for ${text.length}`);
  } finally {
    await server.stop();
  }
});

/** A clean Debian, unpacked once for all runs. */
function cleanDebian() {
  const kept = fileURLToPath(new URL('../../../target/tools/debian-bookworm', import.meta.url));
  if (!existsSync(kept)) {
    const made = `${kept}.new`;
    rmSync(made, { recursive: true, force: true });
    run('debootstrap', '--variant=minbase', '--include=curl,logrotate,systemd', 'bookworm', made);
    run('mv', made, kept);
  }
  const root = path.join(folder, 'debian');
  run('cp', '--archive', kept, root);
  return root;
}

/** Every file of a system with what is in it, but for what dpkg and logs remember. */
function content(root) {
  const hash = createHash('sha256');
  const names = run('find', root, '-xdev', '-not', '-path', `${root}/var/lib/dpkg/*`, '-not', '-path', `${root}/var/log/*`);
  const listed = names.split('\n').filter((name) => !name.endsWith('-')).sort();
  for (const name of listed) if (name && statSync(name, { throwIfNoEntry: false })?.isFile()) hash.update(name).update(readFileSync(name));
  return { names: listed.map((name) => name.slice(root.length)), hash: hash.digest('hex') };
}

test('the package on a clean Debian: install, publish, reload, upgrade, purge', async () => {
  const root = cleanDebian();
  const inside = (...words) => run('chroot', root, ...words);
  const before = content(root);
  cpSync(find('_amd64.deb'), path.join(root, 'tmp/fanwire.deb'));
  const begun = Date.now();
  const said = inside('dpkg', '--install', '/tmp/fanwire.deb');
  assert.match(said, /with secrets of its own/);
  const config = path.join(root, 'etc/fanwire/fanwire.yaml');
  assert.equal(inside('stat', '--format=%a %U:%G', '/etc/fanwire/fanwire.yaml').trim(), '640 root:fanwire');
  const key = /key: "([^"]+)" # your backend publishes/.exec(readFileSync(config, 'utf8'))[1];

  // As the unit does, which needs a running systemd.
  const port = await freePort();
  const text = readFileSync(config, 'utf8');
  writeFileSync(config, `${text}http_server: { address: 127.0.0.1, port: ${port} }\n`);
  const words = ['--userspec=fanwire:fanwire', root, '/usr/bin/fanwire', 'serve', '--config', '/etc/fanwire/fanwire.yaml'];
  const server = spawn('chroot', words, { stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  server.stderr.on('data', (chunk) => (log += chunk));
  const exit = new Promise((resolve) => server.once('exit', resolve));
  try {
    const publish = () =>
      fetch(`http://127.0.0.1:${port}/api/publish`, {
        method: 'POST',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ channel: 'chat:lobby', data: { text: 'hi' } }),
      }).then((response) => response.json(), () => undefined);
    const answer = await eventually(publish, 'an answer', 30_000);
    assert.equal(answer.result.offset, 1);
    assert.ok(Date.now() - begun < 60_000, 'from the package to the first message within a minute');

    writeFileSync(config, readFileSync(config, 'utf8').replace('history_size: 100', 'history_size: 200'));
    server.kill('SIGHUP');
    await eventually(() => /configuration.*reloaded/i.test(log) || undefined, `a reload in ${log}`);

    const mine = readFileSync(config, 'utf8');
    inside('dpkg', '--install', '/tmp/fanwire.deb');
    assert.equal(readFileSync(config, 'utf8'), mine, 'an upgrade keeps the configuration');
    assert.equal((await publish()).result.offset, 2, 'and leaves the server alone until it is restarted');
  } finally {
    server.kill('SIGTERM');
    await exit;
  }

  run('systemd-analyze', 'verify', '--man=no', '--root', root, '/lib/systemd/system/fanwire.service');
  run('systemd-analyze', 'security', '--offline=true', '--threshold=15', path.join(root, 'lib/systemd/system/fanwire.service'));
  inside('logrotate', '--debug', '/etc/logrotate.d/fanwire');

  inside('dpkg', '--remove', 'fanwire');
  assert.ok(existsSync(config), 'a removal keeps the configuration');
  inside('dpkg', '--purge', 'fanwire');
  rmSync(path.join(root, 'tmp/fanwire.deb'));
  const left = content(root);
  assert.deepEqual(left.names.filter((name) => !before.names.includes(name)), [], 'a purge leaves nothing');
  assert.equal(readFileSync(path.join(root, 'etc/passwd'), 'utf8').includes('fanwire'), false);
});

test('a package that does not fit on the disk leaves the old one working', () => {
  const root = path.join(folder, 'debian');
  run('chroot', root, 'true');
  cpSync(find('_amd64.deb'), path.join(root, 'opt/fanwire.deb'));
  run('chroot', root, 'dpkg', '--install', '/opt/fanwire.deb');
  const program = path.join(root, 'usr/bin/fanwire');
  const old = readFileSync(program);
  // A process may write files of at most 1 MB: what a full disk does to dpkg.
  const full = spawnSync('sh', ['-c', `ulimit -f 1024; trap '' XFSZ; exec chroot ${root} dpkg --install /opt/fanwire.deb`], { encoding: 'utf8' });
  assert.notEqual(full.status, 0, full.stdout + full.stderr);
  assert.ok(readFileSync(program).equals(old), 'the program is the old one');
  assert.match(run('chroot', root, 'fanwire', 'version'), /^fanwire /);
});

test('the RPM has the same program, its scripts, and needs no library', () => {
  const rpm = find('.x86_64.rpm');
  const needs = run('rpm', '--query', '--requires', '--package', rpm);
  assert.doesNotMatch(needs, /\.so/);
  assert.match(run('rpm', '--query', '--scripts', '--package', rpm), /fanwire init/);
  const listed = run('rpm', '--query', '--list', '--package', rpm).split('\n');
  for (const name of ['/usr/bin/fanwire', '/usr/lib/systemd/system/fanwire.service', '/usr/share/man/man1/fanwire.1.gz']) {
    assert.ok(listed.includes(name), name);
  }
});

async function freePort() {
  const listener = createServer();
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address();
  await new Promise((resolve) => listener.close(resolve));
  return port;
}
