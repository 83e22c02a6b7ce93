import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

/**
 * The rooms of the house from the ground up. A file may import its own room and those on earlier lines, never one on the same line or
 * above. `docs/architecture.md` says what each room is.
 */
const FLOORS: readonly (readonly string[])[] = [
  ['spec', 'wire'],
  ['host'],
  ['config'],
  ['downstream', 'servers'],
  ['upstream'],
  ['gateway'],
  ['status', 'state'],
  ['extras'],
  ['hub'],
  ['web', 'setup'],
  // The composition root and the command line.
  ['app'],
  ['cli'],
];

/**
 * The folders of a room from the ground up; `.` is the room itself. Folders on one line do not import each other. The commands of the
 * command line may, because one does what others offer.
 */
const FOLDERS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  wire: [['json', 'timing'], ['jsonrpc'], ['mcp', 'io'], ['io/streams']],
  host: [['.', 'observe/events'], ['errors'], ['files', 'files/edit', 'http'], ['observe'], ['process']],
  config: [['rules'], ['schema'], ['file'], ['resolve'], ['edit']],
  downstream: [['.'], ['legacy', 'modern', 'stdio', 'http'], ['users']],
  servers: [['supervision', 'process'], ['sandbox'], ['packages']],
  upstream: [['.'], ['health'], ['channel'], ['legacy', 'modern', 'stdio', 'http'], ['auth']],
  gateway: [['catalog'], ['dispatch'], ['registry'], ['routing'], ['tasks', 'search'], ['reverse'], ['.']],
  // A feature knows no other one.
  extras: [
    ['.'],
    [
      'asking',
      'cluster',
      'exchange',
      'front',
      'interceptors',
      'user-logins',
      'large-results',
      'metrics',
      'tracing',
      'record',
    ],
  ],
  hub: [['.'], ['attach', 'server']],
  web: [['server'], ['page']],
  setup: [['clients/files'], ['clients/import', 'doctor']],
  cli: [
    [
      '.',
      ...['serve', 'hub', 'calls', 'clients', 'packages', 'config', 'logins', 'doctor', 'web'].map(
        (name) => `commands/${name}`,
      ),
    ],
  ],
};

/** All folders from the ground up. */
const PLAN = FLOORS.flatMap((rooms) => {
  const inner = rooms.map((room) =>
    (FOLDERS[room] ?? [['.']]).map((line) => line.map((folder) => posix.join(room, folder))),
  );
  return Array.from({ length: Math.max(...inner.map((lines) => lines.length)) }, (_, at) =>
    inner.flatMap((lines) => lines[at] ?? []),
  );
});

/** The folders that may import a package. All others import none. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  execa: ['host/process', 'config/resolve', 'servers/process', 'cli'],
  fastify: ['downstream/http'],
  'https-proxy-agent': ['host/http'],
  jose: ['downstream/users'],
  'jsonc-parser': ['host/files/edit', 'cli'],
  // Only with the first token of a login.
  '@modelcontextprotocol/client': ['upstream/auth'],
  // Types, and the client of `trunkline call`.
  '@modelcontextprotocol/sdk': ['gateway/routing', 'gateway/search', 'status', 'cli'],
  opossum: ['upstream/health', 'app'],
  'p-queue': ['gateway/dispatch', 'app', 'cli'],
  pino: ['host/observe'],
  preact: ['web/page'],
  '@preact/signals': ['web/page'],
  'proxy-from-env': ['host/http'],
  // Only with the first span, the first request to a store, and the first confined server that may use the network.
  ...Object.fromEntries(
    ['api', 'exporter-trace-otlp-http', 'resources', 'sdk-trace-base'].map((name) => [
      `@opentelemetry/${name}`,
      ['extras/tracing'],
    ]),
  ),
  '@redis/client': ['extras/cluster'],
  '@anthropic-ai/sandbox-runtime': ['servers/sandbox'],
  semver: ['config/resolve', 'servers/packages', 'setup/doctor', 'cli'],
  'smol-toml': ['host/files/edit'],
  stemmer: ['gateway/search'],
  yaml: ['config/file', 'host/files/edit'],
  zod: ['config/schema', 'config/file'],
  ...Object.fromEntries(
    ['@clack/prompts', 'cli-truncate', 'commander', 'diff', 'string-width'].map((name) => [name, ['cli']]),
  ),
};

/** The page runs in a browser. It takes types, the vocabulary of the status, and the escaping of texts. */
const OF_PAGE = ['web/server', 'wire/json', 'extras/record', 'status'];

/** Folders that know neither the platform nor the time: everything they need is handed to them. */
const PURE = [
  ...[
    'spec',
    'wire/json',
    'wire/timing',
    'wire/jsonrpc',
    'wire/mcp',
    'wire/io',
    'host/errors',
    'host/observe/events',
    'config/rules',
    'config/schema',
  ],
  ...['downstream', 'downstream/legacy', 'downstream/modern', 'servers/supervision'],
  ...['upstream', 'upstream/channel', 'upstream/health', 'upstream/legacy', 'upstream/modern', 'status'],
  ...(FOLDERS.gateway ?? []).flat().map((folder) => (folder === '.' ? 'gateway' : `gateway/${folder}`)),
];
const PURE_FILES = [join('upstream', 'stdio', 'stdio-bridge.ts')];
const IMPURE_NAMES = /\b(?:process|Buffer|Date|performance|setTimeout|setInterval|setImmediate|console|Math\.random)\b/;

const SRC = join(import.meta.dirname, '..', 'src');
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));

describe('the rooms', () => {
  it('and their folders are those of the plan', () => {
    expect([...new Set(files.map(folderOf))].sort()).toEqual(['.', ...PLAN.flat().filter(hasFiles)].sort());
  });

  it.each(files)('%s imports only what is below it', (file) => {
    expect(importsOf(file).filter((target) => !mayImport(folderOf(file), target))).toEqual([]);
  });

  it.each(files.filter((file) => PURE.includes(folderOf(file)) || PURE_FILES.includes(file)))(
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

/**
 * Files that begin a stage of the start, with the folders and files that load later. A client waits for all that the static
 * imports of these files lead to, and every client of a hub has a process with those of the first one.
 */
const STAGES: readonly (readonly [file: string, later: readonly string[]])[] = [
  [
    'cli/main.ts',
    [
      'gateway',
      'status',
      'downstream',
      'upstream',
      'servers/supervision',
      'host/observe',
      'config/schema',
      'config/resolve',
    ],
  ],
  [
    'app/serve.ts',
    [
      'gateway/dispatch',
      'status',
      'upstream',
      'servers/supervision',
      'servers/process',
      'host/process',
      'hub',
      'config/schema',
    ],
  ],
  [
    'app/serve-clients.ts',
    [
      ...['upstream/stdio', 'upstream/legacy', 'upstream/modern', 'upstream/http', 'upstream/auth', 'downstream/http'],
      ...[
        'downstream/users',
        'extras/cluster',
        'extras/front',
        'extras/user-logins',
        'extras/tracing/span-export',
        'config/edit',
        'servers/sandbox',
        'setup',
        'web',
        'cli',
      ],
    ],
  ],
];

describe('the stages of the start', () => {
  it.each(STAGES)('%s waits for no file of a later stage', (file, later) => {
    const loaded = [...reachableFrom(join(file), relativeImports(STATIC_IMPORT))].map((name) =>
      name.replaceAll(sep, '/'),
    );
    const isLater = (name: string) => later.some((each) => name.startsWith(`${each}/`) || name === `${each}.ts`);
    expect(loaded.some((name) => name.startsWith('host/errors/'))).toBe(true);
    expect(loaded.filter(isLater)).toEqual([]);
  });
});

describe('the helpers of tests', () => {
  it('register no hook when they are loaded, because a worker loads them once for many files', () => {
    const names = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' });
    const helpers = names.filter((name) => /(?<!\.test)\.ts$/.test(name));
    const texts = helpers.map((name) => [name, readFileSync(join(import.meta.dirname, name), 'utf8')] as const);
    expect(texts.filter(([, text]) => /^(?:before|after)(?:Each|All)\(/m.test(text)).map(([name]) => name)).toEqual([]);
  });
});

describe('the files', () => {
  it('never import each other in a circle, not even for types', () => {
    expect(circles()).toEqual([]);
  });
});

/** An import that is loaded with its file, and is more than types. */
const STATIC_IMPORT = /^(?:import (?!type )(?:[^;]*? from )?|export (?!type )[^;]*? from )'([^'\n]+)'/gm;
const IMPORT = /(?:^import |^(?:\} |import .*|export .*)from |\bimport\()'([^'\n]+)'/gm;

/** `node` stands for Node's own modules, `npm:x` for a package, `.` for the files at the root of `src`. */
function mayImport(folder: string, target: string): boolean {
  if (target === folder) return true;
  if (target === 'node') return folder !== 'web/page' && !PURE.includes(folder);
  if (target.startsWith('npm:'))
    return PACKAGES[target.slice(4)]?.some((each) => `${folder}/`.startsWith(`${each}/`)) ?? false;
  if (folder === 'web/page') return OF_PAGE.includes(target);
  if (target === '.') return !PURE.includes(folder);
  const [room, other] = [folder, target].map((each) => each.split('/')[0]);
  if (room === other) return room === 'cli' || floorOf(PLAN, target) < floorOf(PLAN, folder);
  return floorOf(FLOORS, `${other}`) < floorOf(FLOORS, `${room}`);
}

function floorOf(floors: readonly (readonly string[])[], name: string): number {
  return floors.findIndex((floor) => floor.includes(name));
}

function hasFiles(folder: string): boolean {
  return files.some((file) => folderOf(file) === folder);
}

function importsOf(file: string): string[] {
  return specifiersOf(file).map((specifier) => {
    if (specifier.startsWith('node:')) return 'node';
    if (specifier.startsWith('.')) return folderOf(relative(SRC, join(SRC, dirname(file), specifier)));
    const [scope = '', name = ''] = specifier.split('/');
    return scope.startsWith('@') ? `npm:${scope}/${name}` : `npm:${scope}`;
  });
}

/** The files of `src` that each file imports. */
function relativeImports(pattern: RegExp): ReadonlyMap<string, readonly string[]> {
  return new Map(
    files.map((file) => {
      const own = specifiersOf(file, pattern).filter((specifier) => specifier.startsWith('.'));
      return [file, own.map((specifier) => sourceOf(join(dirname(file), specifier)))];
    }),
  );
}

/** Groups of files that reach each other through imports, each sorted. A dynamic import loads later and counts too. */
function circles(): string[][] {
  const imports = relativeImports(IMPORT);
  const reach = new Map(files.map((file) => [file, reachableFrom(file, imports)]));
  const found = new Set<string>();
  for (const [file, others] of reach) {
    const circle = [...others].filter((other) => reach.get(other)?.has(file));
    if (circle.length > 0) found.add([...new Set([file, ...circle])].sort().join(' '));
  }
  return [...found].map((circle) => circle.split(' '));
}

function sourceOf(imported: string): string {
  const source = imported.replace(/\.js$/, '.ts');
  return files.includes(source) ? source : `${source}x`;
}

function reachableFrom(file: string, imports: ReadonlyMap<string, readonly string[]>): Set<string> {
  const reached = new Set<string>();
  const open = [...(imports.get(file) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    open.push(...(imports.get(next) ?? []));
  }
  return reached;
}

function specifiersOf(file: string, pattern = IMPORT): string[] {
  return [...read(file).matchAll(pattern)].map(([, specifier = '']) => specifier);
}

/** The folder of a file; `.` at the root. */
function folderOf(file: string): string {
  return file.split(sep).slice(0, -1).join('/') || '.';
}

function read(file: string): string {
  return readFileSync(join(SRC, file), 'utf8');
}
