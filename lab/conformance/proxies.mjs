// Runs the nginx of PATH with the configuration that docs/remote.md shows, without its TLS, in front of Trunkline, and looks at
// what a client of the official SDK and raw requests get through it. Says so and exits with 0 if there is no nginx; exits with
// 1 when something is lost on the way. Run it with `npm run -w lab proxies`.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { startNginx } from './nginx.mjs';
import { CLI, freePort, startTrunkline } from './targets.mjs';

const PAGE = new URL('../../docs/remote.md', import.meta.url);
const EVERYTHING = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
);
const OPERATION = { seconds: 3, steps: 6 };
/** Longer than `keepAlive`. */
const SILENCE_MS = 20_000;
const MIB = 1024 * 1024;

if (spawnSync('nginx', ['-v']).error !== undefined) say('not run: nginx is not installed');
else process.exitCode = await tryNginx();

async function tryNginx() {
  const port = await freePort();
  const host = `127.0.0.1:${port}`;
  const options = ['--allowed-host', host, '--allowed-origin', 'https://gateway.example'];
  const servers = { everything: { command: process.execPath, args: [EVERYTHING] } };
  const trunkline = await startTrunkline(servers, options);
  try {
    const nginx = await startNginx(host, configFor(host, new URL(trunkline.url).host));
    try {
      const token = execFileSync(process.execPath, [CLI, 'token'], { env: trunkline.env, encoding: 'utf8' }).trim();
      return await look(`http://${host}/mcp`, token);
    } finally {
      await nginx.close();
    }
  } finally {
    await trunkline.close();
  }
}

async function look(url, token) {
  const authorization = `Bearer ${token}`;
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization } } });
  const client = new Client({ name: 'trunkline-proxies', version: '1' });
  let failures = 0;
  const check = (text, isRight, seen) => {
    if (!isRight) failures += 1;
    say(`nginx  ${text}: ${isRight ? 'ok' : `FAILED, ${seen}`}`);
  };
  const statusOf = (headers, body) => post(url, { authorization, ...headers }, body);
  try {
    await client.connect(transport);
    const silent = silentStream(url, authorization);
    const { tools } = await client.listTools();
    check('a list', tools.length > 1, `${tools.length} tools`);

    const startedAt = performance.now();
    const arrivals = [];
    const { seconds, steps } = OPERATION;
    const long = tools.find(({ name }) => name.includes('long-running')).name;
    await client.callTool({ name: long, arguments: { duration: seconds, steps } }, undefined, {
      onprogress: () => arrivals.push(performance.now() - startedAt),
    });
    const spread = arrivals.length < 2 ? 0 : arrivals.at(-1) - arrivals[0];
    const isSpread = arrivals.length >= steps - 1 && spread > (seconds * 1000) / 3;
    check('progress when it happens', isSpread, `${arrivals.length} within ${Math.round(spread)} ms`);

    const text = 'x'.repeat(3.5 * MIB);
    const echo = tools.find(({ name }) => name.endsWith('echo')).name;
    const { content } = await client.callTool({ name: echo, arguments: { message: text } });
    check('a body and an answer of 3.5 MiB', content[0].text.includes(text), content[0].text.slice(0, 200));

    const tooLarge = await statusOf({}, 'x'.repeat(5 * MIB));
    check('413 for a body of 5 MiB', tooLarge === 413, tooLarge);
    const evil = await statusOf({ host: 'evil.test' });
    check('403 for another Host', evil === 403, evil);
    const page = await statusOf({ origin: 'https://evil.test' });
    check('403 for another Origin', page === 403, page);
    const own = await statusOf({ origin: 'https://gateway.example' });
    check('200 for the Origin of the proxy', own === 200, own);
    const wrong = await statusOf({ authorization: 'Bearer wrong' });
    check('401 for a wrong token', wrong === 401, wrong);
    const comment = await silent;
    check('a comment on a silent stream', comment.includes(':'), JSON.stringify(comment));
    await transport.terminateSession();
  } finally {
    await client.close();
  }
  return failures === 0 ? 0 : 1;
}

/** What arrives on a stream of its own session on which nothing happens. */
async function silentStream(url, authorization) {
  const response = await fetch(url, { method: 'POST', headers: headersWith({ authorization }), body: initialize() });
  const session = { authorization, 'mcp-session-id': response.headers.get('mcp-session-id') };
  await response.text();
  await fetch(url, {
    method: 'POST',
    headers: headersWith(session),
    body: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }),
  });
  const stream = await fetch(url, { headers: headersWith(session), signal: AbortSignal.timeout(SILENCE_MS) });
  let seen = '';
  try {
    for await (const chunk of stream.body.pipeThrough(new TextDecoderStream())) {
      seen += chunk;
      if (/^:/m.test(seen)) break;
    }
  } catch (error) {
    seen += error.name;
  }
  return seen;
}

/** The status of the answer to `initialize`, or to another body. */
function post(url, headers, body = initialize()) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent: false, headers: headersWith(headers) }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

function headersWith(more) {
  return { accept: 'application/json, text/event-stream', 'content-type': 'application/json', ...more };
}

function initialize() {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
}

/** The configuration that the page shows, with our addresses and without TLS. */
function configFor(host, upstream) {
  const [, shown] = /```nginx\n([\s\S]*?)```/.exec(readFileSync(PAGE, 'utf8'));
  const own = shown
    .replace('server 127.0.0.1:7411;', `server ${upstream};`)
    .replace('listen 443 ssl;', `listen ${host};`)
    .replaceAll(/^ *ssl_.*\n/gm, '');
  if (!own.includes(upstream) || !own.includes(`listen ${host}`)) throw new Error(`docs/remote.md shows:\n${shown}`);
  return own;
}

function say(line) {
  process.stdout.write(`${line}\n`);
}
