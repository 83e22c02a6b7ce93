import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../src/host/observe/logger.js';
import { createRedactor } from '../../../src/host/observe/redact.js';
import { folderWith } from '../../config/files.js';
import { shownMode } from '../../support/platform.js';

const redact = createRedactor([{ env: { API_KEY: 'canary "quoted"' }, args: [] }]);

let folder: string;

beforeEach(() => {
  folder = folderWith();
});

describe('a logger with a file', () => {
  it.runIf(process.platform !== 'win32')('writes to it at once, readable by its owner only', () => {
    const file = join(folder, 'new', 'trunkline.log');
    createLogger({ verbosity: 0, file, redact }).warn({ server: 'a' }, 'careful');
    expect(statSync(file).mode & 0o777).toBe(shownMode(0o600));
    const { time, ...line } = JSON.parse(readFileSync(file, 'utf8'));
    expect(line).toEqual({ level: 40, server: 'a', msg: 'careful' });
    expect(new Date(time).toISOString()).toBe(time);
  });

  it.each([
    [0, ['warn']],
    [1, ['warn', 'info']],
    [2, ['warn', 'info', 'debug']],
    [9, ['warn', 'info', 'debug']],
  ])('says with verbosity %i no more than %j', (verbosity, expected) => {
    const file = join(folder, 'trunkline.log');
    const logger = createLogger({ verbosity, file, redact });
    logger.warn('warn');
    logger.info('info');
    logger.debug('debug');
    const said = readFileSync(file, 'utf8').trim().split('\n');
    expect(said.map((line) => JSON.parse(line).msg)).toEqual(expected);
  });

  it('has no secret anywhere in a record, whatever has to be escaped in it', () => {
    const file = join(folder, 'trunkline.log');
    const cause = new Error('used canary "quoted" for it');
    createLogger({ verbosity: 0, file, redact }).fatal(
      { err: cause, list: ['Bearer 0123456789abc'], deep: { text: 'x canary "quoted" y' } },
      'canary "quoted"',
    );
    const text = readFileSync(file, 'utf8');
    expect(text).not.toMatch(/canary|0123456789abc/);
    expect(JSON.parse(text)).toMatchObject({ msg: '[redacted]', deep: { text: 'x [redacted] y' } });
  });

  it('has nothing in it that could fool a terminal, and loses nothing by that', () => {
    const file = join(folder, 'trunkline.log');
    const text = 'a\u001b[31m \u009b \u202e \u200b \u{e0041} \ufe0f 猫 😀';
    createLogger({ verbosity: 0, file, redact }).warn(text);
    const written = readFileSync(file, 'utf8');
    expect(written.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}]|\ufe0f/u);
    expect(written).toContain('猫 😀');
    expect(JSON.parse(written).msg).toBe(text);
  });
});
