import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { WITHOUT_TASKS } from '../../src/process/garbage-collection.js';

it('is told to go without tasks of its own in words that this engine knows', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [WITHOUT_TASKS, '--eval', 'console.log(1)']);
  expect([stdout, stderr]).toEqual(['1\n', '']);
});
