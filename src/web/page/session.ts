import { signal } from '@preact/signals';
import type { Requests } from '../server/contract.js';

/** Session of this tab. `none` before a code was redeemed, `ended` when `trunkline web` does not know the key any more. */
export const session = signal<'opening' | 'open' | 'none' | 'ended'>('opening');

const KEY = 'trunkline-key';
const HEADER = 'X-Trunkline-Key';
export const CODE = /^#([\w-]{32,})$/;
const ASK_MS = 300;

/** Other tabs of this page. A tab that was opened from a link has no key of its own. */
const tabs = new BroadcastChannel('trunkline');
tabs.onmessage = ({ data }) => {
  const key = sessionStorage.getItem(KEY);
  if (data === 'ask' && key !== null && session.value === 'open') tabs.postMessage({ key });
};

/** Opens the session with the code of the address, with the key of this tab, or with that of another tab. */
export async function openSession(): Promise<void> {
  const code = CODE.exec(location.hash)?.[1];
  if (code !== undefined) {
    // Removes the code from the address first, so that it stays in no history.
    history.replaceState(null, '', '/#/needs');
    sessionStorage.removeItem(KEY);
    const response = await postSession({ code });
    if (response?.ok) sessionStorage.setItem(KEY, await response.text());
  } else if (sessionStorage.getItem(KEY) === null) {
    const key = await keyOfOtherTab();
    if (key !== undefined) sessionStorage.setItem(KEY, key);
  }
  if (sessionStorage.getItem(KEY) === null) lock('none');
  else session.value = 'open';
}

function postSession(body: { readonly code?: string }): Promise<Response | undefined> {
  const headers = { 'Content-Type': 'application/json' };
  return fetch('/session', { method: 'POST', headers, body: JSON.stringify(body) }).catch(() => undefined);
}

function lock(how: 'none' | 'ended'): void {
  session.value = how;
  // Makes the command print a new link.
  void postSession({});
}

function keyOfOtherTab(): Promise<string | undefined> {
  return new Promise((resolve) => {
    const answers = new BroadcastChannel('trunkline');
    const end = (key?: string) => {
      answers.close();
      resolve(key);
    };
    answers.onmessage = ({ data }) => typeof data?.key === 'string' && end(data.key);
    tabs.postMessage('ask');
    setTimeout(end, ASK_MS);
  });
}

export function endSession(): void {
  sessionStorage.removeItem(KEY);
  if (session.value !== 'ended') lock('ended');
}

export function headers(): Record<string, string> {
  return { [HEADER]: sessionStorage.getItem(KEY) ?? '' };
}

/** Sends one of the requests of the contract, and returns its answer. Throws as `send` does. */
export async function ask<R extends keyof Requests>(
  request: R,
  values: Requests[R]['values'],
): Promise<Requests[R]['answer']> {
  const [method = '', path = ''] = request.split(' ');
  const headers = { 'Content-Type': 'application/json' };
  const answer =
    method === 'GET'
      ? await send(`${path}?${new URLSearchParams(values as Record<string, string>)}`)
      : await send(path, { method, headers, body: JSON.stringify(values) });
  return await answer.json();
}

/** Sends a request of this session. Throws an error with the sentence of `trunkline web` if it refuses. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(path, { ...init, headers: { ...init.headers, ...headers() }, cache: 'no-store' }).catch(
    () => {
      throw new Error('`trunkline web` does not answer. Look whether it still runs in its terminal.');
    },
  );
  if (response.status === 401) endSession();
  if (response.ok) return response;
  const answer = (await response.json().catch(() => ({}))) as { readonly error?: string };
  throw new Error(answer.error ?? `The request was refused with status ${response.status}.`);
}
