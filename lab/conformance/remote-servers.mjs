// Does a client see the same of a real server behind a URL through Trunkline as directly? Ten packages from npm serve HTTP, some
// of them in both transports. A client of the official SDK has the same conversation with each in both ways.
import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { z } from 'zod';
import { prepareServers } from './real-servers.mjs';
import { CLI, freePort } from './targets.mjs';

const LISTENS_WITHIN_MS = 20_000;
const ANSWERS_WITHIN_MS = 30_000;
const POLL_MS = 50;
const ROOTS_WITHIN_MS = 1_000;

const EVERYTHING = [
  ['echo', { message: 'ä€😀 \u0000 "' }],
  ['get-sum', { a: 1, b: 'x' }],
  ['get-tiny-image', {}],
  ['get-annotated-message', { messageType: 'error', includeImage: true }],
  ['get-structured-content', { location: 'Chicago' }],
  ['trigger-long-running-operation', { duration: 0.3, steps: 3 }],
  ['trigger-sampling-request', { prompt: 'Capital of France?', maxTokens: 9 }],
  ['trigger-elicitation-request', {}],
  ['get-roots-list', {}],
];
/**
 * How each server is told to serve HTTP: arguments and variables for a port, and the path of the endpoint. `calls` need no
 * account and no network, and are answered the same each time. A tool is also called without the
 * arguments that it needs, unless the server asks the network nevertheless.
 */
const SERVERS = {
  'everything, HTTP': { key: 'everything', args: () => ['streamableHttp'], path: '/mcp', calls: EVERYTHING },
  'everything, SSE': { key: 'everything', args: () => ['sse'], path: '/sse', calls: EVERYTHING },
  'pdf, HTTP': { key: 'pdf', args: () => [], path: '/mcp', calls: [['list_pdfs', {}]] },
  'playwright, HTTP': { key: 'playwright', args: (port) => ['--port', port, '--headless'], path: '/mcp' },
  'playwright, SSE': { key: 'playwright', args: (port) => ['--port', port, '--headless'], path: '/sse' },
  'chart, HTTP': { key: 'chart', args: (port) => ['-t', 'streamable', '-p', port], path: '/mcp', isOffline: false },
  'chart, SSE': { key: 'chart', args: (port) => ['-t', 'sse', '-p', port], path: '/sse', isOffline: false },
  'mermaid, HTTP': { key: 'mermaid', args: (port) => ['-t', 'streamable', '-p', port], path: '/mcp' },
  'mermaid, SSE': { key: 'mermaid', args: (port) => ['-t', 'sse', '-p', port], path: '/sse' },
  'git, HTTP': {
    key: 'git',
    env: (port) => ({ MCP_TRANSPORT_TYPE: 'http', MCP_HTTP_PORT: port, MCP_HTTP_HOST: '127.0.0.1' }),
    path: '/mcp',
  },
  'fetcher, HTTP': { key: 'fetcher', args: (port) => ['--transport=http', `--port=${port}`], path: '/mcp' },
  'fetcher, SSE': { key: 'fetcher', args: (port) => ['--transport=http', `--port=${port}`], path: '/sse' },
  'shadcn, SSE': { key: 'shadcn', args: (port) => ['--mode', 'sse', '--port', port], path: '/sse' },
  'deepwiki, HTTP': { key: 'deepwiki', args: (port) => ['--http', '--port', port], path: '/mcp' },
  'deepwiki, SSE': { key: 'deepwiki', args: (port) => ['--sse', '--port', port], path: '/sse' },
  'lucide, HTTP': { key: 'lucide', path: '/mcp', calls: [['search_icons', { query: 'house' }]] },
};

const { values } = parseArgs({
  options: {
    server: { type: 'string', multiple: true },
    short: { type: 'boolean', default: false },
    verbose: { type: 'boolean', short: 'v', default: false },
  },
});
const isWanted = (name) =>
  values.server?.includes(SERVERS[name].key) ?? (!values.short || name.startsWith('everything'));
const wanted = Object.keys(SERVERS).filter(isWanted);
if (wanted.length === 0) throw new Error(`There is no server ${values.server}`);

const programs = await programsOf(wanted.map((name) => SERVERS[name].key));
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-remote-')));
/** Pids of the groups that run. */
const groups = new Set();
process.once('exit', () => {
  for (const pid of groups) signalGroup(pid, 'SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

say(`${wanted.length} real servers behind URLs, directly and through Trunkline, Node ${process.version}`);
for (const name of wanted) if (!(await compare(name, SERVERS[name]))) process.exitCode = 1;

/** Prints what came of one server, and returns whether everything was the same. */
async function compare(name, server) {
  try {
    const { capabilities, found: direct } = await talk(server, directTransport);
    const { found: through } = await talk(server, throughTrunkline, capabilities);
    const pairs = direct.map(([label, value], index) => ({ label, value, other: through[index]?.[1] }));
    const different = pairs.filter(({ value, other }) => !isDeepStrictEqual(value, other));
    const isSame = different.length === 0 && direct.length === through.length;
    const errors = direct.filter(([, value]) => value.error !== undefined || value.isError === true).length;
    say(`  ${name}: ${isSame ? 'the same' : 'DIFFERENT'}, ${direct.length} answers, ${errors} of them errors`);
    for (const { label, value, other } of different)
      say(`    ${label}\n      direct:  ${shown(value)}\n      through: ${shown(other)}`);
    if (values.verbose) for (const [label, value] of direct) say(`    ${label}: ${shown(value)}`);
    return isSame;
  } catch (error) {
    say(`  ${name}: FAILED: ${error.message}`);
    return false;
  }
}

/** The conversation with a server that was just started, because some serve one session only. */
async function talk(server, transportTo, known) {
  const { url, end, lastWords } = await start(server);
  try {
    return await converse(transportTo(url), server, known);
  } catch (error) {
    throw new Error(`${error.message}\n${lastWords()}`);
  } finally {
    await end();
  }
}

/** A server asks for the roots some time after the handshake, so between other requests without this wait. Some never ask. */
async function untilRootsAreAsked(asked) {
  const deadline = performance.now() + ROOTS_WITHIN_MS;
  while (asked.length === 0 && performance.now() < deadline) await sleep(10);
}

/** Trunkline puts the name of the server before the words of its questions. */
const SIGNATURE = /^Server "[^"]+" asks(?: you to open a page of [^ ]+)?: /;

/**
 * Asks for the lists that the server has, which Trunkline does not tell, and makes the calls. Returns labels with what the
 * client got of it.
 */
async function converse(transport, { calls = [], isOffline = true }, known) {
  const client = new Client(
    { name: 'trunkline-conformance', version: '1' },
    { capabilities: { sampling: {}, elicitation: {}, roots: {} } },
  );
  const asked = [];
  const progress = [];
  const answerWith = (method, answer) =>
    client.setRequestHandler(z.looseObject({ method: z.literal(method) }), ({ params }) => {
      const { _meta, ...others } = params ?? {};
      if (typeof others.message === 'string') others.message = others.message.replace(SIGNATURE, '');
      asked.push([method, others]);
      return answer;
    });
  answerWith('sampling/createMessage', { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } });
  answerWith('elicitation/create', { action: 'decline' });
  answerWith('roots/list', { roots: [{ uri: 'file:///home/ada', name: 'Home' }] });
  const found = [];
  const ask = async (method, params) => {
    const answer = await client
      .request({ method, params }, z.looseObject({}), { timeout: ANSWERS_WITHIN_MS, onprogress: () => {} })
      .catch(({ code, message, data }) => ({ error: { code, message, data } }));
    found.push([`${method} ${params.name ?? params.uri ?? ''}`.trim(), answer]);
    return answer;
  };
  try {
    await client.connect(transport);
    await untilRootsAreAsked(asked);
    const { onmessage } = transport;
    // The handlers of the SDK miss progress that comes in one piece with the result.
    transport.onmessage = (message, extra) => {
      const { progressToken, ...report } = message.params ?? {};
      if (progressToken !== undefined) progress.push(report);
      onmessage(message, extra);
    };
    const capabilities = known ?? client.getServerCapabilities() ?? {};
    const { tools, prompts, resources } = capabilities;
    const listed = tools && (await ask('tools/list', {}));
    // Trunkline has tools of its own.
    const own = listed?.tools.filter((tool) => !tool.name.startsWith('trunkline__')) ?? [];
    if (listed !== undefined) found[0][1] = { ...listed, tools: own };
    const names = prompts === undefined ? [] : ((await ask('prompts/list', {})).prompts ?? []);
    if (resources !== undefined) {
      await ask('resources/templates/list', {});
      const list = await ask('resources/list', {});
      for (const { uri } of list.resources?.slice(0, 3) ?? []) await ask('resources/read', { uri });
    }
    for (const { name } of names) await ask('prompts/get', { name, arguments: {} });
    for (const [name, args] of calls) await ask('tools/call', { name, arguments: args });
    const strict = own.find(({ inputSchema }) => inputSchema.required?.length > 0);
    if (strict !== undefined && isOffline) await ask('tools/call', { name: strict.name, arguments: {} });
    found.push(['requests of the server', asked], ['progress', progress]);
    return { capabilities, found };
  } finally {
    await client.close();
  }
}

function directTransport(url) {
  return url.pathname === '/sse' ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url);
}

/** Trunkline finds out the transport itself. */
function throughTrunkline(url) {
  const config = join(folder, 'trunkline.yaml');
  writeFileSync(config, JSON.stringify({ servers: { remote: { url: url.href, prefix: '' } } }));
  return new StdioClientTransport({
    command: process.execPath,
    args: [CLI, '--no-hub', '--config', config],
    env: { ...getDefaultEnvironment(), HOME: folder, XDG_DATA_HOME: join(folder, 'data') },
    stderr: 'ignore',
  });
}

async function start({ key, args = () => [], env = (port) => ({ PORT: port }), path }) {
  const port = String(await freePort());
  const child = spawn(process.execPath, [programs[key], ...args(port)], {
    cwd: folder,
    detached: true,
    env: { ...getDefaultEnvironment(), HOME: folder, ...env(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  groups.add(child.pid);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output = (output + text).slice(-2_000);
    });
  const exited = new Promise((resolve) => child.once('close', resolve));
  const end = async () => {
    signalGroup(child.pid, 'SIGKILL');
    await exited;
    groups.delete(child.pid);
  };
  for (const deadline = performance.now() + LISTENS_WITHIN_MS; !(await listensOn(port)); await sleep(POLL_MS)) {
    if (performance.now() < deadline && child.exitCode === null) continue;
    await end();
    throw new Error(`${key} does not listen:\n${output}`);
  }
  return { url: new URL(`http://localhost:${port}${path}`), end, lastWords: () => output };
}

function listensOn(port) {
  return new Promise((resolve) => {
    const socket = createConnection({ host: 'localhost', port: Number(port) });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** The program of each package. That of the short form is installed with this repository. */
async function programsOf(keys) {
  if (keys.every((key) => key === 'everything')) {
    const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json');
    return { everything: join(dirname(manifest), 'dist', 'index.js') };
  }
  const { commands } = await prepareServers({ isShort: false });
  return Object.fromEntries(commands.map(({ name, args }) => [name, args[0]]));
}

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

function shown(value) {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
