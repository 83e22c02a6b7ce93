import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { isHubWanted, memoryPair } from '../../../src/hub/attach/attach.js';
import { folderWith } from '../../config/files.js';
import { flush } from '../../support/wire.js';

describe('clients share a hub', () => {
  const isWanted = (text: string) => isHubWanted(join(folderWith({ 'trunkline.yaml': text }), 'trunkline.yaml'));

  it.each([
    'servers: {}',
    'gateway:\n  hub: auto\n',
    '{"gateway": {"hub": "auto"}}',
    '# hub: off\nservers: {}',
    'gateway: {} # not { hub: off }',
    'servers: { github: off }',
    'servers: { hub: { command: officer } }',
  ])('unless the configuration turns it off, so with %j', (text) => {
    vi.stubEnv('TRUNKLINE_HUB', '');
    expect(isWanted(text)).toBe(true);
    vi.unstubAllEnvs();
  });

  it.each(['gateway:\n  hub: off # alone\n', 'gateway: { hub: off }', '{"gateway": {"hubIdle": "1m", "hub": "off"}}'])(
    'only if the variable says so with %j',
    (text) => {
      vi.stubEnv('TRUNKLINE_HUB', '');
      expect(isWanted(text)).toBe(false);
      vi.stubEnv('TRUNKLINE_HUB', 'auto');
      expect(isWanted(text)).toBe(true);
      vi.unstubAllEnvs();
    },
  );
});

describe('two ends in one process', () => {
  it('carry bytes, which stay as they are when the writer uses its memory again', async () => {
    const [one, other] = memoryPair();
    const read: string[] = [];
    other.on('data', (chunk) => read.push(`${chunk}`));
    const memory = Buffer.from('abc');
    one.write(memory);
    memory.fill('x');
    await flush();
    expect(read).toEqual(['abc']);
  });

  it('hold the writer back while the reader reads nothing, and lose nothing', async () => {
    const [one, other] = memoryPair();
    let written = 0;
    for (let count = 0; count < 100; count += 1)
      one.write(Buffer.alloc(10_000), () => {
        written += 1;
      });
    await flush();
    expect(written).toBeLessThan(20);
    let bytes = 0;
    other.on('data', (chunk) => {
      bytes += chunk.length;
    });
    one.end();
    await new Promise((resolve) => other.once('end', resolve));
    expect([written, bytes]).toEqual([100, 1_000_000]);
  });

  it('end one by one, and are destroyed together', async () => {
    const [one, other] = memoryPair();
    const ends: string[] = [];
    other.on('end', () => ends.push('other ended')).resume();
    one.on('data', (chunk) => ends.push(`${chunk}`));
    one.on('close', () => ends.push('one closed'));
    one.end();
    await flush();
    other.write('last');
    await flush();
    other.destroy();
    await flush();
    expect(ends).toEqual(['other ended', 'last', 'one closed']);
  });
});
