import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { until } from '../support/processes.js';
import { startAtTerminal } from '../support/terminal.js';

it('F382: a person trusts the text that was shown, not one that comes into the file while the question waits', async () => {
  const place = new Workplace();
  onTestFinished(() => place.dispose());
  const file = join(place.folder, 'shop/trunkline.yaml');
  mkdirSync(join(place.folder, 'shop'));
  writeFileSync(file, 'servers: { db: { command: seen } }\n');
  const { process, shown, ended } = startAtTerminal(place, 'trust shop');
  await until('it asks', () => shown().includes('as shown'));
  writeFileSync(file, 'servers: { db: { command: swapped } }\n');
  process.stdin.write('y');
  expect(await ended).toBe(0);
  const { stdout } = await place.run(['trust', 'shop']);
  expect(stdout).toMatch(/- servers: \{ db: \{ command: seen \} \}\n *\+ servers: \{ db: \{ command: swapped \} \}/);
});
