import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unsafeCharacters } from '../../src/json/printable.js';
import { CLI, Workplace } from '../cli/cli-run.js';
import { FAULTY } from '../support/in-process-gateway.js';

/** An escape, a link, a reversed text, a zero-width space and tag characters. */
const HOSTILE =
  '\u001b[31mred \u001b]8;;https://evil.test\u0007link \u009b \u202egnp zero\u200bwidth \u{e0041}\u{e0042}';

let place: Workplace;
beforeEach(() => {
  place = new Workplace();
  place.configure({ f: { command: 'node', args: [FAULTY, 'list=escapes', 'reveal', HOSTILE, `run=${place.folder}`] } });
});
afterEach(() => place.dispose());

/** Harmful characters of a text, except for line ends and tabs. */
function unsafe(text: string): string[] {
  return text.replace(/[\t\r\n]/g, ' ').match(unsafeCharacters()) ?? [];
}

describe('a server whose every word is hostile', () => {
  it('F56: has tools with hidden characters in their names quarantined, and tools with hidden characters in descriptions reported', async () => {
    const { stdout, stderr, code } = await place.run(['check', '-vv']);
    expect([code, unsafe(stdout), unsafe(stderr)]).toEqual([0, [], []]);
    expect(stdout.match(/quarantined .*: its name hides characters/g)).toHaveLength(5);
    expect(stdout).toContain('quarantined \\u{1b}[31mred: its name hides characters');
    expect(stdout).toContain('contain invisible characters, which a model reads: f__described');
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
    expect([failed.code, failed.stdout, unsafe(failed.stderr)]).toEqual([1, '', []]);
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

  it.runIf(existsSync('/usr/bin/script'))('F56: is shown escaped by `call` on a terminal', async () => {
    const command = `'${process.execPath}' '${CLI}' call f__answer "$NONCE"`;
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      cwd: place.folder,
      env: { ...process.env, HOME: place.folder, NONCE: JSON.stringify({ nonce: HOSTILE }) },
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    await new Promise((resolve) => child.once('close', resolve));
    expect(output).toContain('\\u{1b}[31mred');
    // The line that shows the progress is erased with this sequence.
    expect(unsafe(output.replaceAll('\u001b[K', ''))).toEqual([]);
  });
});
