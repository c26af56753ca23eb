// The admin page. It calls `admin/api` with commands in the form of the API's old path, and shows the answers as text alone.

const TOKEN = 'fanwire-admin-token';
const POLL_MS = 5000;
const PLOT_POINTS = 120;
const ROWS_MAX = 200;
const MEMBERS_MAX = 50;

const view = document.getElementById('view');
const state = document.getElementById('state');
const logout = document.getElementById('logout');
let readOnly = false;
let isIn = false;

// The server.

class Refused extends Error {}

/** Calls a method of the server API and returns its result. */
async function call(method, params = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { Authorization: `token ${token}` } : {};
  const answer = await fetch('admin/api', { method: 'POST', headers, body: JSON.stringify({ id: 1, method, params }) });
  if (answer.status === 401) {
    sessionStorage.removeItem(TOKEN);
    showLogin();
    throw new Refused('log in again');
  }
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  const reply = await answer.json();
  if (reply.error) {
    const { code, message, cause } = reply.error;
    throw new Error(`${code} ${message}${cause ? `: ${cause}` : ''}`);
  }
  return reply.result;
}

// Elements.

/** An element. Text is never read as HTML. */
function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== 'list') element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

const number = (value) => new Intl.NumberFormat().format(value);
const cell = (text, className = '') => el('td', { className }, text instanceof Node ? text : String(text));

function table(heads, rows, empty) {
  if (!rows.length) return el('p', { className: 'soft' }, empty);
  const head = el('tr', {}, ...heads.map(([title, className = '']) => el('th', { className, scope: 'col' }, title)));
  return el('div', { className: 'scroll', tabIndex: 0 }, el('table', {}, el('thead', {}, head), el('tbody', {}, ...rows)));
}

function field(title, properties) {
  const input = el('input', properties);
  return { input, label: el('label', {}, title, input) };
}

function duration(seconds) {
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const [size, unit] = parts.find(([each]) => seconds >= each) ?? [1, 's'];
  return `${Math.floor(seconds / size)} ${unit}`;
}

const ago = (ms) => (ms ? `${duration(Math.max(0, (Date.now() - ms) / 1000))} ago` : '–');
/** Says which nodes a result lacks. */
const lacking = ({ missing = [] }) =>
  missing.length > 0 && el('p', { className: 'bad', role: 'status' }, `No answer from ${missing.join(', ')}: what is there is not shown.`);
const message = (error) => el('p', { className: 'bad', role: 'alert' }, error.message);

/** A button that changes something: it asks first, and shows what came of it. */
function action(title, question, run) {
  const button = el('button', { className: 'danger', disabled: readOnly, title: readOnly ? 'This login lets read only' : '' }, title);
  button.addEventListener('click', async () => {
    if (!confirm(question)) return;
    try {
      await run();
      say(`${title}: done`);
    } catch (error) {
      say(error.message, true);
    }
  });
  return button;
}

function say(text, isBad = false) {
  state.textContent = text;
  state.className = isBad ? 'bad' : '';
}

// Views. Each returns its content; `refresh` is called while the view is shown and the page is visible.

const plots = new Map();

function plot(name, value) {
  const values = [...(plots.get(name) ?? []), value].slice(-PLOT_POINTS);
  plots.set(name, values);
  const most = Math.max(...values) || 1;
  const points = values.map((each, index) => `${(100 * index) / Math.max(1, PLOT_POINTS - 1)},${30 - (28 * each) / most}`);
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'plot');
  svg.setAttribute('viewBox', '0 0 100 30');
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'polyline');
  line.setAttribute('points', points.join(' '));
  svg.append(line);
  return svg;
}

const sum = (nodes, of) => nodes.reduce((total, node) => total + (of(node) ?? 0), 0);

/** The growth per second of all items whose name begins so; undefined before the end of a node's first interval. */
function rate(node, begins) {
  if (!node.metrics) return undefined;
  const { items = {}, interval = 60 } = node.metrics;
  const grown = Object.entries(items).filter(([name]) => name.replace(/^\w+?\./, '').startsWith(begins) || name.startsWith(begins));
  return grown.reduce((total, [, value]) => total + value, 0) / interval;
}

/** The sum of what all nodes tell, or undefined if none tells it yet. */
function sumOfKnown(nodes, of) {
  const known = nodes.map(of).filter((value) => value !== undefined);
  return known.length ? known.reduce((total, value) => total + value, 0) : undefined;
}

/** The mean time of a publication until it is written, in milliseconds. */
function latency(nodes) {
  const count = sumOfKnown(nodes, (node) => rate(node, 'node_publish_latency_seconds_count'));
  return count ? (1000 * sumOfKnown(nodes, (node) => rate(node, 'node_publish_latency_seconds_sum'))) / count : undefined;
}

/** Percents of a core that a node uses. */
function cpu(node) {
  const seconds = rate(node, 'process_cpu_seconds');
  return seconds === undefined ? undefined : 100 * seconds;
}

const digits = (value, fraction = 0) => (value === undefined ? '–' : new Intl.NumberFormat(undefined, { maximumFractionDigits: fraction }).format(value));

function nodesView() {
  const tiles = el('div', { className: 'tiles' });
  const list = el('div');
  const refresh = async () => {
    const { nodes } = await call('info');
    const figures = [
      ['Clients', sum(nodes, (node) => node.num_clients)],
      ['Users', sum(nodes, (node) => node.num_users)],
      ['Subscriptions', sum(nodes, (node) => node.num_subs)],
      ['Deliveries a second', sumOfKnown(nodes, (node) => rate(node, 'node_deliveries'))],
      ['Connects a second', sumOfKnown(nodes, (node) => rate(node, 'client_connections_accepted')), 1],
      ['API calls a second', sumOfKnown(nodes, (node) => rate(node, 'api_commands')), 1],
      ['Latency of publications, ms', latency(nodes), 2],
      ['CPU, % of a core', sumOfKnown(nodes, (node) => cpu(node)), 1],
    ];
    tiles.replaceChildren(...figures.map(([name, value, fraction]) =>
      el('section', { className: 'tile' }, el('span', {}, name), el('b', {}, digits(value, fraction)), value !== undefined && plot(name, value))));
    const rows = nodes.map((node) =>
      el('tr', {}, cell(node.name), cell(node.version), cell(duration(node.uptime), 'number'),
        ...['num_clients', 'num_users', 'num_channels', 'num_subs', 'leaving'].map((key) => cell(number(node[key] ?? 0), 'number')),
        cell(digits(rate(node, 'node_deliveries')), 'number'), cell(node.uid, 'soft')));
    const heads = [['Node'], ['Version'], ['Up', 'number'], ['Clients', 'number'], ['Users', 'number'], ['Channels', 'number'], ['Subscriptions', 'number'], ['Leaving', 'number'], ['Deliveries/s', 'number'], ['Id']];
    list.replaceChildren(table(heads, rows, 'No node has answered.'));
  };
  return { content: [tiles, el('section', {}, el('h2', {}, 'Nodes'), list)], refresh };
}

function channelsView([selected]) {
  const pattern = field('Pattern, such as news:*', { name: 'pattern', placeholder: 'all' });
  const list = el('div');
  const page = async (after) => {
    const result = await call('channels', { pattern: pattern.input.value, limit: ROWS_MAX, cursor: after, partial: true });
    const { channels, cursor } = result;
    const rows = Object.entries(channels).map(([name, { num_clients: clients }]) =>
      el('tr', {}, cell(el('button', { className: 'link', onclick: () => go('channels', name) }, name)), cell(number(clients), 'number')));
    const next = cursor && el('button', { onclick: () => shown(() => page(cursor), list) }, 'Next page');
    const parts = [lacking(result), table([['Channel'], ['Clients', 'number']], rows, 'No channel has a subscriber.'), next];
    list.replaceChildren(...parts.filter(Boolean));
  };
  const form = el('form', { className: 'row', onsubmit: submitted(() => page(''), list) }, pattern.label, el('button', { className: 'main' }, 'List'));
  const content = [el('section', {}, el('h2', {}, 'Channels'), form, list)];
  if (selected) content.unshift(channelSection(selected));
  return { content, start: () => shown(() => page(''), list) };
}

function channelSection(name) {
  const body = el('div');
  const load = async () => {
    const [stats, members, stream] = await Promise.allSettled([
      call('presence_stats', { channel: name }), call('presence', { channel: name }), call('history', { channel: name, limit: 20, reverse: true })]);
    const parts = [];
    if (stats.value) parts.push(el('p', {}, `${number(stats.value.num_clients ?? 0)} clients of ${number(stats.value.num_users ?? 0)} users`));
    if (stream.value) {
      const rows = stream.value.publications.map(({ offset, data, b64data: binary }) => el('tr', {}, cell(offset, 'number'), cell(binary ?? JSON.stringify(data), 'text')));
      parts.push(el('h2', {}, `History: top ${stream.value.offset ?? 0}, epoch ${stream.value.epoch ?? '–'}`), table([['Offset', 'number'], ['Data']], rows, 'No publication is stored.'));
    }
    if (members.value) {
      const rows = Object.values(members.value.presence).slice(0, MEMBERS_MAX).map(({ user, client, conn_info: info }) =>
        el('tr', {}, cell(userLink(user)), cell(client, 'soft'), cell(info === undefined ? '' : JSON.stringify(info), 'text')));
      parts.push(table([['User'], ['Client'], ['Info']], rows, 'Nobody is present.'));
    }
    const errors = [stats, members, stream].filter(({ reason }) => reason).map(({ reason }) => reason.message);
    parts.push(...[...new Set(errors)].map((text) => el('p', { className: 'soft' }, text)));
    body.replaceChildren(...parts);
  };
  shown(load, body);
  const removal = action('Remove history', `Remove the history of ${name}?`, async () => (await call('history_remove', { channel: name }), load()));
  return el('section', {}, el('h2', {}, `Channel ${name}`), el('div', { className: 'row' }, el('button', { onclick: () => shown(load, body) }, 'Read again'), removal), body);
}

/** Lists of what causes the most work. The server counts rates only while somebody looks. */
function hotView() {
  const body = el('div');
  const to = (view) => ({ name }) => el('button', { className: 'link', onclick: () => go(view, name) }, name);
  const plain = ({ name }) => name || 'without a namespace';
  const client = ({ name, user }) => el('span', {}, userLink(user), ` ${name}`);
  const rates = ['publications', 'deliveries'];
  const lists = [
    ['publications', 'Channels by publications', 'a second', to('channels')], ['deliveries', 'Channels by deliveries', 'a second', to('channels')],
    ['history', 'Channels by history', 'bytes', to('channels')], ['namespaces', 'Namespaces by history', 'bytes', plain],
    ['users', 'Users by connections', 'connections', ({ name }) => userLink(name)],
    ['queues', 'Clients by queue', 'bytes', client], ['refusals', 'Clients by refused commands', 'refusals', client]];
  const refresh = async () => {
    const result = await call('hot_lists');
    const sections = lists.map(([key, title, unit, name]) => {
      const isRate = rates.includes(key);
      const rows = result[key].map((item) =>
        el('tr', {}, cell(name(item), 'text'), isRate && cell(digits(item.recent ?? 0, 1), 'number'), cell(digits(item.value, 1), 'number')));
      const heads = isRate ? [['Name'], ['now', 'number'], ['average', 'number']] : [['Name'], [unit, 'number']];
      return el('section', {}, el('h2', {}, title), table(heads, rows, isRate && !result.seconds ? 'Counted from now on.' : 'None.'));
    });
    const since = result.seconds > 0
      ? `Rates a second: now (the last ${duration(result.recent_seconds)}), and in the last ${duration(result.seconds)}.` : 'Rates are counted from now on.';
    const parts = [lacking(result), el('p', { className: 'soft' }, since), el('div', { className: 'lists' }, ...sections)];
    body.replaceChildren(...parts.filter(Boolean));
  };
  return { content: [body], refresh };
}

const userLink = (user) => (user ? el('button', { className: 'link', onclick: () => go('users', user) }, user) : 'anonymous');

function usersView([selected = '']) {
  const user = field('User id', { name: 'user', value: selected, required: true });
  const body = el('div');
  const load = async (after = '') => {
    const id = user.input.value;
    const [found, status] = await Promise.allSettled([
      call('connections', { user: id, limit: ROWS_MAX, cursor: after }), call('get_user_status', { users: [id] })]);
    if (found.reason) throw found.reason;
    const connections = Object.entries(found.value.connections ?? {});
    const rows = connections.map(([client, about]) =>
      el('tr', {}, cell(about.address ?? '–'), cell(about.node ?? '–'), cell(ago(about.connected_at_ms)), cell(`${about.transport} ${about.protocol}`), cell([about.app_name, about.app_version].filter(Boolean).join(' ') || '–'),
        cell(Object.keys(about.state?.channels ?? {}).join(', ') || '–', 'text'), cell(client, 'soft'),
        cell(action('Disconnect', `Disconnect ${client}?`, async () => (await call('disconnect', { user: id, client }), load(after))))));
    const { online, active } = status.value?.statuses?.[0] ?? {};
    const since = [online && `online ${ago(online * 1000)}`, active && `active ${ago(active * 1000)}`].filter(Boolean).join(', ');
    const actions = [
      action('Disconnect all', `Disconnect ${id}? Its clients return.`, async () => (await call('disconnect', { user: id, disconnect: { code: 3012, reason: 'by operator' } }), load())),
      action('Block', `Block ${id} until it is unblocked?`, async () => (await call('block_user', { user: id }), load())),
      action('Unblock', `Let ${id} connect again?`, () => call('unblock_user', { user: id })),
      action('Invalidate tokens', `Make all tokens of ${id} invalid that were issued before now?`, async () => (await call('invalidate_user_tokens', { user: id }), load())),
    ];
    const heads = [['Address'], ['Node'], ['Since'], ['Transport'], ['Application'], ['Channels'], ['Client'], ['']];
    const logs = el('div');
    shown(async () => {
      const result = await call('connection_log', { user: id });
      logs.replaceChildren(...[lacking(result), ...logSections(result.logs)].filter(Boolean));
    }, logs);
    const { cursor } = found.value;
    const next = cursor && el('button', { onclick: () => shown(() => load(cursor), body) }, 'Next page');
    const count = `${number(connections.length)} connections${cursor || after ? ' on this page' : ''}${since ? `, ${since}` : ''}`;
    const parts = [
      el('p', {}, count), lacking(found.value), el('div', { className: 'row' }, ...actions),
      table(heads, rows, 'This user has no connection.'), next, el('h2', {}, 'What happened'), logs,
    ];
    body.replaceChildren(...parts.filter(Boolean));
  };
  const form = el('form', { className: 'row', onsubmit: submitted(() => load(), body) }, user.label, el('button', { className: 'main' }, 'Find'));
  return { content: [el('section', {}, el('h2', {}, 'Connections of a user'), form, body)], start: () => selected && shown(() => load(), body) };
}

/** The last events of connections, the newest connection first. */
function logSections(logs) {
  if (!logs.length) return [el('p', { className: 'soft' }, 'Nothing was recorded in the last hour, or recorder.memory_max is 0.')];
  const at = (ms) => new Date(ms).toLocaleTimeString();
  return logs.map((log, index) => {
    const rows = log.events.map(({ at_ms: ms, event, count, ...about }) =>
      el('tr', {}, cell(at(ms), 'number'), cell(count > 1 ? `${event} × ${count}` : event), cell(Object.entries(about).map(([key, value]) => `${key} ${value}`).join(', '), 'text')));
    const end = log.ended_ms ? `–${at(log.ended_ms)}` : ', open';
    const title = `${at(log.opened_ms)}${end}: ${log.transport} from ${log.address ?? 'an unknown address'} on ${log.node}, ping ${log.ping_ms ?? '–'} ms`;
    return el('details', { open: index === 0 }, el('summary', {}, title), el('p', { className: 'soft' }, log.client || 'Its connect was refused.'), table([['Time', 'number'], ['Event'], ['About']], rows, 'No event is left.'));
  });
}

const TEMPLATES = {
  publish: { channel: 'news', data: { hello: 'world' } },
  broadcast: { channels: ['news', 'sport'], data: { hello: 'world' } },
  subscribe: { user: '42', channel: 'news' },
  unsubscribe: { user: '42', channel: 'news' },
  disconnect: { user: '42' },
  refresh: { user: '42', expire_at: 0 },
  presence: { channel: 'news' },
  presence_stats: { channel: 'news' },
  history: { channel: 'news', limit: 10 },
  history_remove: { channel: 'news' },
  channels: { pattern: 'news*' },
  info: {},
  connections: { user: '42' },
  connection_log: { user: '42' },
  hot_lists: { limit: 10 },
  debug_for: { users: ['42'], seconds: 600 },
  cluster_clock: {},
  rebalance: { rate: 200 },
  evacuate: { node: 'a name or id from info', percent: 30 },
  node_config: { all: true },
  dump: {},
  publication_report: { report: 'from publish with "report": true' },
  get_user_status: { users: ['42'] },
  update_user_status: { users: ['42'], state: '' },
  delete_user_status: { users: ['42'] },
  block_user: { user: '42' },
  unblock_user: { user: '42' },
  revoke_token: { uid: 'jti of the token' },
  invalidate_user_tokens: { user: '42' },
};

/** The values with which this node runs, and how its file differs. */
function configView() {
  const body = el('div');
  const load = async () => {
    const { node, values, needs_reload: reload, needs_restart: restart, error } = await call('node_config');
    const notes = [
      error && `What the file says now is refused: ${error}`,
      reload.length && `A reload (SIGHUP) would change: ${reload.join(', ')}`,
      restart.length && `A restart would change: ${restart.join(', ')}`,
    ].filter(Boolean);
    const rows = values.map(({ key, value, source }) => el('tr', {}, cell(key, 'text'), cell(value, 'text'), cell(source, 'soft')));
    const says = notes.length ? notes : ['It runs with what its file and its variables say.'];
    body.replaceChildren(el('p', {}, `Node ${node}`), ...says.map((text) => el('p', { id: 'differs' }, text)), table([['Key'], ['Value'], ['From']], rows, 'No key is set.'));
  };
  return { content: [el('section', {}, el('h2', {}, 'Configuration in force'), el('button', { onclick: () => shown(load, body) }, 'Read again'), body)], start: () => shown(load, body) };
}

function apiView() {
  const method = el('select', { name: 'method' }, ...Object.keys(TEMPLATES).map((name) => el('option', { value: name }, name)));
  const params = el('textarea', { name: 'params', spellcheck: false, 'aria-label': 'Parameters as JSON' });
  const [curl, answer] = [el('pre'), el('pre', { id: 'answer', role: 'status' })];
  const describe = () => {
    const quoted = params.value.replaceAll("'", "'\\''");
    curl.textContent = `curl -H 'X-API-Key: KEY' -d '${quoted}' ADDRESS/api/${method.value}`;
  };
  method.addEventListener('change', () => {
    params.value = JSON.stringify(TEMPLATES[method.value], null, 2);
    describe();
  });
  params.addEventListener('input', describe);
  const run = async () => {
    const result = await call(method.value, JSON.parse(params.value));
    answer.textContent = JSON.stringify(result, null, 2);
  };
  const form = el('form', { onsubmit: submitted(run, answer) }, el('div', { className: 'row' }, el('label', {}, 'Method', method), el('button', { className: 'main' }, 'Call')), params);
  return { content: [el('section', {}, el('h2', {}, 'Call the server API'), form, curl, answer)], start: () => method.dispatchEvent(new Event('change')) };
}

const VIEWS = { nodes: ['Nodes', nodesView], channels: ['Channels', channelsView], hot: ['Hot', hotView], users: ['Users', usersView], config: ['Config', configView], api: ['API', apiView] };

/** Runs a part of a view, and shows its error where its content would be. */
async function shown(run, place) {
  try {
    await run();
    say('');
  } catch (error) {
    if (!(error instanceof Refused)) place.replaceChildren(message(error));
  }
}

function submitted(run, place) {
  return (event) => {
    event.preventDefault();
    shown(run, place);
  };
}

// Which view is shown: `#channels/news%3A1`.

const go = (name, ...words) => {
  location.hash = [name, ...words].map(encodeURIComponent).join('/');
};

let refresh;

function show() {
  const [name, ...words] = location.hash.slice(1).split('/').map(decodeURIComponent);
  const [, make] = VIEWS[name] ?? VIEWS.nodes;
  const current = VIEWS[name] ? name : 'nodes';
  const tabs = Object.entries(VIEWS).map(([key, [title]]) => el('a', { href: `#${key}`, ...(key === current && { 'aria-current': 'page' }) }, title));
  document.getElementById('tabs').replaceChildren(...tabs);
  const made = make(words.filter(Boolean));
  view.replaceChildren(...made.content);
  refresh = made.refresh;
  made.start?.();
  tick();
}

async function tick() {
  if (!refresh || document.hidden) return;
  try {
    await refresh();
    say('');
  } catch (error) {
    if (!(error instanceof Refused)) say(`no answer: ${error.message}`, true);
  }
}

function showLogin() {
  [refresh, isIn] = [undefined, false];
  document.getElementById('tabs').replaceChildren();
  logout.hidden = true;
  const password = field('Password', { name: 'password', type: 'password', autocomplete: 'current-password', required: true });
  const note = el('div');
  const logIn = async () => {
    const answer = await fetch('admin/auth', { method: 'POST', body: new URLSearchParams({ password: password.input.value }) });
    if (answer.status === 429) throw new Error(`${await answer.text()} (${answer.headers.get('Retry-After')} s)`);
    if (!answer.ok) throw new Error('The password is wrong, or admin.password or admin.secret is not set.');
    sessionStorage.setItem(TOKEN, (await answer.json()).token);
    await begin();
  };
  const form = el('form', { className: 'row', onsubmit: submitted(logIn, note) }, password.label, el('button', { className: 'main' }, 'Log in'));
  view.replaceChildren(el('section', {}, el('h2', {}, 'Log in'), form, note));
  password.input.focus();
}

async function begin() {
  const token = sessionStorage.getItem(TOKEN);
  const answer = await fetch('admin/init', { headers: token ? { Authorization: `token ${token}` } : {} });
  const { insecure, authenticated, read_only: reads } = await answer.json();
  readOnly = Boolean(reads);
  [isIn, logout.hidden] = [authenticated, insecure || !authenticated];
  if (authenticated) show();
  else showLogin();
}

logout.addEventListener('click', () => {
  sessionStorage.removeItem(TOKEN);
  showLogin();
});
addEventListener('hashchange', () => isIn && show());
document.addEventListener('visibilitychange', tick);
setInterval(tick, POLL_MS);
begin().catch((error) => view.replaceChildren(message(error)));
