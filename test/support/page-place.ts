// The page in a real browser: a hub with default settings and real servers, `trunkline web`, and Chromium.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { stringify } from 'yaml';
import { launchBrowser } from '../../scripts/chromium.mjs';
import { CLI, type GatewayProcess, type Message, type StartOptions } from './gateway-process.js';
import { HubPlace, WITH_HUB } from './hub-place.js';
import { linkOwnPackages } from './own-packages.js';
import { PATIENCE_MS, until } from './processes.js';

/** Reports what the policy of the page forbids, which a browser only logs. Runs before the scripts of each document. */
const REPORT_VIOLATIONS = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('securitypolicyviolation: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample))`;

/** Age at which a URL, which is valid for a minute, may expire before a page uses it. */
const OLD_MS = 50_000;

/** `trunkline web`, as a terminal starts it. */
class WebProcess {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #port: Promise<number>;
  readonly urls: string[] = [];
  #printedAt = 0;
  #used = 0;
  #isEnding = false;
  stderr = '';

  constructor(args: readonly string[], env: Readonly<Record<string, string>>) {
    this.#process = spawn(process.execPath, [CLI, 'web', '--no-open', ...args], { env: { ...process.env, ...env } });
    this.#process.stderr.on('data', (chunk: Buffer) => {
      this.stderr += chunk;
    });
    let rest = '';
    this.#process.stdout.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      const urls = lines.filter((line) => line.startsWith('http'));
      if (urls.length > 0) this.#printedAt = performance.now();
      this.urls.push(...urls);
    });
    this.#port = until('`trunkline web` prints its URL', () => this.urls.length > 0).then(
      () => Number(new URL(this.urls[0] ?? '').port),
      (error) => Promise.reject(new Error(`${error.message}\n${this.stderr}`)),
    );
    this.#port.catch(() => {});
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  get origin(): Promise<string> {
    return this.#port.then((port) => `http://127.0.0.1:${port}`);
  }

  /** A URL that opens a session. Asks for another one if the latest is used, or was printed for a page long ago. */
  async url(): Promise<string> {
    const origin = await this.origin;
    const before = this.urls.length;
    if (this.#used === before || performance.now() - this.#printedAt > OLD_MS) {
      const headers = { Origin: origin, 'Content-Type': 'application/json' };
      const ask = () => void fetch(`${origin}/session`, { method: 'POST', headers, body: '{}' });
      // The command prints none while the latest can still be used.
      const asking = setInterval(ask, 1_000);
      ask();
      await until('`trunkline web` prints another URL', () => this.urls.length > before, 2 * (60_000 - OLD_MS)).finally(
        () => clearInterval(asking),
      );
    }
    this.#used = this.urls.length;
    return this.urls.at(-1) ?? '';
  }

  get hasCrashed(): boolean {
    return !this.#isEnding && this.#hasEnded;
  }

  /** Its exit code and signal. */
  get exit(): string {
    return `exit code ${this.#process.exitCode}, signal ${this.#process.signalCode}`;
  }

  get #hasEnded(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#isEnding = true;
    if (this.#hasEnded) return;
    const ended = once(this.#process, 'exit');
    this.#process.kill(signal);
    await ended;
  }
}

export interface PagePlaceOptions extends StartOptions {
  /** Further arguments of `trunkline web`. */
  readonly web?: readonly string[];
  /** Further arguments of the browser. */
  readonly browser?: readonly string[];
  /** Files of the folder, by name, that are there before the hub starts. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A hub, `trunkline web` and a browser, which the tests of a file share. */
export class PagePlace {
  readonly hub: HubPlace;
  web!: WebProcess;
  browser!: Browser;
  readonly #options: PagePlaceOptions;
  /** Errors of the pages since the last look. */
  readonly #faults: string[] = [];
  #webs: WebProcess[] = [];

  private constructor(options: PagePlaceOptions) {
    this.#options = options;
    this.hub = new HubPlace(options);
  }

  /** Starts a client, the page and the browser. Without `client`, no hub runs. */
  static async open(options: PagePlaceOptions, { client = true } = {}): Promise<PagePlace> {
    const place = new PagePlace(options);
    const browser = launchBrowser([...(options.browser ?? [])]);
    linkOwnPackages(place.hub.folder);
    for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(place.file(name), text);
    if (client) {
      await place.hub.client();
      // As a person writes it, so that a change is one of a few lines.
      place.client.writeConfig(stringify(JSON.parse(readFileSync(place.config, 'utf8'))));
    }
    try {
      place.browser = await browser;
    } catch (error) {
      await place.hub.dispose();
      throw error;
    }
    place.web = place.startWeb(options.web);
    return place;
  }

  get client(): GatewayProcess {
    const [client] = this.hub.clients;
    if (client === undefined) throw new Error('No client was started');
    return client;
  }

  /** Path of a file in the folder of the configuration. */
  file(name: string): string {
    return join(this.hub.folder, name);
  }

  get config(): string {
    return this.file('trunkline.yaml');
  }

  get env(): Readonly<Record<string, string>> {
    const { folder, hubs } = this.hub;
    // The checks of the machine read the files of clients in the home folder.
    const own = { HOME: join(folder, 'home'), XDG_DATA_HOME: join(folder, 'data'), TRUNKLINE_HUB_DIR: hubs };
    return { ...WITH_HUB, ...own, ...this.#options.env };
  }

  startWeb(args: readonly string[] = []): WebProcess {
    const web = new WebProcess(['--config', this.config, ...args], this.env);
    this.#webs.push(web);
    return web;
  }

  /** Runs a command of the program, and resolves with its output. */
  async run(...args: readonly string[]): Promise<{ stdout: string; stderr: string; code: number }> {
    const child = spawn(process.execPath, [CLI, ...args, '--config', this.config], {
      env: { ...process.env, ...this.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk;
    });
    const [code] = await once(child, 'close');
    return { stdout, stderr, code };
  }

  /** The report of the hub at this moment. */
  async status(): Promise<Message> {
    return JSON.parse((await this.run('status', '--json')).stdout);
  }

  async context(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    const context = await this.browser.newContext(options);
    context.setDefaultTimeout(PATIENCE_MS);
    await context.addInitScript(REPORT_VIOLATIONS);
    context.on('weberror', (error) => this.#faults.push(`${error.page()?.url()}: ${error.error().stack}`));
    context.on('console', (message) => {
      const { url } = message.location();
      if (message.type() === 'error') this.#faults.push(`${message.page()?.url()}: ${message.text()} ${url}`);
    });
    return context;
  }

  /** A page with a session of its own. `part` is the path after `#/`. */
  async page(part = 'needs', options: BrowserContextOptions & { readonly web?: WebProcess } = {}): Promise<Page> {
    const { web = this.web, ...rest } = options;
    const page = await (await this.context(rest)).newPage();
    await page.goto(await web.url());
    await page.locator('main h1').waitFor();
    if (part !== 'needs') await show(page, part);
    return page;
  }

  /** Errors of the pages since the last look, each after the address of its page, but for those that the test causes. */
  faults(...expected: readonly RegExp[]): string[] {
    return this.#faults.splice(0).filter((fault) => !expected.some((each) => each.test(fault)));
  }

  /** Closes the pages of a test. */
  async closePages(): Promise<void> {
    await Promise.all(this.browser.contexts().map((context) => context.close()));
  }

  async dispose(): Promise<void> {
    await this.browser.close();
    const crashed = this.#webs.filter((web) => web.hasCrashed).map(({ stderr, exit }) => `${exit}\n${stderr}`);
    await Promise.all(this.#webs.map((web) => web.end()));
    await this.hub.dispose();
    if (crashed.length > 0) throw new Error(`\`trunkline web\` has ended by itself:\n${crashed.join('\n')}`);
  }
}

/** Goes to another part as its link does, without a reload. */
export async function show(page: Page, part: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(`#/${part}`)}`);
}

/** The text that is seen in an element, such as the part that is shown. */
export function textOf(page: Page, selector = 'main'): Promise<string> {
  return page.evaluate(`document.querySelector(${JSON.stringify(selector)}).innerText`);
}
