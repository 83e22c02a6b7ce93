import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { launchBrowser } from '../../scripts/chromium.mjs';
import { FrontPlace } from '../extras/front/front-place.js';
import { until } from '../support/processes.js';

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

/** A program that waits for the answer to its login, or a site with a page of its own. */
async function listen(body: string): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    asked.push(request.url ?? '');
    response.writeHead(200, { 'content-type': 'text/html' }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** A tab of a new person. Its faults are what the policies of pages forbid. */
async function openTab(): Promise<{ readonly tab: Page; readonly faults: string[] }> {
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const tab = await context.newPage();
  const faults: string[] = [];
  tab.on('console', (message) => {
    if (message.type() === 'error' && /policy/i.test(message.text())) faults.push(message.text());
  });
  return { tab, faults };
}

/** Logs in at the pages of the provider. */
async function logIn(tab: Page): Promise<void> {
  await tab.fill('input[name=login]', 'alice');
  await tab.fill('input[name=password]', 'x');
  await tab.click('button[type=submit]');
  await tab.click('button[type=submit]');
}

describe('a login through the front in a real browser', () => {
  it('leads from the consent over the provider to the program, and the next time without the consent', async () => {
    const place = await FrontPlace.open();
    const { url, asked } = await listen('<title>Logged in</title>');
    const redirect_uri = `${url}/callback`;
    const client_id = await place.register([redirect_uri]);
    const { tab, faults } = await openTab();
    await tab.goto((await place.begin({ client_id, redirect_uri })).url);
    expect(await tab.title()).toBe(`Let a program use ${new URL(place.publicUrl).host}?`);
    const color = await tab.evaluate("getComputedStyle(document.querySelector('main')).backgroundColor");
    expect(color).toBe('rgb(255, 255, 255)');
    await tab.click('button[value=allow]');
    await logIn(tab);
    await until('the program has its code', () => asked.some((each) => each.startsWith('/callback?code=')));
    // The browser remembers the consent, so the provider asks next.
    await tab.goto((await place.begin({ client_id, redirect_uri })).url);
    expect(tab.url()).toContain(place.provider.issuer);
    await tab.click('button[type=submit]');
    const codes = () => asked.filter((each) => each.startsWith('/callback?code='));
    await until('the program has its second code', () => codes().length === 2);
    expect(faults).toEqual([]);
  });

  it('is not shown in a frame of another site', async () => {
    const place = await FrontPlace.open();
    const { url } = await place.begin();
    const site = await listen(`<iframe src="${url.replaceAll('&', '&amp;')}"></iframe>`);
    const { tab, faults } = await openTab();
    await tab.goto(site.url);
    await until('the browser has refused the frame', () => faults.length > 0);
    expect(faults.join()).toContain('frame-ancestors');
    expect(await tab.frames()[1]?.locator('form').count()).toBe(0);
  });
});
