import { describe, expect, it } from 'vitest';
import { type WorkAccount, WorkBudget } from '../../src/io/work-budget.js';
import { FakeClock } from '../support/fake-clock.js';

function budgeting() {
  const clock = new FakeClock();
  const budget = new WorkBudget(clock);
  const open = () => {
    const told: string[] = [];
    const listener = {
      pause: () => told.push('pause'),
      resume: () => told.push('resume'),
      endless: () => told.push('endless'),
    };
    return { account: budget.account(listener), told };
  };
  /** Lets servers write without end for a while: each read costs so much, and there is one whenever reading is not paused. */
  const flood = (accounts: readonly WorkAccount[], { forMs, readMs }: { forMs: number; readMs: number }) => {
    const from = clock.now();
    while (clock.now() - from < forMs) {
      for (const account of accounts) {
        if (account.isPaused) continue;
        clock.advance(readMs);
        account.charge(readMs);
      }
      if (accounts.every(({ isPaused }) => isPaused)) clock.advance(1);
    }
  };
  return { clock, open, flood };
}

describe('the budget for output that answers nothing', () => {
  it('lets a server write a little without a pause', () => {
    const { clock, open } = budgeting();
    const { account, told } = open();
    for (let second = 0; second < 600; second += 1) {
      for (let read = 0; read < 9; read += 1) account.charge(1);
      clock.advance(1_000);
    }
    expect([told, account.pausedMs, account.chargedMs]).toEqual([[], 0, 5_400]);
  });

  it('pauses a server in debt until the debt is repaid', () => {
    const { clock, open } = budgeting();
    const { account, told } = open();
    account.charge(10);
    expect(told).toEqual([]);
    account.charge(8);
    expect([told, account.isPaused, account.isTroubled]).toEqual([['pause'], true, true]);
    clock.advance(99);
    expect(account.isPaused).toBe(true);
    clock.advance(2);
    expect([told, account.isPaused, account.isTroubled]).toEqual([['pause', 'resume'], false, true]);
    expect(account.pausedMs).toBeGreaterThanOrEqual(100);
    clock.advance(1_000);
    account.charge(1);
    expect(account.isTroubled).toBe(false);
  });

  it('resumes every server, also when the machine sleeps or another server writes just then', () => {
    const { clock, open } = budgeting();
    const accounts = [open().account, open().account];
    for (const account of accounts) account.charge(11);
    clock.jump(60_000);
    expect(accounts.map(({ isPaused }) => isPaused)).toEqual([false, false]);
    for (const account of accounts) account.charge(11);
    const busy = open().account;
    for (let ms = 0; ms < 1_000; ms += 1) {
      clock.advance(1);
      busy.charge(0.01);
    }
    expect(accounts.map(({ isPaused }) => isPaused)).toEqual([false, false]);
  });

  it.each([1, 5, 30])('gives %i floods together no more than a tenth of the time, in equal parts', (count) => {
    const { open, flood } = budgeting();
    const accounts = Array.from({ length: count }, () => open().account);
    flood(accounts, { forMs: 20_000, readMs: 0.5 });
    const before = accounts.map(({ chargedMs }) => chargedMs);
    flood(accounts, { forMs: 20_000, readMs: 0.5 });
    const spent = accounts.map(({ chargedMs }, index) => chargedMs - (before[index] ?? 0));
    expect(spent.reduce((sum, ms) => sum + ms)).toBeLessThan(2_000);
    expect(spent.reduce((sum, ms) => sum + ms)).toBeGreaterThan(1_000);
    expect(Math.max(...spent)).toBeLessThan(Math.min(...spent) * 1.2);
  });

  it('pauses nobody else for a flood', () => {
    const { clock, open, flood } = budgeting();
    const quiet = open();
    const floods = [open().account, open().account];
    for (let second = 0; second < 60; second += 1) {
      flood(floods, { forMs: 1_000, readMs: 1 });
      quiet.account.charge(2);
    }
    expect([quiet.told, clock.now() >= 60_000]).toEqual([[], true]);
  });

  it('reports a server once that has flooded for a minute, and none that rests now and then', () => {
    const { clock, open, flood } = budgeting();
    const [endless, resting] = [open(), open()];
    for (let second = 0; second < 61; second += 1) {
      flood([resting.account], { forMs: 800, readMs: 1 });
      clock.advance(1_200);
    }
    expect(resting.told).not.toContain('endless');
    flood([endless.account], { forMs: 59_000, readMs: 1 });
    expect(endless.told).not.toContain('endless');
    flood([endless.account], { forMs: 10_000, readMs: 1 });
    expect(endless.told.filter((event) => event === 'endless')).toEqual(['endless']);
  });

  it('pauses no longer than some seconds for one read that the machine made long', () => {
    const { clock, open } = budgeting();
    const { account } = open();
    account.charge(60_000);
    clock.advance(3_200);
    expect(account.isPaused).toBe(false);
  });

  it('resumes a server whose process is gone, and pauses it no more', () => {
    const { open } = budgeting();
    const { account, told } = open();
    account.charge(100);
    account.close();
    account.charge(100);
    expect(told).toEqual(['pause', 'resume']);
  });
});
