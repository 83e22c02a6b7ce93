// Adds to package-lock.json the packages of other platforms that npm left out, so that `npm ci` works on every platform.
// npm leaves out an optional package when the registry does not have it at that moment; some mirrors get the packages of
// other platforms later. Such an entry has no integrity: npm adds it when it installs the package.
// Run it after `npm install` with `npm run lock:complete`. test/package/lock.test.ts tells when that is necessary.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { entryFor, missingPlatforms } from './lock-platforms.mjs';

const FILE = fileURLToPath(new URL('../package-lock.json', import.meta.url));
const lock = JSON.parse(readFileSync(FILE, 'utf8'));
const missing = missingPlatforms(lock.packages);
for (const each of missing) lock.packages[`node_modules/${each.name}`] = entryFor(each);
const sorted = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en'));
lock.packages = Object.fromEntries(sorted);
writeFileSync(FILE, `${JSON.stringify(lock, undefined, 2)}\n`);
process.stdout.write(`${missing.length} packages were added to package-lock.json.\n`);
