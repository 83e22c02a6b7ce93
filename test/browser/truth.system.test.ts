// What the page says is what the hub says, and no text of a server or client is more than text.
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Message } from '../support/gateway-process.js';
import { PagePlace, show, textOf } from '../support/page-place.js';
import { PATIENCE_MS } from '../support/processes.js';

const LISTED = fileURLToPath(new URL('../fixtures/servers/listed.mjs', import.meta.url));
const RAW_NAME = 'admin\u200b\u202etxt.exe<img src=x onerror=alert(1)>';
const RAW_TEXT =
  '<img src=x onerror=alert(1)><script>alert(2)</script>\u202egnp.\u2066\u200b\u0007\u001b[31mred\u001b[0m\u009b5m';
const object = { type: 'object' };
const HOSTILE = [
  { name: 'say', title: RAW_NAME, description: RAW_TEXT, inputSchema: object },
  { name: 'de\u200blete\u202e', inputSchema: object },
  { name: `x${'\u0430'.repeat(40)}`, inputSchema: object },
];
const PARTS = ['needs', 'servers', 'calls', 'tools', 'clients', 'logins', 'recording'];

let place: PagePlace;

beforeAll(async () => {
  const shared = { sharing: 'profile' };
  place = await PagePlace.open({
    servers: {
      everything: { package: '@modelcontextprotocol/server-everything' },
      files: { package: '@modelcontextprotocol/server-filesystem', args: [import.meta.dirname] },
      memory: { package: '@modelcontextprotocol/server-memory' },
      lab: shared,
      hostile: { program: LISTED, args: ['file=hostile.json'], ...shared },
      emptied: { program: LISTED, args: ['file=emptied.json'], ...shared },
      broken: { program: LISTED, args: ['file=missing.json'], ...shared },
    },
    // Calls of earlier tests would be counted, too.
    gateway: { callLog: 'off' },
    files: {
      'hostile.json': JSON.stringify(HOSTILE),
      'emptied.json': JSON.stringify([{ name: 'once', inputSchema: object }]),
    },
  });
  const ready = async () => (await place.status()).servers.filter(({ state }: Message) => state === 'ready');
  await vi.waitFor(async () => expect(await ready()).toHaveLength(6), { timeout: PATIENCE_MS, interval: 200 });
});

afterEach(async () => {
  await place.closePages();
  expect(place.faults()).toEqual([]);
});

afterAll(() => place.dispose());

/** The cells of a table's rows by the first cell and the title of the column. */
async function cells(page: Page): Promise<Record<string, Record<string, string>>> {
  return await page.evaluate(`Object.fromEntries([...document.querySelectorAll('main table.cards tbody tr')].map((row) =>
    [row.cells[0].innerText.trim(), Object.fromEntries([...row.cells].map((cell) => [cell.dataset.title, cell.innerText.trim()]))]))`);
}

/** The number beside the link of a part. */
async function count(page: Page, part: string): Promise<number> {
  const text = await textOf(page, `nav a[href='#/${part}']`);
  return Number(/\d+/.exec(text)?.[0] ?? Number.NaN);
}

/** Resolves when the page gets the calls that end from now on. */
const watched = (page: Page) => page.getByText(/No call yet|calls? since/).waitFor();

describe('the totals of the page', () => {
  it('equal those of the status at the same moment', async () => {
    for (const name of ['lab__echo', 'lab__echo', 'memory__read_graph', 'everything__echo'])
      await place.client.call(name, { message: 'm' });
    const page = await place.page('servers');
    const same = async () => {
      const before = await place.status();
      const [rows, servers, tools, clients] = [
        await cells(page),
        await count(page, 'servers'),
        await count(page, 'tools'),
        await count(page, 'clients'),
      ];
      return { before, rows, servers, tools, clients };
    };
    await expect.poll(async () => Object.keys((await same()).rows)).toHaveLength(7);
    const { before, rows, ...counts } = await same();
    expect(counts).toEqual({ servers: before.servers.length, tools: before.tools, clients: before.hub.clients });
    for (const [server, row] of Object.entries(rows)) {
      const { servers } = (await place.client.call('trunkline__status', { server })).message.result.structuredContent;
      const [{ tools, instances }] = servers;
      const pids = instances.map(({ pid }: Message) => pid);
      const sum = (member: string) => String(instances.reduce((all: number, each: Message) => all + each[member], 0));
      // A server that fails at every start changes between the two.
      if (server === 'broken') continue;
      expect(row).toMatchObject({
        Process: pids.length > 1 ? `${pids.length} processes` : `pid ${pids[0]}`,
        Tools: String(tools.exposed.length),
        Restarts: sum('restarts'),
        Instances: String(instances.length),
        Clients: sum('clients'),
      });
    }
  });

  it('of calls are those that a client made, by outcome', async () => {
    // A command of its own knows no earlier calls.
    const page = await place.page('calls', { web: place.startWeb() });
    await page.getByText('No call yet').waitFor();
    for (let at = 0; at < 7; at += 1) await place.client.call('lab__echo', { at });
    for (let at = 0; at < 3; at += 1) await place.client.call('lab__unknown', { at });
    await place.client.call('files__read_file', { path: '/nowhere' });
    await page.getByText(/^\d+ calls since/).waitFor();
    await expect.poll(() => textOf(page, 'main p.quiet')).toMatch(/^11 calls since [\d:]+, 4 not ok$/);
    await page.getByRole('button', { name: '×7' }).waitFor();
  });

  it('of the tools are those that the client gets', async () => {
    const page = await place.page('tools?state=shown');
    const listed = await place.client.listTools();
    await page.getByText(`${listed.length - 1} tools shown, and 1 of Trunkline itself`).waitFor();
    const names = await page.evaluate(
      "[...document.querySelectorAll('main tbody tr td:first-child code')].map((each) => each.innerText)",
    );
    expect((names as string[]).toSorted()).toEqual(listed.map(({ name }) => name).toSorted());
  });

  it('of tokens, and the advice to save some, are those of the command', async () => {
    const { stdout } = await place.run('tools', '--sort', 'size');
    const total = Number(/about (\d+) tokens/.exec(stdout)?.[1]).toLocaleString('en-US');
    const [, server, yaml = ''] = /in the entry of (\w+): {2}(.*)/.exec(stdout) ?? [];
    const page = await place.page('tools');
    await page.getByText(`A model that gets the whole list reads about ${total} tokens`).waitFor();
    await page.getByText(`In the entry of ${server}: ${yaml}`).waitFor();
  });
});

it('loading is not zero: no part shows a number before the first state has come', async () => {
  const page = await (await place.context()).newPage();
  // Neither the stream nor an answer comes.
  await page.route(/\/(stream|tools|logins|findings)(\?|$)/, () => {});
  await page.goto(await place.web.url());
  await page.locator('main h1').waitFor();
  for (const part of PARTS) {
    await show(page, part);
    await expect.poll(() => page.locator('nav a[aria-current=page]').getAttribute('href')).toBe(`#/${part}`);
    expect(await textOf(page, 'nav')).not.toMatch(/\d/);
    expect(await textOf(page)).not.toMatch(/\b0\b|Nothing of the hub needs|No call|No hub|No client/);
  }
});

it('a server without tools after its restart is not called healthy', async () => {
  const page = await place.page('servers');
  await page.getByRole('row', { name: /^emptied up .* 1 / }).waitFor();
  writeFileSync(place.file('emptied.json'), '[]');
  expect((await place.run('restart', 'emptied')).code).toBe(0);
  await expect.poll(async () => (await cells(page)).emptied).toMatchObject({ Tools: '0', Restarts: '1' });
  await show(page, 'needs');
  await page
    .getByRole('article')
    .filter({ has: page.getByRole('link', { name: 'emptied' }) })
    .waitFor();
});

describe('hostile text', () => {
  /** Characters that hide, reorder or control text, in texts, attributes and values of the document. */
  const hidden = (page: Page) =>
    page.evaluate(`{
      const texts = [document.title, document.documentElement.textContent];
      for (const each of document.querySelectorAll('*')) texts.push(...[...each.attributes].map(({ value }) => value), each.value ?? '');
      texts.map(String).filter((text) => /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff]/u.test(text));
    }`);
  const elements = (page: Page) =>
    page.evaluate("document.querySelectorAll('img, script:not([src]), iframe, object, embed, style').length");

  it('of servers, tools, logs, results and clients is drawn as text that hides nothing, in every part', async () => {
    const evil = await place.hub.client({}, { handshake: false });
    const clientInfo = { name: RAW_NAME, version: RAW_TEXT, title: RAW_TEXT };
    await evil.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    const page = await place.page('calls');
    await watched(page);
    await place.client.call('hostile__say', { text: RAW_TEXT, log: RAW_TEXT });
    await evil.call('hostile__say', { text: RAW_TEXT, [RAW_NAME]: RAW_TEXT });
    await evil.call(RAW_NAME, {});
    await expect.poll(() => page.getByRole('link', { name: /say/ }).count()).toBe(2);
    await page.getByRole('link', { name: /say/ }).first().click();
    await page.getByRole('dialog').getByText('Server → Trunkline').waitFor();
    expect(await hidden(page)).toEqual([]);
    await page.keyboard.press('Escape');
    const shown: Record<string, Locator> = {
      calls: page.getByRole('link', { name: /say/ }).first(),
      tools: page.getByText('admin\\u{200b}').first(),
      'servers/hostile': page.getByLabel('Output').getByText('red'),
    };
    for (const part of [...PARTS, 'servers/hostile']) {
      await show(page, part);
      await (shown[part] ?? page.locator('main').locator('table, article, p').first()).waitFor();
      expect([part, await hidden(page), await elements(page)]).toEqual([part, [], 0]);
    }
    await show(page, 'clients');
    await page.getByText('admin\\u{200b}\\u{202e}txt.exe<img src=x onerror=alert(1)>').first().waitFor();
    await evil.end();
  });

  it('in the address of the page is text, too', async () => {
    const page = await place.page(`servers/${encodeURIComponent(RAW_TEXT)}`);
    await page.locator('h1').filter({ hasText: 'red' }).waitFor();
    await show(page, `tools?words=${encodeURIComponent('"><img src=x onerror=alert(1)>')}`);
    await page.getByRole('searchbox').first().waitFor();
    expect(await elements(page)).toBe(0);
  });

  it('of a megabyte in a result leaves the page usable, and is shown up to a bound until more is asked for', async () => {
    const page = await place.page('calls');
    await watched(page);
    await place.client.call('hostile__say', { text: 'x'.repeat(1024 * 1024) });
    await page
      .getByRole('row', { name: /say.* MiB/ })
      .getByRole('link')
      .click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Server → Trunkline').waitFor();
    expect(await textOf(page, 'dialog')).toContain('1 MiB');
    expect((await textOf(page, 'dialog')).length).toBeLessThan(100_000);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  });
});

it('a configuration that was removed is told', async () => {
  const page = await place.page('servers');
  await page.getByRole('row', { name: /^lab/ }).waitFor();
  rmSync(place.config);
  await page
    .getByText(/configuration/)
    .first()
    .waitFor();
});
