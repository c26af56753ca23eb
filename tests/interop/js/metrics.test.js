// What the night shift looks at: metrics, alert rules and the dashboard, with Debian's Prometheus.
// In: a server with some traffic, deploy/prometheus, deploy/grafana → out: no fault found, data in every panel.
// May use npm centrifuge; starts its own server and Prometheus.
// A metric is tested where it is counted, an alert in deploy/prometheus/alerts_test.yaml.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { promtool, startPrometheus, withoutPrometheus } from '../prometheus.js';
import { PATIENCE_MS, eventually, start } from '../server.js';
import { ENCODINGS, sdk } from './clients.js';

const SETTINGS = {
  prometheus: { enabled: true },
  client: { insecure: true, ping_interval: '1s', pong_timeout: '500ms' },
  channel: { without_namespace: { history_size: 10, history_ttl: '60s', force_recovery: true } },
};
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';
const skip = withoutPrometheus();
const deploy = (file) => fileURLToPath(new URL(`../../../deploy/${file}`, import.meta.url));
const dashboard = JSON.parse(readFileSync(deploy('grafana/fanwire.json'), 'utf8'));
/** Panels about parts of the server that the test does not start. */
const OF_OTHER_PARTS = /fanwire_(cluster|redis|proxy|events)_/;

async function scrape(server, headers = {}) {
  const answer = await fetch(`${server.http}/metrics`, { headers, signal: AbortSignal.timeout(PATIENCE_MS) });
  assert.equal(answer.status, 200);
  return { type: answer.headers.get('content-type'), text: await answer.text() };
}

/** Two clients that receive publications, one of which goes and comes back. */
async function someTraffic(t, server) {
  const clients = [sdk(t, server, ENCODINGS[0]), sdk(t, server, ENCODINGS[1])];
  for (const client of clients) {
    const subscription = client.newSubscription('news');
    subscription.subscribe();
    client.connect();
    await subscription.ready(PATIENCE_MS);
  }
  const publish = (count) => Promise.all(Array.from({ length: count }, (_, data) => server.api('publish', { channel: 'news', data })));
  await publish(20);
  clients[0].disconnect();
  await publish(3);
  clients[0].connect();
  await clients[0].getSubscription('news').ready(PATIENCE_MS);
  return publish;
}

test('promtool finds no fault in the metrics', { skip }, async (t) => {
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  await someTraffic(t, server);
  const { type, text } = await scrape(server);
  assert.equal(type, 'text/plain; version=0.0.4; charset=utf-8');
  promtool(['check', 'metrics'], text);
  assert.match(text, /^process_start_time_seconds 1\d{9}$/m);
});

test('a scraper that accepts OpenMetrics gets it', async (t) => {
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  const { type, text } = await scrape(server, { Accept: 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3' });
  assert.equal(type, OPEN_METRICS);
  assert.ok(text.endsWith('# EOF\n'));
});

test('each alert fires in its situation', { skip }, () => {
  promtool(['check', 'rules', deploy('prometheus/alerts.yaml')]);
  promtool(['test', 'rules', deploy('prometheus/alerts_test.yaml')]);
});

test('the rules and the dashboard name only metrics that exist', async (t) => {
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  await server.api('publish', { channel: 'news', data: 1 });
  const { text } = await scrape(server);
  const pages = ['operation', 'proxies', 'events', 'acme', 'tls', 'redis', 'redis-failures'].map((page) => readFileSync(deploy(`../docs/${page}.md`), 'utf8'));
  const rules = readFileSync(deploy('prometheus/alerts.yaml'), 'utf8');
  const named = `${rules} ${JSON.stringify(dashboard)}`.match(/\b(fanwire|process)_\w+/g);
  for (const name of new Set(named)) {
    const bare = name.replace(/^fanwire_/, '').replace(/_(total|bucket)$/, '');
    const isScraped = new RegExp(`^${name}[ {]`, 'm').test(text);
    assert.ok(isScraped || pages.some((page) => page.includes(bare)), name);
  }
});

test('every panel of the dashboard has data', { skip }, async (t) => {
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  const query = await startPrometheus(t, server);
  const publish = await someTraffic(t, server);
  const targets = dashboard.panels.flatMap((panel) => panel.targets ?? []);
  assert.ok(targets.length > 40, 'the dashboard was read');
  for (const { expr } of targets.filter(({ expr: text }) => !OF_OTHER_PARTS.test(text))) {
    const text = expr.replaceAll('$__rate_interval', '10s').replaceAll('$job', 'fanwire').replaceAll('$instance', '.*');
    await eventually(async () => (await publish(1), await query(text)).length > 0, `data of ${text}`);
  }
});

/** Names of Centrifugo that ours can answer, with their labels here (its metrics.go, v6.9). */
const OF_CENTRIFUGO = {
  node_num_clients: [], node_num_users: [], node_num_subscriptions: [], node_num_channels: [], node_num_nodes: [], node_build: ['version'],
  node_tags_filter_dropped_publications: [], node_messages_sent_count: ['type'], broker_publish_suppressed_count: ['reason'],
  node_messages_received_count: [], node_broadcast_duration_seconds: ['le'],
  client_connections_accepted: [], client_connections_inflight: ['transport', 'client_name'], client_subscriptions_accepted: [],
  client_subscriptions_inflight: [], client_ping_pong_duration_seconds: ['le'],
  client_command_duration_seconds_histogram: ['method'], client_num_reply_errors: ['code'], client_num_server_unsubscribes: [],
  client_num_server_disconnects: ['code'], client_recover: ['recovered'], client_recovered_publications: [],
  transport_messages_sent: ['transport'], transport_messages_sent_size: ['transport'], transport_messages_received: ['transport'],
  transport_messages_received_size: ['transport'], transport_outgoing_close_count: [],
  api_command_duration_seconds_histogram: ['protocol', 'method', 'le'], api_command_errors_total: ['protocol', 'method'],
};

test('clients, publications and requests are counted by their labels', async (t) => {
  const server = await start({ ...SETTINGS, prometheus: { enabled: true, instrument_http_handlers: true } });
  t.after(() => server.stop());
  await someTraffic(t, server);
  for (let number = 0; number < 2; number += 1) await server.api('publish', { channel: 'news', data: 1, idempotency_key: 'a' });
  for (const version of [2, 1]) await server.api('publish', { channel: 'news', data: 1, version });
  await fetch(`${server.http}/none`);
  const text = await eventually(async () => {
    const { text: now } = await scrape(server);
    return /^fanwire_client_ping_pong_duration_seconds_count [1-9]/m.test(now) && now;
  }, 'a pong');
  const expected = [
    'fanwire_client_connections_inflight{transport="websocket",client_name="js"} 2',
    'fanwire_client_subscriptions_inflight{namespace=""} 2',
    'fanwire_node_messages_sent_total{type="publication"} 27',
    'fanwire_broker_publish_suppressed_total{reason="idempotency"} 1',
    'fanwire_broker_publish_suppressed_total{reason="version"} 1',
    'fanwire_http_requests_total{path="/api",method="POST",status="200"} 27',
    'fanwire_http_requests_total{path="other",method="GET",status="404"} 1',
  ];
  const lines = text.split('\n');
  assert.deepEqual(expected.filter((line) => !lines.includes(line)), [], lines.filter((line) => /inflight|suppressed|http_requests|messages_sent_total/.test(line)).join('\n'));
});

test('queries of public dashboards for Centrifugo have data', { skip }, async (t) => {
  const server = await start({ ...SETTINGS, compatibility: { centrifugo_metrics: true } });
  t.after(() => server.stop());
  const query = await startPrometheus(t, server);
  const publish = await someTraffic(t, server);
  for (const text of DASHBOARD_QUERIES) await eventually(async () => (await publish(1), await query(text)).length > 0, `data of ${text}`);
});

/** What dashboards ask a Centrifugo for. */
const DASHBOARD_QUERIES = [
  'centrifugo_node_num_clients', 'centrifugo_node_num_users', 'centrifugo_node_num_channels', 'centrifugo_node_num_subscriptions', 'centrifugo_node_num_nodes',
  'sum(rate(centrifugo_node_messages_sent_count[10s])) by (type)',
  'sum(rate(centrifugo_node_messages_received_count[10s]))',
  'sum(rate(centrifugo_client_command_duration_seconds_histogram_count[10s])) by (method)',
  'sum(rate(centrifugo_transport_messages_sent[10s])) by (transport)',
  'sum(rate(centrifugo_transport_messages_sent_size[10s])) by (transport)',
  'sum(centrifugo_client_connections_inflight) by (transport, client_name)',
  'sum(rate(centrifugo_client_recover[10s])) by (recovered)',
  'histogram_quantile(0.99, sum(rate(centrifugo_api_command_duration_seconds_histogram_bucket[10s])) by (le, method))',
  'histogram_quantile(0.99, sum(rate(centrifugo_node_broadcast_duration_seconds_bucket[10s])) by (le))',
  'histogram_quantile(0.9, sum(rate(centrifugo_client_ping_pong_duration_seconds_bucket[10s])) by (le))',
];

test('with compatibility.centrifugo_metrics there are the names of Centrifugo, too', async (t) => {
  const server = await start({ ...SETTINGS, compatibility: { centrifugo_metrics: true } });
  t.after(() => server.stop());
  await someTraffic(t, server);
  const openMetrics = await scrape(server, { Accept: OPEN_METRICS });
  assert.ok(openMetrics.text.endsWith('\n# EOF\n') && openMetrics.text.indexOf('# EOF') === openMetrics.text.length - 6);
  const { text } = await scrape(server);
  for (const [name, labels] of Object.entries(OF_CENTRIFUGO)) {
    for (const scraped of [text, openMetrics.text]) {
      const samples = scraped.split('\n').filter((line) => new RegExp(`^centrifugo_${name}(_sum|_count|_bucket)?[ {]`).test(line));
      assert.ok(samples.length > 0, `centrifugo_${name} is missing`);
      assert.ok(samples.some((line) => labels.every((label) => line.includes(`${label}="`))), `${samples[0]} has not ${labels}`);
    }
  }
  const value = (line) => Number(text.match(new RegExp(`^${line} (\\S+)$`, 'm'))?.[1]);
  assert.deepEqual([value('centrifugo_node_num_clients'), value('fanwire_node_num_clients')], [2, 2]);
  assert.equal(value('centrifugo_api_command_duration_seconds_histogram_count{protocol="http",method="publish"}'), 23);
  assert.ok(!(await scrape(await plain(t))).text.includes('centrifugo_'), 'only when asked for');
});

async function plain(t) {
  const server = await start(SETTINGS);
  t.after(() => server.stop());
  return server;
}
