import { readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { sharedPlace } from '../support/hub-place.js';

const RESULTS = { max: '100kB' };
const TOOL = 'trunkline__read_result';

it('clients of a hub get the two ends of a result of 12 MiB, and read the rest, each its own', async () => {
  const place = sharedPlace({ servers: { lab: {} }, config: { defaults: { results: RESULTS } } });
  const [one, other] = [await place.client(), await place.client()];
  // In the message, the four characters are six bytes.
  const mark = 'ab\u00e9"';
  const length = 8 * 1024 * 1024;
  const { raw, message } = await one.call('lab__big', { bytes: length, mark });
  expect(raw.length).toBeLessThan(101_000);
  const [block, link] = message.result.content;
  expect(block.text).toContain('Trunkline left out');
  expect(link).toMatchObject({ type: 'resource_link', name: 'result of lab__big' });
  const { uri, size } = link;
  const whole = (await one.request('resources/read', { uri })).message.result.contents[0].text;
  expect(whole).toHaveLength(length);
  expect(whole.replaceAll(mark, '')).toBe('');
  expect(size).toBe(Buffer.byteLength(whole));
  const part = (await one.call(TOOL, { uri, offset: size - 5 })).message.result.content[1].text;
  expect(part).toBe(mark);
  expect((await other.request('resources/read', { uri })).message.error.code).toBe(-32002);
  expect((await other.call(TOOL, { uri })).message.result.isError).toBe(true);
  const files = readdirSync(place.folder, { recursive: true, encoding: 'utf8' });
  expect(files.filter((file) => /result/.test(file))).toEqual([]);
});
