// Builds `dist`. What is loaded between the spawn and the first answers decides how long a client waits, and a few
// large files load several times faster than many small ones, so our files are bundled, and the packages that they
// import, too. What the first answers do not need stays in files of its own, behind an `import()`. `tsc` checks the types.
import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const path = (file) => fileURLToPath(new URL(file, import.meta.url));

/** What is loaded one after the other while a client waits, each with all that it needs and that is not there yet. */
const STAGES = [
  { name: 'main', test: /src\/(app|cli)\/(main|attach|usage-error|http-options|exit-codes)\.ts$/ },
  { name: 'serve', test: path('src/app/serve.ts') },
  { name: 'config', test: path('src/app/read-config.ts') },
  // In the first run only: what starts the first servers while the gateway is loaded.
  { name: 'head-start', test: path('src/app/head-start.ts') },
  { name: 'serve-clients', test: path('src/app/serve-clients.ts') },
  {
    name: 'servers',
    test: /src\/(upstream|process|app)\/(.*\/)?(stdio-dialer|legacy-dialect|orphan-guard|control-groups|spawn-helper|watch-resources)\.ts$/,
  },
  { name: 'hub-process', test: /src\/app\/(serve-hub|hub-process)\.ts$/ },
];

/**
 * Takes what we need of Node's own modules without an `import`, which reads each of a module's exports, and so loads
 * parts of Node that nobody asked for, such as the streams of `node:fs`.
 */
const lightBuiltins = {
  name: 'light-builtins',
  renderChunk: (code) =>
    code.replaceAll(/^import (\{.*\}) from ("node:[\w/]+");$/gm, (_, names, module) => {
      return `const ${names.replaceAll(' as ', ': ')} = process.getBuiltinModule(${module});`;
    }),
};

/** Packages that stay as they are installed: they are loaded after the first answers, or never. */
const NOT_BUNDLED = /^(?:fastify|chokidar|@modelcontextprotocol\/sdk)(?:\/|$)/;

/** Writes the licenses of the bundled packages, which have to be passed on with their code. */
const licenses = {
  name: 'licenses',
  generateBundle(_, files) {
    const modules = Object.values(files).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
    const folders = modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []);
    const source = [...new Set(folders)].sort().map(licenseOf).join('\n');
    this.emitFile({ type: 'asset', fileName: 'third-party-licenses.txt', source });
  },
};

function licenseOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (file === undefined) throw new Error(`${name} is bundled, but it has no license file`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n\n`;
}

/** A letter beyond Latin-1 makes Node keep all of a file in two bytes each. */
const ascii = {
  name: 'ascii',
  generateBundle: (_, files) => {
    for (const file of Object.values(files)) {
      if (file.type === 'chunk') file.code = file.code.replaceAll(/[^\0-\x7f]/g, escaped);
    }
  },
};

function escaped(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

await build({
  input: {
    cli: path('src/cli/entry.ts'),
    main: path('src/cli/main.ts'),
    serve: path('src/app/serve.ts'),
    // Runs in a thread of its own.
    'check-thread': path('src/config/check-thread.ts'),
  },
  // The first two stages and these are two files, since other files may use what stands there.
  preserveEntrySignatures: 'allow-extension',
  platform: 'node',
  external: (id) => id.startsWith('node:') || NOT_BUNDLED.test(id),
  resolve: {
    extensionAlias: { '.js': ['.ts', '.js'] },
    // Their ES modules. For Node they offer CommonJS only, which a bundler cannot shake.
    alias: {
      yaml: path('node_modules/yaml/browser/index.js'),
      'jsonc-parser': path('node_modules/jsonc-parser/lib/esm/main.js'),
    },
  },
  output: {
    dir: path('dist'),
    cleanDir: true,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    // Node reads and scans every character of a file, and keeps it for as long as it runs.
    comments: false,
    plugins: [lightBuiltins, ascii, licenses],
    codeSplitting: {
      groups: STAGES.map((stage, at) => ({ ...stage, priority: STAGES.length - at })),
    },
  },
  logLevel: 'warn',
});
chmodSync(path('dist/cli.js'), 0o755);
