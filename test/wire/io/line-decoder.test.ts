import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BufferPool, Lease } from '../../../src/wire/io/buffer-pool.js';
import { copyInto } from '../../../src/wire/io/byte-reader.js';
import {
  createLineMemory,
  LineDecoder,
  type LineDecoderOptions,
  type OversizedLine,
} from '../../../src/wire/io/line-decoder.js';
import type { FairMemory } from '../../../src/wire/io/shared-limit.js';
import { cpuMsOf } from '../../support/cpu-time.js';
import { repetitions } from '../../support/repetitions.js';

const MIB = 1024 * 1024;

/**
 * Everything that came out, as text and in order; dropped lines as their length in brackets, after the reason in brackets
 * if they were dropped unfinished.
 */
function decoding(
  maxLineBytes = 1024,
  unfinishedLines?: FairMemory,
  options: Pick<LineDecoderOptions, 'canBegin'> = {},
) {
  const lines: string[] = [];
  const dropped: OversizedLine[] = [];
  const heads: string[] = [];
  const sink = {
    line: (bytes: Uint8Array, start: number, end: number) => lines.push(text(bytes.subarray(start, end))),
  };
  const losses = {
    oversized: (fragment: OversizedLine) => {
      dropped.push(fragment);
      lines.push(`[${fragment.byteLength}]`);
    },
    evicted: (head: Uint8Array) => {
      heads.push(text(head));
      lines.push('[memory-limit]');
    },
    text: (head: Uint8Array) => {
      heads.push(text(head));
      lines.push('[text]');
    },
  };
  const decoder = new LineDecoder({ sink, dropped: losses, maxLineBytes, unfinishedLines, ...options });
  const push = (...chunks: (string | Uint8Array)[]) => {
    for (const chunk of chunks) copyInto(decoder, typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  };
  return { decoder, lines, dropped, heads, push };
}

function text(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString();
}

describe('cutting a stream into lines', () => {
  const stream = Buffer.from('{"a":"é"}\n\n{"猫":"😀"}\r\n€\n');

  it('F20: gives the same lines for every pair of chunk boundaries, inside characters too', () => {
    for (let first = 0; first <= stream.length; first += 1) {
      for (let second = first; second <= stream.length; second += 1) {
        const { lines, push } = decoding();
        push(stream.subarray(0, first), stream.subarray(first, second), stream.subarray(second));
        expect(lines, `cut at ${first} and ${second}`).toEqual(['{"a":"é"}', '{"猫":"😀"} ', '€']);
      }
    }
  });

  it('gives the lines between newlines, without blank ones, however the stream is cut and whatever the limit', () => {
    const bytes = fc.array(fc.constantFrom(0x0a, 0x0d, 0x20, 0x09, 0x61, 0xc3, 0xa9, 0x00), { maxLength: 60 });
    const cuts = fc.array(fc.nat(60), { maxLength: 8 });
    fc.assert(
      fc.property(bytes, cuts, fc.integer({ min: 0, max: 12 }), (content, positions, limit) => {
        const all = Buffer.from(content);
        const { lines, push } = decoding(limit);
        const at = [0, ...positions.filter((position) => position <= all.length).sort((a, b) => a - b), all.length];
        for (let index = 1; index < at.length; index += 1) push(all.subarray(at[index - 1], at[index]));

        const split = all.toString('latin1').replaceAll('\r', ' ').split('\n');
        const [, ...others] = split.map((line) => line.replace(/^[ \t]+/, '')).reverse();
        const expected = others.reverse().filter((line) => line !== '');
        const shown = expected.map((line) =>
          line.length > limit ? `[${line.length}]` : Buffer.from(line, 'latin1').toString(),
        );
        expect(lines).toEqual(shown);
      }),
      { numRuns: repetitions({ full: 2_000, short: 100 }) },
    );
  });

  it('counts blank lines and stores no white space before a line, however long it is', () => {
    const { decoder, lines, push } = decoding(16);
    push('\n\r\n \t\n');
    expect([decoder.blankLines, lines]).toEqual([3, []]);
    for (let count = 0; count < 1_000; count += 1) push(' '.repeat(1_000));
    expect(decoder.unfinishedBytes).toBe(0);
    push('\r\n', '   ab', ' c\n  d');
    expect([lines, decoder.unfinishedBytes, decoder.blankLines]).toEqual([['ab c'], 1, 4]);
  });

  it('leaves lines that were delivered as they were when more comes', () => {
    const views: Uint8Array[] = [];
    const sink = {
      line: (bytes: Uint8Array, start: number, end: number) => views.push(bytes.subarray(start, end)),
    };
    const decoder = new LineDecoder({ sink, maxLineBytes: 1024 });
    for (const chunk of ['fir', 'st\nsec', 'ond\nthi', 'rd\n']) copyInto(decoder, Buffer.from(chunk));
    expect(views.map(text)).toEqual(['first', 'second', 'third']);
  });
});

describe('a line that passes the limit', () => {
  it('is dropped, and reading goes on after its newline', () => {
    const { lines, push } = decoding(10);
    push('0123456789\n', '0123456789a', 'bc', '\nnext\n', 'ok\nmuch too long\nfine\n');
    expect(lines).toEqual(['0123456789', '[13]', 'next', 'ok', '[13]', 'fine']);
  });

  it.each([1, 7, 100, 511, 512, 513, 1_023, 1_025, 5_000])(
    'leaves its first and last 512 bytes when it comes in chunks of %i',
    (size) => {
      const { dropped, push } = decoding(600);
      const line = Array.from({ length: 1_000 }, (_, index) => `<${index}>`).join('');
      for (let at = 0; at < line.length; at += size) push(line.slice(at, at + size));
      push('\n');
      expect(dropped).toHaveLength(1);
      expect(text(dropped[0]?.head)).toBe(line.slice(0, 512));
      expect(text(dropped[0]?.tail)).toBe(line.slice(-512));
      expect(dropped[0]?.byteLength).toBe(line.length);
    },
  );
});

it('drops an unfinished line at the end of the stream', () => {
  const { decoder, lines, push } = decoding();
  push('whole\nhalf a li');
  expect(decoder.unfinishedBytes).toBe(9);
  decoder.end();
  expect([lines, decoder.unfinishedBytes]).toEqual([['whole'], 0]);
});

describe('the cost of a line in pieces', () => {
  it('F24: grows with its length only: 8 MiB, then 100,000 chunks of one byte', () => {
    const { decoder, lines, push } = decoding(16 * MIB);
    const [head, byte] = [Buffer.alloc(8 * MIB, 'x'), Buffer.from('x')];
    const memoryBefore = process.memoryUsage().arrayBuffers;
    let mostMemory = 0;
    const costsMs = [cpuMsOf(() => push(head))];
    const pushBatch = () => {
      for (let count = 0; count < 100; count += 1) push(byte);
    };
    for (let batch = 0; batch < 1_000; batch += 1) {
      costsMs.push(cpuMsOf(pushBatch));
      mostMemory = Math.max(mostMemory, process.memoryUsage().arrayBuffers);
    }
    expect(decoder.unfinishedBytes).toBe(8 * MIB + 100_000);
    costsMs.push(cpuMsOf(() => push('\n')));
    expect(lines[0]).toHaveLength(8 * MIB + 100_000);
    expect(decoder.unfinishedBytes).toBe(0);
    // In all, and of what runs without a pause.
    expect(costsMs.reduce((sum, ms) => sum + ms)).toBeLessThan(1_000);
    expect(costsMs.toSorted((one, other) => other - one)[10]).toBeLessThan(50);
    expect(mostMemory - memoryBefore).toBeLessThan(2 * 16 * MIB);
  });
});

type Decoding = ReturnType<typeof decoding>;

describe('several decoders that share what they may hold', () => {
  const large = (mark: string) => `${mark}${'x'.repeat(MIB)}`;

  it('hold no more together than that: the largest line is dropped, and all others are read', () => {
    const memory = createLineMemory(3 * MIB);
    const [one, two, three] = [1, 2, 3].map(() => decoding(8 * MIB, memory)) as [Decoding, Decoding, Decoding];
    one.push(large('1'));
    two.push(large('2'));
    three.push(large('3'));
    expect(memory.used).toBeLessThanOrEqual(3 * MIB);
    expect([one.lines, two.lines, three.lines]).toEqual([['[memory-limit]'], [], []]);
    expect(one.heads[0]).toMatch(/^1x{511}$/);
    expect(one.decoder.unfinishedBytes).toBe(0);
    one.push('end\nnext\n');
    expect(one.lines.slice(1)).toEqual([`[${MIB + 4}]`, 'next']);
    expect(one.dropped[0]).toMatchObject({ isEvicted: true });
    expect(text(one.dropped[0]?.head)).toMatch(/^1x+$/);
    expect(text(one.dropped[0]?.tail)).toMatch(/xend$/);
    two.push('\n');
    three.push('\n');
    expect([two.lines, three.lines]).toEqual([[large('2')], [large('3')]]);
    expect([memory.used, memory.evictions]).toEqual([0, 1]);
  });

  it('drop the line that grows, if it is the largest itself', () => {
    const memory = createLineMemory(3 * MIB);
    const [small, greedy] = [decoding(8 * MIB, memory), decoding(8 * MIB, memory)];
    small.push(large('s'));
    greedy.push(large(''), large(''), 'end\nnext\n');
    expect(greedy.lines).toEqual(['[memory-limit]', `[${2 * MIB + 3}]`, 'next']);
    small.push('\n');
    expect(small.lines).toEqual([large('s')]);
    expect([memory.used, memory.evictions]).toEqual([0, 1]);
  });

  it('keep nobody from lines that merely come in two pieces, and drop nothing for them', () => {
    const memory = createLineMemory(MIB);
    const [hoarder, other] = [decoding(8 * MIB, memory), decoding(8 * MIB, memory)];
    hoarder.push('x'.repeat(MIB));
    other.push('a'.repeat(30_000), 'b'.repeat(30_000), '\n');
    expect(other.lines).toEqual(['a'.repeat(30_000) + 'b'.repeat(30_000)]);
    expect([hoarder.lines, memory.used]).toEqual([[], MIB]);
  });

  it('release what they hold when they end, are full, or drop a line', () => {
    const memory = createLineMemory(4 * MIB);
    const { decoder, push } = decoding(2 * MIB, memory);
    push(large(''));
    expect(memory.used).toBeGreaterThanOrEqual(MIB);
    push('x'.repeat(2 * MIB));
    expect(memory.used).toBe(0);
    push('\n', large(''));
    decoder.end();
    expect(memory.used).toBe(0);
  });

  it('read a line that becomes larger, or stays smaller, than the last one', () => {
    const { lines, push } = decoding(8 * MIB, createLineMemory(64 * MIB));
    const sent = [1, 1, 1, 3, 3, 0.1, 3, 0.2, 0.2, 0.2].map((mib, index) => `${index}${'x'.repeat(mib * MIB)}`);
    for (const line of sent) {
      for (let at = 0; at < line.length; at += 50_000) push(line.slice(at, at + 50_000));
      push('\n');
    }
    expect(lines.map((line) => line.length)).toEqual(sent.map((line) => line.length));
    expect(lines).toEqual(sent);
  });
});

describe('a large line that begins like none that can be of use', () => {
  const canBegin = (byte: number) => byte === '{'.charCodeAt(0);

  it('F97: is not stored, is reported once, and reading goes on', () => {
    const memory = createLineMemory(MIB);
    const { decoder, lines, dropped, heads, push } = decoding(8 * MIB, memory, { canBegin });
    push(' text ', 'x'.repeat(20_000));
    expect([lines, decoder.unfinishedBytes, memory.used]).toEqual([['[text]'], 0, 0]);
    push('y'.repeat(MIB));
    expect(decoder.excessBytes).toBe(MIB + 20_005);
    push('end\n{next}\n');
    expect(lines).toEqual(['[text]', `[${MIB + 20_008}]`, '{next}']);
    expect(heads[0]).toMatch(/^text x+$/);
    expect(dropped[0]).toMatchObject({ isText: true, isEvicted: false });
    expect(decoder.excessBytes).toBe(MIB + 20_008);
  });

  it('is read like others while it is small, or when it comes at once', () => {
    const { lines, push } = decoding(8 * MIB, undefined, { canBegin });
    push('te', 'xt\n', 'x'.repeat(16_000), '\n', `{${'x'.repeat(100_000)}`, '}\n');
    expect(lines.map((line) => line.length)).toEqual([4, 16_000, 100_002]);
  });
});

describe('the memory that is read into', () => {
  /** Buffers are used again as soon as they can be. */
  const reused = () => new BufferPool({ maxIdleBytes: 64 * MIB });

  /** Reads as a socket does, which goes on writing to the free space that it was told of last. */
  function reading(bufferPool: BufferPool, maxLineBytes = 8 * MIB, unfinishedLines?: FairMemory) {
    const lines: Uint8Array[] = [];
    const sink = {
      line: (bytes: Uint8Array, start: number, end: number) => void lines.push(bytes.subarray(start, end)),
    };
    const decoder = new LineDecoder({ sink, maxLineBytes, bufferPool, unfinishedLines });
    let { freeSpace } = decoder;
    decoder.whenMoved(() => {
      freeSpace = decoder.freeSpace;
    });
    const read = (bytes: string) => {
      for (let rest = Buffer.from(bytes); rest.length > 0; ) {
        const piece = rest.subarray(0, freeSpace.length);
        freeSpace.set(piece);
        decoder.filled(piece.length);
        freeSpace = decoder.freeSpace;
        rest = rest.subarray(piece.length);
      }
    };
    return { decoder, lines, read };
  }

  it('is nobody else’s while a line whose lease was released is written over', () => {
    const bufferPool = reused();
    const [one, other] = [reading(bufferPool), reading(bufferPool)];
    one.read(`${'a'.repeat(MIB)}\nand`);
    const [first = new Uint8Array()] = one.lines;
    expect(text(first)).toBe('a'.repeat(MIB));
    Lease.of(first)?.release();
    other.read('b'.repeat(MIB));
    one.read(' then\n');
    other.read('\n');
    expect(one.lines.slice(1).map(text)).toEqual(['and then']);
    expect(other.lines.map(text)).toEqual(['b'.repeat(MIB)]);
    // It was worth something.
    expect(other.lines[0]?.buffer).toBe(first.buffer);
  });

  it('is nobody else’s after the end either', () => {
    const bufferPool = reused();
    const [one, other] = [reading(bufferPool), reading(bufferPool)];
    one.read('a'.repeat(MIB));
    one.decoder.end();
    other.read('b'.repeat(MIB));
    one.read('c'.repeat(MIB));
    other.read('\n');
    expect(other.lines.map(text)).toEqual(['b'.repeat(MIB)]);
  });

  it('is freed between two reads when another line needs it, and the next read goes elsewhere', () => {
    const freed: number[] = [];
    const bufferPool = new BufferPool({
      // As freed memory is: whoever reads or writes it fails.
      free: ({ buffer }) => {
        freed.push(buffer.byteLength);
        structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
      },
    });
    const unfinishedLines = createLineMemory(3 * MIB);
    const one = reading(bufferPool, 8 * MIB, unfinishedLines);
    const other = reading(bufferPool, 8 * MIB, unfinishedLines);
    one.read('a'.repeat(2 * MIB));
    const before = freed.length;
    other.read('b'.repeat(1.5 * MIB));
    expect(freed.slice(before).some((byteLength) => byteLength >= 2 * MIB)).toBe(true);
    one.read('the rest\nnext\n');
    other.read('\n');
    expect(one.lines.map(text)).toEqual(['next']);
  });

  it('may be released, and even freed, while the lines behind it are still to be told', () => {
    const freed: Uint8Array[] = [];
    const bufferPool = new BufferPool({ free: (freeSpace) => void freed.push(freeSpace.fill(0x0a)) });
    const lines: string[] = [];
    const sink = {
      line: (bytes: Uint8Array, start: number, end: number) => {
        lines.push(text(bytes.subarray(start, end)));
        Lease.of(bytes)?.release();
      },
    };
    const decoder = new LineDecoder({ sink, maxLineBytes: MIB, bufferPool });
    copyInto(decoder, Buffer.from('a'.repeat(100_000)));
    copyInto(decoder, Buffer.from('\nbb\ncc\nd'));
    copyInto(decoder, Buffer.from('d\n'));
    expect(lines).toEqual(['a'.repeat(100_000), 'bb', 'cc', 'dd']);
    expect(freed.length).toBeGreaterThan(0);
  });

  it('may be freed when its line is dropped, however large that is', () => {
    for (const maxLineBytes of [100_000, 3 * MIB]) {
      // As freed memory is: a reader of it fails.
      const bufferPool = new BufferPool({
        free: ({ buffer }) => void structuredClone(buffer, { transfer: [buffer as ArrayBuffer] }),
      });
      const { lines, read } = reading(bufferPool, maxLineBytes);
      read(`${'a'.repeat(4 * MIB)}\nnext\n`);
      expect(lines.map(text)).toEqual(['next']);
    }
  });

  it('is freed and not kept when a line outgrows it, passes the limit, or ends with its stream', () => {
    const freed: number[] = [];
    const bufferPool = new BufferPool({ maxIdleBytes: 64 * MIB, free: ({ length }) => void freed.push(length) });
    const { decoder, lines, read } = reading(bufferPool, 16 * MIB);
    read('a'.repeat(9 * MIB));
    // Small buffers are of use to other lines.
    expect([[...freed], bufferPool.idleBytes]).toEqual([[4 * MIB, 8 * MIB], (4096 - 64) * 1024]);
    read(`${'a'.repeat(8 * MIB)}\nnext\n`);
    expect(freed.at(-1)).toBeGreaterThanOrEqual(16 * MIB);
    read('b'.repeat(100_000));
    const before = freed.length;
    decoder.end();
    expect([lines.map(text), freed.length]).toEqual([['next'], before + 1]);
  });

  it('is never small, whatever was read', () => {
    const bufferPool = reused();
    const { decoder, read } = reading(bufferPool);
    const smallest = Array.from({ length: 300 }, (_, index) => {
      read('x'.repeat((index * 7919) % 40_000));
      if (index % 3 === 0) read('\n');
      return decoder.freeSpace.length;
    });
    expect(Math.min(...smallest)).toBeGreaterThanOrEqual(8 * 1024);
  });

  it('is left alone from the end on, also when that comes in the middle of what was read', () => {
    for (const first of ['a', 'a'.repeat(100_000)]) {
      const memory = createLineMemory(MIB);
      const lines: number[] = [];
      const sink = {
        line: (_: Uint8Array, start: number, end: number) => {
          lines.push(end - start);
          if (lines.length === 2) decoder.end();
        },
      };
      const decoder = new LineDecoder({ sink, maxLineBytes: MIB, unfinishedLines: memory });
      copyInto(decoder, Buffer.from(`${first}\nbb\nccc\n${'d'.repeat(20_000)}`));
      copyInto(decoder, Buffer.from('\nee\n'));
      expect(lines).toEqual([first.length, 2]);
      expect([decoder.unfinishedBytes, memory.used]).toEqual([0, 0]);
      expect(decoder.freeSpace.length).toBeGreaterThan(0);
    }
  });

  it.each(['  bb\n', '\n\n  bb\ncc'])(
    'is left alone when the end comes with a large line, and %j comes with it',
    (behind) => {
      const lines: number[] = [];
      const sink = {
        line: (_: Uint8Array, start: number, end: number) => {
          lines.push(end - start);
          decoder.end();
        },
      };
      const decoder: LineDecoder = new LineDecoder({ sink, maxLineBytes: MIB });
      copyInto(decoder, Buffer.from('a'.repeat(20_000)));
      copyInto(decoder, Buffer.from(`a\n${behind}`));
      expect([lines, decoder.unfinishedBytes]).toEqual([[20_001], 0]);
    },
  );

  it('is not lost when the sink fails over a line: the next line is read as it is', () => {
    const lines: string[] = [];
    const sink = {
      line: (bytes: Uint8Array, start: number, end: number) => {
        const line = text(bytes.subarray(start, end));
        if (line === 'bad') throw new Error('no');
        lines.push(line);
      },
    };
    const decoder = new LineDecoder({ sink, maxLineBytes: MIB });
    expect(() => copyInto(decoder, Buffer.from('good\nbad\nlost\nhalf'))).toThrow('no');
    copyInto(decoder, Buffer.from('whole\n'));
    expect(lines).toEqual(['good', 'whole']);
  });
});
