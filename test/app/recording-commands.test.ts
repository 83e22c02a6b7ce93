import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Composition } from '../../src/app/composition.js';
import { createPlatform } from '../../src/app/platform.js';
import { recordingCommands } from '../../src/app/recording-commands.js';
import { KnownSecrets } from '../../src/observe/redact.js';

it('a recording ends whose connection was closed before the first client of the hub came', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const facts = { platform: createPlatform(), secrets: new KnownSecrets(), config: { servers: [] } };
  const composition = facts as unknown as Composition;
  const closed = new AbortController();
  const context = { emit: () => true, signal: closed.signal };
  const commands = recordingCommands(Promise.resolve({ composition }));
  const recording = commands.record?.({ file: join(folder, 'recording.jsonl') }, context);
  closed.abort();
  expect(await recording).toEqual({ written: 0, dropped: 0, fault: undefined });
}, 3_000);
