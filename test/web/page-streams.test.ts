import { describe, expect, it } from 'vitest';
import type { CallRow, Frame } from '../../src/web/contract.js';
import { PageStream, PageStreams, STREAM_LIMITS } from '../../src/web/page-streams.js';
import { FakeClock } from '../support/fake-clock.js';
import { HELLO, ScriptedSource, STATE, StreamReader, WebPlace } from './web-place.js';

function call(id: number, outcome: CallRow['outcome'] = 'ok'): CallRow {
  const rest = { server: 'one', method: 'tools/call', name: 'read', reason: null, ms: 1, queueMs: 0, serverMs: 1 };
  return { id, at: id, session: 1, client: 'test', outcome, bytesIn: 1, bytesOut: 1, ...rest };
}

function calls(from: number, count: number, outcome?: CallRow['outcome']): Frame {
  return { kind: 'calls', calls: Array.from({ length: count }, (_, at) => call(from + at, outcome)), left: {} };
}

function output(from: number, count: number, isFirst = false): Frame {
  const lines = Array.from({ length: count }, (_, at) => ({ at: 0, text: `line ${from + at}` }));
  return { kind: 'output', server: 'one', lines, isFirst, left: 0 };
}

/** A stream whose connection is an array, and takes more as long as `takes` is true. */
function stream(shown: { calls?: boolean; output?: string } = {}) {
  const clock = new FakeClock();
  const sent: { at: number; text: string }[] = [];
  const sink = {
    takes: true,
    isAlive: true,
    ends: 0,
  };
  const page = new PageStream(
    { calls: shown.calls ?? false, output: shown.output },
    {
      write: (text) => {
        sent.push({ at: clock.now(), text });
        return sink.takes;
      },
      isAlive: () => sink.isAlive,
      end: () => {
        sink.ends += 1;
      },
    },
    clock,
  );
  const frames = () =>
    sent.flatMap(({ text }) => (text.startsWith(':') ? [] : [JSON.parse(text.slice(text.indexOf('{'))) as Frame]));
  return { clock, sent, sink, page, frames };
}

describe('the stream of a page', () => {
  it('sends at most ten frames a second, in the order in which their kinds came', () => {
    const { clock, sent, page, frames } = stream({ calls: true });
    page.offer(HELLO);
    page.offer(STATE);
    for (let at = 0; at < 300; at += 1) {
      page.offer(calls(at, 1));
      page.offer({ kind: 'usage', at, servers: [] });
      clock.advance(10);
    }
    expect(
      frames()
        .slice(0, 4)
        .map(({ kind }) => kind),
    ).toEqual(['hello', 'state', 'calls', 'usage']);
    const times = sent.map(({ at }) => at);
    expect(times.slice(1).every((at, index) => at - (times[index] ?? 0) >= 100)).toBe(true);
    expect(sent).toHaveLength(31);
    expect(sent[3]?.text).toMatch(/^id: 4\ndata: \{.*\}\n\n$/);
    page.close();
    expect(clock.pending).toBe(0);
  });

  it('has at most 200 calls in a frame, and counts the others by outcome', () => {
    const { clock, page, frames } = stream({ calls: true });
    page.offer(HELLO);
    page.offer(calls(1, 150));
    page.offer(calls(151, 100));
    page.offer({ ...calls(251, 10, 'failed'), left: { ok: 3 } } as Frame);
    clock.advance(100);
    const [, frame] = frames();
    expect(frame).toMatchObject({ kind: 'calls', left: { ok: 53, failed: 10 } });
    expect(frame?.kind === 'calls' && frame.calls.map(({ id }) => id)).toEqual(range(1, 200));
  });

  it('has at most 200 lines in a frame, keeps the last 500, and counts the others', () => {
    const { clock, page, frames } = stream({ output: 'one' });
    page.offer(HELLO);
    page.offer(output(1, 500, true));
    page.offer(output(501, 30));
    clock.advance(1_000);
    const parts = frames().flatMap((frame) => (frame.kind === 'output' ? [frame] : []));
    expect(parts.map(({ lines, isFirst, left }) => [lines.length, isFirst, left])).toEqual([
      [200, true, 30],
      [200, false, 0],
      [100, false, 0],
    ]);
    expect(parts.flatMap(({ lines }) => lines).map(({ text }) => text)).toEqual(
      range(31, 530).map((at) => `line ${at}`),
    );
  });

  it('sends only what its page shows', () => {
    const { clock, page, frames } = stream({ output: 'two' });
    page.offer(calls(1, 1));
    page.offer(output(1, 1));
    page.offer(STATE);
    clock.advance(1_000);
    expect(frames()).toEqual([STATE]);
  });

  it('holds the newest state and a bounded number of calls while its page reads nothing', () => {
    const { clock, sink, page, frames, sent } = stream({ calls: true });
    sink.takes = false;
    page.offer(HELLO);
    for (let at = 1; at <= 1_000; at += 1) {
      page.offer({ ...STATE, at } as Frame);
      page.offer(calls(at, 1));
      clock.advance(10);
    }
    expect(sent).toHaveLength(1);
    sink.takes = true;
    page.drained();
    clock.advance(100);
    expect(frames().slice(1)).toMatchObject([
      { kind: 'state', at: 1_000 },
      { kind: 'calls', left: { ok: 800 } },
    ]);
  });

  it('has a comment each 15 s, and ends if its page reads nothing for a minute', () => {
    const { clock, sink, page, sent } = stream();
    clock.advance(30_000);
    expect(sent).toEqual([
      { at: 15_000, text: ': \n\n' },
      { at: 30_000, text: ': \n\n' },
    ]);
    sink.takes = false;
    page.offer(STATE);
    clock.advance(45_000);
    expect(sink.ends).toBe(0);
    clock.advance(15_000);
    expect(sink.ends).toBe(1);
    expect(sent).toHaveLength(3);
  });

  it('ends when its session has ended', () => {
    const { clock, sink } = stream();
    sink.isAlive = false;
    clock.advance(STREAM_LIMITS.heartbeatMs);
    expect(sink.ends).toBe(1);
  });
});

describe('all streams', () => {
  it('share one following, which is told what they show, and ends with the last of them', () => {
    const scripted = new ScriptedSource();
    const streams = new PageStreams(scripted.source);
    const [one, two] = [stream({ calls: true }), stream({ output: 'one' })];
    streams.add(one.page);
    streams.add(two.page);
    streams.remove(one.page);
    streams.remove(two.page);
    streams.remove(two.page);
    expect(scripted.followed).toEqual([
      { calls: true, outputs: new Set() },
      { calls: true, outputs: new Set(['one']) },
      { calls: false, outputs: new Set(['one']) },
      'closed',
    ]);
    expect(scripted.followings).toBe(1);
    expect([one, two].map(({ clock }) => clock.pending)).toEqual([0, 0]);
    streams.add(stream().page);
    expect(scripted.followings).toBe(2);
  });

  it('begin with the state that others have, and with the output that others follow', () => {
    const scripted = new ScriptedSource();
    const streams = new PageStreams(scripted.source);
    streams.add(stream({ output: 'one' }).page);
    scripted.send(output(1, 400, true));
    scripted.send(output(401, 200));
    scripted.send({ ...STATE, at: 2 } as Frame);
    const late = stream({ output: 'one' });
    streams.add(late.page);
    late.clock.advance(1_000);
    const [hello, state, ...parts] = late.frames();
    expect([hello, state]).toEqual([HELLO, { ...STATE, at: 2 }]);
    expect(parts[0]).toMatchObject({
      kind: 'output',
      isFirst: true,
      lines: [{ text: 'line 101' }, ...Array(199).fill({})],
    });
    expect(parts).toHaveLength(3);
  });
});

describe('a stream on the wire', () => {
  it('is ended by the page, which ends the following', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const response = await place.begin('GET', '/stream?calls=1&output=one', headers);
    expect(response.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    const reader = new StreamReader(response);
    expect(await reader.frame()).toEqual(HELLO);
    place.clock.advance(100);
    expect(await reader.frame()).toEqual(STATE);
    expect(place.scripted.followed).toEqual([{ calls: true, outputs: new Set(['one']) }]);
    response.destroy();
    await expect.poll(() => place.scripted.followed.at(-1)).toBe('closed');
    expect(place.clock.pending).toBe(0);
  });

  it('shares the following with one that is opened at the same time, also while the source loads', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const both = await Promise.all([place.begin('GET', '/stream', headers), place.begin('GET', '/stream', headers)]);
    expect(place.scripted.followings).toBe(1);
    for (const response of both) response.destroy();
    await expect.poll(() => place.scripted.followed.at(-1)).toBe('closed');
  });

  it('fails if the source fails, and begins when the source can be had', async () => {
    const scripted = new ScriptedSource();
    let fails = true;
    const follow: typeof scripted.source.follow = (take) => {
      if (fails) throw new Error('no');
      return scripted.source.follow(take);
    };
    const loadSource = async () => {
      if (fails) throw new Error('not yet');
      return { ...scripted.source, follow };
    };
    const place = await WebPlace.open({ loadSource });
    const { headers } = await place.session();
    expect(await place.request('GET', '/stream', headers)).toMatchObject({ status: 500 });
    fails = false;
    expect(await place.request('GET', '/tools', headers)).toMatchObject({ status: 200 });
    fails = true;
    expect(await place.request('GET', '/stream', headers)).toMatchObject({ status: 500 });
    expect(place.clock.pending).toBe(0);
    fails = false;
    const response = await place.begin('GET', '/stream', headers);
    expect(await new StreamReader(response).frame()).toEqual(HELLO);
    response.destroy();
    expect(place.faults).toEqual([new Error('not yet'), new Error('no')]);
    await expect.poll(() => place.clock.pending).toBe(0);
  });

  it('is refused beyond the sixteenth, and possible again when one of them ends', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const open = [];
    for (let at = 0; at < STREAM_LIMITS.streams; at += 1) open.push(await place.begin('GET', '/stream', headers));
    expect(await place.request('GET', '/stream', headers)).toMatchObject({ status: 429 });
    open[0]?.destroy();
    await expect
      .poll(async () => {
        const again = await place.begin('GET', '/stream', headers);
        again.destroy();
        return again.statusCode;
      })
      .toBe(200);
    for (const response of open) response.destroy();
    await expect.poll(() => place.clock.pending).toBe(0);
  });

  it('F303: waits for a page that reads nothing, and tells it later how much is missing', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const response = (await place.begin('GET', '/stream?output=one', headers)).pause();
    const lines = Array.from({ length: 200 }, () => ({ at: 0, text: 'x'.repeat(8_000) }));
    for (let at = 0; at < 100; at += 1) {
      place.scripted.send({ kind: 'output', server: 'one', lines, isFirst: false, left: 0 });
      place.clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const reader = new StreamReader(response);
    let frames = 0;
    for (let known = 0; known < 20_000; frames += 1) {
      const frame = await reader.frame();
      if (frame.kind === 'output') known += frame.lines.length + frame.left;
      place.clock.advance(100);
    }
    // The buffers of the sockets hold some of the 100 frames, each of 1.6 MB.
    expect(frames).toBeLessThan(50);
    response.destroy();
    await expect.poll(() => place.clock.pending).toBe(0);
  });

  it('F303: is closed if the page reads nothing for a minute', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const response = (await place.begin('GET', '/stream?output=one', headers)).pause();
    const lines = Array.from({ length: 200 }, () => ({ at: 0, text: 'x'.repeat(50_000) }));
    for (let at = 0; at < 3; at += 1) {
      place.scripted.send({ kind: 'output', server: 'one', lines, isFirst: false, left: 0 });
      place.clock.advance(100);
    }
    place.clock.advance(75_000);
    await expect.poll(() => place.scripted.followed.at(-1)).toBe('closed');
    response.destroy();
  });
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}
