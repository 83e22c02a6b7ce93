// A copy of the built program, as another installation of it would be.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CLI } from './gateway-process.js';

/** Puts the built program into a folder, perhaps as another version. Returns the program. It needs no other package. */
export function copyInto(folder: string, version?: string): string {
  const manifest = join(import.meta.dirname, '../../package.json');
  const content = JSON.parse(readFileSync(manifest, 'utf8'));
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify(version === undefined ? content : { ...content, version }),
  );
  cpSync(dirname(CLI), join(folder, 'dist'), { recursive: true });
  return join(folder, 'dist/cli.js');
}
