// Does the MCP Inspector, which many developers look at a server with, get the same through Trunkline as directly? Its
// command line, of today and of 2025 and in each protocol era, asks a fixture server itself, Trunkline over stdio, alone
// and through a hub, and Trunkline over HTTP with a token. Trunkline runs on the Node in use, as do old Inspectors.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { bringNode, installPackage } from '../../scripts/packages.mjs';
import { CLI, everything, startTrunkline } from './targets.mjs';

/**
 * One that can send a token, with the SDK of its day, and the newest, which speaks the `era` that it is told. `servers`
 * are the eras of the servers behind Trunkline.
 */
const INSPECTORS = [
  { version: '0.16.8', before: '2025-09-25', servers: ['legacy'] },
  { version: '2.12.0', era: 'legacy', servers: ['legacy', 'modern'] },
  { version: '2.12.0', era: 'modern', servers: ['legacy', 'modern'] },
  { version: '2.12.0', era: 'auto', servers: ['legacy'] },
];
/** What version 2 of the Inspector needs. */
const NODE_OF_V2 = 24;

/**
 * Names are the fixture's own; Trunkline shows them with the key of the server before them. The key is short, so that the
 * longest names stay whole with it.
 */
const KEY = 'it';
const STEPS = [
  { method: 'tools/list', isEssential: true },
  {
    method: 'tools/call',
    name: ['--tool-name', 'json_schema_2020_12_tool'],
    flags: ['--tool-arg', 'name=Ada Lovelace', 'contactMethod=phone', 'phone=+44 20'],
    isEssential: true,
  },
  { method: 'tools/call', name: ['--tool-name', 'test_multiple_content_types'] },
  { method: 'tools/call', name: ['--tool-name', 'test_tool_with_progress'] },
  { method: 'tools/call', name: ['--tool-name', 'test_error_handling'] },
  { method: 'prompts/list' },
  {
    method: 'prompts/get',
    name: ['--prompt-name', 'test_prompt_with_arguments'],
    flags: ['--prompt-args', 'arg1=one', 'arg2=two words'],
  },
  { method: 'resources/list' },
  { method: 'resources/templates/list' },
  { method: 'resources/read', flags: ['--uri', 'test://static-binary'] },
  { method: 'resources/read', flags: ['--uri', 'test://template/7/data'] },
  // The modern era has no such request, and the Inspector sends none.
  { method: 'logging/setLevel', flags: ['--log-level', 'info'], isLegacy: true },
];

const STEP_TIMEOUT_MS = 60_000;
/** From the end of an Inspector to that of the Trunkline that it started. */
const END_WITHIN_MS = 4_000;
const POLL_MS = 50;

const { values } = parseArgs({
  options: { inspector: { type: 'string' }, short: { type: 'boolean', default: false } },
});
const inspectors = values.inspector === undefined ? INSPECTORS : [{ version: values.inspector, servers: ['legacy'] }];
const steps = values.short ? STEPS.filter(({ isEssential }) => isEssential) : STEPS;

const run = promisify(execFile);
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(new Error(signal)));

say('MCP Inspector, through Trunkline and directly');
const eras = new Set(inspectors.flatMap(({ servers }) => servers));
/** By the era of the server. */
const places = new Map();
try {
  for (const era of eras) places.set(era, await startPlace(era));
  for (const inspector of inspectors) {
    const prepared = await prepare(inspector);
    for (const era of inspector.servers) await compare(prepared, era);
  }
  for (const place of places.values()) {
    await endHub(place);
    await expectNothingLeft(place);
  }
} finally {
  for (const { server } of places.values()) await server.close();
}

/** Starts Trunkline with the fixture of an era. All Inspectors of it share a hub. */
async function startPlace(era) {
  const server = await startTrunkline({ [KEY]: everything(era) });
  const { stdout } = await run(process.execPath, [CLI, 'token'], { env: server.env });
  // An Inspector passes none of our variables on, so Trunkline has its default settings.
  const hubs = `TRUNKLINE_HUB_DIR=${join(server.folder, 'hubs')}`;
  const hub = [hubs, `XDG_DATA_HOME=${server.env.XDG_DATA_HOME}`];
  return { server, hub, token: stdout.trim() };
}

/** Returns how the Inspector is called and run. */
async function prepare({ version, before, era }) {
  const folder = await installPackage('@modelcontextprotocol/inspector', version, { before });
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const isOld = Number.parseInt(version, 10) < 2;
  const node = isOld ? process.execPath : await bringNode(NODE_OF_V2);
  const { stdout } = await run(node, ['--version']);
  const flags = era === undefined ? [] : ['--protocol-era', era];
  return {
    title: [version, ...flags, `on Node ${stdout.trim().slice(1)}`].join(' '),
    command: [node, join(folder, bin['mcp-inspector']), '--cli', ...flags],
    era,
    // Old ones start themselves once more, with the first `node` that they find.
    path: `${dirname(node)}${delimiter}${process.env.PATH}`,
  };
}

/**
 * Prints how the answers to one Inspector compare. Where it and the server do not understand each other directly, it asks
 * the fixture of its own era, which offers the same.
 */
async function compare({ title: name, command, era = 'legacy', path }, serverEra) {
  const { server, hub, token } = places.get(serverEra);
  const inspector = { command, env: { ...server.env, PATH: path } };
  const own = everything(era === 'auto' ? serverEra : era);
  const directly = { target: [own.command, ...own.args], prefix: '' };
  const prefix = `${KEY}__`;
  const withToken = (text) => ['--transport', 'http', '--header', `Authorization: Bearer ${text}`];
  const ways = [
    { way: 'stdio', target: [process.execPath, CLI], after: ['--', '--no-hub', '--config', server.config], prefix },
    // An Inspector passes none of these variables on.
    { way: 'hub', target: ['env', ...hub, process.execPath, CLI], after: ['--', '--config', server.config], prefix },
    { way: 'HTTP', target: [server.url], headers: withToken(token), prefix },
  ];
  const passed = { stdio: 0, hub: 0, HTTP: 0 };
  const faults = [];
  const ownSteps = steps.filter(({ isLegacy }) => era === 'legacy' || isLegacy !== true);
  for (const step of ownSteps) {
    const title = [step.method, ...(step.name ?? []), ...(step.flags ?? [])].join(' ');
    const [expected, ...answers] = await Promise.all([directly, ...ways].map((way) => ask(inspector, way, step)));
    const wanted = shown(expected, step.method);
    if (expected.result === undefined) faults.push(`without Trunkline: ${title}\n${expected.said}`);
    for (const [index, { way }] of ways.entries()) {
      const got = shown(answers[index], step.method, prefix);
      if (expected.result !== undefined && got === wanted) passed[way] += 1;
      else faults.push(`${way}: ${title}\ndirectly   ${wanted}\nTrunkline  ${got}\n${answers[index].said}`);
    }
  }
  const stranger = { target: [server.url], headers: withToken('wrong'), prefix };
  const refused = await ask(inspector, stranger, { method: 'tools/list' });
  if (refused.code === 0 || refused.result !== undefined) faults.push('HTTP: a wrong token was not refused');

  const summary = Object.entries(passed).map(([way, count]) => `${way} ${count} of ${ownSteps.length}`);
  say(`${name}, ${serverEra} server: ${summary.join(', ')}`);
  for (const fault of faults) complain(fault);
}

/** One hub has served all Inspectors, or it was not what they got. */
async function endHub({ server, hub }) {
  const env = { ...server.env, ...Object.fromEntries(hub.map((variable) => variable.split('='))) };
  const trunkline = async (...args) =>
    (await run(process.execPath, [CLI, ...args, '--config', server.config], { env })).stdout;
  const { pid, number } = JSON.parse(await trunkline('hub', 'status', '--json')).hub ?? {};
  if (pid === undefined || number !== 1)
    complain(`hub: ${number ?? 'no'} hubs have served the Inspectors, and not one`);
  await trunkline('hub', 'stop');
}

/** Runs the Inspector once; `result` is what it printed, if that is JSON. */
async function ask({ command, env }, { target, headers = [], after = [], prefix }, step) {
  const [flag, name] = step.name ?? [];
  const named = name === undefined ? [] : [flag, `${prefix}${name}`];
  // Lists of values go on to the next flag, so that one has to stand between them and the target.
  const what = [...named, ...(step.flags ?? []), ...headers, '--method', step.method];
  const [program, ...args] = [...command, ...what, ...target, ...after];
  const options = { env, timeout: STEP_TIMEOUT_MS, killSignal: 'SIGKILL', signal: stop.signal };
  const { code = 0, stdout, stderr } = await run(program, args, options).catch((error) => error);
  stop.signal.throwIfAborted();
  return { code, result: parsed(stdout), said: `exit code ${code}\n${stderr}`.trim() };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    // An error message, or nothing.
    return undefined;
  }
}

/** An answer as text to compare: names as the server itself spells them, and without what Trunkline is to add. */
function shown({ code, result: answer }, method, prefix) {
  const result = withoutEra(answer);
  const text = (value) => `exit code ${code}, ${JSON.stringify(sorted(value))}`;
  const kind = { 'tools/list': 'tools', 'prompts/list': 'prompts' }[method];
  if (prefix === undefined || result?.[kind] === undefined) return text(result);
  const entries = result[kind].filter(({ name }) => name !== 'trunkline__status');
  const isComplete = kind === 'prompts' || entries.length === result[kind].length - 1;
  const ownName = (name) => (name.startsWith(prefix) ? name.slice(prefix.length) : `${name} without its prefix`);
  const own = entries.map((entry) => ({ ...entry, name: ownName(entry.name) }));
  return `${text({ ...result, [kind]: own })}${isComplete ? '' : ', without trunkline__status'}`;
}

/** The same value with the members of its objects in one order: the Inspector changes it in one era, and not in the other. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, sorted(value[name])]));
}

/** A modern Inspector is a modern client of Trunkline, and a legacy one of the fixture: what only one era has is left out. */
function withoutEra(result) {
  if (result === undefined || result === null) return result;
  const { _meta, resultType, ttlMs, cacheScope, ...others } = result;
  const { 'io.modelcontextprotocol/serverInfo': serverInfo, ...meta } = _meta ?? {};
  return Object.keys(meta).length > 0 ? { ...others, _meta: meta } : others;
}

/** A Trunkline that an Inspector started ends with it. */
async function expectNothingLeft({ server }) {
  const deadline = performance.now() + END_WITHIN_MS;
  for (;;) {
    const { stdout } = await run('ps', ['-A', '-o', 'stat=,pid=,args=']);
    const left = stdout.split('\n').filter((line) => line.includes(server.config) && !line.startsWith('Z'));
    // The one that serves HTTP.
    if (left.length <= 1) return;
    if (performance.now() > deadline) return complain(`processes are left:\n${left.join('\n')}`);
    await sleep(POLL_MS);
  }
}

function complain(fault) {
  process.exitCode = 1;
  say(`  ${fault.replaceAll('\n', '\n    ')}`);
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
