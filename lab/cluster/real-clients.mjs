// Do the sessions of real clients go on when the gateway that serves them is killed? Each client calls tools through nginx at three
// gateways with one key. Before its second call, the gateway that answered last is killed with SIGKILL.
//
//   node lab/cluster/real-clients.mjs [--client NAME] [--short]
//
// Ends with 1 if a client has to open a second session, or a call is not answered and executed once. Says so and ends with 0 if
// there is no nginx.
import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import * as two from '@modelcontextprotocol/client';
import { Client as ClientOfOne } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportOfOne } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { bringNode, installPackage } from '../../scripts/packages.mjs';
import { describeMachine, table } from '../bench/page.mjs';
import { CLIENTS, openHome } from '../conformance/client-programs.mjs';
import { Place } from './place.mjs';
import { Watch } from './watch.mjs';

const NAME = 'trunkline';
const CALLS = 3;
const RUN_TIMEOUT_MS = 60_000;
const LEFT_OUT_MS = 2_000;
const INSPECTOR = '2.12.0';
const NODE_OF_INSPECTOR = 24;

/** For each client, `call` makes the calls with these tokens and returns the texts of their results. */
const WAYS = {
  'sdk-1': {
    title: () => `SDK ${versionOf('sdk')}`,
    isShort: true,
    call: (target, tokens) =>
      callWithSdk(new ClientOfOne({ name: 'sdk-1', version: '1' }), new TransportOfOne(...target), tokens),
  },
  'sdk-2': {
    title: () => `SDK ${versionOf('client')}, legacy`,
    isShort: true,
    call: (target, tokens) => callWithTwo('legacy', target, tokens),
  },
  'sdk-2-auto': {
    title: () => `SDK ${versionOf('client')}, auto`,
    isShort: true,
    call: (target, tokens) => callWithTwo('auto', target, tokens),
  },
  claude: program('claude'),
  codex: program('codex'),
  gemini: program('gemini'),
  inspector: inspector('legacy'),
  'inspector-modern': inspector('modern'),
};

const { values } = parseArgs({
  options: { client: { type: 'string', multiple: true }, short: { type: 'boolean', default: false } },
});
const wanted = values.client ?? Object.keys(WAYS).filter((key) => WAYS[key].isShort || !values.short);
const unknown = wanted.find((key) => !Object.hasOwn(WAYS, key));
if (unknown !== undefined) throw new Error(`There is no client ${unknown}: ${Object.keys(WAYS).join(', ')}`);

const execute = promisify(execFile);
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(new Error(signal)));

if (spawnSync('nginx', ['-v']).error === undefined) await run();
else say('not run: nginx is not installed');

async function run() {
  const place = await Place.open({ drain: '60s', namesGateway: true });
  const rows = [];
  try {
    for (const key of wanted) rows.push(await tryClient(place, WAYS[key]));
  } finally {
    await place.close();
  }
  const head = [
    'Client',
    'Revision',
    '`initialize`',
    'Requests that the killed gateway answered',
    'Calls after it',
    '',
  ];
  say(`${describeMachine()}; three gateways behind nginx\n\n${table(head, rows)}`);
}

/** Has the client call, kills the gateway meanwhile, and tells in a row how its session went on. */
async function tryClient(place, { title, call, calls = CALLS, killsBefore = 2 }) {
  let killed;
  const watch = new Watch(place.host, async (number) => {
    if (number !== killsBefore || killed !== undefined) return;
    killed = place.instances.find(({ port }) => port === watch.port);
    killed.answered = watch.requests.filter(({ port }) => port === killed.port).length;
    await killed.end('SIGKILL');
  });
  const tokens = Array.from({ length: calls }, () => randomUUID());
  const url = await watch.open();
  let results = [];
  let said = '';
  try {
    results = await call(
      [new URL(url), { requestInit: { headers: { authorization: `Bearer ${place.token}` } } }],
      tokens,
    );
  } catch (error) {
    stop.signal.throwIfAborted();
    said = String(error.stack ?? error);
  } finally {
    watch.close();
  }
  const executions = place.executions();
  const opened = watch.requests.filter(({ method }) => method === 'initialize').length;
  const answered = tokens.filter((token, at) => results[at]?.includes(token) && executions.get(token) === 1).length;
  const { revision } = watch.requests.findLast((request) => request.revision !== undefined) ?? {};
  const isGood = killed !== undefined && opened <= 1 && answered === calls;
  if (!isGood) {
    process.exitCode = 1;
    say(`${title()}: ${said}\n${results.join('\n')}\n${watch.requests.map((each) => JSON.stringify(each)).join('\n')}`);
  }
  const after = `${Math.max(0, answered - killsBefore + 1)} of ${calls - killsBefore + 1} answered`;
  const row = [title(), String(revision), String(opened), String(killed?.answered), after];
  await killed?.start();
  // The configuration of nginx has a failed gateway left out for 1 s. The next client kills another one.
  await sleep(LEFT_OUT_MS, undefined, { signal: stop.signal });
  return [...row, isGood ? 'goes on' : '**fails**'];
}

async function callWithSdk(client, transport, tokens) {
  await client.connect(transport);
  try {
    const results = [];
    for (const token of tokens) {
      const { content } = await client.callTool({ name: 'jobs__work', arguments: { token, ms: 1 } });
      results.push(content[0].text);
    }
    return results;
  } finally {
    await client.close();
  }
}

function callWithTwo(mode, target, tokens) {
  const client = new two.Client({ name: 'sdk-2', version: '2' }, { versionNegotiation: { mode } });
  return callWithSdk(client, new two.StreamableHTTPClientTransport(...target), tokens);
}

/** A program with a stand-in for its model. */
function program(key) {
  const client = CLIENTS[key];
  return {
    title: () => `${client.package} ${client.version}`,
    call: async ([url, { requestInit }], tokens) => {
      const token = requestInit.headers.authorization.slice('Bearer '.length);
      const home = await openHome(client, stop.signal, { TRUNKLINE_TOKEN: token });
      try {
        await client.registerUrl(home, { name: NAME, url: url.href, token });
        const calls = tokens.map((each) => ({ name: 'jobs__work', arguments: { token: each, ms: 1 } }));
        const { results, output } = await client.converse(home, calls);
        return results.length === tokens.length ? results : [...results, output];
      } finally {
        home.close();
      }
    },
  };
}

/** Its command line makes one call in a session, so the gateway is killed between `initialize` and that call. */
function inspector(era) {
  return {
    title: () => `MCP Inspector ${INSPECTOR}, ${era}`,
    calls: 1,
    killsBefore: 1,
    call: async ([url, { requestInit }], [token]) => {
      const folder = await installPackage('@modelcontextprotocol/inspector', INSPECTOR);
      const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const header = `Authorization: ${requestInit.headers.authorization}`;
      // Lists of values go on to the next flag.
      const call = ['--tool-name', 'jobs__work', '--tool-arg', `token=${token}`, 'ms=1', '--transport', 'http'];
      const flags = ['--protocol-era', era, ...call, '--header', header, '--method', 'tools/call'];
      const args = [join(folder, bin['mcp-inspector']), '--cli', ...flags, url.href];
      const options = { timeout: RUN_TIMEOUT_MS, signal: stop.signal };
      const { stdout, stderr } = await execute(await bringNode(NODE_OF_INSPECTOR), args, options).catch(
        (error) => error,
      );
      return [stdout.trim() === '' ? stderr : stdout];
    },
  };
}

function versionOf(name) {
  const file = new URL(`../../node_modules/@modelcontextprotocol/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')).version;
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
