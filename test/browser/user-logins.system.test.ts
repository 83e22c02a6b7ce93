import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { launchBrowser } from '../../scripts/chromium.mjs';
import { LoginPlace } from '../extras/user-logins/login-place.js';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

describe('a login of a user in a real browser', () => {
  it('leads over the identity provider and the page to the server, and ends on the page of the own logins', async () => {
    const place = await LoginPlace.open({ hasFront: true });
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const tab = await context.newPage();
    const faults: string[] = [];
    tab.on('console', (message) => {
      if (message.type() === 'error' && /policy/i.test(message.text())) faults.push(message.text());
    });
    const logIn = async () => {
      await tab.fill('input[name=login]', 'ann');
      await tab.fill('input[name=password]', 'x');
      await tab.click('button[type=submit]');
      await tab.click('button[type=submit]');
    };
    const ann = await place.connect('ann');
    const { url } = await ann.offered();
    await tab.goto(url);
    await logIn();
    expect(await tab.title()).toBe('Log in at files?');
    expect(await tab.textContent('main')).toContain('ann');
    await tab.click('button[value=allow]');
    await logIn();
    await tab.waitForURL(`${place.publicUrl}/logins/callback/files**`);
    expect(await tab.title()).toBe('You are logged in at files');
    await expect.poll(() => ann.call('files__read')).toBe('read done');
    await tab.goto(`${place.publicUrl}/logins`);
    expect(await tab.textContent('table')).toContain('logged in');
    await tab.click('table button');
    await tab.waitForURL(`${place.publicUrl}/logins`);
    expect(await tab.textContent('main')).toContain('You are logged in at no server');
    expect((await ann.offered()).text).toContain('needs a login');
    expect(faults).toEqual([]);
  });
});
