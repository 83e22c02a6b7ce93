// Do real servers start confined? Each starts with `sandbox: true`; one that does not starts with the entry that
// `trunkline sandbox --try` proposes. Prints what each needs. With `--short`, the quick servers.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { prepareServers } from './real-servers.mjs';
import { CLI } from './targets.mjs';

const { values } = parseArgs({ options: { short: { type: 'boolean', default: false } } });
const execute = promisify(execFile);
const servers = await prepareServers({ isShort: values.short });
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-sandbox-')));
const home = join(folder, 'home');
const work = join(folder, 'work');
for (const path of [home, work]) mkdirSync(path);
symlinkSync(join(servers.folder, 'node_modules'), join(work, 'node_modules'));

try {
  const entries = Object.fromEntries(servers.goodKeys.map((key) => [key, servers.entries[key]]));
  const alone = await check(withSandbox(entries, () => false));
  const confined = await check(withSandbox(entries, () => true));
  const proposals = new Map();
  for (const { server, state } of confined) {
    if (state !== 'ready') proposals.set(server, await proposalFor(server));
  }
  const tried = Object.fromEntries([...proposals.keys()].map((key) => [key, entries[key]]));
  const again = proposals.size === 0 ? [] : await check(withSandbox(tried, (key) => proposals.get(key).sandbox));
  let missed = 0;
  for (const { server, state, tools, problem } of confined) {
    const [unconfined, later] = [alone, again].map((reports) => reports.find((each) => each.server === server));
    const last = state === 'ready' ? { state, tools, problem } : later;
    const isSame = JSON.stringify(last.tools) === JSON.stringify(unconfined.tools);
    const entry = state === 'ready' ? 'sandbox: true' : proposals.get(server).text;
    const isGood = last.state === unconfined.state && isSame;
    if (!isGood) missed += 1;
    const outcome = isGood ? 'the same tools as unconfined' : `NOT: ${last.state}, ${last.problem ?? 'other tools'}`;
    say(`${server.padEnd(12)} ${entry}: ${outcome}`);
  }
  say(
    `\n${confined.length - missed} of ${confined.length} servers start confined, with the tools that they list unconfined`,
  );
  process.exitCode = missed === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function say(line) {
  process.stdout.write(`${line}\n`);
}

function withSandbox(entries, sandboxOf) {
  return Object.fromEntries(
    Object.entries(entries).map(([key, entry]) => [key, { ...entry, sandbox: sandboxOf(key) }]),
  );
}

async function check(entries) {
  const { stdout } = await run(entries, ['check', '--json']);
  return JSON.parse(stdout).servers;
}

/** The entry that a trial proposes, as YAML and as a value. */
async function proposalFor(key) {
  const { stdout } = await run({ [key]: { ...servers.entries[key], sandbox: true } }, [
    'sandbox',
    key,
    '--try',
    '--json',
  ]);
  const { entry, read, write, network } = JSON.parse(stdout || '{}');
  if (entry === undefined) return { text: 'no entry', sandbox: true };
  const parts = Object.entries({ read, write, network }).filter(([, list]) => list.length > 0);
  return { text: entry, sandbox: parts.length === 0 ? true : Object.fromEntries(parts) };
}

async function run(entries, args) {
  writeFileSync(join(work, 'trunkline.yaml'), JSON.stringify({ servers: entries }));
  const env = { PATH: process.env.PATH, HOME: home, TRUNKLINE_HUB: 'off' };
  const options = { cwd: work, env, maxBuffer: 64 * 1024 * 1024 };
  return await execute(process.execPath, [CLI, ...args], options).catch((error) => error);
}
