import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { VERSION } from '../../src/version.js';
import { CLI } from '../support/gateway-process.js';
import { Place } from '../support/http-place.js';
import { copyInto } from '../support/own-copy.js';
import { until } from '../support/processes.js';

const DIST = dirname(CLI);
const read = (file: string) => readFileSync(file, 'utf8');
const files = readdirSync(DIST).filter((file) => /\.c?js$/.test(file));

let place: Place | undefined;
let folder: string | undefined;
afterEach(async () => {
  await place?.dispose();
  if (folder !== undefined) rmSync(folder, { recursive: true });
  [place, folder] = [undefined, undefined];
});

describe('the built program', () => {
  it('runs from a folder of its own, also what it loads late: HTTP, the watch of files and the log', async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'trunkline-copy-')));
    place = new Place();
    const running = await place.serve({ program: copyInto(folder), args: ['-v'] });
    const client = await place.connect(running);
    expect((await client.listTools()).tools.length).toBeGreaterThan(1);
    place.configure({ lab: place.lab(), second: place.lab() });
    await until('the change is noticed', () => running.stderr.includes('"server":"second"'));
  });

  it.each(files)('%s imports nothing but Node and files of the build', (file) => {
    const specifiers = read(join(DIST, file)).matchAll(/^import .*? from "([^"]+)";$|^import "([^"]+)";$/gm);
    const imported = [...specifiers].map(([, named, bare]) => named ?? bare ?? '');
    expect(imported.filter((name) => !isBuiltin(name) && !files.includes(name.replace(/^\.\//, '')))).toEqual([]);
  });

  it('comes with the license of each package that is bundled', () => {
    const bundled = files.flatMap((file) =>
      [...read(join(DIST, file)).matchAll(/^\s*\/\/ .*node_modules\/((?:@[^/\n]+\/)?[^/\n]+)\/[^\n]*$/gm)].map(
        ([, name = '']) => name,
      ),
    );
    const licensed = read(join(DIST, 'THIRD-PARTY-LICENSES.txt')).matchAll(/^(\S+) \d\S* \([^\n]+\)\n\n(?=.*\S)/gm);
    const names = new Set([...licensed].map(([, name]) => name));
    expect(bundled).toContain('fastify');
    expect(bundled.filter((name) => !names.has(name))).toEqual([]);
  });
});

/** Loaded first: makes Node look like that of Electron, and tells what children would inherit. */
const ELECTRON = `data:text/javascript,
  Object.defineProperty(process, 'versions', { value: { ...process.versions, electron: '39.0.0' } });
  process.on('exit', () => process.stderr.write('inherited: ' + process.env.ELECTRON_RUN_AS_NODE));`;

describe('the program, run by Electron', () => {
  it('lets its own processes run as Node: the guardian on Windows, and the hub', () => {
    const { stdout, stderr } = spawnSync(process.execPath, ['--import', ELECTRON, CLI, '--version'], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
    });
    expect({ stdout: stdout.trim(), stderr }).toEqual({ stdout: VERSION, stderr: 'inherited: 1' });
  });
});
