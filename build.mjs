// Builds `dist`. What is loaded between the spawn and the first answers decides how long a client waits, and a few
// large files load several times faster than many small ones, so ours are put together. What the first answers do not
// need stays in files of its own, behind an `import()`; packages stay as they are installed. `tsc` checks the types.
import { chmodSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const path = (file) => fileURLToPath(new URL(file, import.meta.url));

await build({
  input: { cli: path('src/cli.ts'), 'write-schema': path('src/config/write-schema.ts') },
  platform: 'node',
  external: (id) => id.startsWith('node:') || !/^[./]|^\w:/.test(id),
  resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
  output: {
    dir: path('dist'),
    cleanDir: true,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
  },
  logLevel: 'warn',
});
chmodSync(path('dist/cli.js'), 0o755);
