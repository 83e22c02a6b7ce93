import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, Workplace } from '../cli/cli-run.js';
import { dataFolderIn, IS_MAC } from '../support/platform.js';

const PRELOAD = new URL('../fixtures/cli/failing-writes.mjs', import.meta.url);
const MEMORY = '@modelcontextprotocol/server-memory';
const OWN = { command: 'node', args: [CLI] };

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  // The home folder is that of the test.
  const data = dataFolderIn(IS_MAC ? place.folder : join(place.folder, 'data'));
  place.env.XDG_DATA_HOME = join(place.folder, 'data');
  place.configure({ f: { fixture: 'ok', approval: 'required' }, g: { command: 'node' } });
  put('.cursor/mcp.json', { mcpServers: { trunkline: OWN } });
  put('.codeium/windsurf/mcp_config.json', { mcpServers: { x: { command: 'node', args: ['x'] } } });
  put(`.npm/_npx/1/node_modules/${MEMORY}/dist/memory.jsonl`, {});
  put(relative(place.folder, join(data, 'secrets')), { B: 'secret value of B' });
  put('kept.json', { mcpServers: { m: { command: 'npx', args: ['-y', MEMORY] } } });
  const auth = { tokens: 'machines', variables: 'variables' };
  put('users.yaml', { servers: { g: { command: 'node' } }, gateway: { http: { auth } } });
  put('packages.yaml', { servers: { p: { package: 'a@1.0.0' } } });
});
afterEach(() => place.dispose());

function put(path: string, content: object): void {
  mkdirSync(join(place.folder, path, '..'), { recursive: true });
  writeFileSync(join(place.folder, path), JSON.stringify(content), { mode: 0o600 });
}

/** The folders below the folder, and the files with their contents. Caches, and files of locks, are no data of the user. */
function contents(): Record<string, string> {
  const files = readdirSync(place.folder, { recursive: true }).map(String);
  const own = files.filter((file) => !/trunkline\/(?:code|changes|checked|store$)/.test(file));
  const isFile = (file: string) => statSync(join(place.folder, file)).isFile();
  return Object.fromEntries(
    own.map((file) => [file, isFile(file) ? readFileSync(join(place.folder, file), 'utf8') : 'a folder']),
  );
}

interface Row {
  readonly args: readonly string[];
  /** The end of the path that is named. */
  readonly file: string;
  readonly input?: string;
  /** What has to be done before. */
  readonly before?: readonly string[];
}

const CONFIG = ['--config', 'trunkline.yaml'];
const ROWS: Readonly<Record<string, Row>> = {
  'add, to a file that is there': { args: ['add', 't', ...CONFIG, '--', 'uvx', 't'], file: '/trunkline.yaml' },
  'add, to a new file': { args: ['add', 't', '--config', 'new.yaml', '--', 'uvx', 't'], file: '/new.yaml' },
  'add, with a secret': {
    args: ['add', 't', ...CONFIG, '--env', 'KEY=secret value', '--', 'uvx', 't'],
    file: '/trunkline.env',
  },
  'import, with a file of a server': {
    args: ['import', '--from', 'kept.json', '--yes', ...CONFIG],
    file: '/memory.jsonl',
  },
  connect: { args: ['connect', 'windsurf', ...CONFIG], file: '/mcp_config.json' },
  undo: { args: ['undo'], before: ['connect', 'windsurf', ...CONFIG], file: '/mcp_config.json' },
  'secret set': { args: ['secret', 'set', 'A'], input: 'secret value', file: '/secrets' },
  token: { args: ['token'], file: '/token' },
  'token add': { args: ['token', 'add', 'ci', '--config', 'users.yaml'], file: '/machines' },
  'user set': { args: ['user', 'set', 'ann', 'KEY', '--config', 'users.yaml'], input: 'secret value', file: '/KEY' },
  schema: { args: ['schema', '--out', 'schema.json'], file: '/schema.json' },
  approve: { args: ['approve', 'f', '--yes', ...CONFIG], file: '-f.json' },
  install: { args: ['install', '--config', 'packages.yaml'], file: '/lock.1' },
  'serve over HTTP': { args: ['serve', '--http', '0', ...CONFIG], file: '/token' },
};

// `test/host/errors/file-error.test.ts` has the other reasons.
describe('where the disk is full', () => {
  it.each(Object.entries(ROWS))('F380: %s names the file and the cure, and leaves all as it was', async (_, row) => {
    if (row.before !== undefined) expect((await place.run(row.before)).code).toBe(0);
    const before = contents();
    Object.assign(place.env, { NODE_OPTIONS: `--import=${PRELOAD}`, FAILS_BELOW: place.folder, FAILS_WITH: 'ENOSPC' });
    const { code: exit, stdout, stderr } = await place.run(row.args, row.input);
    // Records of the log are lines of JSON, and the next step may be on a line of its own.
    const told = stderr.replace(/^\{.*\n/gm, '').replace(/\n {2}/g, '; ');
    const said = stdout + told;
    expect(told).toContain('the disk is full (ENOSPC); make room on the disk');
    expect(told).toContain(row.file);
    expect(said.match(/\bENOSPC\b/g)).toHaveLength(1);
    expect(stdout + stderr).not.toMatch(/internal error|permissions|secret value|words of the system|\.tmp/);
    expect([exit, contents()]).toEqual([row.args[0] === 'serve' ? 2 : 1, before]);
  });
});
