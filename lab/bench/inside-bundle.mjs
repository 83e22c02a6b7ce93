import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const PROGRAM = fileURLToPath(new URL('inside-program.mjs', import.meta.url));

/**
 * Puts what measures together with the code of a checkout, which needs its packages but no `dist`: that hides what is
 * measured. Resolves with the program's file.
 */
export async function bundle(checkout, folder, program = PROGRAM) {
  await build({
    input: program,
    platform: 'node',
    plugins: [sourceOf(checkout)],
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    output: { dir: folder, format: 'esm', entryFileNames: '[name].mjs', chunkFileNames: '[name].mjs', comments: false },
    logLevel: 'warn',
  });
  return join(folder, basename(program));
}

/** What is imported from `../../src` is taken from this checkout. */
function sourceOf(checkout) {
  return {
    name: 'source-of-checkout',
    resolveId: (id) =>
      id.startsWith('../../src/') ? resolve(checkout, id.slice(6).replace(/\.js$/, '.ts')) : undefined,
  };
}
