import { spawn } from 'node:child_process';
import { describe, expect, it, onTestFinished } from 'vitest';
import { endHubProcess } from '../../src/cli/commands/hub/end-hub.js';

/** A process that waits, with this in its command line. */
function waiting(word: string): { readonly pid: number; readonly ended: Promise<NodeJS.Signals | null> } {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60_000)', word], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { pid: child.pid ?? 0, ended: new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal))) };
}

describe('a hub that does not answer', () => {
  it('is killed if the process is that hub, and left alone if another process has its id by now', async () => {
    const [other, hub] = [waiting('/somewhere/else/1'), waiting('/hubs/of/one/1')];
    expect(await endHubProcess(other.pid, '/hubs/of/one')).toBe(false);
    expect(() => process.kill(other.pid, 0)).not.toThrow();
    expect(await endHubProcess(hub.pid, '/hubs/of/one')).toBe(true);
    expect(await hub.ended).toBe('SIGKILL');
    expect(await endHubProcess(hub.pid, '/hubs/of/one')).toBe(false);
  });
});
