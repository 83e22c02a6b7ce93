import { statSync } from 'node:fs';

/** What tells whether a configuration file is the same as in an earlier run. */
export interface Stamp {
  /** See `stateOf`. Of the time before the file was read. */
  readonly state: string;
  /** Of the text. It is derived from secrets in the file, so it must not be stored as it is. */
  readonly checksum: number;
}

/** A text that changes with every write of the file, and when another file takes its place. */
export function stateOf(file: string): string | undefined {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join('-');
  } catch {
    // The file is missing, or its folder is not accessible.
    return undefined;
  }
}

/** FNV-1a with 32 bits. It needs no code that the start of Trunkline would have to load. */
export function checksumOf(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 0;
}
