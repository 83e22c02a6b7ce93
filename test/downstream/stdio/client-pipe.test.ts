import { describe, expect, it } from 'vitest';
import { BatchReply } from '../../../src/downstream/stdio/client-pipe.js';
import { whole } from '../../../src/jsonrpc/message.js';
import { bytesOf, RecordingSink } from '../../support/wire.js';
import { replyOn } from '../legacy/reply-on.js';

const text = (value: string) => whole(bytesOf(value));

describe('the reply to a batch', () => {
  it('is one array, sent with the last answer and in the order of the answers', () => {
    const sink = new RecordingSink();
    const reply = new BatchReply(replyOn(sink), 3);
    reply.answer(text('{"id":2}'));
    reply.answer(text('{ "id" : 1.0 }'));
    expect(sink.lines).toEqual([]);
    reply.answer(text('{"id":3}'));
    expect(sink.lines).toEqual(['[{"id":2},{ "id" : 1.0 },{"id":3}]']);
  });

  it('does not wait for withdrawn answers, and is nothing when all are withdrawn', () => {
    const sink = new RecordingSink();
    const reply = new BatchReply(replyOn(sink), 2);
    reply.answer(text('{"id":1}'));
    reply.withdraw();
    expect(sink.lines).toEqual(['[{"id":1}]']);
    const silent = new BatchReply(replyOn(sink), 1);
    silent.withdraw();
    expect(sink.lines).toHaveLength(1);
  });

  it('holds nothing back but answers', () => {
    const sink = new RecordingSink();
    const reply = new BatchReply(replyOn(sink), 2);
    reply.answer(text('{"id":1}'));
    reply.send(text('{"method":"x"}'));
    expect(sink.lines).toEqual(['{"method":"x"}']);
  });

  it('comes in several arrays rather than that more than 16 MiB are held', () => {
    const sink = new RecordingSink();
    const reply = new BatchReply(replyOn(sink), 4);
    const large = text(`"${'x'.repeat(6 * 1024 * 1024)}"`);
    for (let count = 0; count < 3; count += 1) reply.answer(large);
    expect(sink.lines.map((line) => JSON.parse(line).length)).toEqual([3]);
    reply.answer(text('{"id":1}'));
    expect(sink.lines.map((line) => JSON.parse(line).length)).toEqual([3, 1]);
  });
});
