import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/** A file of the page, with the compressed copy that the build made. */
interface PageFile {
  readonly headers: Readonly<Record<string, string>>;
  readonly plain: Buffer;
  readonly gzip: Buffer;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/**
 * Reads the files of the page, by the path of their address. Names of files other than the document contain a hash of their content,
 * so a browser may keep them.
 */
export function readPageFiles(folder: string): ReadonlyMap<string, PageFile> {
  const names = readdirSync(folder).filter((name) => extname(name) in TYPES);
  const files = names.map((name): [string, PageFile] => {
    const isDocument = name === 'index.html';
    const headers = {
      'Content-Type': TYPES[extname(name)] ?? '',
      'Cache-Control': isDocument ? 'no-cache' : 'public, max-age=31536000, immutable',
      Vary: 'Accept-Encoding',
    };
    const plain = readFileSync(join(folder, name));
    const gzip = readFileSync(join(folder, `${name}.gz`));
    // The document has one address, because `Sec-Fetch-Site: none` is allowed there only.
    return [isDocument ? '/' : `/${name}`, { headers, plain, gzip }];
  });
  return new Map(files);
}
