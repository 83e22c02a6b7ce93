// The page for people who do not see it, who use no mouse, who have a narrow window, or who want no motion.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PagePlace, show } from '../support/page-place.js';

const LISTED = fileURLToPath(new URL('../fixtures/servers/listed.mjs', import.meta.url));
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const READ = { name: 'read', description: 'Reads.', inputSchema: { type: 'object' } };
const PARTS = ['needs', 'servers', 'servers/lab', 'calls', 'tools', 'clients', 'logins', 'recording'];

let place: PagePlace;

beforeAll(async () => {
  place = await PagePlace.open({
    servers: {
      lab: { sharing: 'profile' },
      reviewed: { program: LISTED, args: ['file=reviewed.json'], approval: 'required', sharing: 'profile' },
      broken: { program: LISTED, args: ['file=missing.json'] },
      off: { disabled: true },
      // Nothing listens there.
      remote: { url: 'http://127.0.0.1:9/mcp' },
    },
    files: { 'reviewed.json': JSON.stringify([READ]) },
  });
  await place.client.untilState('reviewed', 'ready');
  writeFileSync(place.file('reviewed.json'), JSON.stringify([{ ...READ, description: 'Writes.' }]));
  await place.client.call('reviewed__read', { changed: true });
});

afterEach(async () => {
  await place.closePages();
  expect(place.faults()).toEqual([]);
});

afterAll(() => place.dispose());

/** Goes to a part, and waits until its facts have come. */
async function visit(page: Page, part: string): Promise<void> {
  await show(page, part);
  const main = page.locator('main');
  const shown =
    part === 'recording' ? main.getByRole('button', { name: 'Start recording' }) : main.locator('table, article');
  await shown.first().waitFor();
}

async function withCalls(page: Page): Promise<void> {
  await show(page, 'calls');
  await page.getByText(/No call yet|calls? since/).waitFor();
  await place.client.call('lab__echo', {});
  await place.client.call('lab__unknown', {});
  await page.getByRole('link', { name: 'lab__unknown' }).first().waitFor();
}

/** Findings of axe, each with the elements that it is about. */
async function findings(page: Page): Promise<readonly string[]> {
  return await page.evaluate(`axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary).join(' | ')))`);
}

describe.each([390, 768, 1280])('in a window of %i pixels', (width) => {
  it.each(['light', 'dark'] as const)(
    'axe finds nothing in the %s theme, and no part is wider than the window',
    async (colorScheme) => {
      // Axe is a script of its own, which the policy of the page forbids.
      const page = await place.page('needs', { bypassCSP: true, colorScheme, viewport: { width, height: 800 } });
      await page.addScriptTag({ content: AXE });
      const check = async (what: string) => {
        expect([what, await findings(page)]).toEqual([what, []]);
        const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        expect([what, wide]).toEqual([what, 0]);
      };
      await withCalls(page);
      for (const part of PARTS) {
        await visit(page, part);
        await check(part);
      }
      await show(page, 'tools');
      await page.getByRole('checkbox', { name: 'Choose lab__echo', exact: true }).check();
      await page.getByRole('button', { name: 'Hide 1 tool', exact: true }).waitFor();
      await check('chosen tools');
      await show(page, 'calls');
      await page.getByRole('link', { name: 'lab__echo' }).first().click();
      await page.getByRole('dialog').getByText('Server → Trunkline').waitFor();
      await check('the messages of a call');
      await page.keyboard.press('Escape');
      await show(page, 'servers/lab');
      await page.getByRole('button', { name: 'Disable' }).click();
      await page.getByLabel('Change of the configuration').waitFor();
      await check('a change of the configuration');
      await page.keyboard.press('Escape');
      await show(page, 'needs');
      await page.getByRole('button', { name: 'Review' }).first().click();
      await page.getByLabel('Definition of read').waitFor();
      await check('an approval');
    },
  );
});

it('axe finds nothing in a page without a session', async () => {
  const page = await (await place.context({ bypassCSP: true })).newPage();
  await page.goto(await place.web.origin);
  await page.locator('main h1').waitFor();
  await page.addScriptTag({ content: AXE });
  expect(await findings(page)).toEqual([]);
  // The browser reports the answer to a request without a session.
  expect(place.faults(/status of 401/)).toEqual([]);
});

it('Tab reaches everything that can be used, in every part, and shows where it is', async () => {
  const page = await place.page();
  await withCalls(page);
  for (const part of PARTS) {
    await visit(page, part);
    await page.evaluate(`{
      self.unreached = new Set([...document.querySelectorAll('a[href], button, input, select, [tabindex="0"]')].filter((each) => each.checkVisibility()));
      self.unseen = [];
      document.activeElement.blur();
      getSelection().removeAllRanges();
    }`);
    const count = (await page.evaluate('unreached.size')) as number;
    for (let presses = 0; presses < count + 5; presses += 1) {
      await page.keyboard.press('Tab');
      await page.evaluate(`{
        const { activeElement } = document;
        unreached.delete(activeElement);
        const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(activeElement);
        if (activeElement !== document.body && (outlineStyle === 'none' || outlineWidth === '0px') && boxShadow === 'none') unseen.push(activeElement.outerHTML);
      }`);
    }
    const left = await page.evaluate(
      '[[...unreached].filter((each) => each.isConnected).map((each) => each.outerHTML), unseen]',
    );
    expect([part, left]).toEqual([part, [[], []]]);
  }
});

// A server that fails at every start changes the state each second.
it('a screen reader is told of what comes to need the person', async () => {
  const page = await place.page();
  await page.getByRole('article').first().waitFor();
  // The sentence is shown for some seconds, which the command may take.
  const told = page.getByRole('status').filter({ hasText: 'reviewed runs, but' }).waitFor();
  writeFileSync(place.file('reviewed.json'), '[]');
  await place.client.call('reviewed__read', { changed: true });
  await Promise.all([told, place.run('restart', 'reviewed')]);
});

it('shows no motion to a person who wants none', async () => {
  const page = await place.page('needs', { reducedMotion: 'reduce' });
  await withCalls(page);
  for (const part of PARTS) {
    await visit(page, part);
    const moving = await page.evaluate(`[...document.querySelectorAll('*')].filter((each) => {
      const { animationName, transitionDuration } = getComputedStyle(each);
      return animationName !== 'none' || transitionDuration.split(', ').some((each) => parseFloat(each) > 0.001);
    }).map((each) => each.outerHTML)`);
    expect([part, moving]).toEqual([part, []]);
  }
});
