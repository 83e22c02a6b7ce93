import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readRegularFileSync } from '../files/regular-file.js';
import { isRecord } from '../json/is-record.js';
import { parseJson } from '../json/parse-json.js';

const FINGERPRINT = /^-[0-9a-f]{32}$/;
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Names of the tools that a server with this key listed last, as far as a catalogue is cached. Neither the configuration
 * nor the client of that run is checked, so the names are good for suggestions only.
 */
export function cachedToolNames(folder: string, key: string): readonly string[] {
  const [newest] = filesOf(folder, key).sort((a, b) => b.modifiedAt - a.modifiedAt);
  if (newest === undefined) return [];
  const found = readRegularFileSync(newest.file, { maxBytes: MAX_BYTES });
  const text = found.kind === 'read' ? new TextDecoder().decode(found.bytes) : '';
  const tools = text.split('\n').flatMap((line) => toolsIn(parseJson(line)));
  return tools.flatMap((tool) => (isRecord(tool) && typeof tool.name === 'string' ? [tool.name] : []));
}

function filesOf(folder: string, key: string): { readonly file: string; readonly modifiedAt: number }[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.startsWith(key) && FINGERPRINT.test(name.slice(key.length)))
      .map((name) => join(folder, name))
      .map((file) => ({ file, modifiedAt: statSync(file).mtimeMs }));
  } catch {
    // Nothing was cached yet, or a file was removed just now.
    return [];
  }
}

/** The answers of a server are lines of the file. */
function toolsIn(line: unknown): readonly unknown[] {
  const result = isRecord(line) ? line.result : undefined;
  return isRecord(result) && Array.isArray(result.tools) ? result.tools : [];
}
