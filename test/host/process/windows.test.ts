import { describe, expect, it } from 'vitest';
import { parseListing, systemProgram, WindowsProcesses } from '../../../src/host/process/windows.js';

describe('a program of Windows', () => {
  it.each([
    ['taskkill', 'D:\\Win', 'D:\\Win\\System32\\taskkill.exe'],
    ['powershell.exe', 'D:\\Win', 'D:\\Win\\System32\\WindowsPowerShell\\v1.0\\powershell.exe'],
    ['where', 'E:\\W', 'E:\\W\\System32\\where.exe'],
  ])('%s is never looked for in the working folder', (name, root, path) => {
    expect(systemProgram(name, 'win32', root)).toBe(path);
  });

  it('is a name elsewhere', () => {
    expect(systemProgram('taskkill', 'linux', 'D:\\Win')).toBe('taskkill');
  });
});

describe('the list of processes that PowerShell prints', () => {
  it('has the words of each command line, and none for a process of another user', () => {
    const text = '4 0 1700000000000 \r\n812 4 1700000000123 "C:\\Program Files\\nodejs\\node.exe"  server.mjs\r\n\r\n';
    expect(parseListing(text)).toEqual([
      { pid: 4, ppid: 0, pgid: 4, startTime: '1700000000000', startedAtMs: 1_700_000_000_000, words: [] },
      {
        pid: 812,
        ppid: 4,
        pgid: 812,
        startTime: '1700000000123',
        startedAtMs: 1_700_000_000_123,
        words: ['C:\\Program Files\\nodejs\\node.exe', 'server.mjs'],
      },
    ]);
  });
});

describe('the identity of a process of Windows', () => {
  function system(...answers: string[]) {
    const world = { asked: 0, now: 0, taken: new Set([10, 11]) };
    const ask = async () => {
      world.asked += 1;
      return answers[world.asked - 1] ?? answers.at(-1) ?? '';
    };
    const processes = new WindowsProcesses({ ask, isTaken: (pid) => world.taken.has(pid), now: () => world.now });
    return { world, processes };
  }

  it('is asked for once, and then kept for ten seconds', async () => {
    const { world, processes } = system('10 1 500', '10 1 500');
    for (world.now = 0; world.now < 10_000; world.now += 1_000)
      expect(await processes.identify(10)).toEqual({ startTime: '500', isZombie: false });
    expect(world.asked).toBe(1);
    await processes.identify(10);
    expect(world.asked).toBe(2);
  });

  it('is none at once, without asking, when no process has the pid', async () => {
    const { world, processes } = system('10 1 500', '10 1 900');
    await processes.identify(10);
    world.taken.delete(10);
    expect(await processes.identify(10)).toBeUndefined();
    expect(world.asked).toBe(1);
    world.taken.add(10);
    expect(await processes.identify(10)).toEqual({ startTime: '900', isZombie: false });
  });

  it('is found for several processes with one list, which was begun after they were asked for', async () => {
    const { world, processes } = system('10 1 500\n11 1 600', '10 1 500\n11 1 700');
    const both = await Promise.all([processes.identify(10), processes.identify(11)]);
    expect(both.map((each) => each?.startTime)).toEqual(['500', '600']);
    expect(world.asked).toBe(1);
  });

  it('is unknown if PowerShell fails, and asked for again later', async () => {
    let isFailing = true;
    const failing = new WindowsProcesses({
      ask: async () => (isFailing ? Promise.reject(new Error('no PowerShell')) : '10 1 500'),
      isTaken: () => true,
      now: () => 0,
    });
    await expect(failing.identify(10)).rejects.toThrow('no PowerShell');
    isFailing = false;
    expect(await failing.identify(10)).toMatchObject({ startTime: '500' });
  });
});
