import { describe, expect, it } from 'vitest';
import { type CutOptions, cutResult } from '../../../src/extras/large-results/cut-result.js';
import { textInside } from '../../../src/wire/json/literal-text.js';
import { splice } from '../../../src/wire/json/splice.js';
import { bytesOf, type Message } from '../../support/wire.js';

const URI = 'trunkline://result/1-x';

/** Cuts a result. Returns it as the client gets it, with the whole text that was kept. */
function cut(result: Message | string, options: Partial<CutOptions> = {}) {
  const bytes = bytesOf(typeof result === 'string' ? result : JSON.stringify(result));
  const span = { start: 0, end: bytes.length };
  const all: Message[] = [];
  const edits = cutResult(bytes, span, {
    maxBytes: 1_000,
    maxBinaryBytes: Number.POSITIVE_INFINITY,
    isStructureFixed: () => true,
    ...{ source: 't', hasLinks: true },
    keep: ({ inside, ...about }) => {
      all.push({ text: textInside(inside), ...about });
      return `trunkline://result/${all.length}-x`;
    },
    ...options,
  });
  const text = Buffer.from(splice({ bytes, span, edits })).toString();
  const [kept] = all;
  return { text, result: JSON.parse(text) as Message, kept, all, isSame: edits.length === 0 };
}

const text = (length: number, letter = 'x') => ({ type: 'text', text: letter.repeat(length) });
const NOTE = /\[Trunkline left out a part of the text here: bytes (\d+) to (\d+) of (\d+)\. To read them, .*?\]/;

/** The text of a cut block, and the offsets in its note. */
function parts(shown: string) {
  const [note = '', from, to, length] = NOTE.exec(shown) ?? [];
  const [head = '', tail = ''] = shown.split(note);
  return {
    head: head.replace(/\n\n$/, ''),
    tail: tail.replace(/^\n\n/, ''),
    from: Number(from),
    to: Number(to),
    length,
  };
}

describe('a result that is not too large', () => {
  it.each([
    ['of one text', { content: [text(1_000)] }],
    ['of several texts', { content: [text(500), text(500)] }],
    ['that exceeds the limit by less than a note', { content: [text(1_500)] }],
    [
      'whose image is large',
      { content: [text(10), { type: 'image', data: 'A'.repeat(5_000), mimeType: 'image/png' }] },
    ],
    [
      'with a large binary resource',
      { content: [{ type: 'resource', resource: { uri: 'a:b', blob: 'A'.repeat(5_000) } }] },
    ],
    ['that is larger only in its escapes', { content: [{ type: 'text', text: '\n'.repeat(900) }] }],
    [
      'with large structured content that follows a schema',
      { content: [], structuredContent: { a: 'x'.repeat(5_000) } },
    ],
    ['without content', { contents: 'x'.repeat(5_000) }],
    ['whose content is no list', { content: 'x'.repeat(5_000) }],
  ])('stays as it is: %s', (_, result) => {
    expect(cut(result).isSame).toBe(true);
  });

  it('stays as it is if its content is there twice, because readers differ', () => {
    expect(cut(`{"content":[${JSON.stringify(text(5_000))}],"content":[]}`).isSame).toBe(true);
  });
});

describe('a text that is too long', () => {
  it('keeps its beginning and its end, says what is left out, and is kept whole', () => {
    const long = Array.from({ length: 2_000 }, (_, index) => `line ${index}`).join('\n');
    const { result, kept } = cut({
      content: [{ type: 'text', text: long, annotations: { priority: 1 } }],
      isError: true,
    });
    const [block, link] = result.content;
    const { head, tail, from, to, length } = parts(block.text);
    expect(kept).toEqual({ text: long, length: long.length, isBinary: false, mimeType: 'text/plain' });
    expect(Number(length)).toBe(long.length);
    expect([head, tail]).toEqual([long.slice(0, from), long.slice(to)]);
    expect(head.length + tail.length).toBeLessThanOrEqual(1_000);
    expect(head.length + tail.length).toBeGreaterThan(800);
    expect(block.text).toContain(`call trunkline__read_result with uri "${URI}" and offset ${from}.`);
    expect(block.annotations).toEqual({ priority: 1 });
    expect(link).toEqual({
      ...{ type: 'resource_link', uri: URI, name: 'result of t', size: long.length, mimeType: 'text/plain' },
    });
    expect(result.isError).toBe(true);
  });

  it('has no link for a client that does not know links', () => {
    expect(cut({ content: [text(5_000)] }, { hasLinks: false }).result.content).toHaveLength(1);
  });

  it.each([
    ['as they are', (character: string) => character],
    [
      'as escapes',
      (character: string) =>
        [...Array(character.length).keys()]
          .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
          .join(''),
    ],
  ])('is cut between characters of several bytes, %s', (_, written) => {
    for (const character of ['\u00e9', '\u20ac', '\u{1f600}']) {
      for (let shift = 0; shift < 12; shift += 1) {
        const raw = `{"content":[{"type":"text","text":"${'a'.repeat(shift)}${written(character).repeat(1_000)}"}]}`;
        const { result } = cut(raw);
        const { head, tail } = parts(result.content[0].text);
        expect(head.slice(shift).replaceAll(character, '')).toBe('');
        expect(tail.replaceAll(character, '')).toBe('');
      }
    }
  });

  it('may be JSON, which is kept byte for byte', () => {
    const json = JSON.stringify(
      Array.from({ length: 500 }, (_, id) => ({ id, path: 'C:\\new\\"quoted"' })),
      null,
      1,
    );
    const { kept, result } = cut({ content: [{ type: 'text', text: json }] });
    expect(kept?.text).toBe(json);
    const { head, tail } = parts(result.content[0].text);
    expect(json.startsWith(head) && json.endsWith(tail)).toBe(true);
  });

  it('may be that of an embedded resource', () => {
    const resource = { uri: 'file:///a', mimeType: 'text/plain', text: 'x'.repeat(5_000) };
    const { result, kept } = cut({ content: [text(10, 'a'), { type: 'resource', resource }] });
    const [first, second] = result.content;
    expect(first).toEqual(text(10, 'a'));
    expect(second.resource).toMatchObject({ uri: 'file:///a', mimeType: 'text/plain' });
    expect(second.resource.text).toMatch(NOTE);
    expect(kept?.text).toBe(`${'a'.repeat(10)}\n${'x'.repeat(5_000)}`);
  });

  it('stays whole if it cannot be kept', () => {
    expect(cut({ content: [text(5_000)] }, { keep: () => undefined }).isSame).toBe(true);
  });
});

describe('texts that are too long together', () => {
  const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' };

  it('keep the first and the last ones, and every image', () => {
    const blocks = Array.from({ length: 26 }, (_, index) => text(200, String.fromCharCode(97 + index)));
    const { result, kept } = cut({ content: [...blocks.slice(0, 13), image, ...blocks.slice(13)] });
    const shown = result.content.map(({ type, text: said }: Message) => said?.replace(NOTE, 'NOTE') ?? type);
    const whole = blocks.map(({ text: said }) => said);
    expect(shown).toEqual([
      ...whole.slice(0, 2),
      `${'c'.repeat(100)}\n\nNOTE`,
      'image',
      'x'.repeat(100),
      ...whole.slice(-2),
      'resource_link',
    ]);
    expect(kept?.text).toBe(whole.join('\n'));
    const { from, to } = parts(result.content[2].text);
    expect(kept?.text.slice(from, to)).toBe(`${'c'.repeat(100)}\n${whole.slice(3, 23).join('\n')}\n${'x'.repeat(100)}`);
  });

  it('lose no byte around the blocks, whatever white space is there', () => {
    const blocks = Array.from({ length: 9 }, () => JSON.stringify(text(500)));
    const { result } = cut(`{ "content" : [ ${blocks.join(' ,\n ')} ] , "_meta" : { "a" : 1 } }`);
    expect(result._meta).toEqual({ a: 1 });
    expect(result.content.map(({ type }: Message) => type)).toEqual(['text', 'text', 'text', 'resource_link']);
  });

  it('never become an empty text, which some models refuse', () => {
    for (const lengths of [
      [500, 5_000, 500],
      [5_000, 500, 0],
      [0, 0, 5_000],
      [500, 500, 500, 500, 500, 500],
    ]) {
      const { result } = cut({ content: lengths.map((length) => text(length)) });
      const said = result.content.flatMap(({ text: each }: Message) => (each === undefined ? [] : [each]));
      const before = lengths.filter((length) => length === 0).length;
      expect(said.filter((each: string) => each === '').length).toBeLessThanOrEqual(before);
      expect(said.join('')).toMatch(NOTE);
    }
  });
});

describe('structured content without a schema that is too large', () => {
  const structuredContent = { rows: Array.from({ length: 200 }, (_, id) => ({ id, name: `"${id}"` })) };

  it('becomes a note, and is kept as JSON behind the texts', () => {
    const { result, kept } = cut({ content: [text(3)], structuredContent }, { isStructureFixed: () => false });
    const json = JSON.stringify(structuredContent);
    expect(kept?.text).toBe(`xxx\n${json}`);
    expect(result.structuredContent.trunkline).toBe(
      `[Trunkline left out the structured content here: bytes 4 to ${json.length + 4} of ${json.length + 4}. To read them, call trunkline__read_result with uri "${URI}" and offset 4.]`,
    );
    expect(result.content).toEqual([text(3), expect.objectContaining({ type: 'resource_link' })]);
  });

  it('may be all that there is', () => {
    const { result, kept } = cut({ content: [], structuredContent }, { isStructureFixed: () => false });
    const json = JSON.stringify(structuredContent);
    expect(kept).toMatchObject({ text: json, length: json.length });
    expect(result.content).toEqual([expect.objectContaining({ uri: URI })]);
  });

  it('leaves the text whole if the text is short, and is left out beside a long text, too', () => {
    const options = { isStructureFixed: () => false };
    const { result, kept } = cut({ content: [text(5_000)], structuredContent }, options);
    expect(parts(result.content[0].text)).toMatchObject({ from: 500, to: 4_500 });
    expect(result.structuredContent.trunkline).toContain('bytes 5001 to');
    expect(kept?.text).toBe(`${'x'.repeat(5_000)}\n${JSON.stringify(structuredContent)}`);
  });

  it('stays beside a text that is cut if the tool has a schema', () => {
    const { result } = cut({ content: [text(5_000)], structuredContent });
    expect(result.structuredContent).toEqual(structuredContent);
    expect(result.content[0].text).toMatch(NOTE);
  });
});

describe('images, audio and binary resources that are too large together', () => {
  const image = (length: number, data = Buffer.alloc(length, 7).toString('base64')) => ({
    ...{ type: 'image', data, mimeType: 'image/png', annotations: { audience: ['user'] } },
  });
  const options = { maxBytes: Number.POSITIVE_INFINITY, maxBinaryBytes: 1_000 };

  it('stay while they fit, and become links otherwise', () => {
    const audio = { ...image(300), type: 'audio', mimeType: 'audio/wav' };
    const resource = { uri: 'file:///a.pdf', mimeType: 'application/pdf', blob: image(1_001).data };
    const blocks = [image(600), audio, { type: 'resource', resource }, image(101), image(100), text(5_000)];
    const { result, all } = cut({ content: blocks }, options);
    const [, , ofResource, ofImage] = result.content;
    expect(result.content.filter((_: Message, index: number) => ![2, 3].includes(index))).toEqual(
      blocks.filter((_, index) => ![2, 3].includes(index)),
    );
    expect(ofResource).toEqual({
      type: 'resource_link',
      uri: URI,
      name: 'file:///a.pdf',
      mimeType: 'application/pdf',
      size: 1_001,
      description: `Trunkline left out a binary resource of 1001 bytes here. To get it, read the resource ${URI}.`,
    });
    expect(ofImage).toMatchObject({
      ...{ type: 'resource_link', name: 'image of t', mimeType: 'image/png', size: 101 },
      annotations: { audience: ['user'] },
    });
    expect(all).toEqual([
      { text: resource.blob, length: 1_001, isBinary: true, mimeType: 'application/pdf' },
      { text: image(101).data, length: 101, isBinary: true, mimeType: 'image/png' },
    ]);
  });

  it.each([0, 1, 2])(
    'have the size of their bytes, with %i characters of padding, also if these are escapes',
    (more) => {
      const { data } = image(3_000 + more);
      const written = data.replaceAll('/', '\\/').replaceAll('=', '\\u003d');
      const raw = `{"content":[{"type":"image","mimeType":"image/png","data":"${written}"}]}`;
      expect(cut(raw, options).all).toEqual([expect.objectContaining({ text: data, length: 3_000 + more })]);
    },
  );

  it('become texts for a client that does not know links', () => {
    const { result } = cut({ content: [image(2_000)] }, { ...options, hasLinks: false });
    expect(result.content).toEqual([
      {
        type: 'text',
        text: `[Trunkline left out an image of 2000 bytes here. To get it, read the resource ${URI}.]`,
        annotations: { audience: ['user'] },
      },
    ]);
  });

  it('stay whole if they cannot be kept', () => {
    expect(cut({ content: [image(2_000)] }, { ...options, keep: () => undefined }).isSame).toBe(true);
  });

  it('are replaced between texts that are cut, too', () => {
    const content = [text(3_000, 'a'), image(2_000), text(3_000, 'b'), image(2_000), text(3_000, 'c')];
    const { result, all } = cut({ content }, { ...options, maxBytes: 1_000 });
    expect(result.content.map(({ type, size }: Message) => size ?? type)).toEqual([
      'text',
      2_000,
      2_000,
      'text',
      9_002,
    ]);
    expect(all.map(({ isBinary }) => isBinary)).toEqual([true, true, false]);
  });
});
