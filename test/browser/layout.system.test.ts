// The page with no server and with many, in windows from a phone to a desktop.
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterEach, describe, expect, it } from 'vitest';
import { PagePlace, type PagePlaceOptions, show, textOf } from '../support/page-place.js';

const LISTED = fileURLToPath(new URL('../fixtures/servers/listed.mjs', import.meta.url));
const TOOLS = Array.from({ length: 8 }, (_, at) => ({
  name: `${'list_all_the_things_of_a_kind_'.slice(0, 6 * at)}number_${at}`,
  title: 'Tool with a title',
  description: 'Lists.',
  inputSchema: { type: 'object' },
}));
/** Also the narrowest window of each layout: 768, 1000 and 1280 pixels, each without the width of a scroll bar. */
const WIDTHS = [400, 768, 785, 800, 985, 1000, 1265, 1280, 1400];

let place: PagePlace;

afterEach(async () => {
  await place.closePages();
  // A configuration with mistakes has no logins.
  const faults = place.faults(/status of 400 .*\/logins/);
  await place.dispose();
  expect(faults).toEqual([]);
});

/** Texts that cover each other, and those that leave the window or the cell of their table. */
async function faultsOf(page: Page): Promise<readonly string[]> {
  return await page.evaluate(`(() => {
    scrollTo(0, 0);
    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const parent = node.parentElement;
      // These are drawn over others, are not seen, or scroll.
      if (node.data.trim() === '' || parent.closest('.skip, .unseen, .said, .block, .picked, option') || !parent.checkVisibility()) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const cell = parent.closest('td, th')?.getBoundingClientRect();
      for (const rect of range.getClientRects()) texts.push({ text: node.data.trim().slice(0, 40), rect, cell });
    }
    const faults = [];
    for (const [index, { text, rect, cell }] of texts.entries()) {
      if (rect.right > innerWidth + 1 || rect.left < -1) faults.push(text + ' leaves the window');
      if (cell && rect.right > cell.right + 1) faults.push(text + ' leaves its cell');
      for (const other of texts.slice(index + 1)) {
        const width = Math.min(rect.right, other.rect.right) - Math.max(rect.left, other.rect.left);
        const height = Math.min(rect.bottom, other.rect.bottom) - Math.max(rect.top, other.rect.top);
        if (width > 1 && height > 3) faults.push(text + ' and ' + other.text + ' cover each other');
      }
    }
    if (document.documentElement.scrollWidth > innerWidth) faults.push('wider than the window');
    return faults;
  })()`);
}

async function expectNoFaults(page: Page, parts: readonly string[]): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    for (const part of parts) {
      await show(page, part);
      await page.locator('main').locator('table, article, p, button').first().waitFor();
      expect([width, part, await faultsOf(page)]).toEqual([width, part, []]);
    }
  }
}

async function open(options: PagePlaceOptions): Promise<Page> {
  place = await PagePlace.open(options);
  return await place.page();
}

it('25 servers with long names and long tools: no text covers another, or leaves its place, in any part', async () => {
  const shared = { sharing: 'profile', program: LISTED };
  const servers = Object.fromEntries(
    Array.from({ length: 25 }, (_, at) => {
      const name = `${'warehouse-reporting-eu-w'.slice(0, 4 + (at % 19))}${at}`;
      const file = at % 5 === 2 ? 'missing.json' : 'tools.json';
      return [name, at === 9 ? { url: 'http://127.0.0.1:9/mcp' } : { ...shared, args: [`file=${file}`] }];
    }),
  );
  const page = await open({ servers, files: { 'tools.json': JSON.stringify(TOOLS) } });
  await show(page, 'servers');
  await expect.poll(() => page.getByRole('cell', { name: 'up', exact: true }).count()).toBe(19);
  await expect.poll(() => page.getByRole('cell', { name: /^parked/ }).count()).toBe(5);
  // Broken servers are first.
  const states = await page.locator('.servers tbody td:nth-child(2)').allInnerTexts();
  expect(states.indexOf('up')).toBe(6);
  await page.getByRole('searchbox', { name: 'Filter the servers' }).fill('parked');
  await page.getByText('5 of 25 servers.').waitFor();
  await page.getByRole('combobox', { name: 'State' }).selectOption('up');
  await page.getByText('No server matches the filter.').waitFor();
  const [first] = Object.keys(servers);
  await expectNoFaults(page, [
    'needs',
    'servers',
    `servers/${first}`,
    'calls',
    'tools',
    'clients',
    'logins',
    'recording',
  ]);
});

describe('without anything to show, the page says what to do', () => {
  it('with an empty configuration', async () => {
    const page = await open({ servers: {} });
    await show(page, 'servers');
    await page.getByText('`trunkline add` adds one'.replaceAll('`', '')).waitFor();
    await expectNoFaults(page, ['needs', 'servers', 'calls', 'tools', 'clients', 'logins', 'recording']);
  });

  it('without a hub, with a red mark, and the configuration in its head', async () => {
    place = await PagePlace.open({ servers: { lab: {} } }, { client: false });
    const page = await place.page('servers');
    await page.getByText('No hub runs').first().waitFor();
    expect(await textOf(page, 'header')).toContain(place.config);
    const colors = await page.evaluate(`(() => {
      const red = document.createElement('p');
      red.className = 'bad';
      document.body.append(red);
      const { color } = getComputedStyle(red);
      red.remove();
      return [getComputedStyle(document.querySelector('.service'), '::before').backgroundColor, color];
    })()`);
    const [dot, red] = colors as string[];
    expect(dot).toBe(red);
    await expectNoFaults(page, ['needs', 'servers', 'calls', 'tools', 'clients', 'logins', 'recording']);
  });
});
