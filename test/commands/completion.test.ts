import { spawnSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, Workplace } from '../cli/cli-run.js';

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.configure({ good: 'ok', more: 'ok' });
  symlinkSync(CLI, join(place.folder, 'trunkline'));
});
afterEach(() => place.dispose());

describe('completion in bash', () => {
  it('offers commands, options and servers, and leaves files to the shell', async () => {
    const { stdout: script, code } = await place.run(['completion', 'bash']);
    expect(code).toBe(0);
    place.write('completion.bash', script);
    const lines = ['che', 'check ', 'check --lo', 'check good m', 'schema --out '].map(
      (line) =>
        `COMP_WORDS=(trunkline ${line.endsWith(' ') ? `${line}''` : line}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _trunkline; echo "\${COMPREPLY[*]}"`,
    );
    const path = [place.folder, dirname(process.execPath), process.env.PATH].join(delimiter);
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', ['. ./completion.bash', ...lines].join('\n')], {
      cwd: place.folder,
      env: { ...process.env, PATH: path, HOME: place.folder },
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(stdout.split('\n')).toEqual(['check', 'good more', '--log-file', 'more', '', '']);
  });

  it('is refused for a shell that is unknown', async () => {
    const { code, stderr } = await place.run(['completion', 'tcsh']);
    expect(code).toBe(2);
    expect(stderr).toContain('Allowed choices are bash, zsh, fish.');
  });
});
