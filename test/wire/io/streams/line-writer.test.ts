import { Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineWriter } from '../../../../src/wire/io/streams/line-writer.js';
import { unedited } from '../../../../src/wire/jsonrpc/message.js';
import { bytesOf, flush, writableTo } from '../../../support/wire.js';

/** A stream that keeps what is written, each write apart; slow ones take nothing until they are let. */
function writing({ isSlow = false, defer = queueMicrotask }: { isSlow?: boolean; defer?: typeof queueMicrotask } = {}) {
  const writes: Buffer[] = [];
  let waiting: (() => void) | undefined;
  let isHeld = isSlow;
  const accept = (chunks: Buffer[], done: () => void) => {
    // A copy: what the writer does with its memory afterwards must not show.
    writes.push(Buffer.concat(chunks));
    if (isHeld) waiting = done;
    else done();
  };
  const stream = writableTo(accept);
  const writer = new LineWriter(stream, defer);
  return {
    stream,
    writer,
    writes,
    text: () => Buffer.concat(writes).toString(),
    send: (...texts: string[]) => {
      for (const text of texts) writer.send(unedited(bytesOf(text)));
    },
    letGo: async () => {
      isHeld = false;
      waiting?.();
      await flush();
    },
  };
}

describe('LineWriter', () => {
  it('writes what comes in one turn at once, a message a line', async () => {
    const { send, writes } = writing();
    send('{"a":1}', '{"b":"é"}', '{}');
    expect(writes).toEqual([]);
    await flush();
    expect(writes.map(String)).toEqual(['{"a":1}\n{"b":"é"}\n{}\n']);
    send('{"c":1}');
    await flush();
    expect(writes).toHaveLength(2);
  });

  it('writes at once what comes until it is told to, over as many turns as that takes', async () => {
    const tasks: (() => void)[] = [];
    const { send, writes } = writing({ defer: (task) => tasks.push(task) });
    for (const text of ['1', '2', '3']) {
      send(text);
      await flush();
    }
    expect(writes).toEqual([]);
    for (const task of tasks.splice(0)) task();
    expect(writes.map(String)).toEqual(['1\n2\n3\n']);
    send('4');
    expect(tasks).toHaveLength(1);
  });

  it.each([
    ['2 KiB of short messages', 100, [2_100, 2_100, 2_100]],
    ['20 messages', 400, [8_000, 8_000, 8_000]],
    ['8 KiB of longer ones', 1_000, [9_000, 9_000, 9_000, 9_000, 9_000, 9_000, 9_000]],
  ])('writes the first %s at once, so that the other side need not wait for the last', async (_, length, lengths) => {
    const { send, writes, text } = writing();
    const messages = Array.from({ length: 64 }, (__, index) => String(index).padEnd(length - 1));
    send(...messages);
    expect(writes.map((write) => write.length)).toEqual(lengths);
    await flush();
    expect(text()).toBe(messages.map((message) => `${message}\n`).join(''));
    expect(writes).toHaveLength(lengths.length + 1);
  });

  it('writes just what was sent, whatever the sizes and turns, while the other side is slow', async () => {
    const size = fc.oneof(fc.nat(300), fc.constantFrom(0, 16_382, 16_383, 16_384, 40_000, 65_535));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(size, fc.boolean()), { maxLength: 30 }), async (sends) => {
        const { send, text, letGo, writer } = writing({ isSlow: true });
        const sent: string[] = [];
        for (const [length, endsTurn] of sends) {
          const message = String.fromCharCode(0x61 + (sent.length % 26)).repeat(length);
          sent.push(`${message}\n`);
          send(message);
          if (endsTurn) await flush();
        }
        await flush();
        await letGo();
        expect(text()).toBe(sent.join(''));
        expect(writer.unwrittenBytes).toBe(0);
      }),
      { numRuns: 50 },
    );
  });

  it('releases the lease of each message when it was copied, or taken', async () => {
    const { writer, send, letGo } = writing({ isSlow: true });
    const written: string[] = [];
    const sendNamed = (name: string, length: number) =>
      writer.send({ ...unedited(bytesOf(name.repeat(length))), lease: { release: () => void written.push(name) } });
    sendNamed('a', 100);
    expect(written).toEqual(['a']);
    sendNamed('b', 20_000);
    sendNamed('c', 20_000);
    send('small');
    await flush();
    expect(written).toEqual(['a']);
    await letGo();
    expect(written).toEqual(['a', 'b', 'c']);
  });

  it('releases the lease of a message that it cannot write because the stream has ended', async () => {
    const { stream, writer } = writing();
    let released = 0;
    stream.end();
    writer.send({ ...unedited(bytesOf('x'.repeat(20_000))), lease: { release: () => (released += 1) } });
    await flush();
    expect(released).toBe(1);
  });

  it('keeps a message that it has copied, whatever becomes of the original', async () => {
    const { writer, text } = writing();
    const bytes = bytesOf('before');
    writer.send(unedited(bytes));
    bytes.fill(0x78);
    await flush();
    expect(text()).toBe('before\n');
  });

  it('tells how much the other side has not taken', async () => {
    const { writer, send, letGo } = writing({ isSlow: true });
    expect(writer.unwrittenBytes).toBe(0);
    send('12345', 'x'.repeat(20_000));
    expect(writer.unwrittenBytes).toBe(6 + 20_001);
    await flush();
    expect(writer.unwrittenBytes).toBe(6 + 20_001);
    send('12');
    expect(writer.unwrittenBytes).toBe(6 + 20_001 + 3);
    await flush();
    await letGo();
    expect(writer.unwrittenBytes).toBe(0);
  });

  describe('when it is closed', () => {
    it('drops what it has not passed on, and says that none of it can have been read', async () => {
      const { writer, send, text } = writing();
      send('1');
      await flush();
      let released = 0;
      send('23', 'x'.repeat(20_000));
      writer.send({ ...unedited(bytesOf('y'.repeat(20_000))), lease: { release: () => (released += 1) } });
      expect(writer.sentBytes).toBe(2 + 3 + 2 * 20_001);
      expect(writer.close()).toBe(2);
      await flush();
      expect([text(), released, writer.unwrittenBytes]).toEqual(['1\n', 1, 0]);
    });

    it('counts as read what the system may have taken, and never writes what waits in the stream', async () => {
      const { stream, writer, send, letGo, text } = writing({ isSlow: true });
      send('1');
      await flush();
      send('23');
      await flush();
      send('456');
      await flush();
      expect(writer.close()).toBe(2);
      expect(stream.destroyed).toBe(true);
      await letGo();
      expect([text(), writer.close()]).toEqual(['1\n', 2]);
    });

    it('leaves the stream open if the system may have taken everything', async () => {
      const { stream, writer, send, letGo, text } = writing({ isSlow: true });
      send('1');
      await flush();
      send('23');
      await flush();
      await letGo();
      expect(writer.close()).toBe(2 + 3);
      expect([text(), stream.destroyed]).toEqual(['1\n23\n', false]);
    });

    it.each(['at once', 'later'])('does not count a write that fails %s because nobody reads', async (when) => {
      const broken = Object.assign(new Error('broken'), { code: 'EPIPE' });
      let fail: () => void = () => {};
      const stream = new Writable({
        write: (chunk, _, done) => {
          if (String(chunk) === '1\n') done();
          else if (when === 'at once') done(broken);
          else fail = () => done(broken);
        },
      });
      stream.on('error', () => {});
      const writer = new LineWriter(stream);
      for (const text of ['1', '22', '333']) {
        writer.send(unedited(bytesOf(text)));
        await flush();
      }
      fail();
      await flush();
      // Of a write that was not over, a part may have been taken before the failure.
      expect(writer.close()).toBe(when === 'at once' ? 2 : 2 + 3);
    });
  });

  it.each(['end', 'destroy'] as const)('says nothing when the stream is gone: %s', async (how) => {
    const { stream, send, writer, writes } = writing();
    const errors: Error[] = [];
    stream.on('error', (error) => errors.push(error));
    stream[how]();
    send('late', 'x'.repeat(20_000));
    await flush();
    expect(errors).toEqual([]);
    expect(writes).toEqual([]);
    expect(writer.unwrittenBytes).toBe(0);
  });
});
