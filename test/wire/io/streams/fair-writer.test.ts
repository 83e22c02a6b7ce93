import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Backpressure } from '../../../../src/wire/io/streams/backpressure.js';
import { FairWriter } from '../../../../src/wire/io/streams/fair-writer.js';
import { unedited } from '../../../../src/wire/jsonrpc/message.js';
import { bytesOf, flush, writableTo } from '../../../support/wire.js';

const MIB = 1024 * 1024;

/** A client that takes one write each time it is let, and what it has read. */
function listening() {
  const read: Buffer[] = [];
  let waiting: (() => void) | undefined;
  const accept = (chunks: Buffer[], done: () => void) => {
    read.push(...chunks.map((chunk) => Buffer.from(chunk)));
    waiting = done;
  };
  const stream = writableTo(accept);
  stream.on('error', () => {});
  const backpressure = new Backpressure();
  const unread: number[] = [];
  const input = {
    isPaused: false,
    pause() {
      this.isPaused = true;
    },
    resume() {
      this.isPaused = false;
    },
  };
  const options = { maxUnwrittenBytes: 5 * MIB, onUnread: (bytes: number) => void unread.push(bytes), input };
  const writer = new FairWriter(stream, backpressure.client(), options);
  return {
    stream,
    unread,
    input,
    backpressure,
    writer,
    send: (text: string, source?: string) => writer.send(unedited(bytesOf(text)), source),
    /** Takes what was written; returns whether there was anything. */
    take: async () => {
      await flush();
      const done = waiting;
      waiting = undefined;
      done?.();
      await flush();
      return done !== undefined;
    },
    takeAll: async () => {
      await flush();
      while (waiting !== undefined) {
        const done = waiting;
        waiting = undefined;
        done();
        await flush();
      }
    },
    text: () => Buffer.concat(read).toString(),
    /** The first letters of the lines, which are enough to tell them apart here. */
    lines: () =>
      Buffer.concat(read)
        .toString()
        .split('\n')
        .slice(0, -1)
        .map((line) => line.slice(0, 6).replace(/(.)\1{3,}/, '$1…')),
  };
}

/** A server's stdout, and whether it is read. */
function stdout(backpressure: Backpressure, source: string) {
  const stream = new Readable({ read: () => {} });
  stream.on('data', () => {});
  backpressure.add(stream, source);
  return { isPaused: () => stream.isPaused() };
}

function large(letter: string, bytes = MIB): string {
  return letter.repeat(bytes);
}

describe('FairWriter', () => {
  it('writes small messages as they come, in one write for each turn', async () => {
    const { send, take, text } = listening();
    for (const word of ['one', 'two', 'three']) send(word, word);
    expect(await take()).toBe(true);
    expect(text()).toBe('one\ntwo\nthree\n');
    expect(await take()).toBe(false);
  });

  it('lets a small message pass the large ones of another source that have not begun', async () => {
    const { send, take, takeAll, lines } = listening();
    send(large('A'), 'far');
    send(large('B'), 'far');
    send(large('C'), 'far');
    await flush();
    send('small', 'near');
    await take();
    expect(lines()).toEqual(['A…', 'small', 'B…']);
    await takeAll();
    expect(lines()).toEqual(['A…', 'small', 'B…', 'C…']);
  });

  it('writes every line once and whole, each source in its order, whatever is sent and taken when', async () => {
    const size = fc.oneof(fc.nat(300), fc.constantFrom(0, 16_382, 16_383, 16_384, 40_000, 200_000));
    const step = fc.record({
      size,
      source: fc.constantFrom('a', 'b', undefined),
      after: fc.constantFrom('', 'turn', 'take'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const { send, take, takeAll, text, writer } = listening();
        const sent: { source: string | undefined; line: string }[] = [];
        for (const { size, source, after } of steps) {
          const line = `${sent.length}:${'x'.repeat(size)}`;
          sent.push({ source, line });
          send(line, source);
          if (after === 'turn') await flush();
          if (after === 'take') await take();
        }
        await takeAll();
        const lines = text().split('\n').slice(0, -1);
        expect([...lines].sort()).toEqual(sent.map(({ line }) => line).sort());
        const places = sent.map(({ line }) => lines.indexOf(line));
        for (const [later, { source }] of sent.entries()) {
          for (let earlier = 0; earlier < later; earlier += 1) {
            const isOrdered =
              source === undefined || sent[earlier]?.source === undefined || sent[earlier]?.source === source;
            if (isOrdered) expect(places[earlier]).toBeLessThan(places[later] ?? -1);
          }
        }
        expect(writer.unwrittenBytes).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  it('pauses the source of a large message that is being taken, beside another one that talks', async () => {
    const { send, backpressure, takeAll } = listening();
    const [far, near] = [stdout(backpressure, 'far'), stdout(backpressure, 'near')];
    send('small', 'near');
    send(large('A'), 'far');
    await flush();
    expect([far.isPaused(), near.isPaused()]).toEqual([true, false]);
    await takeAll();
    expect([far.isPaused(), near.isPaused()]).toEqual([false, false]);
  });

  it('reads ahead of a source that is alone, and not for ever', async () => {
    const { send, backpressure, take, takeAll } = listening();
    const far = stdout(backpressure, 'far');
    send('small', 'far');
    send(large('A'), 'far');
    expect(far.isPaused()).toBe(false);
    send(large('B'), 'far');
    expect(far.isPaused()).toBe(true);
    // The first line goes alone with what came before it.
    await take();
    await take();
    expect(far.isPaused()).toBe(false);
    await takeAll();
  });

  it('pauses all while much waits in all, and resumes them when little does', async () => {
    const { send, backpressure, takeAll } = listening();
    const near = stdout(backpressure, 'near');
    for (const letter of 'ABCDE') send(large(letter));
    expect(near.isPaused()).toBe(true);
    await takeAll();
    expect(near.isPaused()).toBe(false);
  });

  it('releases the lease of a large message when all of it was taken', async () => {
    const { stream, writer, take } = listening();
    const written: string[] = [];
    const send = (name: string) => {
      writer.send({ ...unedited(bytesOf(name.repeat(MIB))), lease: { release: () => void written.push(name) } }, 'a');
    };
    for (const name of ['1', '2', '3']) send(name);
    await flush();
    expect(written).toEqual([]);
    while (written.length === 0) await take();
    expect(written).toEqual(['1']);
    while (written.length === 1) await take();
    expect(written).toEqual(['1', '2']);
    // This one never tells what becomes of what it was about to take.
    stream.destroy();
    await flush();
    expect(written).toEqual(['1', '2']);
  });

  it('pauses its only sources without a limit while it is the only client', async () => {
    const { send, backpressure, unread, takeAll, lines } = listening();
    const far = stdout(backpressure, 'far');
    for (const letter of 'ABCDEFGH') send(large(letter), 'far');
    expect([far.isPaused(), unread]).toEqual([true, []]);
    await takeAll();
    expect(lines()).toHaveLength(8);
  });

  it('pauses the input of its only client while more than the limit is unwritten, and resumes it after that', async () => {
    const { send, input, takeAll, lines } = listening();
    for (const letter of 'ABCD') send(large(letter));
    expect(input.isPaused).toBe(false);
    send(large('E'));
    expect(input.isPaused).toBe(true);
    await takeAll();
    expect([input.isPaused, lines().length]).toEqual([false, 5]);
  });

  it('pauses no server of other clients, and closes instead when its client does not read', async () => {
    const { send, backpressure, unread, writer, takeAll, lines } = listening();
    const other = backpressure.client();
    const far = stdout(backpressure, 'far');
    let released = 0;
    const sendLeased = (letter: string) =>
      writer.send({ ...unedited(bytesOf(large(letter))), lease: { release: () => (released += 1) } }, 'far');
    sendLeased('A');
    await flush();
    for (const letter of 'BCDE') sendLeased(letter);
    expect([far.isPaused(), unread, released]).toEqual([false, [], 0]);
    for (const letter of 'FG') sendLeased(letter);
    expect(unread).toEqual([5 * (MIB + 1)]);
    // All but the message that the stream has already.
    expect([writer.unwrittenBytes, released]).toEqual([MIB + 1, 6]);
    send('late', 'far');
    await takeAll();
    expect([lines(), writer.unwrittenBytes, released]).toEqual([['A…'], 0, 7]);
    // The client that is left is the only one.
    expect([other.isAlone, far.isPaused()]).toEqual([true, false]);
    other.pause();
    expect(far.isPaused()).toBe(true);
  });

  it('passes on one message of any size, whatever other sources there are', async () => {
    const { send, backpressure, unread, takeAll, lines } = listening();
    backpressure.client();
    send(large('A', 20 * MIB), 'far');
    await takeAll();
    send('next', 'far');
    await takeAll();
    expect([lines(), unread]).toEqual([['A…', 'next'], []]);
  });

  it.each(['end', 'destroy'] as const)('keeps nothing when the stream is gone: %s', async (how) => {
    const { stream, backpressure, send, writer } = listening();
    const far = stdout(backpressure, 'far');
    send('small', 'near');
    send(large('A'), 'far');
    await flush();
    send(large('B'), 'far');
    stream[how]();
    send(large('C'), 'far');
    stream.destroy();
    await flush();
    send('late', 'near');
    send(large('D'), 'far');
    await flush();
    expect(writer.unwrittenBytes - stream.writableLength).toBe(0);
    expect(far.isPaused()).toBe(false);
  });
});

describe('the end of all writes', () => {
  it('is reported once everything that was sent is read, large messages included', async () => {
    const client = listening();
    const told: string[] = [];
    client.send('small');
    client.send('b'.repeat(20_000), 'b');
    client.send('c'.repeat(20_000), 'c');
    client.writer.whenAllWritten(() => told.push('written'));
    while (client.lines().length < 3) {
      expect(told).toEqual([]);
      await client.take();
    }
    expect(told).toEqual([]);
    await client.takeAll();
    expect(told).toEqual(['written']);
  });

  it('is reported when the client is gone', async () => {
    const client = listening();
    const told: string[] = [];
    client.send('b'.repeat(20_000), 'b');
    client.writer.whenAllWritten(() => told.push('written'));
    client.stream.destroy();
    await flush();
    expect(told).toEqual(['written']);
  });
});
