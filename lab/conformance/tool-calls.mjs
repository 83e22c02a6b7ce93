// Do real clients call tools through Trunkline in each mode of the list, and what does `mode: auto` decide for each? Each client runs
// as its users run it, with a stand-in for its model that calls one tool.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describeMachine, table } from '../bench/page.mjs';
import { tinyServer } from '../bench/ways.mjs';
import { CLIENTS, openHome } from './client-programs.mjs';
import { CLI } from './targets.mjs';

const NAME = 'trunkline';
/** More than any limited client shows. */
const IDLE_TOOLS = 196;
const TOOL = 'tiny__echo';
/** The tools of Trunkline that a client sees in search mode. */
const OF_SEARCH = ['find_tools', 'describe_tools', 'call_tool'].map((name) => `trunkline__${name}`);
/** The mode of these clients with `auto`, because none of them has a known limit on the page about tools. */
const EXPECTED = { direct: 'direct', search: 'search', auto: 'direct' };

const { values } = parseArgs({
  options: { client: { type: 'string', multiple: true }, short: { type: 'boolean', default: false } },
});
const wanted = values.client ?? Object.keys(CLIENTS).filter((key) => CLIENTS[key].isShort || !values.short);
const unknown = wanted.find((key) => !Object.hasOwn(CLIENTS, key));
if (unknown !== undefined) throw new Error(`There is no client ${unknown}: ${Object.keys(CLIENTS).join(', ')}`);

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => stop.abort(new Error(signal)));

const rows = [];
for (const key of wanted) {
  for (const mode of Object.keys(EXPECTED)) rows.push(await tryMode(CLIENTS[key], mode));
}
const head = ['Client', 'Its name in `initialize`', '`mode`', 'Tools that it shows its model', 'Sees', 'Called', ''];
process.stdout.write(`${describeMachine()}\n\n${table(head, rows)}\n`);

/** Has the client call a tool, and tells in a row what it did. */
async function tryMode(client, mode) {
  const home = await openHome(client, stop.signal);
  const config = join(home.folder, 'trunkline.yaml');
  const [command, ...args] = tinyServer('--tools', String(IDLE_TOOLS));
  const gateway = { mode, callLog: 'metadata' };
  writeFileSync(config, JSON.stringify({ gateway, servers: { tiny: { command, args } } }));
  const trunkline = (...given) => home.runIn([process.execPath, CLI], [...given, '--config', config]);
  const text = randomUUID();
  try {
    const env = { TRUNKLINE_HUB_DIR: home.env.TRUNKLINE_HUB_DIR };
    await client.register(home, { name: NAME, command: process.execPath, args: [CLI, '--config', config], env });
    const call = { name: TOOL, arguments: { text } };
    const search = [
      { name: 'trunkline__find_tools', arguments: { query: TOOL } },
      { name: 'trunkline__call_tool', arguments: call },
    ];
    const calls = EXPECTED[mode] === 'search' ? search : [call];
    const { seen, results, output } = await client.converse(home, calls);
    const own = seen.filter((name) => /(tiny|trunkline)__[a-z_0-9]+$/.test(name));
    const isSearch = OF_SEARCH.every((wantedName) => own.some((name) => name.endsWith(wantedName)));
    const sees = isSearch ? 'search' : own.some((name) => name.endsWith(TOOL)) ? 'direct' : 'neither';
    const isGood =
      sees === EXPECTED[mode] && results.at(-1)?.includes(text) === true && results.length === calls.length;
    if (!isGood) {
      process.exitCode = 1;
      process.stderr.write(
        `${client.package}, ${mode}: ${output.slice(-2_000)}\n${results.join('\n').slice(0, 2_000)}\n`,
      );
    }
    const log = await trunkline('activity', '--json');
    const [, name = 'unknown'] = /"client": ?"([^"]*)"/.exec(log) ?? [];
    const row = [`${client.package} ${client.version}`, `\`${name}\``, `\`${mode}\``, String(own.length), sees];
    return [...row, `\`${calls.at(-1).name}\``, isGood ? 'passed' : '**failed**'];
  } finally {
    await trunkline('stop');
    home.close();
  }
}
