import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

const SYSTEMD = join(import.meta.dirname, '../../deploy/systemd');

it.each([
  ['trunkline.service', []],
  ['user/trunkline.service', ['--user']],
])('systemd accepts every directive of %s', (file, more) => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-unit-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const copy = join(folder, 'trunkline.service');
  // The program is not installed here.
  writeFileSync(copy, readFileSync(join(SYSTEMD, file), 'utf8').replace('ExecStart=trunkline', 'ExecStart=sh'));
  const env = { ...process.env, XDG_RUNTIME_DIR: folder };
  const args = ['verify', '--man=no', ...more, copy];
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, { env, encoding: 'utf8' });
  expect([status, stdout + stderr]).toEqual([0, '']);
});
