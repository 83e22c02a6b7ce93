// A copy of the built program, as another installation of it would be.
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CLI } from './gateway-process.js';

/** Puts the built program into a folder, with what it needs to run, perhaps as another version. Returns the program. */
export function copyInto(folder: string, version?: string): string {
  const manifest = join(import.meta.dirname, '../../package.json');
  const content = JSON.parse(readFileSync(manifest, 'utf8'));
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify(version === undefined ? content : { ...content, version }),
  );
  cpSync(dirname(CLI), join(folder, 'dist'), { recursive: true });
  for (const name of Object.keys(content.dependencies)) {
    const link = join(folder, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(dirname(manifest), 'node_modules', name), link);
  }
  return join(folder, 'dist/cli.js');
}
