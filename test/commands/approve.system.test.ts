import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { FAULTY } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';
import { startAtTerminal } from '../support/terminal.js';

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  const file = join(place.folder, 'tools.json');
  const tools = ['edit', 'change'].map((name) => ({ name, inputSchema: { type: 'object' } }));
  writeFileSync(file, JSON.stringify(tools));
  const entry = { command: 'node', args: [FAULTY, `list=file:${file}`, `run=${place.folder}`], approval: 'required' };
  place.configure({ f: entry });
});
afterEach(() => place.dispose());

describe('trunkline approve', () => {
  it('asks about each tool at a terminal, and saves a no', async () => {
    const { process, shown, ended } = startAtTerminal(place, 'approve');
    await until('it asks', () => shown().includes('Approve edit of f?'));
    process.stdin.write('y');
    await until('it asks again', () => shown().includes('Approve change of f?'));
    process.stdin.write('\r');
    expect(await ended).toBe(1);
    expect(shown()).toContain('f: edit is approved');
    expect(shown()).toContain('f: change is not approved');
    const { stdout } = await place.run(['tools', 'f']);
    expect(stdout).toMatch(/^f__edit +f/m);
    expect(stdout).toMatch(/^change +f +new, not approved yet$/m);
  });
});
