// Builds one module of `src` for tests that run it in a process of its own.
import { mkdtempSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'rolldown';

/** One module of `src`, with all that it imports, as a file that Node itself can run. Resolves with its URL. */
export async function builtModule(path: string): Promise<string> {
  const file = join(realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-'))), 'module.mjs');
  await build({
    input: join(import.meta.dirname, '../../src', path),
    platform: 'node',
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    output: { file, codeSplitting: false },
    logLevel: 'silent',
  });
  return pathToFileURL(file).href;
}
