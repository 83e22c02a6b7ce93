// Runs before `npm publish`, and stops it while the name for the official registry is a placeholder: the registry reads the
// name from the published package, where it cannot be corrected any more.
import { readFileSync } from 'node:fs';
import { registryNameFault } from './registry-name.mjs';

const read = (file) => JSON.parse(readFileSync(new URL(`../${file}`, import.meta.url), 'utf8'));

const fault = registryNameFault(read('package.json'), read('server.json'));
if (fault !== undefined) {
  process.stderr.write(`Not published: ${fault}\n`);
  process.exitCode = 1;
}
