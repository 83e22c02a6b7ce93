// How long does a new user need? A home folder with eight real servers in Claude Desktop's file, as most people write them
// (`npx -y …`), one command, and Claude Code has them all behind Trunkline. Then one command takes everything back.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { CLIENTS, prepareClient } from './client-programs.mjs';
import { prepareServers } from './real-servers.mjs';
import { CLI } from './targets.mjs';

/** On a machine that has nothing else to do. */
const AIM_SECONDS = 60;
const RUN_TIMEOUT_MS = 300_000;
const PASSED_ON = ['PATH', 'LANG', 'TERM', 'TMPDIR', 'USER', 'NODE_EXTRA_CA_CERTS'];

const execute = promisify(execFile);
const servers = await prepareServers({ isShort: true });
const client = CLIENTS.claude;
const [command, ...first] = await prepareClient(client);
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-first-run-')));
const inherited = Object.fromEntries(
  PASSED_ON.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])),
);
const env = {
  ...inherited,
  ...client.env,
  HOME: folder,
  // What npm has downloaded before is there, and so are its settings.
  npm_config_cache: process.env.npm_config_cache ?? join(homedir(), '.npm'),
  npm_config_userconfig: process.env.npm_config_userconfig ?? join(homedir(), '.npmrc'),
};
const DESKTOP = join(folder, '.config', 'Claude', 'claude_desktop_config.json');
let failures = 0;

try {
  mkdirSync(dirname(DESKTOP), { recursive: true });
  mkdirSync(join(folder, '.claude'));
  const entries = servers.goodKeys.map((key) => {
    const { package: spec, args = [], env: own } = servers.entries[key];
    return [key, { command: 'npx', args: ['-y', spec, ...args.map(absolute)], ...(own && { env: own }) }];
  });
  const before = `${JSON.stringify({ mcpServers: Object.fromEntries(entries) }, undefined, 2)}\n`;
  writeFileSync(DESKTOP, before);
  say(
    `${client.package} ${client.version}, ${entries.length} servers in Claude Desktop's file, Node ${process.version}`,
  );

  const startedAt = performance.now();
  const init = await run(process.execPath, [CLI, 'init', '--yes']);
  const seconds = (performance.now() - startedAt) / 1000;
  say(`  trunkline init --yes: exit code ${init.code} after ${seconds.toFixed(1)} s (aim: ${AIM_SECONDS} s)`);
  if (init.code !== 0) fail(`it says:\n${init.stdout}${init.stderr}`);
  const left = Object.keys(JSON.parse(readFileSync(DESKTOP, 'utf8')).mcpServers);
  if (left.join() !== 'trunkline') fail(`Claude Desktop has ${left}`);

  const found = await client.look({
    folder,
    env,
    run: async (args) => (await run(command, [...first, ...args])).stdout,
  });
  const own = found.find(({ name }) => name === 'trunkline');
  say(`  claude mcp list: ${own?.said ?? 'nothing of Trunkline'}`);
  if (own?.isGood !== true || found.length !== 1) fail('Claude Code is not connected to Trunkline alone');
  const { tools } = JSON.parse((await run(process.execPath, [CLI, 'tools', '--json'])).stdout);
  const missing = servers.goodKeys.filter((key) => !tools.some(({ name }) => name.startsWith(`${key}__`)));
  say(`  trunkline tools: ${tools.length} tools of ${servers.goodKeys.length - missing.length} servers`);
  if (missing.length > 0) fail(`no tools of ${missing}`);

  const stopped = JSON.parse((await run(process.execPath, [CLI, 'stop', '--json'])).stdout);
  say(`  trunkline stop: ${stopped.hubs.length} hub, ${stopped.hubs[0]?.result ?? 'which did not run'}`);
  if (stopped.hubs.length !== 1 || stopped.hubs[0].result !== 'stopped') fail('Claude Code did not use a hub');

  await run(process.execPath, [CLI, 'undo']);
  if (readFileSync(DESKTOP, 'utf8') !== before) fail('undo did not restore the file of Claude Desktop');
  else say('  trunkline undo: the file of Claude Desktop is as it was');
} finally {
  // After a failure, the hub still runs.
  await run(process.execPath, [CLI, 'stop']);
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;

/** Desktop programs start servers in no folder of the user's. */
function absolute(arg) {
  return arg === '.' ? folder : arg;
}

async function run(file, args) {
  const options = { cwd: folder, env, timeout: RUN_TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 * 1024 };
  const { stdout, stderr, code = 0 } = await execute(file, args, options).catch((error) => error);
  return { stdout, stderr, code };
}

function say(text) {
  process.stdout.write(`${text}\n`);
}

function fail(text) {
  failures += 1;
  say(`  FAILED: ${text}`);
}
