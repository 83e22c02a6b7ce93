import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, Workplace } from '../cli/cli-run.js';

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => place.dispose());

/** A long output, and one line. */
const COMMANDS = [['schema'], ['undo']];

describe('a command whose output cannot be written', () => {
  it.each(COMMANDS)('is done when the reader has closed its end: %s', async (...args) => {
    const { process: child, finished } = place.start(args);
    child.stdin.end();
    child.stdout.destroy();
    expect(await finished).toMatchObject({ code: 0, stderr: '' });
  });

  it('F229: does all of its work when the reader has closed its end', async () => {
    const { process: child, finished } = place.start(['add', '--json', 'time', '--', 'uvx', 'time']);
    child.stdin.end();
    child.stdout.destroy();
    expect(await finished).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(join(place.folder, 'none/trunkline/trunkline.yaml'), 'utf8')).toContain('uvx');
  });

  it.runIf(process.platform === 'linux').each(COMMANDS)('says so when the disk is full: %s', (...args) => {
    const full = openSync('/dev/full', 'w');
    const env = { ...process.env, HOME: place.folder };
    const { status, stderr } = spawnSync(process.execPath, [CLI, ...args], {
      ...{ cwd: place.folder, env, encoding: 'utf8', stdio: ['ignore', full, 'pipe'] },
    });
    closeSync(full);
    expect([status, stderr]).toEqual([1, 'trunkline: cannot write to stdout: the disk is full (ENOSPC)\n']);
  });
});
