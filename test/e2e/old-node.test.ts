import { readFileSync } from 'node:fs';
import { runInNewContext, Script } from 'node:vm';
import { transformSync } from 'rolldown/utils';
import { describe, expect, it } from 'vitest';
import { CLI } from '../support/gateway-process.js';
import { flush } from '../support/wire.js';

/** The built program. */
const PROGRAM = readFileSync(CLI, 'utf8').replace(/^#!.*/, '');

/** Runs the program on this version of Node. Nothing can be loaded there, so an attempt counts as a start. */
async function runOn(version: string): Promise<{ stderr: string; exitCode: number | undefined; hasStarted: boolean }> {
  const written: string[] = [];
  const fake = {
    versions: { node: version },
    execPath: '/opt/old/bin/node',
    exitCode: undefined,
    stderr: { write: (text: string) => written.push(text) },
  };
  let hasStarted = false;
  const start = () => {
    hasStarted = true;
    return { main: () => {} };
  };
  runInNewContext(PROGRAM, { process: fake, require: start });
  await flush();
  return { stderr: written.join(''), exitCode: fake.exitCode, hasStarted };
}

describe('the program on an old version of Node', () => {
  it.each(['10.24.1', '16.20.2', '18.20.8', '20.0.0', '20.18.3', '21.7.3', '22.2.0'])(
    'says on %s in one line which Node it needs, which one runs and where that is',
    async (version) => {
      expect(await runOn(version)).toEqual({
        stderr: `trunkline: Trunkline needs Node.js 20.19+ or 22.3+, but this is ${version} (/opt/old/bin/node); install a newer Node.js, or start Trunkline with the full path of a newer one\n`,
        exitCode: 2,
        hasStarted: false,
      });
    },
  );

  it.each(['20.19.0', '20.20.2', '22.3.0', '22.22.0', '23.0.0', '24.21.0', '100.0.0-nightly20260101'])(
    'starts on %s without a word',
    async (version) => expect(await runOn(version)).toEqual({ stderr: '', exitCode: undefined, hasStarted: true }),
  );

  it('supports the versions that package.json declares', () => {
    const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(engines.node).toBe('^20.19.0 || >=22.3.0');
  });

  it('can be read: a script in the JavaScript of 2015', () => {
    expect(() => new Script(PROGRAM)).not.toThrow();
    const { code: old } = transformSync('cli.js', PROGRAM, { target: 'es2015' });
    const { code: same } = transformSync('cli.js', PROGRAM, { target: 'esnext' });
    expect(old).toBe(same);
  });
});
