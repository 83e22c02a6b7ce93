import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

/** What holds between clients and servers of both eras, whatever happens. Names of tests begin with these numbers. */
const INVARIANTS: Readonly<Record<number, string>> = {
  1: 'each request is answered once, or was cancelled',
  2: 'the answer has the id of the request, on the same session',
  3: 'what belongs to one client never reaches another, broadcasts aside',
  4: 'ids of the gateway are never used again, and no id or token of a client reaches a server',
  5: 'an answer after the timeout or the cancellation is dropped and counted once',
  6: 'no progress and no log message of a request follows its answer',
  7: 'progress grows with each message',
  8: 'a cancellation cancels one request at the server at most, the right one, and none that was answered',
  9: 'members that nobody knows stay as they were written',
  10: 'exposed names differ, are those that model APIs take, and lead back to the tool',
  11: 'a server that comes or goes changes no name of another one',
  12: 'lists without a change between them are the same to the byte',
  13: 'cursors yield each entry once, and a forged one is refused',
  14: 'a failing server fails no merged list',
  15: 'a forged state or task id is refused, and no server learns of it',
  16: 'a modern server gets the state back that it wrote',
  17: 'each question of a legacy server to a modern client is answered once',
  18: 'the same request once more reaches no server and has the same result',
  19: 'nothing waits after suspended calls have expired',
  20: 'nobody is asked for what they did not declare',
  21: 'a modern client sees nothing of the legacy era, and no result without its members',
  22: 'a legacy client sees nothing of the modern era',
  23: 'a legacy server gets no reserved member, and a modern one those it must have',
  24: 'a legacy server hears `initialized` right after its answer to `initialize`',
  25: 'a subscription begins with its acknowledgment, and has what was asked for until its end',
  26: 'no update is lost while the stream of a modern server is replaced',
  27: 'a server has the subscriptions that clients have, and none after they left',
  28: 'headers agree with the body, and one that does not is refused',
  29: 'many changes of a list are few notifications, and the list after the last one is final',
  30: '`ping` is answered while all servers hang',
  31: 'no request stays open when its server has died',
  32: 'the verdict that a server is legacy ends, and silence is no verdict',
};

describe('the invariants of both eras', () => {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.test.ts'));
  const named = files.flatMap((file) => namedIn(readFileSync(join('test', file), 'utf8')));

  it('are each named by a test, and no others are', () => {
    expect([...new Set(named)].sort((one, other) => one - other)).toEqual(Object.keys(INVARIANTS).map(Number));
  });
});

/** The numbers in names of tests such as `invariant 7: …` or `invariants 1-3, 5 and 8: …`. */
function namedIn(text: string): number[] {
  return [...text.matchAll(/\(\s*['"`](?:F\d+: )?invariants? ([\d, and-]+): /g)].flatMap(([, numbers = '']) =>
    [...numbers.matchAll(/(\d+)(?:-(\d+))?/g)].flatMap(([, first, last = first]) =>
      Array.from({ length: Number(last) - Number(first) + 1 }, (_, index) => Number(first) + index),
    ),
  );
}
