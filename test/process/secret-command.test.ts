import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Secret } from '../../src/config/resolve/references.js';
import { readSecrets, writeSecretFile } from '../../src/config/resolve/secrets.js';
import { folderWith } from '../config/files.js';

let folder: string;
beforeEach(() => {
  folder = folderWith();
});
const NODE = process.execPath;
const isWindows = process.platform === 'win32';

/** A command that runs this program. */
const program = (code: string): string[] => [NODE, '-e', code];

async function read(
  names: readonly string[],
  secretCommands: Record<string, readonly string[]> = {},
  timeoutMs?: number,
) {
  const secrets = await readSecrets(
    names,
    { secretCommands },
    {
      configFile: join(folder, 'trunkline.yaml'),
      secretFile: join(folder, 'secrets'),
      env: { PATH: process.env.PATH, TELL: 'env' },
      ...(timeoutMs !== undefined && { timeoutMs }),
    },
  );
  return Object.fromEntries(secrets);
}

describe('a secret with a command', () => {
  test('is what the command prints, without the line break at its end', async () => {
    expect(
      await read(['A', 'B', 'C'], {
        A: program('console.log("one two")'),
        B: program('process.stdout.write(process.env.TELL + "\\n\\n")'),
        C: program('process.stdout.write(require("path").basename(process.cwd()))'),
      }),
    ).toEqual({ A: { value: 'one two' }, B: { value: 'env\n' }, C: { value: basename(folder) } });
  });

  test('is printed once, and only if something refers to it', async () => {
    const count = (name: string) =>
      program(`require("fs").appendFileSync("runs", ${JSON.stringify(name)}); console.log(1)`);
    await read(['A', 'B'], { A: count('a'), B: count('b'), C: count('c') });
    expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('ab');
  });

  test('does not pass through a shell, and gets nothing on stdin', async () => {
    const code = 'process.stdin.on("data", () => {}).on("end", () => console.log(process.argv[1]))';
    expect(await read(['A'], { A: [...program(code), '$HOME; echo x'] })).toEqual({ A: { value: '$HOME; echo x' } });
  });

  test('may be a script, which is a .cmd on Windows', async () => {
    const script = join(folder, isWindows ? 'tell.cmd' : 'tell');
    writeFileSync(script, isWindows ? '@echo told' : '#!/bin/sh\necho told', { mode: 0o755 });
    expect(await read(['A'], { A: [script] })).toEqual({ A: { value: 'told' } });
  });

  const fault = (name: string, reason: string): Secret => ({
    fault: `the command of the secret ${name} failed: ${reason}`,
    hint: `run the command below \`secretCommand.${name}\` in a terminal to see why`,
  });

  // Windows removes no folder in which a program runs.
  test.skipIf(isWindows)('names the failure where the folder of the gateway was removed, too', async () => {
    vi.spyOn(process, 'cwd').mockImplementation(() => {
      throw new Error('the folder was removed');
    });
    onTestFinished(() => void vi.restoreAllMocks());
    expect(await read(['A'], { A: ['no-such-program'] })).toEqual({ A: fault('A', 'it did not run') });
  });

  test.each([
    [
      'fails',
      program('console.log("hunter2"); console.error("hunter2"); process.exit(3)'),
      'it ended with exit code 3',
    ],
    ['prints nothing', program(''), 'it printed nothing'],
    ['prints too much', program('process.stdout.write("x".repeat(70000))'), 'it printed more than 64 KiB'],
    ['does not exist', ['./nowhere-to-be-found'], 'its program was not found'],
    [
      'is a path that leads through a file',
      [join(NODE, 'x')],
      isWindows ? 'its program was not found' : 'it could not be started (ENOTDIR)',
    ],
    [
      'is killed',
      program('process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000)'),
      isWindows ? 'it ended with exit code 1' : 'it was ended by SIGTERM',
    ],
  ])('F129: is absent if the command %s, and nothing of the output is told', async (_, command, reason) => {
    expect(await read(['A'], { A: command })).toEqual({ A: fault('A', reason) });
  });

  test('is absent if the command takes too long', async () => {
    expect(await read(['A'], { A: program('setInterval(() => {}, 1000)') }, 100)).toEqual({
      A: fault('A', 'it took longer than 0.1 s'),
    });
  });

  test('gives way to a command', async () => {
    await writeSecretFile(join(folder, 'secrets'), { secrets: new Map([['A', 'stored']]), inKeychain: new Set() });
    expect(await read(['A'], { A: program('console.log("printed")') })).toEqual({ A: { value: 'printed' } });
  });
});
