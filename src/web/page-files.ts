import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A file of the page, ready to send. */
export interface PageFile {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
};

const DOCUMENT = 'index.html';

/**
 * Files that the build made, each with a compressed copy. Names of files other than the document contain a hash of their content,
 * so a browser may keep them. Only listed files are sent, so no path leads out of the folder.
 */
export class PageFiles {
  readonly #folder: string;
  readonly #names: ReadonlySet<string>;

  constructor(folder: string) {
    this.#folder = folder;
    this.#names = new Set(readdirSync(folder).filter((name) => typeOf(name) !== undefined));
  }

  has(path: string): boolean {
    return this.#names.has(nameOf(path));
  }

  read(path: string, isCompressed: boolean): PageFile {
    const name = nameOf(path);
    const cache = name === DOCUMENT ? 'no-cache' : 'public, max-age=31536000, immutable';
    const headers = { 'Content-Type': typeOf(name) ?? '', 'Cache-Control': cache, Vary: 'Accept-Encoding' };
    const body = readFileSync(join(this.#folder, isCompressed ? `${name}.gz` : name));
    return { body, headers: isCompressed ? { ...headers, 'Content-Encoding': 'gzip' } : headers };
  }
}

function nameOf(path: string): string {
  // The document has one address, because `Sec-Fetch-Site: none` is allowed there only.
  return path === '/' ? DOCUMENT : path === `/${DOCUMENT}` ? '' : path.slice(1);
}

function typeOf(name: string): string | undefined {
  return TYPES[name.split('.').at(-1) ?? ''];
}
