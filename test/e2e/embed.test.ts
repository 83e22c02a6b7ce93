import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Place, type Running } from '../support/http-place.js';
import { copyInto } from '../support/own-copy.js';
import { fixture, guardiansOf, until } from '../support/processes.js';

const EMBEDDER = fixture('embedder.mjs');
const PACKAGES = join(import.meta.dirname, '../../node_modules');

let place: Place | undefined;
let folder: string | undefined;
afterEach(async () => {
  await place?.dispose();
  if (folder !== undefined) rmSync(folder, { recursive: true });
  [place, folder] = [undefined, undefined];
});

/** Starts a program that imports Trunkline, with a configuration of one server. */
function embed(...args: string[]): Running {
  place = new Place();
  const [, file = ''] = place.configure({ lab: place.lab() });
  return place.start([file, ...args], EMBEDDER);
}

describe('a program that imports Trunkline', () => {
  it('calls tools with clients of both SDKs, and none of what is its own is changed', async () => {
    const { code, stdout, stderr } = await embed().finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { texts, changed } = JSON.parse(stdout);
    const heard = texts.map((text: string) => JSON.parse(text).params.arguments.text);
    expect({ heard, changed }).toEqual({ heard: ['call 0', 'call 1', 'call 2'], changed: [] });
  });

  it('ends by itself after close, and no process is left', async () => {
    await embed().finished;
    expect(place?.leftovers()).toEqual([]);
  });

  it.each(['SIGKILL', 'SIGTERM'] as const)('leaves no server behind when %s ends it', async (signal) => {
    const running = embed('stay');
    await until('it has called the servers', () => running.stdout.includes('"texts"'));
    const { pid = 0 } = running.process;
    expect([place?.leftovers().length, guardiansOf(pid).length]).toEqual([expect.any(Number), 1]);
    running.process.kill(signal);
    await running.finished;
    await until('no process is left', () => place?.leftovers().length === 0);
  });

  it('gets the mistakes of a configuration as the command line prints them, with their code', async () => {
    place = new Place();
    const file = place.file('trunkline.yaml');
    writeFileSync(file, 'servers:\n  files: { comand: ls }\n  other: {}\n');
    const { stderr: printed } = await place.run(['check', '--config', file]);
    const program = place.file('program.mjs');
    symlinkSync(PACKAGES, place.file('node_modules'), 'junction');
    const built = new URL('../../dist/embed.js', import.meta.url).href;
    writeFileSync(
      program,
      `import { openTrunkline } from '${built}';
await openTrunkline(process.argv[2]).catch(({ code, message }) => console.log(JSON.stringify({ code, message })));`,
    );
    const { stdout, stderr } = await place.start([file], program).finished;
    const { code, message } = JSON.parse(stdout);
    expect({ code, text: `${message}\n`, stderr }).toEqual({ code: 'config-invalid', text: printed, stderr: '' });
  });
});

/** A program in TypeScript, which fits to the types of both SDKs. */
const PROGRAM = `
import { Client as ModernClient } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { type ConfigurationError, openTrunkline, type Trunkline } from 'trunkline';

const trunkline: Trunkline = await openTrunkline({ servers: {} }, { log: process.stderr, logLevel: 'info' });
await new Client({ name: 'program', version: '1' }).connect(trunkline.transport());
await new ModernClient({ name: 'program', version: '1' }).connect(trunkline.transport({ view: 'work' }));
export const names: readonly string[] = trunkline.status().servers.flatMap(({ tools }) => tools.exposed);
export const code: ConfigurationError['code'] = 'config-invalid';
// @ts-expect-error A number is no configuration.
await openTrunkline(3);
`;

describe('the package', () => {
  it.each([
    ['node16', 'node16'],
    ['bundler', 'esnext'],
  ])('has types for a program with the module resolution %s', (moduleResolution, module) => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-types-')));
    const packages = join(folder, 'node_modules');
    mkdirSync(join(packages, 'trunkline'), { recursive: true });
    copyInto(join(packages, 'trunkline'));
    for (const name of ['@modelcontextprotocol', '@types'])
      symlinkSync(join(PACKAGES, name), join(packages, name), 'junction');
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(folder, 'program.ts'), PROGRAM);
    const compilerOptions = {
      module,
      moduleResolution,
      target: 'es2023',
      types: ['node'],
      noEmit: true,
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: true,
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }));
    const compiler = join(PACKAGES, 'typescript/bin/tsc');
    // The compiler is a program of its own, which needs no variable of the tests.
    const check = () =>
      execFileSync(process.execPath, [compiler, '-p', '.'], { cwd: folder, env: {}, encoding: 'utf8' });
    expect(check()).toBe('');
  });
});
