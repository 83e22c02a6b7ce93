import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Workplace } from '../cli/cli-run.js';
import { configureHostile, HOSTILE, unsafe } from './hostile-words.js';

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  configureHostile(place);
});
afterEach(() => place.dispose());

describe('a server whose every word is hostile', () => {
  it('F56: has tools with hidden characters in their names quarantined, and tools with hidden characters in descriptions reported', async () => {
    const { stdout, stderr, code } = await place.run(['check', '-vv']);
    expect([code, unsafe(stdout), unsafe(stderr)]).toEqual([0, [], []]);
    expect(stdout.match(/\(its name hides characters/g)).toHaveLength(5);
    expect(stdout).toContain('\\u{1b}[31mred (its name hides characters');
    expect(stdout).toContain('invisible characters in the description: f__described');
    expect(stderr).toContain('\\u202egnp');
  });

  it('F56: is shown escaped by `tools`, and unchanged with --json', async () => {
    const [shown, read] = await Promise.all([place.run(['tools', '-vv']), place.run(['tools', '--json'])]);
    expect([unsafe(shown.stdout), unsafe(shown.stderr)]).toEqual([[], []]);
    expect(shown.stdout).toMatch(/f__described +f +\\u\{1b\}\[2Jclear \\u\{202e\} reversed \\u\{200b\} \\u\{e0041\}/);
    const { tools } = JSON.parse(read.stdout);
    const described = tools.find(({ name }: { name: string }) => name === 'f__described');
    expect(described.description).toBe('\u001b[2Jclear \u202e reversed \u200b \u{e0041}');
  });

  it('F56: is shown escaped by `call` when it fails, when it logs, and on a terminal', async () => {
    const nonce = JSON.stringify({ nonce: HOSTILE });
    const [failed, logged, status] = await Promise.all([
      place.run(['call', 'f__is_error', nonce, '-vv']),
      place.run([
        'call',
        'f__stderr',
        JSON.stringify({ text: HOSTILE }),
        '-vv',
        '--log-file',
        join(place.folder, 'x.log'),
      ]),
      place.run(['call', 'trunkline__status', '{"server":"f"}', '--json']),
    ]);
    expect([failed.code, failed.stdout, unsafe(failed.stderr)]).toEqual([4, '', []]);
    expect(failed.stderr).toContain('\\u{1b}[31mred');
    expect([logged.code, unsafe(logged.stderr)]).toEqual([0, []]);
    const log = readFileSync(join(place.folder, 'x.log'), 'utf8');
    expect(unsafe(log)).toEqual([]);
    expect(
      log
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).line),
    ).toContain(HOSTILE);
    expect([status.code, unsafe(status.stdout)]).toEqual([0, []]);
    const [{ tools }] = JSON.parse(status.stdout).structuredContent.servers;
    expect(tools.quarantined).toHaveLength(5);
    expect(tools.hiding).toEqual(['f__described']);
  });
});
