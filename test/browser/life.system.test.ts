// The page while its hub, its command or its connection ends and comes back, and under many calls.
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { hubFiles, latestHub } from '../../src/hub/hub-folder.js';
import { PagePlace, show, textOf } from '../support/page-place.js';
import { repetitions } from '../support/repetitions.js';

let place: PagePlace;

beforeAll(async () => {
  // Its tests count calls, so none of an earlier test may come from the log.
  place = await PagePlace.open({ servers: { lab: { sharing: 'profile' } }, gateway: { callLog: 'off' } });
});

afterEach(async () => {
  await place.closePages();
  expect(place.faults()).toEqual([]);
});

afterAll(() => place.dispose());

const header = (page: Page) => textOf(page, 'header');

/** Resolves when the page shows the latest hub. */
async function untilHub(page: Page): Promise<void> {
  const { hubFolder: folder } = place.hub;
  const pid = readFileSync(hubFiles(folder, latestHub(folder)).pid, 'latin1').trim();
  await expect.poll(() => header(page)).toContain(`Hub, pid ${pid}, up`);
}

describe('with the page open, a hub', () => {
  it('that is killed is missed at once, and the next one is shown when a client needs it', async () => {
    const page = await place.page('servers');
    const killed = place.hub.hubPid;
    await untilHub(page);
    // It would start the next one.
    place.client.kill('SIGSTOP');
    process.kill(killed, 'SIGKILL');
    await page.getByText('No hub runs').first().waitFor();
    expect(await textOf(page)).toContain(`(pid ${killed}) was killed or has crashed`);
    // The page does not say that servers are up of which it knows nothing.
    expect(await page.getByRole('cell', { name: 'up', exact: true }).count()).toBe(0);
    place.client.kill('SIGCONT');
    await place.client.call('lab__echo');
    const next = place.hub.hubPid;
    expect(next).not.toBe(killed);
    await untilHub(page);
    await page.getByRole('cell', { name: 'up', exact: true }).waitFor();
    expect(await textOf(page)).not.toContain('No hub runs');
  });

  it('that `trunkline hub restart` moves is followed to the next one', async () => {
    const page = await place.page('clients');
    const before = place.hub.hubPid;
    await untilHub(page);
    expect(await place.run('hub', 'restart')).toMatchObject({ code: 0 });
    await expect.poll(() => place.hub.hubPids.filter((pid) => pid !== before)).toHaveLength(1);
    await untilHub(page);
    await page.getByRole('row', { name: /^test 1 2025-11-25/ }).waitFor();
  });

  it('that was stopped comes back on the page when a client starts the next one', async () => {
    const page = await place.page('servers');
    await untilHub(page);
    expect(await place.run('stop')).toMatchObject({ code: 0 });
    await page.getByText('No hub runs').first().waitFor();
    // The configuration is still known.
    await page.getByRole('row', { name: /lab/ }).waitFor();
    await place.client.call('lab__echo');
    await untilHub(page);
  });
});

describe('a page', () => {
  it('opens before any hub runs, and says how to get one', async () => {
    await place.run('stop');
    const page = await place.page();
    await page.getByText('No hub runs').first().waitFor();
    expect(await textOf(page)).toContain('The next client that connects starts one');
    await place.client.call('lab__echo');
    await untilHub(page);
  });

  it('whose command has ended says so', async () => {
    const web = place.startWeb();
    const page = await place.page('servers', { web });
    await page.getByRole('row', { name: /lab/ }).waitFor();
    await web.end('SIGKILL');
    await page.getByText('trunkline web does not answer').first().waitFor();
    expect(await textOf(page)).toContain('What it shows is from');
    expect(await header(page)).toContain('not connected');
    expect(place.faults(/ERR_CONNECTION_(REFUSED|RESET)|ERR_INCOMPLETE_CHUNKED_ENCODING/)).toEqual([]);
  });

  it('whose command runs again at the same port says that its session has ended', async () => {
    const first = place.startWeb();
    const page = await place.page('servers', { web: first });
    await page.getByRole('row', { name: /lab/ }).waitFor();
    await first.end();
    const again = place.startWeb(['--port', new URL(await first.origin).port]);
    await again.origin;
    await page.getByText('The session has ended').waitFor();
    await page.goto(await again.url());
    await page.getByRole('heading', { name: 'Needs you' }).waitFor();
    expect(place.faults(/ERR_CONNECTION_(REFUSED|RESET)|ERR_INCOMPLETE_CHUNKED_ENCODING|status of 401/)).toEqual([]);
  });

  it('keeps its part, its filter and its session over a reload', async () => {
    const page = await place.page('tools?words=echo');
    await page.getByRole('row', { name: /lab__echo/ }).waitFor();
    await page.reload();
    await page.getByRole('row', { name: /lab__echo/ }).waitFor();
    expect(await page.getByRole('row').count()).toBe(2);
    expect(new URL(page.url()).hash).toBe('#/tools?words=echo');
  });

  it('that is hidden for a minute leaves its stream to another tab, and has news when it is seen again', async () => {
    const page = await (await place.context()).newPage();
    await page.clock.install();
    await page.goto(await place.web.url());
    await page.locator('main h1').waitFor();
    await page.clock.runFor(1_000);
    await untilHub(page);
    const see = (state: string) =>
      page.evaluate(`{
        Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }`);
    const other = await page.context().newPage();
    await other.goto(`${await place.web.origin}/#/clients`);
    const news = async (of: Page) => {
      await page.clock.runFor(1_000);
      return await textOf(of);
    };
    await expect.poll(() => news(other)).toContain('1 client,');
    const closed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/stream'));
    await see('hidden');
    await page.clock.runFor(61_000);
    await closed;
    const client = await place.hub.client();
    await other.getByText('2 clients,').waitFor();
    await show(page, 'clients');
    expect(await news(page)).toContain('1 client,');
    await see('visible');
    await expect.poll(() => news(page)).toContain('2 clients,');
    await client.end();
  });
});

it('the definition of a tool is shown as clients get it', async () => {
  const page = await place.page('tools?words=lab__echo');
  await page.getByRole('button', { name: 'lab__echo', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'lab__echo' });
  await dialog.getByText('"inputSchema"').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await dialog.waitFor({ state: 'hidden' });
});

// A browser has six connections to a host.
it('seven tabs of one browser share a session and a stream, which outlives the tab that reads it', async () => {
  const first = await place.page('clients');
  const pages = [first];
  while (pages.length < 7) {
    const page = await first.context().newPage();
    await page.goto(`${await place.web.origin}/#/clients`);
    pages.push(page);
  }
  for (const page of pages) await page.getByRole('row', { name: /^test 1/ }).waitFor();
  const other = await place.hub.client();
  for (const page of pages) await page.getByText('2 clients').first().waitFor();
  await first.close();
  await other.end();
  for (const page of pages.slice(1)) await page.getByText('1 client,').first().waitFor();
  await place.client.call('lab__echo');
  for (const page of pages.slice(1)) {
    await show(page, 'calls');
    await page.getByText('1 call since').waitFor();
  }
});

it('calls that end while a page shows another part are in its list, which goes on after a pause', async () => {
  // A command of its own knows no earlier calls.
  const page = await place.page('calls', { web: place.startWeb() });
  await page.getByText('No call yet').waitFor();
  await place.client.call('lab__echo');
  await page.getByText('1 call since').waitFor();
  await show(page, 'servers');
  await page.getByRole('row', { name: /lab/ }).waitFor();
  await place.client.call('lab__echo');
  await show(page, 'calls');
  await page.getByText('2 calls since').waitFor();
  await page.getByRole('button', { name: '×2' }).click();
  await page.getByRole('link', { name: 'lab__echo' }).last().click();
  await page.getByRole('heading', { name: 'Trunkline and server' }).waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Pause' }).click();
  await place.client.call('lab__echo');
  await page.getByText('2 calls since').getByText('paused, 1 newer').waitFor();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('3 calls since').waitFor();
  expect(await textOf(page)).not.toContain('paused');
});

it('an opened call has its messages, and its list, also after a reload', async () => {
  // A command of its own knows no earlier calls.
  const page = await place.page('calls', { web: place.startWeb() });
  await page.getByText('No call yet').waitFor();
  await place.client.call('lab__echo');
  await page.getByRole('link', { name: 'lab__echo' }).click();
  await page.getByRole('heading', { name: 'Trunkline and server' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Trunkline and server' }).waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByText('1 call since').waitFor();
});

it('a flood of calls is counted to the last one, and leaves the tab below 40 MB', async () => {
  // A command of its own knows no earlier calls.
  const page = await place.page('calls', { web: place.startWeb() });
  await page.getByText('No call yet').waitFor();
  const count = repetitions({ full: 100_000, short: 10_000 });
  let begun = 0;
  const caller = async () => {
    while (begun < count) {
      begun += 1;
      await place.client.call('lab__echo', { begun });
      place.client.forget();
    }
  };
  await Promise.all(Array.from({ length: 64 }, caller));
  const shown = async () => {
    const text = await textOf(page);
    const numbers = /([\d,]+) calls since|([\d,]+) of ([\d,]+) calls/.exec(text);
    const left = /, ([\d,]+) more, not shown/.exec(text)?.[1] ?? '0';
    return Number((numbers?.[1] ?? '0').replaceAll(',', '')) + Number(left.replaceAll(',', ''));
  };
  await expect.poll(shown).toBe(count);
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  expect(usedSize).toBeLessThan(40e6);
  // The page still works.
  await show(page, 'servers');
  await page.getByRole('row', { name: /lab/ }).waitFor();
});
