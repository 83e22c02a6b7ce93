// The file in which the odd server records every line that it receives.
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import type { Message } from '../gateway-process.js';
import { Numbering } from './transcript.js';

/** Lines that a server heard, which it keeps in a file. */
export class Recording {
  readonly file: string;
  #offset = 0;

  constructor(file: string) {
    this.file = file;
  }

  /** Lines that it heard since the last time, each as it came. */
  takeLines(): string[] {
    if (!existsSync(this.file)) return [];
    const file = openSync(this.file, 'r');
    try {
      const bytes = Buffer.alloc(fstatSync(file).size - this.#offset);
      readSync(file, bytes, 0, bytes.length, this.#offset);
      this.#offset += bytes.length;
      return bytes.toString().split('\n').slice(0, -1);
    } finally {
      closeSync(file);
    }
  }

  /** The same without what a gateway asks on its own behalf, ready to be compared. */
  take(): string[] {
    const numbering = new Numbering();
    const lines = this.takeLines().filter((line) => !OWN_METHODS.has((JSON.parse(line) as Message).method));
    return lines.map((line) => numbering.of(line));
  }
}

/** Lists are read ahead, and pings are between neighbours. */
const OWN_METHODS = new Set<unknown>([
  'odd/end',
  'ping',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
]);
