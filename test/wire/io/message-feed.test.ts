import { describe, expect, it } from 'vitest';
import { MessageFeed, type PassingMessage } from '../../../src/wire/io/message-feed.js';
import { splice } from '../../../src/wire/json/splice.js';
import { unedited } from '../../../src/wire/jsonrpc/message.js';
import { bytesOf } from '../../support/wire.js';

const CONNECTION = { number: 1 };

function listening() {
  const seen: string[] = [];
  const observer = ({ at, direction, message }: PassingMessage) =>
    void seen.push(`${at} ${direction} ${Buffer.from(splice(message)).toString()}`);
  return { seen, observer };
}

describe('the feed of messages', () => {
  it('is not observed until somebody observes, nor afterwards', () => {
    const feed = new MessageFeed(() => 0);
    expect(feed.isObserved).toBe(false);
    const stop = feed.observe(() => {});
    expect(feed.isObserved).toBe(true);
    stop();
    expect(feed.isObserved).toBe(false);
  });

  it('shows each message to all observers, with its edits made', () => {
    const feed = new MessageFeed(() => 7);
    const [one, other] = [listening(), listening()];
    feed.observe(one.observer);
    const stop = feed.observe(other.observer);
    const edits = [{ span: { start: 1, end: 2 }, text: bytesOf('b') }];
    feed.passed('c>g', { bytes: bytesOf('[a]'), span: { start: 0, end: 3 }, edits }, CONNECTION);
    stop();
    feed.passed('g>s', unedited(bytesOf('[c]')), CONNECTION);
    expect(one.seen).toEqual(['7 c>g [b]', '7 g>s [c]']);
    expect(other.seen).toEqual(['7 c>g [b]']);
  });

  it('gives the first observer what passed before, although its memory is used again', () => {
    const feed = new MessageFeed(() => 1);
    feed.hold();
    const memory = bytesOf('xx[a]xx');
    const edits = [{ span: { start: 3, end: 4 }, text: bytesOf('zbz'), part: { start: 1, end: 2 } }];
    feed.passed('c>g', { bytes: memory, span: { start: 2, end: 5 }, edits }, CONNECTION);
    memory.fill(0);
    const { seen, observer } = listening();
    feed.observe(observer);
    expect(seen).toEqual(['1 c>g [b]']);
    const late = listening();
    feed.observe(late.observer);
    expect(late.seen).toEqual([]);
  });

  it('keeps no more than 64 messages for the first observer, and none once nobody will come', () => {
    const feed = new MessageFeed(() => 1);
    feed.hold();
    for (let count = 0; count < 100; count += 1) feed.passed('c>g', unedited(bytesOf('1')), CONNECTION);
    feed.letGo();
    expect(feed.isObserved).toBe(false);
    feed.hold();
    for (let count = 0; count < 100; count += 1) feed.passed('c>g', unedited(bytesOf('1')), CONNECTION);
    const { seen, observer } = listening();
    feed.observe(observer);
    expect(seen).toHaveLength(64);
  });
});
