// Builds `dist`. What is loaded between the spawn and the first answers decides how long a client waits, and a few
// large files load several times faster than many small ones, so ours are put together. What the first answers do not
// need stays in files of its own, behind an `import()`; packages stay as they are installed. `tsc` checks the types.
import { chmodSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const path = (file) => fileURLToPath(new URL(file, import.meta.url));

/** What is loaded one after the other while a client waits, each with all that it needs and that is not there yet. */
const STAGES = [
  { name: 'serve', test: /src\/(app|cli)\/(serve|usage-error|http-options)\.ts$/ },
  { name: 'serve-clients', test: path('src/app/serve-clients.ts') },
  { name: 'servers', test: /src\/(upstream\/(stdio|legacy)|process)\/(stdio-dialer|legacy-dialect|orphan-guard)\.ts$/ },
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

/** A letter beyond Latin-1 makes Node keep all of a file in two bytes each. */
const ascii = {
  name: 'ascii',
  generateBundle: (_, files) => {
    for (const file of Object.values(files)) file.code = file.code.replaceAll(/[^\0-\x7f]/g, escaped);
  },
};

function escaped(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

await build({
  input: { cli: path('src/cli/main.ts') },
  platform: 'node',
  external: (id) => id.startsWith('node:') || !/^[./]|^\w:/.test(id),
  resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
  output: {
    dir: path('dist'),
    cleanDir: true,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    // Node reads and scans every character of a file, and keeps it for as long as it runs.
    comments: false,
    plugins: [lightBuiltins, ascii],
    codeSplitting: {
      groups: STAGES.map((stage, at) => ({ ...stage, priority: STAGES.length - at })),
    },
  },
  logLevel: 'warn',
});
chmodSync(path('dist/cli.js'), 0o755);
