// Compressed streams in browsers, which decode them by themselves: EventSource and fetch in Chromium and Firefox.
// In: a page of another origin that reads both kinds of streams → out: each message when it was published.
// May use Node's own modules; the page reports over plain requests, so that no driver is between.
// The server is checked by ../events.js; how a browser is started is in ../mixed/browsers.js.

import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { SETTINGS, commands, eventsUrl, publishOneByOne } from '../events.js';
import { find, open } from '../mixed/browsers.js';
import { Log, start, within } from '../server.js';

for (const name of ['chromium', 'firefox']) {
  test(`${name}: EventSource and fetch`, async (t) => {
    const missing = whyMissing(name);
    if (missing) return t.skip(missing);
    const server = await start(SETTINGS);
    t.after(() => server.stop());
    const logs = { events: listener(), lines: listener(), uni_events: listener(), uni_lines: listener() };
    const url = await servePage(t, page(server), logs);
    const browser = open(name, url);
    t.after(() => browser.stop());
    await within(once(browser.browser, 'spawn'), `start of ${name}`);
    await logs.events.log.find(({ id }) => id === 2, `the page in ${name}`, 60_000);
    for (const [channel, { log }] of Object.entries(logs)) await publishOneByOne(server, channel, log);
  });
}

function whyMissing(name) {
  try {
    find(name);
    return undefined;
  } catch (error) {
    return error.message;
  }
}

function listener() {
  const emitter = new EventEmitter();
  return { log: new Log(emitter, 'message'), take: (message) => emitter.emit('message', message) };
}

/** Serves the page, and takes its reports: a POST to the name of a channel for each message. */
async function servePage(t, text, logs) {
  const server = createServer(async (request, response) => {
    const log = logs[request.url.slice(1)];
    if (!log) return response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(text);
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    log.take(JSON.parse(Buffer.concat(chunks).toString()));
    return response.writeHead(204).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}/`;
}

const page = (server) => `<!doctype html>
<meta charset="utf-8">
<title>Compressed streams</title>
<script type="module">
  const report = (path, body) => fetch(path, { method: 'POST', body });
  function events(channel, url) {
    new EventSource(url).onmessage = ({ data }) => report(channel, data);
  }
  async function lines(channel, url, body) {
    const response = await fetch(url, { method: 'POST', body });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + value).split('\\n');
      rest = lines.pop();
      for (const line of lines.filter(Boolean)) report(channel, line);
    }
  }
  events('/events', ${JSON.stringify(eventsUrl(server, 'events'))});
  events('/uni_events', ${JSON.stringify(eventsUrl(server, 'uni_events', 'uni_sse'))});
  lines('/lines', '${server.http}/connection/http_stream', ${JSON.stringify(commands('lines'))});
  lines('/uni_lines', '${server.http}/connection/uni_http_stream', ${JSON.stringify(commands('uni_lines', 'uni_http_stream'))});
</script>
`;
