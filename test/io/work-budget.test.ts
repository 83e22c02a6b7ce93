import { describe, expect, it } from 'vitest';
import { type WorkAccount, WorkBudget } from '../../src/io/work-budget.js';
import { FakeClock } from '../support/fake-clock.js';

function budgeting() {
  const clock = new FakeClock();
  // The next turn comes at once.
  const budget = new WorkBudget(clock, (task) => task());
  /** An account, and what it was told because of its debt. */
  const open = () => {
    const told: string[] = [];
    const listener = {
      pause: () => account.isPaused && told.push('pause'),
      resume: () => told.at(-1) === 'pause' && told.push('resume'),
      endless: () => told.push('endless'),
    };
    const account: WorkAccount = budget.account(listener);
    return { account, told };
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

describe('one turn of the event loop', () => {
  /** Accounts, what they were told, and the turn that a test ends. */
  function turning(count: number) {
    const tasks: (() => void)[] = [];
    const clock = new FakeClock();
    const budget = new WorkBudget(clock, (task) => tasks.push(task));
    const told: string[] = [];
    const accounts = Array.from({ length: count }, (_, index) => {
      const listener = {
        pause: () => void told.push(`${index} waits`),
        resume: () => void told.push(`${index} goes on`),
        endless: () => {},
      };
      return budget.account(listener);
    }) as [WorkAccount, WorkAccount, WorkAccount];
    const endTurn = () => {
      for (const task of tasks.splice(0)) task();
    };
    return { clock, tasks, accounts, told, endTurn };
  }

  it('F98: has a millisecond of such work in all: then every server that causes it waits for the next turn', () => {
    const { accounts, told, endTurn } = turning(3);
    const [one, other, quiet] = accounts;
    one.charge(0.5);
    expect([told, one.mustWait(), quiet.mustWait()]).toEqual([[], false, false]);
    other.charge(0.5);
    expect(told).toEqual(['0 waits', '1 waits']);
    expect(accounts.map(({ isWaiting, isPaused }) => [isWaiting, isPaused])).toEqual([
      [true, false],
      [true, false],
      [false, false],
    ]);
    told.length = 0;
    endTurn();
    expect(told).toEqual(['0 goes on', '1 goes on']);
    expect(accounts.some(({ isWaiting, isTroubled }) => isWaiting || isTroubled)).toBe(false);
    expect(accounts.map(({ pausedMs }) => pausedMs)).toEqual([0, 0, 0]);
  });

  it('is not over while others have as much time', () => {
    const { clock, accounts, told, tasks } = turning(2);
    for (let message = 0; message < 100; message += 1) {
      for (const account of accounts) {
        clock.advance(0.8);
        account.charge(0.4);
      }
      clock.advance(10);
    }
    expect([told, tasks]).toEqual([[], []]);
    clock.advance(0.4);
    accounts[0].charge(0.4);
    clock.advance(0.4);
    accounts[1].charge(0.4);
    clock.advance(0.4);
    accounts[0].charge(0.4);
    expect([told.length, tasks.length]).toEqual([2, 1]);
  });

  it('that is over lets no other server begin such work', () => {
    const { accounts, told, endTurn } = turning(3);
    const [one, asking, charged] = accounts;
    one.charge(1);
    expect(asking.mustWait()).toBe(true);
    charged.charge(0.1);
    expect(told).toEqual(['0 waits', '1 waits', '2 waits']);
    told.length = 0;
    endTurn();
    expect(told).toEqual(['0 goes on', '1 goes on', '2 goes on']);
    expect(asking.mustWait()).toBe(false);
  });

  it('does not end the wait of a server in debt, nor does the end of its debt end the turn', () => {
    const { clock, accounts, told, endTurn } = turning(1);
    const [one] = accounts;
    one.charge(11);
    endTurn();
    expect([told, one.isWaiting]).toEqual([['0 waits'], true]);
    clock.advance(100);
    expect([told, one.isWaiting]).toEqual([['0 waits', '0 goes on'], false]);
    one.charge(11);
    clock.advance(1_000);
    expect([one.isPaused, one.isWaiting]).toEqual([false, true]);
    endTurn();
    expect(told).toEqual(['0 waits', '0 goes on', '0 waits', '0 goes on']);
  });

  it('may be spent again when what waited goes on', () => {
    const { accounts, told, tasks, endTurn } = turning(3);
    const [one, other] = accounts;
    one.charge(1);
    other.charge(1);
    expect(tasks).toHaveLength(1);
    for (let turn = 0; turn < 3; turn += 1) {
      endTurn();
      one.charge(1);
    }
    // Both have spent something, so both wait each time.
    expect(told.filter((event) => event === '1 waits')).toHaveLength(4);
    expect(tasks).toHaveLength(1);
  });

  it('holds no server whose process is gone', () => {
    const { accounts, told, endTurn } = turning(2);
    const [gone, other] = accounts;
    gone.charge(1);
    gone.close();
    expect([told, gone.mustWait()]).toEqual([['0 waits', '0 goes on'], false]);
    other.charge(1);
    endTurn();
    expect(told.filter((event) => event.startsWith('0'))).toHaveLength(2);
  });
});
