import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The version of this package, as in its package.json. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
).version;

export const OWN_FOLDER = fileURLToPath(new URL('..', import.meta.url));

/** The gateway's description of itself, for clients and servers. */
export const IDENTITY = { name: 'trunkline', title: 'Trunkline', version: VERSION };
