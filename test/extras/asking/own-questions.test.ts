import { describe, expect, it } from 'vitest';
import { LAB } from '../../support/gateway-process.js';
import { Browser, LoginPlace, type UserClient } from '../user-logins/login-place.js';

// biome-ignore lint/suspicious/noThenProperty: a key of the file, whose value is no function
const ASKING = { command: process.execPath, args: [LAB], rules: [{ tools: ['echo'], then: 'ask' }] };

/** Ann and Bob, of whom a call waits for Ann, and Olga, who may answer for all. */
async function open(hasFront = true) {
  const place = await LoginPlace.open({
    hasFront,
    servers: { lab: ASKING },
    gateway: { ask: { by: ['operators'] } },
    groupsOf: { olga: ['operators'], bob: ['users'] },
  });
  const ann = await place.connect('ann');
  const page = `${place.publicUrl}/questions`;
  const browsers = new Map<string, Browser>();
  for (const name of hasFront ? ['ann', 'bob', 'olga'] : []) {
    const browser = new Browser(name);
    // Signs in at the provider.
    expect((await place.logIn(page, browser)).text).toContain('No call waits');
    browsers.set(name, browser);
  }
  const browse = async (name: string) => {
    const browser = browsers.get(name) ?? new Browser(name);
    return { browser, shown: await browser.open(page) };
  };
  const waiting = async (client: UserClient, args = { of: 'ann' }) => {
    const answer = client.call('lab__echo', args);
    answer.catch(() => {});
    await expect.poll(() => place.composition.status().questions?.length).toBe(1);
    return { answer };
  };
  return { place, ann, page, browse, waiting };
}

/** Sends a form with one of its buttons. */
async function press(
  browser: Browser,
  shown: Awaited<ReturnType<Browser['open']>>,
  url: string,
  answer: string,
  more = {},
) {
  const form = browser.formOf(shown);
  form.set('answer', answer);
  return await browser.open(url, form, more);
}

describe('the page of the calls that wait, for users over HTTP', () => {
  it('shows a call to its user and to members of the named groups, and to nobody else', async () => {
    const { ann, browse, waiting } = await open();
    await waiting(ann);
    for (const name of ['ann', 'olga']) expect((await browse(name)).shown.text).toContain('tool <bdi>&#34;echo&#34;');
    expect((await browse('bob')).shown.text).toContain('No call waits');
  });

  it.each(['ann', 'olga'])('lets %s allow the call, which then goes on', async (name) => {
    const { ann, browse, waiting, page } = await open();
    const { answer } = await waiting(ann);
    const { browser, shown } = await browse(name);
    expect(shown.text).toContain('{&#34;of&#34;:&#34;ann&#34;}');
    expect((await press(browser, shown, page, 'allow')).text).toContain('No call waits');
    expect(await answer).toContain('ann');
    expect((await press(browser, shown, page, 'allow')).status).toBe(409);
  });

  it('takes no answer of another user, of another site, or without the form', async () => {
    const { place, ann, browse, waiting, page } = await open();
    await waiting(ann);
    const { browser, shown } = await browse('ann');
    const { browser: his } = await browse('bob');
    const form = browser.formOf(shown);
    form.set('answer', 'allow');
    const attempts = [
      await his.open(page, form),
      await new Browser('nobody').open(page, form),
      await browser.open(page, form, { origin: 'https://evil.example' }),
      await browser.open(page, new URLSearchParams({ request: 'x', answer: 'allow' })),
    ];
    expect(attempts.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    expect(place.composition.status().questions).toHaveLength(1);
  });

  it('names its address to the client of a call that nobody has answered', async () => {
    const { place, ann, page } = await open();
    const messages: string[] = [];
    const controller = new AbortController();
    const call = ann.client.callTool(
      { name: 'lab__echo', arguments: {} },
      { onprogress: ({ message = '' }) => void messages.push(message), signal: controller.signal },
    );
    call.catch(() => {});
    await expect.poll(() => messages[0]).toContain(`at ${page} (60 s left)`);
    controller.abort();
    await expect.poll(() => place.composition.status().questions?.length).toBe(1);
  });

  it('says that it cannot know persons without a front', async () => {
    const { page } = await open(false);
    expect((await fetch(page)).status).toBe(404);
  });
});
