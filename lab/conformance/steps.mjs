// How many commands and seconds does it take until Claude Code has the eight servers of Claude Desktop? A home
// folder in which eight real servers stand in Claude Desktop's file, as most people write them (`npx -y …`), and four tools
// that other people and we have written. Each tool goes the shortest way that its documentation and its help describe.
import { execFile, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { cpus, homedir, tmpdir, type } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { bringNode, installPackage } from '../../scripts/packages.mjs';
import { CLIENTS, prepareClient } from './client-programs.mjs';
import { prepareServers } from './real-servers.mjs';
import { CLI } from './targets.mjs';

const { values: options } = parseArgs({ options: { only: { type: 'string' } } });
const GIVE_UP_AFTER_MS = 300_000;
const PAUSE_MS = 500;
const PASSED_ON = ['PATH', 'LANG', 'TERM', 'TMPDIR', 'USER', 'NODE_EXTRA_CA_CERTS'];

/** `take` runs what a person types: `run` a command, `keep` one that has to stay. Each counts as one. */
const TOOLS = {
  trunkline: {
    take: async ({ run, tool }) => {
      await run(...tool, 'init', '--yes');
    },
    remark:
      'one entry in Claude Code, and in Claude Desktop, too; the eight are taken out of its file, and `undo` puts them back',
  },
  mcporter: {
    version: '0.12.3',
    node: 24,
    // It looks for another file of Claude Desktop by itself. Without the variable it offers only the servers whose entries
    // say `"lifecycle": "keep-alive"`.
    take: async ({ run, claude, tool, desktop }) => {
      const config = ['--config', join(dirname(desktop), 'mcporter.json')];
      await run(...tool, ...config, 'config', 'import', 'claude-desktop', '--path', desktop, '--copy');
      const serve = ['-e', 'MCPORTER_KEEPALIVE=*', '--', ...tool, ...config, 'serve'];
      await run(...claude, 'mcp', 'add', '--scope', 'user', 'mcporter', ...serve);
    },
    remark: 'one entry in Claude Code; Claude Desktop keeps the eight',
  },
  'add-mcp': {
    version: '2.4.0',
    take: async ({ run, tool }) => {
      await run(...tool, 'sync', '--global', '--yes');
    },
    remark: 'no gateway: eight entries in Claude Code, which starts the eight itself, once for each session',
  },
  'mcp-hub': {
    version: '4.2.1',
    take: async ({ run, keep, claude, tool, desktop }) => {
      const port = String(await freePort());
      await keep(...tool, '--port', port, '--config', desktop);
      await run(
        ...claude,
        'mcp',
        'add',
        '--scope',
        'user',
        '--transport',
        'http',
        'mcp-hub',
        `http://localhost:${port}/mcp`,
      );
    },
    remark:
      'one entry in Claude Code; the hub has to be started again after each login, and Claude Desktop keeps the eight',
  },
};

const execute = promisify(execFile);
const servers = await prepareServers({ isShort: true });
const client = CLIENTS.claude;
const claude = await prepareClient(client);
const npmCache = process.env.npm_config_cache ?? join(homedir(), '.npm');
const entries = Object.fromEntries(servers.goodKeys.map((key) => [key, entryOf(servers.entries[key])]));
const rows = [];
// The person has used the servers before, so that npx has them. This also tells which tools belong to which server.
const toolsOf = await prewarm();
for (const [name, tool] of Object.entries(TOOLS)) {
  if (options.only !== undefined && options.only !== name) continue;
  rows.push(await measure(name, tool));
}
print(rows);
process.exitCode = rows.find(({ name }) => name === 'trunkline')?.isDone === false ? 1 : 0;

/** One tool in a home folder of its own. */
async function measure(name, { version, node, take, remark }) {
  const tool = version === undefined ? [process.execPath, CLI] : await programOf(name, version, node);
  const place = openPlace();
  const kept = [];
  let commands = 0;
  const run = async (file, ...args) => {
    commands += 1;
    return await runIn(place, file, args);
  };
  const keep = async (file, ...args) => {
    commands += 1;
    kept.push(spawn(file, args, { cwd: place.folder, env: place.env, stdio: 'ignore', detached: true }));
  };
  process.stderr.write(`${name} …\n`);
  try {
    const startedAt = performance.now();
    await take({ run, keep, claude, tool, desktop: place.desktop });
    let seen = await look(place);
    while (!seen.isDone && performance.now() - startedAt < GIVE_UP_AFTER_MS) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      seen = await look(place);
    }
    const seconds = (performance.now() - startedAt) / 1000;
    return { name, version: version ?? 'this one', commands, seconds, remark, ...seen };
  } finally {
    for (const { pid } of kept) kill(-pid);
    await runIn(place, process.execPath, [CLI, 'stop']);
    end(place);
  }
}

/** What Claude Code says of its entries, and which of the eight have tools behind them. */
async function look(place) {
  const said = await client.look({
    ...place,
    run: async (args) => (await runIn(place, claude[0], [...claude.slice(1), ...args])).stdout,
  });
  const registered = registeredIn(place);
  const names = (await Promise.all(Object.values(registered).map((entry) => toolNames(entry, place)))).flat();
  const reached = servers.goodKeys.filter((key) =>
    toolsOf[key].some((tool) => names.some((each) => each.endsWith(tool))),
  );
  const connected = said.filter(({ isGood }) => isGood).length;
  const isDone = said.length > 0 && connected === said.length && reached.length === servers.goodKeys.length;
  return { isDone, entries: said.length, connected, reached: reached.length };
}

function registeredIn({ folder }) {
  const file = join(folder, '.claude.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')).mcpServers ?? {}) : {};
}

/** The tools of an entry, as a client gets them that starts it once. */
async function toolNames({ command, args, env, url }, place) {
  if (url === undefined) {
    const started = { command, args, env: { ...place.env, ...env }, cwd: place.folder, stderr: 'ignore' };
    return await toolsThrough(new StdioClientTransport(started));
  }
  // Claude Code tries the older transport, too.
  const names = await toolsThrough(new StreamableHTTPClientTransport(new URL(url)));
  return names.length > 0 ? names : await toolsThrough(new SSEClientTransport(new URL(url)));
}

/** No names if it is not ready yet, or never will be. */
async function toolsThrough(transport) {
  const asking = new Client({ name: 'trunkline-steps', version: '1' });
  try {
    await asking.connect(transport);
    const names = [];
    let cursor;
    do {
      const page = await asking.listTools(cursor === undefined ? {} : { cursor });
      names.push(...page.tools.map((tool) => tool.name));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return names;
  } catch {
    return [];
  } finally {
    await asking.close().catch(() => {});
  }
}

async function prewarm() {
  const place = openPlace();
  try {
    const found = {};
    for (const [key, entry] of Object.entries(entries)) {
      found[key] = await toolNames({ ...entry, args: entry.args.map((arg) => absolute(arg, place)) }, place);
      if (found[key].length === 0) throw new Error(`${key} lists no tools by itself`);
    }
    return found;
  } finally {
    end(place);
  }
}

/** A home folder with the eight servers in Claude Desktop's file, and with Claude Code. */
function openPlace() {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-steps-')));
  const desktop = join(folder, '.config', 'Claude', 'claude_desktop_config.json');
  mkdirSync(dirname(desktop), { recursive: true });
  mkdirSync(join(folder, '.claude'));
  const place = { folder, desktop };
  const written = Object.entries(entries).map(([key, entry]) => {
    return [key, { ...entry, args: entry.args.map((arg) => absolute(arg, place)) }];
  });
  writeFileSync(desktop, JSON.stringify({ mcpServers: Object.fromEntries(written) }, undefined, 2));
  const inherited = PASSED_ON.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : []));
  const env = {
    ...Object.fromEntries(inherited),
    ...client.env,
    HOME: folder,
    npm_config_cache: npmCache,
    npm_config_userconfig: process.env.npm_config_userconfig ?? join(homedir(), '.npmrc'),
  };
  return { ...place, env };
}

function entryOf({ package: spec, args = [], env }) {
  return { command: 'npx', args: ['-y', spec, ...args], ...(env && { env }) };
}

/** Desktop programs start servers in no folder of the user's. */
function absolute(arg, { folder }) {
  return arg === '.' ? folder : arg;
}

async function programOf(name, version, oldest) {
  const folder = await installPackage(name, version);
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const program = join(folder, typeof bin === 'string' ? bin : Object.values(bin)[0]);
  return [oldest === undefined ? process.execPath : await bringNode(oldest), program];
}

async function runIn({ folder, env }, file, args) {
  const limits = { timeout: GIVE_UP_AFTER_MS, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 * 1024 };
  const {
    stdout,
    stderr,
    code = 0,
  } = await execute(file, args, { cwd: folder, env, ...limits }).catch((error) => error);
  return { stdout, stderr, code };
}

/** A group that we have started. */
/** Kills a process, or a group if the number is negative. */
function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/**
 * Ends what a tool has left running in the background, such as the daemon of mcporter. Such a process has the folder in its
 * arguments or its environment.
 */
function end({ folder }) {
  for (const pid of readdirSync('/proc').map(Number)) {
    if (pid > 0 && pid !== process.pid && namesFolder(pid, folder)) kill(pid);
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

function namesFolder(pid, folder) {
  try {
    return ['cmdline', 'environ'].some((name) => readFileSync(`/proc/${pid}/${name}`, 'utf8').includes(folder));
  } catch {
    // It has ended, or is of another user.
    return false;
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

function print(measured) {
  const [cpu] = cpus();
  const lines = [
    `${client.package} ${client.version}, ${servers.goodKeys.length} servers in Claude Desktop's file, Node ${process.version}, ${type()}, ${cpus().length} × ${cpu?.model.trim()}`,
    '',
    '| Tool | Commands | Seconds | Claude Code connects to | Servers with tools | What else |',
    '|---|---|---|---|---|---|',
    ...measured.map(({ name, version, commands, seconds, isDone, connected, entries: all, reached, remark }) => {
      const time = isDone ? seconds.toFixed(0) : `not after ${Math.round(seconds)}`;
      const cells = [`${name} ${version}`, commands, time, `${connected} of ${all}`, `${reached} of 8`, remark];
      return `| ${cells.join(' | ')} |`;
    }),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
