import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Installing } from './installing.js';

let place: Installing;
beforeEach(async () => {
  place = await Installing.open();
});
afterEach(() => place.registry.close());

describe('the installation of a confined server', () => {
  it.each([
    [false, { sees: true, writes: true, variable: 'hunter2' }],
    [true, { sees: false, writes: false, variable: '' }],
  ])('%j: keeps its scripts from the files and variables of the user', async (isConfined, expected) => {
    const [secret, written] = [join(place.home, 'id_rsa'), join(place.folder, 'written')];
    writeFileSync(secret, 'the key');
    const script = `cat ${secret} > seen; echo x > ${written}; echo $SECRET > variable; echo x > $HOME/own; true`;
    place.registry.publish('tool', { version: '1.0.0', installScript: script });
    const { into, installed } = await place.install({ isConfined, installScripts: true });
    const textOf = (name: string) => readFileSync(join(into, 'node_modules', 'tool', name), 'utf8').trim();
    expect({ sees: textOf('seen') === 'the key', writes: existsSync(written), variable: textOf('variable') }).toEqual(
      expected,
    );
    expect(installed.version).toBe('1.0.0');
    // Its home folder is gone, and the cache of the user is as it was.
    expect(existsSync(join(place.home, 'own'))).toBe(!isConfined);
    expect(readdirSync(place.folder).filter((name) => name.endsWith('-home'))).toEqual([]);
    expect(existsSync(join(place.folder, 'npm-cache', '_cacache'))).toBe(!isConfined);
  });

  it('has the settings of npm, and the variables that they name', async () => {
    writeFileSync(join(place.folder, 'npmrc'), `registry=\${REGISTRY_URL}\n`);
    place.registry.publish('tool', { version: '1.0.0' });
    const env = { npm_config_registry: '' };
    expect((await place.install({ isConfined: true, env })).installed.version).toBe('1.0.0');
  });
});
