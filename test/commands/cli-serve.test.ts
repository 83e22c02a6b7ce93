import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { LAB } from '../support/gateway-process.js';
import { until } from '../support/processes.js';

const INITIALIZE = request(1, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
});

const INITIALIZED = `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`;

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
});
afterEach(() => {
  try {
    expect(place.leftovers()).toEqual([]);
  } finally {
    place.dispose();
  }
});

// `test/app/run-to-end.test.ts` proves the deadline of three seconds, on a clock of its own.
describe('serve', () => {
  it('F15: ends the servers that ignore everything when its stdin ends', async () => {
    place.configure({ stubborn: 'ignores-the-end', mute: 'never-answers' });
    const { process: running, finished } = place.start(['serve']);
    await until('both servers run', () => place.leftovers().length === 2);
    running.stdin.end();
    expect(await finished).toMatchObject({ code: 0, stdout: '' });
  });

  it('answers what was written before its stdin ended, although a server takes longer to start than the drain', async () => {
    place.configure({ slow: lab('slow=2300') });
    const calls = Array.from({ length: 20 }, (_, at) => call(at + 3, 'slow__echo', {}));
    const messages = [INITIALIZE, INITIALIZED, request(2, 'tools/list', {}), ...calls];
    const { code, stdout, stderr } = await place.run([], messages.join(''));
    const ids = stdout
      .trim()
      .split('\n')
      // The lists change if the server starts after the answer to the request for them.
      .flatMap((line) => JSON.parse(line).id ?? []);
    expect(ids.sort((a, b) => a - b)).toEqual(Array.from({ length: 22 }, (_, at) => at + 1));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('answers all calls of a pipe that has ended, also those that take longer than the drain', async () => {
    place.configure({ lab: lab() });
    const messages = [
      INITIALIZE,
      INITIALIZED,
      call(2, 'lab__wait', { delayMs: 2_500, marker: 'late' }),
      call(3, 'lab__echo', {}),
    ];
    const { code, stdout } = await place.run([], messages.join(''));
    expect([code, stdout.match(/(?<="id": ?)\d+/g)]).toEqual([0, ['1', '3', '2']]);
  });

  it('serves and ends in a folder that was removed, as a client works that has changed a branch', async () => {
    place.configure({ lab: lab() });
    const gone = join(place.folder, 'gone');
    mkdirSync(gone);
    const config = join(place.folder, 'trunkline.yaml');
    const script = 'cd "$1" && rmdir "$1" && exec "$2" "$3" --config "$4" --no-hub';
    const { status, stdout, stderr } = spawnSync('sh', ['-c', script, '', gone, process.execPath, place.cli, config], {
      env: { ...process.env, HOME: place.folder },
      input: [INITIALIZE, INITIALIZED, call(2, 'lab__die', {})].join(''),
      encoding: 'utf8',
    });
    expect(stdout).toContain('"reason":"child_exited"');
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.not.stringContaining('internal error') });
  });

  it('runs no command of a repository in which a client starts it, and serves the servers of the user', async () => {
    const proof = join(place.folder, 'ran');
    const hostile = { command: process.execPath, args: ['-e', `require('node:fs').writeFileSync('${proof}', '')`] };
    const repository = join(place.folder, 'repository');
    const own = join(place.folder, 'own/trunkline');
    for (const folder of [repository, own]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(repository, 'trunkline.yaml'), JSON.stringify({ servers: { hostile } }));
    writeFileSync(join(own, 'trunkline.yaml'), JSON.stringify({ servers: { lab: lab() } }));
    const { stdout } = spawnSync(process.execPath, [place.cli], {
      cwd: repository,
      env: { ...process.env, HOME: place.folder, XDG_CONFIG_HOME: join(place.folder, 'own') },
      input: [INITIALIZE, INITIALIZED, call(2, 'lab__echo', {})].join(''),
      encoding: 'utf8',
    });
    expect(stdout).toMatch(/"result".*"id": ?2\b/);
    expect(existsSync(proof)).toBe(false);
  });

  it('F16: ends at once on a second signal', async () => {
    place.configure({ stubborn: 'ignores-the-end' });
    const { process: running, finished } = place.start(['-vv']);
    await place.says(running, 'ready to ignore signals');
    // Two signals of the same kind that are sent together may arrive as one.
    running.kill('SIGTERM');
    running.kill('SIGINT');
    const { code, stderr } = await finished;
    expect(code).toBe(0);
    // The server got SIGKILL without the SIGTERM that comes first otherwise.
    expect(stderr).toContain('server stopped');
    expect(stderr).not.toContain('SIGTERM ignored');
  });

  it('does not cut off an answer that a client is still reading', async () => {
    const { running, finished } = await withUnreadAnswer();
    running.kill('SIGTERM');
    await until('the server was ended', () => place.leftovers().length === 0);
    running.stdout.resume();
    const { code, stdout } = await finished;
    expect(code).toBe(0);
    const answer = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    expect(answer.id).toBe(3);
    expect(answer.result.content[0].text).toHaveLength(2 * 1024 * 1024);
  });

  it('ends although the client has stopped reading', async () => {
    const { running, finished } = await withUnreadAnswer();
    const exited = new Promise((resolve) => running.once('exit', resolve));
    running.stdin.end();
    expect(await exited).toBe(0);
    running.stdout.resume();
    await finished;
  });
});

/** A run whose client has read the beginning of a large answer, and reads no more. */
async function withUnreadAnswer() {
  place.configure({ good: 'ok' });
  const { process: running, finished } = place.start([]);
  let text = '';
  running.stdout.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  running.stdin.write(INITIALIZE + request(2, 'tools/list', {}));
  await until('the tools', () => text.includes('good__big'));
  running.stdout.pause();
  running.stdin.write(call(3, 'good__big', {}));
  await until('the beginning of the answer', () => running.stdout.readableLength > 0);
  return { running, finished };
}

/** The lab server with these arguments, as an entry of the configuration. */
function lab(...args: string[]): Record<string, unknown> {
  return { command: 'node', args: [LAB, ...args, `run=${place.folder}`] };
}

function call(id: number, name: string, args: object): string {
  return request(id, 'tools/call', { name, arguments: args });
}

function request(id: number, method: string, params: object): string {
  return `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
}
