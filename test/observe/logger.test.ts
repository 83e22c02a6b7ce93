import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe('a logger with a file', () => {
  it.runIf(process.platform !== 'win32')('writes to it at once, readable by its owner only', () => {
    const file = join(folder, 'new', 'trunkline.log');
    createLogger({ verbosity: 0, file }).warn({ server: 'a' }, 'careful');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const { time, ...line } = JSON.parse(readFileSync(file, 'utf8'));
    expect(line).toEqual({ level: 40, server: 'a', msg: 'careful' });
    expect(new Date(time).toISOString()).toBe(time);
  });

  it('appends to what is there', () => {
    const file = join(folder, 'trunkline.log');
    createLogger({ verbosity: 0, file }).error('one');
    createLogger({ verbosity: 0, file }).error('two');
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(2);
  });

  it.each([
    [0, ['warn']],
    [1, ['warn', 'info']],
    [2, ['warn', 'info', 'debug']],
    [9, ['warn', 'info', 'debug']],
  ])('says with verbosity %i no more than %j', (verbosity, expected) => {
    const file = join(folder, 'trunkline.log');
    const logger = createLogger({ verbosity, file });
    logger.warn('warn');
    logger.info('info');
    logger.debug('debug');
    const said = readFileSync(file, 'utf8').trim().split('\n');
    expect(said.map((line) => JSON.parse(line).msg)).toEqual(expected);
  });

  it('keeps one record on one line, whatever is in it', () => {
    const file = join(folder, 'trunkline.log');
    createLogger({ verbosity: 0, file }).warn({ text: 'a\nb\u001b[31m' }, 'x\ny');
    const text = readFileSync(file, 'utf8');
    expect(text.trim().split('\n')).toHaveLength(1);
    expect(text).not.toContain('\u001b');
  });
});
