import { createHmac } from 'node:crypto';
import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CheckedFile } from '../config/file/check-file.js';
import { openBytes, sealBytes } from '../host/sealed-bytes.js';
import { VERSION } from '../version.js';
import type { CacheFolder } from './cache-folder.js';

export interface ConfigCacheOptions {
  readonly folder: CacheFolder;
  readonly secret: string;
  /** Called when a file is written, to store the secret, because without it no file can be read. */
  readonly onCached: () => void;
}

/** Associated data of the encryption. It is empty, because each key belongs to one text. */
const BOUND = Buffer.alloc(0);

/**
 * Caches checked configurations on disk, so that a start with an unchanged configuration file skips the check.
 *
 * Each entry is encrypted with a key that is derived from the text of the file, because a configuration can contain secrets.
 * When the owner removes a secret from the file, the entry cannot be read any more.
 */
export class ConfigCache {
  readonly #options: ConfigCacheOptions;

  constructor(options: ConfigCacheOptions) {
    this.#options = options;
  }

  /** The checked configuration of the file, if it was cached for this text and this build. */
  find(file: string, text: string): CheckedFile | undefined {
    const sealed = this.#options.folder.read(this.#nameOf(file));
    const opened = sealed && openBytes([this.#keyOf(text)], sealed, BOUND);
    // If the entry cannot be opened, the text or Trunkline has changed, or the entry is damaged. Then the file is checked again.
    return opened && (JSON.parse(opened.toString()) as CheckedFile);
  }

  put(file: string, text: string, checked: CheckedFile): void {
    this.#options.onCached();
    const sealed = sealBytes([this.#keyOf(text)], Buffer.from(JSON.stringify(checked)), BOUND);
    this.#options.folder.write(this.#nameOf(file), sealed);
  }

  #nameOf(file: string): string {
    return this.#mac(`name of a checked configuration\0${file}`).toString('hex').slice(0, NAME_LENGTH);
  }

  #keyOf(text: string): Buffer {
    return this.#mac(`checked configuration\0${VERSION} ${builtAt()}\0${text}`);
  }

  #mac(text: string): Buffer {
    return createHmac('sha256', this.#options.secret).update(text).digest();
  }
}

const NAME_LENGTH = 32;

/** The time of the build, because in a clone of the repository the code changes without a new version. */
function builtAt(): number {
  return statSync(fileURLToPath(import.meta.url)).mtimeMs;
}
