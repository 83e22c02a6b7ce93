import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Folders of `src` whose files must not import each other in a circle. */
const FOLDERS = [
  'app',
  'approvals',
  'cache',
  'cli',
  'config',
  'errors',
  'files',
  'gateway/status',
  'io',
  'json',
  'jsonrpc',
  'mcp',
  'observe',
  'packages',
  'process',
  'supervision',
  'timing',
  'upstream',
];

const SRC = join(import.meta.dirname, '..', 'src');
const IMPORT = /(?:^import|^export|\bfrom|\bimport\()\s*'(\.[^']+)\.js'/gm;

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('.ts'));
const imports = new Map(files.map((file) => [file, importsOf(file)]));

describe('import cycles, of types too', () => {
  it.each(FOLDERS)('are absent from src/%s', (folder) => {
    const start = files.filter((file) => file.startsWith(`${folder}/`));
    expect(start).not.toEqual([]);
    const cycles = new Set(start.flatMap((file) => cycleThrough(file) ?? []));
    expect([...cycles]).toEqual([]);
  });

  it('are found where there is one', () => {
    const ring = new Map([
      ['a.ts', ['b.ts', 'c.ts']],
      ['b.ts', ['d.ts']],
      ['c.ts', ['a.ts']],
      ['d.ts', []],
    ]);
    expect(cycleThrough('a.ts', ring)).toBe('a.ts -> c.ts -> a.ts');
    expect(cycleThrough('b.ts', ring)).toBeUndefined();
  });
});

/**
 * A shortest way from a file back to itself, written from the alphabetically first file on, so that each member of a
 * circle reports the same text.
 */
function cycleThrough(file: string, graph: ReadonlyMap<string, readonly string[]> = imports): string | undefined {
  const importers = new Map<string, string>();
  const queue = [file];
  for (const current of queue) {
    for (const target of graph.get(current) ?? []) {
      if (target === file) return describeCycle(file, current, importers);
      if (importers.has(target)) continue;
      importers.set(target, current);
      queue.push(target);
    }
  }
  return undefined;
}

function describeCycle(file: string, last: string, importers: ReadonlyMap<string, string>): string {
  const members = [last];
  for (let member = last; member !== file; members.unshift(member)) member = importers.get(member) ?? file;
  const start = members.indexOf([...members].sort()[0] ?? file);
  const turned = [...members.slice(start), ...members.slice(0, start)];
  return [...turned, turned[0]].join(' -> ');
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(SRC, file), 'utf8');
  return [...text.matchAll(IMPORT)].map(([, path = '']) =>
    posix.join(dirname(file).replaceAll('\\', '/'), `${path}.ts`),
  );
}
