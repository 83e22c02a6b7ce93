import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Who may import whom. `node` stands for Node's own modules, `npm:x` for a package; `.` is the root of `src`. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  jsonrpc: [],
  timing: [],
  mcp: ['jsonrpc'],
  supervision: ['timing'],
  bridge: ['jsonrpc', 'mcp', 'timing', 'npm:p-queue', 'npm:opossum'],
  gateway: ['jsonrpc', 'mcp', 'timing', 'bridge', 'npm:@modelcontextprotocol/sdk'],
  streams: ['jsonrpc', 'node'],
  process: ['supervision', 'timing', 'node', 'npm:execa'],
  front: ['jsonrpc', 'mcp', 'timing', 'streams', 'node', 'npm:fastify'],
  store: ['node'],
  config: ['supervision', 'timing', 'node', 'npm:yaml', 'npm:zod', 'npm:chokidar'],
  observe: ['jsonrpc', 'timing', 'node', 'npm:pino'],
  compose: ['*'],
  commands: ['*'],
  '.': ['*'],
};

/** Folders that know neither the platform nor the time: everything they need is handed to them. */
const PURE = ['jsonrpc', 'timing', 'mcp', 'supervision', 'bridge', 'gateway'];
const IMPURE_NAMES = /\b(?:process|Buffer|Date|performance|setTimeout|setInterval|setImmediate|console|Math\.random)\b/;

const SRC = join(import.meta.dirname, '..', 'src');
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));

describe('the layers', () => {
  it('are all listed in the table of allowed imports', () => {
    const folders = new Set(files.map(folderOf));
    expect([...folders].sort()).toEqual(Object.keys(ALLOWED).sort());
  });

  it.each(files)('%s imports only what its folder may', (file) => {
    const folder = folderOf(file);
    const allowed = ALLOWED[folder] ?? [];
    const forbidden = importsOf(file).filter((target) => {
      return target !== folder && !allowed.includes('*') && !allowed.includes(target);
    });
    expect(forbidden).toEqual([]);
  });

  it.each(files.filter((file) => PURE.includes(folderOf(file))))(
    '%s reaches for no clock, stream or logger',
    (file) => {
      const code = read(file)
        .replace(/\/\*[\s\S]*?\*\//g, '')
        .replace(/\/\/.*$/gm, '')
        .replace(/'[^'\n]*'|`[^`]*`/g, "''");
      expect(IMPURE_NAMES.exec(code)?.[0]).toBeUndefined();
    },
  );
});

const IMPORT = /(?:^import|\bfrom|\bimport\()\s*'([^']+)'/gm;

function importsOf(file: string): string[] {
  return [...read(file).matchAll(IMPORT)].map(([, specifier = '']) => {
    if (specifier.startsWith('node:')) return 'node';
    if (specifier.startsWith('.')) return folderOf(relative(SRC, join(SRC, dirname(file), specifier)));
    const [scope = '', name = ''] = specifier.split('/');
    return scope.startsWith('@') ? `npm:${scope}/${name}` : `npm:${scope}`;
  });
}

function folderOf(file: string): string {
  return file.includes(sep) ? (file.split(sep)[0] ?? '.') : '.';
}

function read(file: string): string {
  return readFileSync(join(SRC, file), 'utf8');
}
