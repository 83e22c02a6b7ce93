import { offering, type ServerScript } from '../../support/scripted-gateway.js';
import { pagesOf, toolText } from './offered-tools.js';

/** Lists of servers, each with tools and a resource. They change, and the list of tools can break. */
export class ChangingLists {
  readonly #pages: ReadonlyMap<string, string[]>;
  readonly #lists: ReadonlyMap<string, Record<string, object>>;
  /** Servers whose lists were broken since the last start, so that the gateway may not know them. */
  readonly #broken = new Set<string>();

  constructor(keys: readonly string[]) {
    this.#pages = new Map(keys.map((key) => [key, pagesOf(key)]));
    this.#lists = new Map(keys.map((key) => [key, { ...offering({ resources: [`x://${key}/1`] }).lists }]));
  }

  /** Lists of the processes of this server, now and after each change. */
  of(key: string): Pick<ServerScript, 'pages' | 'lists'> {
    return { pages: this.#pages.get(key) ?? [], lists: this.#lists.get(key) ?? {} };
  }

  areWhole(key: string): boolean {
    return !this.#broken.has(key);
  }

  /** Breaks or mends the list of tools. The gateway may not have read the list in between. */
  break(key: string): void {
    const lists = this.#lists.get(key) ?? {};
    if (lists['tools/list'] === undefined) lists['tools/list'] = { code: -32603, message: 'broken' };
    else delete lists['tools/list'];
    this.#broken.add(key);
  }

  mend(): void {
    for (const lists of this.#lists.values()) delete lists['tools/list'];
    this.#broken.clear();
  }

  /** Adds or removes a tool. */
  change(key: string): void {
    const pages = this.#pages.get(key) ?? [];
    const [first = '', ...rest] = pagesOf(key);
    const isPlain = pages[0] === first;
    pages.splice(0, pages.length, isPlain ? first.replace('[', `[${toolText(key, 'further')},`) : first, ...rest);
  }
}
