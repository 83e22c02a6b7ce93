import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkFile } from '../../../src/config/file/check-file.js';
import { ConfigError } from '../../../src/config/file/config-error.js';
import { readConfigText } from '../../../src/config/file/find-config.js';
import { growthOf, LINEAR } from '../../support/cpu-time.js';
import { folderWith } from '../files.js';
import { errorOf } from '../loading.js';

/** A text of `count` lines, each with its number. */
function lines(count: number, line: (at: number) => string): string {
  return Array.from({ length: count }, (_, at) => line(at)).join('\n');
}

const SERVERS = (count: number) =>
  `servers:\n${lines(count, (at) => `  s${at}: {command: a, args: [b], env: {C: d}}`)}`;

describe('a large configuration', () => {
  it.each([
    ['servers', SERVERS],
    [
      'variables of one server',
      (count: number) => `servers: {a: {command: a, env: {\n${lines(count, (at) => `V${at}: a,`)}\n}}}`,
    ],
    ['aliases', (count: number) => `servers:\n  a: &a {command: a}\n${lines(count, (at) => `  s${at}: *a`)}`],
    ['mistakes', (count: number) => `servers: {a: {command: a, args: [\n${lines(count, () => '1,')}\n]}}`],
  ])('with many %s takes time in proportion to its length', (_, text) => {
    const check = (size: number) => {
      try {
        checkFile(text(size), 'f');
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
      }
    };
    expect(growthOf(check, 25)).toBeLessThan(LINEAR);
  });

  it('F81: may have 1 MiB, and is not read beyond', () => {
    const text = `${SERVERS(1)}\n#`;
    const [most, more] = [0, 1].map((extra) => text.padEnd(1024 * 1024 + extra, 'x')) as [string, string];
    const folder = folderWith({ 'most.yaml': most, 'more.yaml': more });
    expect(readConfigText(join(folder, 'most.yaml'))).toBe(most);
    expect(() => readConfigText(join(folder, 'more.yaml'))).toThrow(
      expect.objectContaining({
        code: 'config-unreadable',
        message: expect.stringContaining('more.yaml: the file is larger than 1 MiB, which is the limit'),
      }),
    );
  });

  it('F81: is refused when a few lines stand for more than memory holds', () => {
    const variables = lines(20_000, (at) => `    V${at}: a`);
    const servers = lines(90, (at) => `  s${at}: {command: a, env: *all}`);
    const { message } = errorOf(`defaults:\n  env: &all\n${variables}\nservers:\n${servers}`);
    expect(message).toContain('too many aliases to expand; use fewer');
  });

  it('is refused, and no internal error, when it is nested deeper than the stack', () => {
    for (const text of [
      '['.repeat(20_000),
      `a: ${'- '.repeat(20_000)}`,
      `${'{a: '.repeat(10_000)}1${'}'.repeat(10_000)}`,
    ]) {
      expect(() => checkFile(text, 'f')).toThrow(ConfigError);
    }
  });

  it('is reported with its first hundred mistakes, and the number of the others', () => {
    const { problems, report } = errorOf(`servers: {a: {command: a, args: [${'1,'.repeat(5_000)}]}}`);
    expect(problems).toHaveLength(101);
    expect(problems.at(-1)).toEqual({ message: '4900 more mistakes are not listed' });
    expect(report.split('\n').at(-1)).toMatch(/trunkline\.yaml: 4900 more mistakes are not listed$/);
  });

  it.runIf(process.platform !== 'win32')('is no pipe, which is refused at once', () => {
    const file = join(folderWith(), 'trunkline.yaml');
    execFileSync('mkfifo', [file]);
    expect(() => readConfigText(file)).toThrow('the file cannot be read: it is a pipe, not a regular file');
  });
});
