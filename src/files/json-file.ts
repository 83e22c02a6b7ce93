import { parseJson } from '../json/parse-json.js';
import { readRegularFileSync } from './regular-file.js';

/** More than npm ever writes. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Reads JSON that another program has written, such as npm. `undefined` if it is missing, damaged or not a regular file. */
export function readJsonFile(file: string): unknown {
  const found = readRegularFileSync(file, { maxBytes: MAX_BYTES, followsLinks: true });
  return found.kind === 'read' ? parseJson(found.bytes.toString()) : undefined;
}
