import { describe, expect, it } from 'vitest';
import type { CallRow, Frame } from '../../../src/web/server/contract.js';
import { PageStream, PageStreams, STREAM_LIMITS } from '../../../src/web/server/page-streams.js';
import { FakeClock } from '../../support/fake-clock.js';
import { HELLO, ScriptedSource, STATE, StreamReader, WebPlace } from './web-place.js';

function call(id: number, outcome: CallRow['outcome'] = 'ok'): CallRow {
  const rest = { server: 'one', method: 'tools/call', name: 'read', reason: null, ms: 1, queueMs: 0, serverMs: 1 };
  return { id, at: id, session: 1, client: 'test', outcome, bytesIn: 1, bytesOut: 1, ...rest };
}

function calls(from: number, count: number, more: { outcome?: CallRow['outcome']; since?: number } = {}): Frame {
  const { outcome, ...about } = more;
  return {
    kind: 'calls',
    calls: Array.from({ length: count }, (_, at) => call(from + at, outcome)),
    left: {},
    ...about,
  };
}

/** A stream whose connection is an array, and takes more as long as `takes` is true. */
function stream() {
  const clock = new FakeClock();
  const sent: { at: number; text: string }[] = [];
  const sink = {
    takes: true,
    isAlive: true,
    ends: 0,
  };
  const page = new PageStream(
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

const OTHER: Frame = { kind: 'hello', isReadOnly: false, configFile: '/other/trunkline.yaml' };

describe('another configuration', () => {
  it('is not told anything that waited for a page of the configuration before', () => {
    const { clock, page, frames, sink } = stream();
    page.offer(HELLO);
    sink.takes = false;
    page.offer(STATE);
    page.offer(calls(1, 1));
    page.offer(OTHER);
    page.offer(calls(2, 1, { since: 2 }));
    sink.takes = true;
    page.drained();
    clock.advance(10 * STREAM_LIMITS.frameMs);
    expect(frames()).toEqual([HELLO, OTHER, calls(2, 1, { since: 2 })]);
    page.close();
  });

  it('begins anew for pages that are opened later', () => {
    const scripted = new ScriptedSource();
    const { clock, page, frames } = stream();
    const streams = new PageStreams(scripted.source, clock);
    const first = new PageStream({ write: () => true, isAlive: () => true, end: () => {} }, clock);
    streams.add(first);
    scripted.send(calls(1, 3, { since: 1 }));
    scripted.send(OTHER);
    streams.add(page);
    clock.advance(10 * STREAM_LIMITS.frameMs);
    expect(frames()).toEqual([OTHER]);
    streams.remove(first);
    streams.remove(page);
    streams.close();
  });
});

describe('the stream of a page', () => {
  it('sends at most ten frames a second, in the order in which their kinds came', () => {
    const { clock, sent, page, frames } = stream();
    page.offer(HELLO);
    page.offer(STATE);
    for (let at = 0; at < 300; at += 1) {
      page.offer(calls(at, 1));
      page.offer({ kind: 'recording', recording: null });
      clock.advance(10);
    }
    expect(
      frames()
        .slice(0, 4)
        .map(({ kind }) => kind),
    ).toEqual(['hello', 'state', 'calls', 'recording']);
    const times = sent.map(({ at }) => at);
    expect(times.slice(1).every((at, index) => at - (times[index] ?? 0) >= 100)).toBe(true);
    expect(sent).toHaveLength(31);
    expect(sent[3]?.text).toMatch(/^data: \{.*\}\n\n$/);
    page.close();
    expect(clock.pending).toBe(0);
  });

  it('has the latest 200 calls in a frame, and counts the others by outcome', () => {
    const { clock, page, frames } = stream();
    page.offer(HELLO);
    page.offer(calls(1, 10, { outcome: 'failed' }));
    page.offer(calls(11, 150));
    page.offer({ ...calls(161, 100), left: { ok: 3 } } as Frame);
    clock.advance(100);
    const [, frame] = frames();
    expect(frame).toMatchObject({ kind: 'calls', left: { ok: 53, failed: 10 } });
    expect(frame?.kind === 'calls' && frame.calls.map(({ id }) => id)).toEqual(range(61, 260));
  });

  it('holds the newest state and a bounded number of calls while its page reads nothing', () => {
    const { clock, sink, page, frames, sent } = stream();
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
  it('share one following, which ends some seconds after the last of them', () => {
    const scripted = new ScriptedSource();
    const clock = new FakeClock();
    const streams = new PageStreams(scripted.source, clock);
    const [one, two] = [stream(), stream()];
    streams.add(one.page);
    streams.add(two.page);
    streams.remove(one.page);
    streams.remove(two.page);
    streams.remove(two.page);
    clock.advance(STREAM_LIMITS.reloadMs - 1);
    // A page that is loaded again.
    const again = stream();
    streams.add(again.page);
    again.clock.advance(100);
    expect(again.frames()).toEqual([HELLO, STATE]);
    clock.advance(STREAM_LIMITS.reloadMs);
    expect([scripted.followings, scripted.ends]).toEqual([1, 0]);
    streams.remove(again.page);
    clock.advance(STREAM_LIMITS.reloadMs);
    expect([scripted.followings, scripted.ends]).toEqual([1, 1]);
    expect([clock, one.clock, two.clock, again.clock].map(({ pending }) => pending)).toEqual([0, 0, 0, 0]);
    streams.add(stream().page);
    expect(scripted.followings).toBe(2);
  });

  it('begin with the state that others have, and with the latest calls of the hub', () => {
    const scripted = new ScriptedSource();
    const streams = new PageStreams(scripted.source, new FakeClock());
    streams.add(stream().page);
    const first = () => {
      const late = stream();
      streams.add(late.page);
      late.clock.advance(1_000);
      return late.frames();
    };
    scripted.send(calls(0, 0, { since: 7 }));
    scripted.send(calls(11, 150));
    scripted.send({ ...STATE, at: 2 } as Frame);
    expect(first()).toEqual([HELLO, { ...STATE, at: 2 }, calls(11, 150, { since: 7 })]);
    // Calls are missing before the oldest that is kept.
    scripted.send(calls(161, 100));
    expect(first()[2]).toEqual(calls(61, 200, { since: 61 }));
    // Calls of which only the number is known are missing, too.
    scripted.send({ ...calls(261, 1), left: { ok: 9 } } as Frame);
    scripted.send(calls(262, 1));
    expect(first()[2]).toEqual(calls(63, 200, { since: 261 }));
    // Another hub.
    scripted.send(calls(0, 0, { since: 900 }));
    expect(first()[2]).toEqual(calls(0, 0, { since: 900 }));
  });
});

describe('a stream on the wire', () => {
  it('is ended by the page, which ends the following', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const response = await place.begin('GET', '/stream', headers);
    expect(response.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    const reader = new StreamReader(response);
    expect(await reader.frame()).toEqual(HELLO);
    place.clock.advance(100);
    expect(await reader.frame()).toEqual(STATE);
    expect(place.scripted.followings).toBe(1);
    response.destroy();
    await untilEnded(place);
    expect(place.clock.pending).toBe(0);
  });

  it('shares the following with one that is opened at the same time, also while the source loads', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const both = await Promise.all([place.begin('GET', '/stream', headers), place.begin('GET', '/stream', headers)]);
    expect(place.scripted.followings).toBe(1);
    for (const response of both) response.destroy();
    await untilEnded(place);
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
    await untilEnded({ clock: place.clock, scripted });
    expect(place.clock.pending).toBe(0);
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
    await untilEnded(place);
    expect(place.clock.pending).toBe(0);
  });

  it('F303: waits for a page that reads nothing, and tells it later how much is missing', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const response = (await place.begin('GET', '/stream', headers)).pause();
    const big = Array.from({ length: 200 }, (_, at) => ({ ...call(at), reason: 'x'.repeat(8_000) }));
    for (let at = 0; at < 100; at += 1) {
      place.scripted.send({ kind: 'calls', calls: big, left: {} });
      place.clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const reader = new StreamReader(response);
    let frames = 0;
    for (let known = 0; known < 20_000; frames += 1) {
      const frame = await reader.frame();
      if (frame.kind === 'calls') known += frame.calls.length + (frame.left.ok ?? 0);
      place.clock.advance(100);
    }
    // The buffers of the sockets hold some of the 100 frames, each of 1.6 MB.
    expect(frames).toBeLessThan(50);
    response.destroy();
    await untilEnded(place);
  });

  it('F303: is closed if the page reads nothing for a minute', async () => {
    const place = await WebPlace.open();
    const { headers } = await place.session();
    const response = (await place.begin('GET', '/stream', headers)).pause();
    const big = Array.from({ length: 200 }, (_, at) => ({ ...call(at), reason: 'x'.repeat(50_000) }));
    for (let at = 0; at < 3; at += 1) {
      place.scripted.send({ kind: 'calls', calls: big, left: {} });
      place.clock.advance(100);
    }
    place.clock.advance(75_000);
    await untilEnded(place);
    response.destroy();
  });
});

/** Resolves when the following has ended, some seconds after the server has noticed that its last page has gone. */
async function untilEnded({ clock, scripted }: Pick<WebPlace, 'clock' | 'scripted'>): Promise<void> {
  const ends = () => {
    clock.advance(STREAM_LIMITS.reloadMs);
    return scripted.ends;
  };
  await expect.poll(ends).toBe(scripted.followings);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}
