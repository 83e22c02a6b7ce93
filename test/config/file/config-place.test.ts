import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/config/file/config-error.js';
import { ConfigPlace } from '../../../src/config/file/find-config.js';
import { folderWith } from '../files.js';

let folder: string;
beforeEach(() => {
  folder = folderWith();
});

describe('the place of the configuration of one run', () => {
  it('is searched once: it stays, even if the file is gone later', () => {
    const config = join(folder, 'trunkline.yaml');
    writeFileSync(config, 'servers: {}');
    const place = new ConfigPlace({ config });
    expect(place.file).toBe(config);
    renameSync(config, `${config}.old`);
    expect(place.file).toBe(config);
  });

  it('is searched again as long as there is no file', () => {
    const config = join(folder, 'trunkline.yaml');
    const place = new ConfigPlace({ config });
    expect(() => place.file).toThrow(ConfigError);
    writeFileSync(config, 'servers: {}');
    expect(place.file).toBe(config);
  });
});
