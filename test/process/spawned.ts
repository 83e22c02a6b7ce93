import { onTestFinished } from 'vitest';
import {
  type SpawnError,
  type SpawnedChild,
  type SpawnRequest,
  spawnChild,
} from '../../src/servers/process/spawn-child.js';
import type { ChildExit } from '../../src/spec/launch.js';
import { fixture, killGroups, liveMembers, type ProcessEntry, until } from '../support/processes.js';

/** A child together with what it has said so far. */
export interface Observed {
  readonly child: SpawnedChild;
  readonly events: { error?: SpawnError; exit?: ChildExit };
  stdout(): string;
  /** Resolves once stdout holds `text`. */
  says(text: string): Promise<void>;
  /** The running processes of its group. */
  live(): ProcessEntry[];
}

/** Spawns a fixture program with our Node. */
export function spawnFixture(name: string, ...args: string[]): Observed {
  return observe({ command: process.execPath, args: [fixture(name), ...args], cwd: process.cwd(), env: {} });
}

/** Spawns anything, until the end of the running test. */
export function observe(request: SpawnRequest): Observed {
  const events: Observed['events'] = {};
  const child = spawnChild(request, {
    onSpawnError: (error) => {
      events.error = error;
    },
    onExit: (exit) => {
      events.exit = exit;
    },
  });
  onTestFinished(() => killGroups([child.pid]));
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const stdout = () => Buffer.concat(chunks).toString();
  return {
    child,
    events,
    stdout,
    says: (text) => until(`"${text}" on stdout`, () => stdout().includes(text)),
    live: () => liveMembers([child.pid]),
  };
}
