// What `cargo xtask dist` made: the package on a clean Debian, the static program without any system, AArch64 under qemu.
// In: FANWIRE_PACKAGES, the folder with the packages, and the one of a second packing → out: what an installation, an upgrade and a removal leave behind.
// May use debootstrap, chroot and dpkg, as root; never installs anything on this machine.
// A promise of docs/install.md is tested here; how packages are made stands in deploy/packages.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import WebSocket from 'ws';

import { inCharge } from '../children.js';
import { program } from '../debian.js';
import { freePort } from '../ports.js';

const { FANWIRE_PACKAGES: PACKAGES, FANWIRE_PACKAGES_AGAIN: AGAIN } = process.env;
// They are no keys of the programs that are started here.
for (const name of ['FANWIRE_PACKAGES', 'FANWIRE_PACKAGES_AGAIN']) delete process.env[name];
const files = readdirSync(PACKAGES);
const find = (end) => path.join(PACKAGES, files.find((name) => name.endsWith(end)) ?? assert.fail(`no file ends with ${end}`));
/** Of no loopback interface (RFC 5737). */
const ADDRESS = '192.0.2.1';
const folder = mkdtempSync(path.join(tmpdir(), 'fanwire-packages-'));
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';
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
const { eventually, start, token, within } = await import('../server.js');
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

test('the same program packed again, in another folder, gives the same bytes', { skip: !AGAIN && 'packed once' }, () => {
  const [one, two] = [PACKAGES, AGAIN].map((made) => readFileSync(path.join(made, 'SHA256SUMS'), 'utf8'));
  assert.equal(two, one);
});

test('the program runs where there is no system at all, only itself', async () => {
  const root = path.join(folder, 'empty');
  mkdirSync(root);
  cpSync(path.join(unpacked('amd64'), 'fanwire'), path.join(root, 'fanwire'));
  const said = run('chroot', root, '/fanwire', 'version', '--verbose');
  assert.match(said, /target: x86_64-unknown-linux-musl/);
  run('chroot', root, '/fanwire', 'init', '/fanwire.yaml');
  await serving([root, '/fanwire'], path.join(root, 'fanwire.yaml'), async ({ publish }) => {
    assert.equal((await publish()).result.offset, 1);
  });
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

/** Serves with the file `config` on a free port, in the root and as the user of the words for chroot, as long as `work` takes. */
async function serving(words, config, work) {
  const port = await freePort();
  const text = readFileSync(config, 'utf8');
  const key = /key: "([^"]+)" # your backend publishes/.exec(text)[1];
  writeFileSync(config, `${text}http_server: { address: 127.0.0.1, port: ${port} }\n`);
  const inside = config.slice(words.find((word) => word.startsWith('/')).length);
  const server = spawn('chroot', [...words, 'serve', '--config', inside], { stdio: ['ignore', 'ignore', 'pipe'] });
  const log = [];
  server.stderr.on('data', (chunk) => log.push(chunk));
  const exit = once(server, 'exit');
  const ask = () =>
    fetch(`http://127.0.0.1:${port}/api/publish`, {
      method: 'POST',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ channel: 'chat:lobby', data: { text: 'hi' } }),
    }).then((response) => response.json(), () => undefined);
  try {
    await work({ server, port, log: () => log.join(''), publish: () => eventually(ask, `an answer; ${log.join('')}`, 30_000) });
  } finally {
    server.kill('SIGTERM');
    await exit;
  }
}

/** A clean Debian, unpacked once for all runs. */
function cleanDebian(suite) {
  const kept = fileURLToPath(new URL(`../../../target/tools/debian-${suite}`, import.meta.url));
  if (!existsSync(kept)) {
    const made = `${kept}.new`;
    rmSync(made, { recursive: true, force: true });
    run('debootstrap', '--variant=minbase', '--include=curl,logrotate,systemd', suite, made);
    run('mv', made, kept);
  }
  const root = path.join(folder, suite);
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
  const root = cleanDebian('bookworm');
  const inside = (...words) => run('chroot', root, ...words);
  const before = content(root);
  cpSync(find('_amd64.deb'), path.join(root, 'tmp/fanwire.deb'));
  const begun = Date.now();
  const said = inside('dpkg', '--install', '/tmp/fanwire.deb');
  assert.match(said, /with secrets of its own/);
  const config = path.join(root, 'etc/fanwire/fanwire.yaml');
  assert.equal(inside('stat', '--format=%a %U:%G', '/etc/fanwire/fanwire.yaml').trim(), '640 root:fanwire');
  const isEnabled = () => spawnSync('chroot', [root, 'systemctl', 'is-enabled', 'fanwire.service'], { encoding: 'utf8' }).stdout.trim();
  assert.equal(isEnabled(), 'enabled');

  // As the unit does, which needs a running systemd.
  await serving(['--userspec=fanwire:fanwire', root, '/usr/bin/fanwire'], config, async ({ server, log, publish }) => {
    assert.equal((await publish()).result.offset, 1);
    assert.ok(Date.now() - begun < 60_000, 'from the package to the first message within a minute');

    writeFileSync(config, readFileSync(config, 'utf8').replace('history_size: 100', 'history_size: 200'));
    server.kill('SIGHUP');
    await eventually(() => /configuration.*reloaded/i.test(log()), `a reload in ${log()}`);

    const mine = readFileSync(config, 'utf8');
    inside('dpkg', '--install', '/tmp/fanwire.deb');
    assert.equal(readFileSync(config, 'utf8'), mine, 'an upgrade keeps the configuration');
    assert.equal((await publish()).result.offset, 2, 'and leaves the server alone until it is restarted');
  });

  const unit = '/lib/systemd/system/fanwire.service';
  for (const one of [unit, '/lib/systemd/system/fanwire-upgrade.service']) run('systemd-analyze', 'verify', '--man=no', '--root', root, one);
  run('systemd-analyze', 'security', '--offline=true', '--threshold=15', path.join(root, unit));
  inside('logrotate', '--debug', '/etc/logrotate.d/fanwire');

  const reinstall = () => {
    inside('dpkg', '--remove', 'fanwire');
    inside('dpkg', '--install', '/tmp/fanwire.deb');
  };
  reinstall();
  assert.equal(isEnabled(), 'enabled', 'after a removal and another installation');
  inside('systemctl', 'disable', 'fanwire.service');
  inside('dpkg', '--install', '/tmp/fanwire.deb');
  assert.equal(isEnabled(), 'disabled', 'an upgrade leaves it to the operator');
  reinstall();
  assert.equal(isEnabled(), 'disabled', 'and so does another installation');
  inside('systemctl', 'enable', 'fanwire.service');

  inside('dpkg', '--remove', 'fanwire');
  assert.ok(existsSync(config), 'a removal keeps the configuration');
  assert.notEqual(isEnabled(), 'enabled');
  inside('dpkg', '--purge', 'fanwire');
  rmSync(path.join(root, 'tmp/fanwire.deb'));
  const left = content(root);
  assert.deepEqual(left.names.filter((name) => !before.names.includes(name)), [], 'a purge leaves nothing');
  assert.equal(readFileSync(path.join(root, 'etc/passwd'), 'utf8').includes('fanwire'), false);
});

test('a package that does not fit on the disk leaves the old one working', (t) => {
  const root = path.join(folder, 'bookworm');
  cpSync(find('_amd64.deb'), path.join(root, 'opt/fanwire.deb'));
  run('chroot', root, 'dpkg', '--install', '/opt/fanwire.deb');
  // The folder of programs on a file system of its own, with 1 MB left.
  const programs = path.join(root, 'usr/bin');
  const copy = `${programs}.copy`;
  run('cp', '--archive', programs, copy);
  const used = Number(run('du', '--summarize', '--block-size=1M', copy).split('\t')[0]);
  run('mount', '-t', 'tmpfs', '-o', `size=${used + 1}M`, 'tmpfs', programs);
  t.after(() => {
    run('umount', programs);
    rmSync(copy, { recursive: true });
  });
  run('cp', '--archive', `${copy}/.`, programs);
  const old = readFileSync(path.join(programs, 'fanwire'));
  const full = spawnSync('chroot', [root, 'dpkg', '--install', '/opt/fanwire.deb'], { encoding: 'utf8' });
  assert.notEqual(full.status, 0, full.stdout);
  assert.match(full.stderr, /No space left on device/);
  assert.ok(readFileSync(path.join(programs, 'fanwire')).equals(old), 'the program is the old one');
  assert.match(run('chroot', root, 'fanwire', 'version'), /^fanwire /);
  assert.deepEqual(readdirSync(programs).filter((name) => name.includes('dpkg')), readdirSync(copy).filter((name) => name.includes('dpkg')));
});

test('an upgrade with an old key, a port that is taken, a value that is wrong, of a stopped server: installed, and said', async (t) => {
  const root = path.join(folder, 'bookworm');
  const config = path.join(root, 'etc/fanwire/fanwire.yaml');
  // In place of systemd, which is not process 1 here: a restart is the unit's command, for two seconds; `try-restart` of a server that
  // is stopped does nothing, and its unit for upgrades fails, as it does for a server that cannot be handed over.
  mkdirSync(path.join(root, 'run/systemd/system'), { recursive: true });
  const systemctl = path.join(root, 'usr/local/bin/systemctl');
  writeFileSync(systemctl, `#!/bin/sh
echo "$*" >> /tmp/asked
case "$1" in
  try-restart) [ ! -e /tmp/stopped ] || exit 0 ;;
  start) [ -e /tmp/movable ]; exit ;;
  restart) ;;
  *) exit 0 ;;
esac
timeout 2 fanwire serve --config /etc/fanwire/fanwire.yaml
[ $? = 124 ] && echo ran >> /tmp/asked
`);
  chmodSync(systemctl, 0o755);
  const asked = path.join(root, 'tmp/asked');
  const text = readFileSync(config, 'utf8');
  t.after(() => writeFileSync(config, text));
  const upgrade = (lines) => {
    writeFileSync(config, `${text}${lines}\n`);
    rmSync(asked, { force: true });
    const { status, stdout, stderr } = spawnSync('chroot', [root, 'dpkg', '--install', '/opt/fanwire.deb'], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    assert.match(run('chroot', root, 'dpkg', '--status', 'fanwire'), /^Status: install ok installed$/m);
    return { said: stdout + stderr, asked: new Set(readFileSync(asked, 'utf8').trim().split('\n')) };
  };
  const address = `http_server: { address: 127.0.0.1, port: ${await freePort()} }`;

  const old = upgrade(`${address}\nengine: { redis: { feed_connections: 2 } }`);
  assert.match(old.said, /engine\.redis\.feed_connections.*engine\.redis\.pubsub_connections/);
  const tried = ['daemon-reload', 'start fanwire-upgrade.service', 'try-restart fanwire.service'];
  assert.deepEqual([...old.asked], [...tried, 'ran']);
  assert.doesNotMatch(old.said, /did not start/);

  const stopped = path.join(root, 'tmp/stopped');
  writeFileSync(stopped, '');
  assert.deepEqual([...upgrade(address).asked], tried, 'a stopped server is not started');
  rmSync(stopped);

  const movable = path.join(root, 'tmp/movable');
  writeFileSync(movable, '');
  assert.deepEqual([...upgrade(address).asked], tried.slice(0, 2), 'a server that was handed over is not restarted');
  rmSync(movable);

  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  const taken = upgrade(`http_server: { address: 127.0.0.1, port: ${port} }`);
  listener.close();
  assert.match(taken.said, new RegExp(`http_server.*127\\.0\\.0\\.1:${port}|127\\.0\\.0\\.1:${port}.*http_server`));
  assert.match(taken.said, /the server did not start: systemctl status fanwire/);

  const wrong = upgrade('http_server: { port: many }');
  assert.match(wrong.said, /http_server\.port is "many"[^]*was not restarted: mend the file/);
  assert.deepEqual([...wrong.asked], ['daemon-reload']);

  run('chroot', root, 'dpkg', '--remove', 'fanwire');
  const again = upgrade(address);
  assert.deepEqual([...again.asked], ['enable fanwire.service', 'daemon-reload', 'restart fanwire.service', 'ran'], 'after a removal');
});

test('Debian 11 takes the package and runs the program', async () => {
  const root = cleanDebian('bullseye');
  cpSync(find('_amd64.deb'), path.join(root, 'opt/fanwire.deb'));
  run('chroot', root, 'dpkg', '--install', '/opt/fanwire.deb');
  const config = path.join(root, 'etc/fanwire/fanwire.yaml');
  await serving(['--userspec=fanwire:fanwire', root, '/usr/bin/fanwire'], config, async ({ publish }) => {
    assert.equal((await publish()).result.offset, 1);
  });
});

const noBuildah = spawnSync('buildah', ['--version']).error && 'needs buildah';

/** Builds a stage of deploy/Dockerfile, without the stages before it: what the first one compiles is there. */
function image(name, begin) {
  const context = path.join(folder, 'context');
  mkdirSync(path.join(context, 'etc/ssl/certs'), { recursive: true });
  for (const [from, to] of [[path.join(unpacked('amd64'), 'fanwire'), 'fanwire'], [AUTHORITIES, AUTHORITIES]]) cpSync(from, path.join(context, to));
  const dockerfile = readFileSync(new URL('../../../deploy/Dockerfile', import.meta.url), 'utf8');
  const stage = dockerfile.slice(dockerfile.indexOf(`\n${begin}`) + 1).split(/\n(?=FROM )/)[0];
  writeFileSync(path.join(context, 'Dockerfile'), stage);
  buildah('build', '--isolation', 'chroot', '--format', 'docker', '--pull-never', '--build-context', `build=${context}`, '--tag', name, context);
  const { config } = JSON.parse(buildah('inspect', '--type', 'image', name)).Docker;
  return { config, root: buildah('mount', buildah('from', '--pull-never', name)) };
}

function buildah(...words) {
  const store = ['--root', path.join(folder, 'images'), '--runroot', path.join(folder, 'images-run'), '--storage-driver', 'vfs'];
  return run('buildah', ...store, ...words).trim();
}

test('the image: program and authorities, no shell, no root, a health check that answers', { skip: noBuildah }, async () => {
  const { config: { User, Env, Entrypoint, Cmd, Healthcheck }, root } = image('fanwire', 'FROM scratch');
  assert.deepEqual(run('find', root, '-type', 'f', '-printf', '/%P\n').trim().split('\n').sort(), [AUTHORITIES, '/usr/bin/fanwire']);
  assert.notEqual(spawnSync('chroot', [root, 'sh', '-c', 'true']).status, 0, 'a shell');

  // What is mounted there.
  const config = path.join(root, 'etc/fanwire/fanwire.yaml');
  mkdirSync(path.dirname(config));
  run('chroot', root, '/usr/bin/fanwire', 'init', '/etc/fanwire/fanwire.yaml');
  chmodSync(config, 0o644);
  assert.deepEqual([User, Env, ...Entrypoint, ...Cmd], ['65532:65532', ['PATH=/usr/bin'], 'fanwire', 'serve', '--config', '/etc/fanwire/fanwire.yaml']);
  const inside = [`--userspec=${User}`, root, '/usr/bin/fanwire'];
  const [kind, name, ...words] = Healthcheck.Test;
  assert.deepEqual([kind, name], ['CMD', 'fanwire']);
  await serving(inside, config, async ({ server, publish }) => {
    assert.equal((await publish()).result.offset, 1);
    assert.match(readFileSync(`/proc/${server.pid}/status`, 'utf8'), /^Uid:\t65532\t65532/m);
    run('chroot', ...inside, ...words);
  });
  assert.equal(spawnSync('chroot', [...inside, ...words]).status, 1, 'without a server');
});

/** Debian's busybox, in place of the base image, which no test loads from the network. */
function standIn(base) {
  const root = path.join(folder, 'base');
  for (const name of ['bin', 'etc', 'sbin', 'tmp']) mkdirSync(path.join(root, name), { recursive: true });
  const { file } = program('busybox', ['busybox-static'], 'bin');
  cpSync(file, path.join(root, 'bin/busybox'));
  for (const name of run(file, '--list').trim().split('\n')) if (name !== 'busybox') symlinkSync('busybox', path.join(root, 'bin', name));
  for (const [name, text] of [['passwd', 'root:x:0:0:root:/root:/bin/sh\n'], ['group', 'root:x:0:\n']]) writeFileSync(path.join(root, 'etc', name), text);
  const container = buildah('from', 'scratch');
  buildah('add', '--quiet', container, root, '/');
  buildah('config', '--env', 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', container);
  buildah('commit', '--quiet', container, `docker.io/library/${base}`);
}

const KEY = 'a-key-of-this-test';
const CONFIG = JSON.stringify({ http_api: { key: KEY }, client: { token: { hmac_secret_key: 'secret-of-this-test' } }, health: { enabled: true } });
/** How public compose files and charts start Centrifugo: command line, variables, config.json of the folder; a path that answers 200. */
const STARTS = [
  { words: ['centrifugo', '-c', 'config.json'], config: CONFIG, path: '/health' },
  { words: ['centrifugo', '--config=/centrifugo/config.json'], config: CONFIG, path: '/health' },
  { words: ['centrifugo'], config: CONFIG, path: '/health' },
  { words: ['sh', '-c', 'centrifugo genconfig && centrifugo'], path: '/health' },
  { words: ['centrifugo', '--health'], path: '/health' },
  { words: ['centrifugo', '--health.enabled'], path: '/health' },
  { words: ['centrifugo'], variables: { CENTRIFUGO_HTTP_API_KEY: KEY, CENTRIFUGO_HEALTH_ENABLED: 'true' }, path: '/health' },
  { words: ['centrifugo', '--http_api.insecure'], path: '/api/info', post: '{}' },
  {
    words: ['centrifugo'],
    variables: { CENTRIFUGO_ADMIN_ENABLED: 'true', CENTRIFUGO_ADMIN_PASSWORD: 'password-of-this-test', CENTRIFUGO_ADMIN_SECRET: 'secret-of-this-test' },
    path: '/',
  },
  {
    // Centrifugo's chart, whose probes and services ask at the internal port.
    words: ['centrifugo', '--health.enabled', '--prometheus.enabled', '--http_server.port', '8000', '--http_server.internal_port', '9000'].concat(
      ['--grpc_api.port', '10000', '--uni_grpc.port', '11000'],
    ),
    config: CONFIG,
    port: 9000,
    path: '/health',
  },
];

test('the image in place of Centrifugo: shell, wget, its user and folder, and its start lines', { skip: noBuildah }, async (t) => {
  standIn('alpine:3.22');
  const { config: { User, WorkingDir, Env, Entrypoint, Cmd, Healthcheck }, root } = image('fanwire:compat', 'FROM alpine');
  assert.deepEqual([User, WorkingDir, Entrypoint ?? [], Cmd, Healthcheck], ['1000:1000', '/centrifugo', [], ['centrifugo'], undefined]);
  assert.equal(run('chroot', root, 'readlink', '-f', '/usr/local/bin/centrifugo').trim(), '/usr/bin/fanwire');
  assert.equal(run('chroot', root, 'stat', '-c', '%u:%g', '/centrifugo').trim(), '1000:1000');
  assert.equal(run('chroot', `--userspec=${User}`, root, 'id', '-un').trim(), 'centrifugo');
  for (const { words, variables = {}, config, port = 8000, path: where, post } of STARTS) {
    await t.test(`${Object.keys(variables).join(' ')} ${words.join(' ')}${config ? ', config.json' : ''}`, async () => {
      const file = path.join(root, 'centrifugo/config.json');
      if (config) writeFileSync(file, config);
      // A network of its own, which has an address besides loopback; with its process 1 all processes end.
      const begin = `${root}/bin/busybox ip link set lo up; ${root}/bin/busybox ip address add ${ADDRESS}/32 dev lo; exec "$@"`;
      const inside = ['env', '-i', ...Env, ...Object.entries(variables).map((pair) => pair.join('=')), 'chroot', `--userspec=${User}`, root];
      const server = inCharge(spawn('unshare', ['--net', '--pid', '--fork', '--kill-child', 'sh', '-c', begin, 'sh', ...inside, 'sh', '-c', `cd ${WorkingDir}; exec "$@"`, 'sh', ...words]));
      const log = [];
      for (const stream of [server.stdout, server.stderr]) stream.on('data', (chunk) => log.push(chunk));
      const exit = once(server, 'exit');
      const data = post ? ['--post-data', post] : [];
      const wget = ['chroot', root, 'wget', '-q', '-O', '-', ...data, `http://${ADDRESS}:${port}${where}`];
      const ask = () => server.exitCode !== null || spawnSync('nsenter', ['--net', '--target', `${server.pid}`, ...wget]).status === 0;
      try {
        await eventually(ask, `an answer; ${log.join('')}`, 30_000);
        assert.equal(server.exitCode, null, log.join(''));
      } finally {
        server.kill('SIGKILL');
        await within(exit, 'its end');
        rmSync(file, { force: true });
      }
    });
  }
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
