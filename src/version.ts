import { readFileSync } from 'node:fs';

/** The version of this package, as in its package.json. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
).version;

/** Who we say we are, to clients and to servers. */
export const IDENTITY = { name: 'trunkline', title: 'Trunkline', version: VERSION };
