import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { Recorder } from '../../../src/extras/record/record-to.js';
import { createRecording, readRecording } from '../../../src/extras/record/recording-file.js';
import { KnownSecrets } from '../../../src/host/observe/redact.js';
import { MessageFeed } from '../../../src/wire/io/message-feed.js';
import { unedited } from '../../../src/wire/jsonrpc/message.js';
import { folderWith } from '../../config/files.js';
import { NothingLeft } from '../../support/nothing-left.js';
import { bytesOf } from '../../support/wire.js';

const ABOUT = { version: '1.2.3', configDigest: 'abc', servers: ['files'], revision: '2025-11-25' };

let folder: string;
let file: string;
let faults: unknown[];
let feed: MessageFeed;

beforeEach(() => {
  folder = folderWith();
  file = join(folder, 'r.jsonl');
  faults = [];
  feed = new MessageFeed(() => 0);
});
async function recording({ max = 1_000_000, secret = 'some-secret-1' } = {}): Promise<Recorder> {
  const secrets = new KnownSecrets();
  secrets.know([{ env: { API_KEY: secret }, args: [] }]);
  const sink = await createRecording(file, max, ABOUT);
  return new Recorder({ feed, findSecrets: secrets.find, sink, now: () => 0, onFault: (error) => faults.push(error) });
}

const AT_SERVER = { number: 2, server: 'files~2', generation: 3 };
const AT_CLIENT = { number: 1, client: () => ({ name: 'agent', version: '1' }) };

function pass(text: string | Uint8Array, connection: Parameters<MessageFeed['passed']>[2] = AT_SERVER): void {
  const direction = connection === AT_SERVER ? 's>g' : 'c>g';
  feed.passed(direction, unedited(typeof text === 'string' ? bytesOf(text) : text), connection);
}

/** The lines of a recording without messages. */
async function firstLines(): Promise<string[]> {
  await (await recording()).close();
  return readFileSync(file, 'utf8').split('\n');
}

describe('a recording', () => {
  it('has a header, and each message as it was, with its connection', async () => {
    const recorder = await recording();
    pass('{ "id":1.0 }', AT_CLIENT);
    pass('{"result":{}}');
    await recorder.close();
    const { header, entries, dropped } = await readRecording(file);
    expect(header).toMatchObject({ trunkline: 'recording', format: 1, part: 1, ...ABOUT });
    expect(dropped).toBe(0);
    expect(entries).toEqual([
      { line: 2, t: expect.any(Number), dir: 'c>g', conn: 1, client: 'agent/1', raw: '{ "id":1.0 }' },
      {
        ...{ line: 3, t: expect.any(Number), dir: 's>g', server: 'files', instance: 'files~2', gen: 3, conn: 2 },
        raw: '{"result":{}}',
      },
    ]);
  });

  it.skipIf(process.platform === 'win32')('can be read by nobody else', async () => {
    await (await recording()).close();
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('has bytes that are no text in Base64, and the size of what is too large', async () => {
    const recorder = await recording();
    pass(Uint8Array.of(0x7b, 0xff, 0x7d));
    pass(`"${'x'.repeat(5 * 1024 * 1024)}"`);
    await recorder.close();
    const { entries } = await readRecording(file);
    expect(entries).toMatchObject([{ base64: 'e/99' }, { omitted: 5 * 1024 * 1024 + 2 }]);
  });

  it('F128: has no secret, as it is, escaped, in JSON in a text, or between bytes that are no text', async () => {
    const secret = 'canary "q" \\ 7f3';
    const recorder = await recording({ secret });
    pass(JSON.stringify({ result: secret }));
    pass(JSON.stringify({ result: JSON.stringify({ deep: JSON.stringify({ secret }) }) }));
    pass(Buffer.concat([Buffer.of(0xff), Buffer.from(secret)]));
    pass(`no message: ${secret}`, { number: 9, client: () => ({ name: secret, version: '1' }) });
    await recorder.close();
    const written = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    const { entries } = await readRecording(file);
    const decoded = entries.map(({ base64 = '' }) => Buffer.from(base64, 'base64').toString('latin1'));
    expect([...written, ...decoded].join('\n')).not.toMatch(/canary|7f3/);
    expect(entries).toHaveLength(4);
  });

  it('F127: that is full keeps its newest messages and says that earlier ones are missing', async () => {
    const recorder = await recording({ max: 20_000 });
    for (let count = 0; count < 1_000; count += 1) {
      pass(`{"id":${count}}`);
      if (count % 10 === 9) await new Promise((resolve) => setImmediate(resolve));
    }
    await recorder.close();
    const sizes = readdirSync(folder).map((name) => statSync(join(folder, name)).size);
    expect(sizes).toHaveLength(2);
    for (const size of sizes) expect(size).toBeLessThanOrEqual(10_000);
    const { header, entries } = await readRecording(file);
    const first = entries[0]?.raw === undefined ? 0 : JSON.parse(entries[0].raw).id;
    expect(first).toBeGreaterThan(0);
    expect(entries.map(({ raw }) => raw)).toEqual(
      Array.from({ length: 1_000 - first }, (_, at) => `{"id":${first + at}}`),
    );
    expect(header).toMatchObject({ note: 'earlier messages were removed: the recording may have 20000 bytes' });
    expect(faults).toEqual([]);
  });

  it('becomes FILE.1 when another one is begun', async () => {
    const first = await recording();
    pass('1');
    await first.close();
    const second = await recording();
    pass('2');
    await second.close();
    expect((await readRecording(`${file}.1`)).entries).toMatchObject([{ raw: '1' }]);
    expect((await readRecording(file)).entries).toMatchObject([{ raw: '2' }]);
  });

  it('leaves no large one open that it takes the place of', async () => {
    const [header] = await firstLines();
    writeFileSync(file, `${header}\n${'{}\n'.repeat(100_000)}`);
    const nothingLeft = new NothingLeft(folder);
    await (await recording()).close();
    await nothingLeft.check();
  });

  it('takes the place of no other file and of no folder', async () => {
    writeFileSync(file, 'precious\n');
    await expect(recording()).rejects.toThrow(`${file} is there already and is no recording`);
    writeFileSync(`${file}.1`, 'precious\n');
    rmSync(file);
    await expect(recording()).rejects.toThrow(`${file}.1 is there already and is no recording`);
    expect(readFileSync(`${file}.1`, 'utf8')).toBe('precious\n');
    mkdirSync(file);
    await expect(recording()).rejects.toThrow(`${file} is there already and is no recording; name another file`);
  });

  it('can be read up to a line that was not written whole', async () => {
    const recorder = await recording();
    pass('1');
    await recorder.close();
    appendFileSync(file, '{"t":1,"dir":"c>g","co');
    expect((await readRecording(file)).entries).toMatchObject([{ raw: '1' }]);
  });

  it('ends when another process has begun one with the same name: the file of the other is left alone', async () => {
    const recorder = await recording({ max: 2_000 });
    renameSync(file, `${file}.1`);
    writeFileSync(file, 'the other\n');
    for (let count = 0; count < 20; count += 1) pass(`{"id":${count}}`);
    await recorder.close();
    expect(readFileSync(file, 'utf8')).toBe('the other\n');
    expect(String(faults[0])).toContain(`another process writes to ${file}`);
    expect(recorder.counts.dropped).toBe(20);
  });

  it('is refused if it is missing, no recording, or of a later format', async () => {
    await expect(readRecording(file)).rejects.toThrow('ENOENT');
    writeFileSync(file, '{"a":1}\n');
    await expect(readRecording(file)).rejects.toThrow('its first line is not the header of one');
    writeFileSync(file, '{"trunkline":"recording","format":2,"version":"9.0.0"}\n');
    await expect(readRecording(file)).rejects.toThrow('recorded by Trunkline 9.0.0, in a format');
  });

  it('of one server has nothing else', async () => {
    const sink = await createRecording(file, 1_000_000, ABOUT);
    const findSecrets = new KnownSecrets().find;
    const recorder = new Recorder({ feed, findSecrets, sink, server: 'files', now: () => 0, onFault: () => {} });
    pass('1', AT_CLIENT);
    pass('2');
    pass('3', { number: 4, server: 'other', generation: 1 });
    await recorder.close();
    expect((await readRecording(file)).entries).toMatchObject([{ raw: '2' }]);
  });
});
