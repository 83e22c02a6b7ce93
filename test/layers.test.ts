import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

/**
 * Which folders a folder may import. `node` stands for Node's own modules, `npm:x` for a package, `.` for
 * the files at the root of `src`. A folder may always import itself. What is not listed is forbidden: a new arrow is a
 * decision, not an accident.
 */
const TEXT = ['json', 'jsonrpc', 'mcp'];
const BASE = [...TEXT, 'timing', 'errors'];
const PORTS = ['downstream', 'upstream', 'observe/events'];
const COMMANDS = ['serve', 'hub', 'calls', 'clients', 'packages', 'config', 'logins', 'doctor', 'web'];
const CONFIG = ['config/schema', 'config/file', 'config/resolve'];
/** The folders of the gateway's middle from the ground up: each may import those before it. */
const MIDDLE = ['catalog', 'dispatch', 'registry', 'routing', 'tasks', 'reverse', 'status', 'search'].map(
  (name) => `gateway/${name}`,
);

const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  // Pure text and JSON-RPC.
  json: [],
  timing: [],
  jsonrpc: ['json'],
  mcp: ['json', 'jsonrpc'],
  errors: ['jsonrpc', 'observe/events'],
  // The event bus knows the shapes of messages and of supervision, so that everybody may publish.
  'observe/events': ['json', 'spec'],
  // The words that everybody uses: the specification of a server, its state, its launch, the end of a request.
  spec: TEXT,
  // Bytes.
  io: ['json', 'jsonrpc', 'timing'],
  'io/streams': ['io', 'json', 'jsonrpc', 'timing', 'node'],
  // The clients before us.
  downstream: [...TEXT, 'timing', 'errors', 'io', 'spec'],
  'downstream/legacy': [...BASE, 'io', 'downstream', 'upstream'],
  'downstream/modern': [...BASE, 'io', 'downstream', 'upstream'],
  'downstream/stdio': [...TEXT, 'timing', 'errors', 'io', 'io/streams', 'downstream', 'node'],
  'downstream/http': [...BASE, '.', 'io', 'io/streams', 'http', 'downstream', 'observe/events', 'node', 'npm:fastify'],
  // One HTTP request to a server.
  http: ['json', 'timing', 'errors', '.', 'node', 'npm:https-proxy-agent', 'npm:proxy-from-env'],
  // Logins at remote servers. `oauth.ts` loads the SDK, with the first token. Those of a cluster are in its store.
  auth: [
    ...[
      'json',
      'timing',
      'errors',
      'files',
      'http',
      'hub',
      'supervision',
      'config/resolve',
      'upstream/http',
      'cluster',
      'state',
    ],
    ...['.', 'node', 'npm:@modelcontextprotocol/client'],
  ],
  // The users of the HTTP transport.
  users: [
    ...['json', 'timing', 'errors', 'files', 'http', 'config/file', 'config/resolve', 'downstream', 'downstream/http'],
    ...['node', 'npm:jose'],
  ],
  // The other gateways: the store that all of them share, and the requests that go to them through the port of the HTTP transport.
  // `redis-store.ts` alone loads the client of the store.
  cluster: [
    ...['json', 'mcp', 'timing', 'errors', 'files', 'http', 'config/schema', 'downstream/http', 'observe/events'],
    // Servers that run on one gateway are servers behind a URL for the others.
    ...['supervision', 'upstream', 'upstream/http', '.', 'node', 'npm:@redis/client'],
  ],
  // The servers behind us.
  upstream: [...TEXT, 'io', 'supervision'],
  'upstream/health': ['mcp', 'timing', 'upstream', 'npm:opossum'],
  'upstream/legacy': [...TEXT, 'upstream'],
  'upstream/modern': [...TEXT, 'timing', 'upstream'],
  'upstream/channel': [...BASE, 'io', 'upstream', 'upstream/health'],
  'upstream/http': [
    ...[
      ...BASE,
      'io',
      'io/streams',
      'http',
      'upstream',
      'upstream/health',
      'upstream/channel',
      'supervision',
      'process',
    ],
    'node',
  ],
  'upstream/stdio': [
    ...[
      ...BASE,
      'io',
      'io/streams',
      'observe/events',
      'upstream',
      'upstream/health',
      'upstream/channel',
      'supervision',
      'process',
      'observe',
      'node',
    ],
  ],
  // The middle: era-neutral and process-neutral.
  ...Object.fromEntries(MIDDLE.map((folder, at) => [folder, [...BASE, 'io', ...PORTS, ...MIDDLE.slice(0, at)]])),
  gateway: [...BASE, 'io', ...PORTS, ...MIDDLE],
  // What runs and keeps servers.
  supervision: ['timing', 'spec'],
  files: ['json', 'timing', 'errors', 'process', 'node', 'npm:chokidar'],
  'files/edit': ['json', 'node', 'npm:jsonc-parser', 'npm:smol-toml', 'npm:yaml'],
  process: ['json', 'timing', 'errors', 'files', 'supervision', 'node', 'npm:cross-spawn', 'npm:execa'],
  observe: ['json', 'timing', 'io', 'errors', 'observe/events', 'node', 'npm:pino'],
  'config/schema': ['json', 'http', 'npm:zod'],
  'config/file': ['config/schema', 'json', 'errors', 'files', 'node', 'npm:yaml', 'npm:zod'],
  'config/resolve': [
    'config/schema',
    'config/file',
    'json',
    'files',
    'http',
    'supervision',
    'gateway/catalog',
    'gateway/dispatch',
    'node',
    'npm:semver',
  ],
  'config/edit': [...CONFIG, 'json', 'errors', 'files', 'files/edit', 'node'],
  // Everything on disk that survives a run.
  state: [
    ...['json', 'timing', 'errors', 'mcp', 'files', 'supervision', 'upstream', 'process', 'observe'],
    ...['observe/events', 'config/file', 'config/resolve', 'downstream', 'gateway', 'gateway/catalog', '.', 'node'],
  ],
  packages: [
    ...[
      'json',
      'timing',
      'errors',
      'supervision',
      'process',
      'files',
      'config/file',
      'config/resolve',
      'state',
      'observe',
      'sandbox',
    ],
    ...['node', 'npm:semver'],
  ],
  // One set of servers for many clients.
  hub: ['errors', 'timing', 'io', 'config/file', 'gateway/status', 'node'],
  'hub/attach': [
    ...['json', 'errors', 'io', 'io/streams', 'mcp', 'config/file', 'process', 'state', 'hub', 'packages', '.', 'node'],
  ],
  'hub/server': [
    ...[...BASE, 'io', 'io/streams', 'downstream', 'downstream/stdio', 'gateway', 'gateway/status'],
    ...['gateway/registry', 'observe/events', 'config/resolve', 'record', 'hub', '.', 'node'],
  ],
  // What Prometheus reads.
  metrics: [
    ...TEXT,
    'errors',
    'timing',
    'config/schema',
    ...PORTS,
    'downstream/http',
    'gateway',
    'gateway/status',
    'node',
  ],
  // The programs before us: the files in which they keep their servers, and taking those servers over.
  'clients/files': ['json', 'errors', 'files', 'files/edit', 'node'],
  'clients/import': [
    ...CONFIG,
    'config/edit',
    'json',
    'errors',
    'files',
    'clients/files',
    'observe',
    'sandbox',
    'node',
  ],
  // Messages that passed, kept and played again.
  record: [
    ...[
      'json',
      'jsonrpc',
      'mcp',
      'metrics',
      'timing',
      'errors',
      'io',
      'config/resolve',
      'gateway',
      'observe',
      'state',
      '.',
      'node',
    ],
  ],
  // Spans of calls. `span-export.ts` loads the SDK of OpenTelemetry, if spans are sent.
  tracing: [
    ...[...TEXT, 'errors', 'downstream', 'upstream', 'gateway', 'gateway/dispatch', 'gateway/status'],
    ...['config/file', 'config/resolve', 'observe', '.', 'node'],
    ...['api', 'exporter-trace-otlp-http', 'resources', 'sdk-trace-base'].map((name) => `npm:@opentelemetry/${name}`),
  ],
  // Confining the programs of servers. The proxy of names loads the library, with the first server that may use the network.
  sandbox: [...['json', 'errors', 'files', 'process', 'supervision', 'node'], 'npm:@anthropic-ai/sandbox-runtime'],
  // What can be wrong on this machine. Each check gets what it needs; the command line hands it in.
  doctor: [
    ...[
      'json',
      'errors',
      'http',
      'mcp',
      'files',
      'files/edit',
      'config/file',
      'config/resolve',
      'config/edit',
      'clients/files',
      'packages',
      'process',
    ],
    ...['observe', 'sandbox', 'state', 'supervision', 'hub', 'gateway/status', 'gateway/search', 'cluster', 'node'],
    'npm:semver',
  ],
  // The page of `trunkline web`, in a browser. It takes types, the vocabulary of the status, and the escaping of texts.
  page: ['web', 'json', 'record', 'gateway/status', 'npm:preact', 'npm:@preact/signals'],
  // The server of `trunkline web`. It knows no hub; the command gives it a source of facts.
  web: ['json', 'timing', 'errors', 'http', 'downstream/http', 'gateway/status', 'hub', 'node'],
  // The composition root and the command line.
  app: ['*'],
  cli: ['*'],
  ...Object.fromEntries(COMMANDS.map((group) => [`cli/commands/${group}`, ['*']])),
  '.': ['node'],
};
/** Packages and folders that single gateway folders need besides. */
const EXTRA: Readonly<Record<string, readonly string[]>> = {
  'gateway/dispatch': ['upstream/health', 'npm:p-queue'],
  'gateway/routing': ['npm:@modelcontextprotocol/sdk'],
  'gateway/status': ['upstream/health', 'npm:@modelcontextprotocol/sdk'],
  'gateway/search': ['npm:@modelcontextprotocol/sdk', 'npm:stemmer'],
};

/** Folders that know neither the platform nor the time: everything they need is handed to them. */
const PURE = [
  ...['json', 'timing', 'jsonrpc', 'mcp', 'errors', 'observe/events', 'io', 'downstream', 'downstream/legacy'],
  'downstream/modern',
  ...['upstream', 'upstream/channel', 'upstream/health', 'upstream/legacy', 'upstream/modern', 'supervision'],
  ...['gateway', ...MIDDLE],
];
const PURE_FILES = [join('upstream', 'stdio', 'stdio-bridge.ts')];
const IMPURE_NAMES = /\b(?:process|Buffer|Date|performance|setTimeout|setInterval|setImmediate|console|Math\.random)\b/;

const SRC = join(import.meta.dirname, '..', 'src');
const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));

describe('the layers', () => {
  it('are all listed in the table of allowed imports', () => {
    const folders = new Set(files.map(folderOf));
    expect([...folders].sort()).toEqual(Object.keys(ALLOWED).sort());
  });

  it.each(files)('%s imports only what its folder may', (file) => {
    const folder = folderOf(file);
    const allowed = [...(ALLOWED[folder] ?? []), ...(EXTRA[folder] ?? [])];
    const forbidden = importsOf(file).filter((target) => {
      return target !== folder && target !== 'spec' && !allowed.includes('*') && !allowed.includes(target);
    });
    expect(forbidden).toEqual([]);
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
 * Files that begin a stage of the start, with folders that no file of the stage may have. A client waits for all that the static
 * imports of these files lead to, and every client of a hub has a process with those of the first one.
 */
const STAGES: readonly (readonly [file: string, later: readonly string[]])[] = [
  ['cli/main.ts', ['gateway', 'downstream', 'upstream', 'supervision', 'observe', 'config/schema', 'config/resolve']],
  [
    'app/serve.ts',
    ['gateway/dispatch', 'gateway/status', 'upstream', 'supervision', 'process', 'hub', 'config/schema'],
  ],
  [
    'app/serve-clients.ts',
    [
      ...['upstream/stdio', 'upstream/legacy', 'upstream/modern', 'upstream/http', 'downstream/http', 'cli', 'clients'],
      ...['auth', 'cluster', 'config/edit', 'doctor', 'sandbox', 'tracing', 'users', 'web'],
    ],
  ],
];

describe('the stages of the start', () => {
  it.each(STAGES)('%s waits for no file of a later stage', (file, later) => {
    const loaded = [...reachableFrom(file, relativeImports(STATIC_IMPORT))].map(folderOf);
    const isLater = (folder: string) => later.some((each) => folder === each || folder.startsWith(`${each}/`));
    expect(loaded).toContain('errors');
    expect(loaded.filter(isLater)).toEqual([]);
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
