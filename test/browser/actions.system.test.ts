// Every action of the page, by keyboard alone, with its effect on the hub and the configuration.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startProtected } from '../fixtures/servers/protected.mjs';
import { PagePlace, show } from '../support/page-place.js';

const LISTED = fileURLToPath(new URL('../fixtures/servers/listed.mjs', import.meta.url));
const READ = { name: 'read', description: 'Reads a file.', inputSchema: { type: 'object' } };
/** Announces changes, also while the other tool waits for approval. */
const TOUCH = { name: 'touch', inputSchema: { type: 'object' } };
const CHANGED = { ...READ, description: 'Reads a file, and sends it to a friend.' };

let place: PagePlace;
let remote: Awaited<ReturnType<typeof startProtected>>;

beforeAll(async () => {
  remote = await startProtected();
  const shared = { sharing: 'profile' };
  place = await PagePlace.open({
    servers: {
      lab: shared,
      down: { program: LISTED, args: ['file=down.json'], ...shared },
      reviewed: { program: LISTED, args: ['file=reviewed.json'], approval: 'required', ...shared },
      remote: { url: remote.url },
    },
    files: { 'reviewed.json': JSON.stringify([READ, TOUCH]) },
    // Without the program of a keychain, which is that of the user who runs the test.
    env: { PATH: dirname(process.execPath) },
  });
});

afterEach(async () => {
  await place.closePages();
  expect(place.faults()).toEqual([]);
});

afterAll(async () => {
  await place.dispose();
  await remote.close();
});

const button = (scope: Page | Locator, name: string) => scope.getByRole('button', { name, exact: true });

/** Presses a button with the keyboard, as a person who has reached it with Tab. */
async function press(target: Locator): Promise<void> {
  await target.focus();
  await target.press('Enter');
}

const config = () => readFileSync(place.config, 'utf8');
const names = async () => (await place.client.listTools()).map(({ name }) => name);

async function review(tools: readonly object[]): Promise<void> {
  writeFileSync(place.file('reviewed.json'), JSON.stringify([...tools, TOUCH]));
  await place.client.call('reviewed__touch', { changed: true });
}

describe('a person brings back', () => {
  it('a server that is down, with the button beside its cause', async () => {
    const page = await place.page();
    const card = page.getByRole('article').filter({ has: page.getByRole('link', { name: 'down' }) });
    await card.getByText('cannot read').first().waitFor();
    const answered = page.waitForResponse((answer) => answer.url().endsWith('/restart'));
    await press(button(card, 'Restart'));
    expect((await answered).status()).toBe(200);
    writeFileSync(place.file('down.json'), JSON.stringify([READ]));
    await expect.poll(names).toContain('down__read');
    await card.waitFor({ state: 'detached' });
  });
});

describe('a change of the configuration', () => {
  it('is shown as a diff, and only written when it is confirmed: disable and enable a server', async () => {
    const page = await place.page('servers/lab');
    const before = config();
    const opener = button(page, 'Disable');
    await press(opener);
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Change of the configuration').waitFor();
    // Escape leaves everything as it is, and the focus where it was.
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    expect(config()).toBe(before);
    expect(await opener.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
    await press(opener);
    const diff = dialog.getByLabel('Change of the configuration');
    await diff.waitFor();
    expect((await diff.locator('.added').allTextContents()).join('')).toMatch(/disabled: true|enabled: false/);
    await press(button(dialog, 'Write'));
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(names).not.toContain('lab__echo');
    expect(config()).not.toBe(before);
    await show(page, 'servers');
    await press(button(page.getByRole('row', { name: /^lab/ }), 'Enable'));
    await press(button(dialog, 'Write'));
    await expect.poll(names).toContain('lab__echo');
    expect(config()).toBe(before);
  });

  it('is shown again if the file has changed since: hide and show a tool', async () => {
    const page = await place.page('tools?words=lab__big');
    const row = page.getByRole('row', { name: /big lab/ });
    const before = config();
    await press(button(row, 'Hide'));
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Change of the configuration').waitFor();
    writeFileSync(place.config, `# a comment\n${before}`);
    await press(button(dialog, 'Write'));
    await dialog.getByRole('alert').filter({ hasText: /./ }).waitFor();
    expect(config()).not.toContain('deny');
    await press(button(dialog, 'Write'));
    await button(row, 'Show').waitFor();
    expect(config()).toContain('# a comment');
    expect(await names()).not.toContain('lab__big');
    await press(button(row, 'Show'));
    await press(button(dialog, 'Write'));
    await button(row, 'Hide').waitFor();
    await expect.poll(names).toContain('lab__big');
    expect(place.faults(/status of 409/)).toEqual([]);
  });
});

it('calls that ended before the page was opened are in its list, with their outcome', async () => {
  await place.client.call('lab__echo');
  await place.client.call('lab__unknown');
  const failed = async () => (await place.run('activity', '--json')).stdout.includes('"lab__unknown"');
  await expect.poll(failed).toBe(true);
  const page = await place.page('calls?words=unknown', { web: place.startWeb() });
  await page.getByRole('link', { name: 'lab__unknown' }).press('Enter');
  await page.getByRole('dialog').getByText('This call is from the call log').waitFor();
  expect(place.faults()).toEqual([]);
});

describe('several tools', () => {
  it('of several servers are hidden by one change of the configuration, and come back with one undo', async () => {
    const page = await place.page('tools?words=echo');
    const before = config();
    const choose = (name: string) => page.getByRole('checkbox', { name: `Choose ${name}`, exact: true });
    await choose('lab__echo').press('Space');
    await show(page, 'tools?words=touch');
    await choose('reviewed__touch').press('Space');
    const bar = page.getByRole('region', { name: 'Chosen tools' });
    await press(button(bar, 'Hide 2 tools'));
    const dialog = page.getByRole('dialog');
    await press(button(dialog, 'Write'));
    await bar.waitFor({ state: 'detached' });
    await expect.poll(names).not.toContain('lab__echo');
    expect(await names()).not.toContain('reviewed__touch');
    expect(config()).not.toBe(before);
    await press(button(page.getByRole('region', { name: 'Last change' }), 'Undo'));
    await expect.poll(names).toContain('lab__echo');
    expect(await names()).toContain('reviewed__touch');
    expect(config()).toBe(before);
  });

  it('of the whole list are chosen at once, but not those that cannot be hidden', async () => {
    const page = await place.page('tools');
    await page.getByRole('checkbox', { name: /^Choose all \d+ tools/ }).press('Space');
    const all = await page.getByRole('checkbox', { name: /^Choose (?!all)/ }).count();
    await page.getByText(`${all} tools chosen`).waitFor();
    expect(await page.getByRole('checkbox', { name: 'Choose trunkline__status' }).count()).toBe(0);
    await press(button(page, 'Choose none'));
    await page.getByText('tools chosen').waitFor({ state: 'detached' });
  });
});

describe('an approval', () => {
  it('is of the definition that was shown, with the change since the last one', async () => {
    const page = await place.page();
    await review([CHANGED]);
    const card = page.getByRole('article').filter({ has: page.getByRole('link', { name: 'reviewed' }) });
    await press(button(card, 'Review'));
    const dialog = page.getByRole('dialog');
    const diff = dialog.getByLabel('Definition of read');
    await diff.waitFor();
    expect((await diff.locator('.removed').allTextContents()).join('')).toContain('Reads a file.');
    expect((await diff.locator('.added').allTextContents()).join('')).toContain('sends it to a friend');
    expect(await names()).not.toContain('reviewed__read');
    await press(button(dialog, 'Approve'));
    // The sentence that it is approved may give way to another one at once.
    await expect.poll(names).toContain('reviewed__read');
    await page.keyboard.press('Escape');
    await card.waitFor({ state: 'detached' });
  });

  it('is refused if the tool has changed since it was shown, and the new change is shown', async () => {
    const page = await place.page();
    await review([{ ...READ, description: 'Reads two files.' }]);
    const card = page.getByRole('article').filter({ has: page.getByRole('link', { name: 'reviewed' }) });
    await press(button(card, 'Review'));
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Definition of read').waitFor();
    await review([{ ...READ, description: 'Deletes a file.' }]);
    const known = () =>
      page.evaluate(`fetch('/review?server=reviewed', {
      headers: { 'X-Trunkline-Key': sessionStorage.getItem('trunkline-key') },
    }).then((answer) => answer.text())`);
    await expect.poll(known).toContain('Deletes a file.');
    await press(button(dialog, 'Approve'));
    await dialog.getByText('Deletes a file.').waitFor();
    expect(await names()).not.toContain('reviewed__read');
    expect(place.faults(/status of 409/)).toEqual([]);
  });
});

it('a login is offered with the page of the authorization server, which the person opens', async () => {
  const page = await place.page('logins');
  await press(button(page.getByRole('row', { name: /remote/ }), 'Log in'));
  const dialog = page.getByRole('dialog');
  const { host } = new URL(remote.issuer);
  const opened = page.context().waitForEvent('page');
  await press(button(dialog, `Open the page of ${host}`));
  const other = await opened;
  // The authorization server sends the browser to another page.
  await other.waitForURL(/\/interaction\//);
  expect(await other.evaluate('opener')).toBe(null);
  expect(new URL(other.url()).host).toBe(host);
  await other.close();
  // The page of the authorization server asks for a font.
  expect(place.faults(/\/interaction\//)).toEqual([]);
});

it('a recording is started, stopped, downloaded, and read in the page', async () => {
  const page = await place.page('recording');
  await press(button(page, 'Start recording'));
  await page.getByText(/Recording since/).waitFor();
  await place.client.call('lab__echo', { marker: 'recorded' });
  await page.getByText(/: [1-9]\d* messages, 0 dropped/).waitFor();
  await press(page.getByRole('button', { name: /^Stop/ }));
  const downloaded = page.waitForEvent('download');
  await press(page.getByRole('button', { name: /^Download/ }));
  const file = await (await downloaded).path();
  expect(readFileSync(file, 'utf8')).toContain('recorded');
  await page.locator('input[type=file]').setInputFiles(file);
  const message = page.getByRole('button', { name: 'tools/call lab__echo' }).first();
  await press(message);
  await page.getByRole('dialog').getByText('"recorded"').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
});

describe('with --read-only', () => {
  it('the page offers no change, and the command refuses one', async () => {
    const web = place.startWeb(['--read-only']);
    const page = await place.page('needs', { web });
    await page.getByRole('article').first().waitFor();
    for (const part of ['needs', 'servers', 'servers/lab', 'tools', 'logins', 'recording']) {
      await show(page, part);
      await page.locator('main').locator('table, article, p').first().waitFor();
      const texts = await page.getByRole('button').allTextContents();
      expect([
        part,
        texts.filter((text) => /^(Restart|Enable|Disable|Hide|Show|Log in|Log out|Start recording|Stop.*)$/.test(text)),
      ]).toEqual([part, []]);
    }
    const status = await page.evaluate(`fetch('/restart', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Trunkline-Key': sessionStorage.getItem('trunkline-key') },
      body: '{"server":"lab"}',
    }).then(({ status }) => status)`);
    expect(status).toBe(403);
    expect(place.faults(/status of 403/)).toEqual([]);
  });
});
