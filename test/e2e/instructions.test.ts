import { chmodSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { until } from '../support/processes.js';

const LAB = fileURLToPath(new URL('../fixtures/servers/lab.mjs', import.meta.url));
const TOLD =
  /"[^"]*\\n- lab: tools echo, [^"]*\\n- other \(its tools keep their own names\): tools echo, [^"]*<server-instructions server=\\"lab/;

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.env.XDG_DATA_HOME = join(place.folder, 'data');
  configure();
});
afterEach(() => {
  try {
    expect(place.leftovers()).toEqual([]);
  } finally {
    place.dispose();
  }
});

const config = () => join(place.folder, 'trunkline.yaml');
const cache = () => join(place.folder, 'data', 'trunkline', 'instructions');

function configure(gateway: object = {}, more: object = {}): void {
  const lab = { command: 'node', args: [LAB, `run=${place.folder}`] };
  const servers = { lab, other: { ...lab, prefix: '' }, ...more };
  place.write('trunkline.yaml', JSON.stringify({ servers, gateway }));
}

const request = (id: number, method: string, params: object) =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
const initialize = (name: string) =>
  request(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name, version: '1' } });
const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}\n';

/** Runs until the tools are listed, and returns the answer to `initialize`. */
async function run(client = 'test'): Promise<string> {
  const { stdout, stderr, code } = await place.run([], initialize(client) + INITIALIZED + request(2, 'tools/list', {}));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout.split('\n')[0] ?? '';
}

/** A run that fills the cache. */
async function firstRun(): Promise<void> {
  expect(await run()).not.toContain('lab');
}

describe('the answer to `initialize` on stdio', () => {
  it('has the instructions of all servers from the second run on, although the first run ended with its first answers', async () => {
    await firstRun();
    expect(await run()).toMatch(TOLD);
    expect(await run()).toMatch(TOLD);
  });

  it('has them when the file was written again with the same text', async () => {
    await firstRun();
    const before = statSync(config()).ino;
    writeFileSync(`${config()}.new`, readFileSync(config()));
    renameSync(`${config()}.new`, config());
    expect(statSync(config()).ino).not.toBe(before);
    expect(await run()).toMatch(TOLD);
  });

  it('has none of a file that has changed since, such as of a server that was removed', async () => {
    await firstRun();
    const text = readFileSync(config(), 'utf8');
    // Of the same size, as when a letter is replaced.
    place.write('trunkline.yaml', text.replace('"other"', '"third"'));
    expect(await run()).not.toContain('lab');
    expect(await run()).toContain('- third');
    place.configure({ good: 'ok' });
    expect(await run()).not.toContain('lab');
    expect(await run()).toContain('- good: tools echo');
  });

  it('has those for the kind of client that asks', async () => {
    await firstRun();
    expect(await run('another')).not.toContain('lab');
    expect(await run('another')).toMatch(TOLD);
    expect(readdirSync(cache())).toHaveLength(2);
  });

  it('is as long as the configuration allows, and has nothing of servers with 0B', async () => {
    configure({ maxInstructions: '400B' });
    await firstRun();
    const { instructions } = JSON.parse(await run()).result;
    expect(instructions).toMatch(/\n- lab: tools/);
    expect(Buffer.byteLength(instructions)).toBeLessThanOrEqual(400);
    configure({ maxInstructions: '0B' });
    expect([await run(), await run()].join()).not.toContain('lab');
  });

  it('has none of a file that other users can read, or that is damaged', async () => {
    await firstRun();
    const [name = ''] = readdirSync(cache());
    const file = join(cache(), name);
    expect([statSync(cache()).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o700, 0o600]);
    chmodSync(file, 0o644);
    expect(await run()).not.toContain('lab');
    writeFileSync(file, 'rubbish');
    expect(await run()).not.toContain('lab');
    expect(await run()).toMatch(TOLD);
  });

  it('comes without them when nothing can be cached', async () => {
    place.write('data', 'a file in the place of the folder');
    for (let runs = 0; runs < 2; runs += 1) {
      const { stdout, code } = await place.run([], initialize('test') + INITIALIZED + request(2, 'tools/list', {}));
      expect(code).toBe(0);
      expect(stdout.split('\n')[0]).toContain('trunkline__status');
      expect(stdout.split('\n')[0]).not.toContain('- lab');
    }
  });

  it('has what was known when a signal ended the last run', async () => {
    const { process: running, finished } = place.start([]);
    let text = '';
    running.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    running.stdin.write(initialize('test') + INITIALIZED + request(2, 'tools/list', {}));
    await until('the tools are listed', () => text.includes('lab__echo'));
    running.kill('SIGTERM');
    await finished;
    expect(await run()).toMatch(TOLD);
  });
});
