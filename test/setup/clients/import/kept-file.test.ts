import { mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { FoundServer } from '../../../../src/setup/clients/files/found-server.js';
import { copyKeptFile } from '../../../../src/setup/clients/import/kept-file.js';
import { planImport } from '../../../../src/setup/clients/import/plan.js';
import { folderWith } from '../../../config/files.js';
import { command, found } from './found.js';

const MEMORY = '@modelcontextprotocol/server-memory';
const OF_NPX = `.npm/_npx/1f/node_modules/${MEMORY}/dist`;
const KEPT = join('data/servers/memory/memory.jsonl');

let home: string;
beforeEach(() => {
  home = folderWith();
});
/** Writes a file of the home folder that was changed at this second. */
function write(path: string, second: number): string {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, path);
  utimesSync(file, second, second);
  return file;
}

function plan(servers: readonly FoundServer[], present: Record<string, unknown> = {}) {
  const env = { HOME: home };
  return planImport({
    ...{ found: servers, present, env, takesRemote: true, names: [], isOurselves: () => false },
    secrets: { envFile: undefined, values: {}, put: (name) => name },
    ...{ system: { platform: 'linux', home }, readEnvFile: () => undefined },
    places: {
      ...{ platform: 'linux', home, env, nodePath: join(home, 'node/bin/node'), suffix: '' },
      ...{ storeFolder: join(home, 'data/store'), serversFolder: join(home, 'data/servers') },
    },
  });
}

const memory = (line = `npx -y ${MEMORY}`, env = {}) => found('memory', command(line, { env }));

describe('a server that writes beside its program', () => {
  it('gets a file in the data folder, which begins as a copy of the newest file of an earlier run', () => {
    const older = write(`node/lib/node_modules/${MEMORY}/dist/memory.jsonl`, 1_000);
    const newest = write(`${OF_NPX}/memory.jsonl`, 3_000);
    const stored = write(
      `data/store/${MEMORY.replace('/', '+')}@1.0.0-0123/node_modules/${MEMORY}/dist/memory.json`,
      2_000,
    );
    const [planned] = plan([memory()]);
    expect(planned?.entry).toEqual({ package: MEMORY, env: { MEMORY_FILE_PATH: `\${HOME}${sep}${KEPT}` } });
    expect(planned?.kept?.earlier.map(({ file }) => file)).toEqual([newest, stored, older]);
    if (planned?.kept !== undefined) copyKeptFile(planned.kept);
    expect(readFileSync(join(home, KEPT), 'utf8')).toBe(`${OF_NPX}/memory.jsonl`);
    expect(statSync(join(home, KEPT)).mtimeMs).toBe(3_000_000);
    expect(readFileSync(newest, 'utf8')).toBe(`${OF_NPX}/memory.jsonl`);
  });

  it('is known when it is imported again, and is another server with a file of its own', () => {
    const present = { memory: { package: MEMORY, env: { MEMORY_FILE_PATH: `\${HOME}${sep}${KEPT}` } } };
    const own = { MEMORY_FILE_PATH: '/srv/graph.jsonl' };
    expect(plan([memory(), memory(undefined, own)], present).map(({ verdict, key }) => [verdict, key])).toEqual([
      ['same', 'memory'],
      ['renamed', 'memory-2'],
    ]);
  });

  it('keeps the file that its entry names, by a variable, a reference or an option', () => {
    write(`${OF_NPX}/memory.jsonl`, 1_000);
    const graph = 'npx -y @itseasy21/mcp-knowledge-graph';
    const planned = plan([
      memory(undefined, { MEMORY_FILE_PATH: '/srv/graph.jsonl' }),
      { ...memory(undefined, { MEMORY_FILE_PATH: `\${GRAPH}` }), variables: 'claude-code' },
      memory(`${graph} --memory-path /srv/graph.jsonl`),
      memory('uvx notes'),
    ]);
    expect(planned.map(({ kept }) => kept)).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('takes a relative path with it if the server reads that beside its program', () => {
    write(`${OF_NPX}/memory.jsonl`, 2_000);
    const named = write(`${OF_NPX}/work.jsonl`, 1_000);
    const [planned] = plan([memory(undefined, { MEMORY_FILE_PATH: 'work.jsonl' })]);
    expect(planned?.kept).toMatchObject({
      file: join(home, 'data/servers/memory/work.jsonl'),
      earlier: [{ file: named }],
    });
  });

  it('uses the file of an earlier import, or leaves it and begins another if a newer one exists', () => {
    const kept = write(KEPT, 2_000);
    write(`${OF_NPX}/memory.jsonl`, 1_000);
    expect(plan([memory()])[0]?.kept).toMatchObject({ file: kept, earlier: [{ file: kept }, {}] });
    write(`${OF_NPX}/memory.jsonl`, 3_000);
    const [planned] = plan([memory()]);
    if (planned?.kept !== undefined) copyKeptFile(planned.kept);
    expect(readFileSync(join(home, 'data/servers/memory-2/memory.jsonl'), 'utf8')).toContain('_npx');
    expect(readFileSync(kept, 'utf8')).toBe(KEPT);
  });

  it('is looked for in the cache that the settings of npm name', () => {
    writeFileSync(join(home, '.npmrc'), `registry=https://a.test/\ncache = ${home}/cache\n`);
    const file = write(`cache/_npx/2a/node_modules/${MEMORY}/dist/memory.jsonl`, 1_000);
    expect(plan([memory()])[0]?.kept?.earlier).toMatchObject([{ file }]);
  });
});
