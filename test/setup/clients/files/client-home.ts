import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ClientSystem } from '../../../../src/setup/clients/files/found-server.js';
import { folderWith } from '../../../config/files.js';

/** A home folder of its own for the running test, for the files of clients on any system. */
export class ClientHome {
  readonly folder = folderWith();

  system(platform: ClientSystem['platform'] = 'linux', rest: Partial<ClientSystem> = {}): ClientSystem {
    return { platform, home: this.folder, cwd: this.folder, env: {}, ...rest };
  }

  path(file: string): string {
    return join(this.folder, file);
  }

  write(file: string, content: string | Uint8Array, mode = 0o644): string {
    const path = this.path(file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content, { mode });
    return path;
  }
}
