import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { until } from '../support/processes.js';

const INITIALIZE = request(1, 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'test', version: '1' },
});

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

describe('serve', () => {
  it('goes on without servers when the configuration is broken, and says what is wrong', async () => {
    place.write('trunkline.yaml', 'servers:\n  a: { comand: x }\n');
    const { process: running, finished } = place.start([]);
    const read = reader(running);
    running.stdin.write(INITIALIZE + request(2, 'tools/call', { name: 'trunkline__status' }));
    await until('both answers', () => read().split('\n').length > 2);
    running.stdin.end();
    const { code, stdout, stderr } = await finished;
    const status = JSON.parse(stdout.split('\n')[1] ?? '');
    expect(code).toBe(0);
    expect(status.result.structuredContent.configFault).toContain('did you mean `command`');
    expect(stderr).toContain('did you mean `command`');
  });

  it('F15: ends the children that heed nothing within three seconds of the end of its stdin', async () => {
    place.configure({ stubborn: 'ignores-the-end', mute: 'never-answers' });
    const { process: running, finished } = place.start(['serve']);
    await until('both servers run', () => place.leftovers().length === 2);
    const at = performance.now();
    running.stdin.end();
    expect(await finished).toMatchObject({ code: 0, stdout: '' });
    expect(performance.now() - at).toBeLessThan(3_200);
  });

  it('gives children their time when its stdin ends and a signal comes together', async () => {
    place.configure({ stubborn: 'ignores-the-end' });
    const { process: running, finished } = place.start([]);
    await until('the server runs', () => place.leftovers().length === 1);
    const at = performance.now();
    running.stdin.end();
    running.kill('SIGTERM');
    expect((await finished).code).toBe(0);
    expect(performance.now() - at).toBeGreaterThan(2_400);
    expect(performance.now() - at).toBeLessThan(3_200);
  });

  it('F16: ends at once on a second signal', async () => {
    place.configure({ stubborn: 'ignores-the-end' });
    const { process: running, finished } = place.start(['-v']);
    let log = '';
    running.stderr.on('data', (chunk: Buffer) => {
      log += chunk;
    });
    await until('the server runs', () => place.leftovers().length === 1);
    running.kill('SIGTERM');
    await until('it is ending', () => log.includes('"shutting down"'));
    const at = performance.now();
    running.kill('SIGTERM');
    expect((await finished).code).toBe(0);
    expect(performance.now() - at).toBeLessThan(900);
  });

  it('does not cut off an answer that a client is still reading', async () => {
    place.configure({ good: 'ok' });
    const { process: running, finished } = place.start([]);
    const read = reader(running);
    running.stdin.write(INITIALIZE + request(2, 'tools/list', {}));
    await until('the tools', () => read().includes('good__big'));
    running.stdout.pause();
    running.stdin.write(request(3, 'tools/call', { name: 'good__big', arguments: {} }));
    await until('the beginning of the answer', () => running.stdout.readableLength > 0);
    running.kill('SIGTERM');
    await until('the server was ended', () => place.leftovers().length === 0);
    running.stdout.resume();
    const { code, stdout } = await finished;
    expect(code).toBe(0);
    const answer = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    expect(answer.id).toBe(3);
    expect(answer.result.content[0].text).toHaveLength(2 * 1024 * 1024);
  });

  it('ends within three seconds although the client has stopped reading', async () => {
    place.configure({ good: 'ok' });
    const { process: running, finished } = place.start([]);
    const read = reader(running);
    running.stdin.write(INITIALIZE + request(2, 'tools/list', {}));
    await until('the tools', () => read().includes('good__big'));
    running.stdout.pause();
    running.stdin.write(request(3, 'tools/call', { name: 'good__big', arguments: {} }));
    await until('the beginning of the answer', () => running.stdout.readableLength > 0);
    const at = performance.now();
    const exited = new Promise((resolve) => running.once('exit', resolve));
    running.stdin.end();
    expect(await exited).toBe(0);
    expect(performance.now() - at).toBeLessThan(3_200);
    running.stdout.resume();
    await finished;
  });
});

function request(id: number, method: string, params: object): string {
  return `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
}

function reader(running: ChildProcessWithoutNullStreams): () => string {
  let text = '';
  running.stdout.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  return () => text;
}
