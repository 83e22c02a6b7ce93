import { matchesGlob } from '../../wire/json/glob.js';
import { foldKey } from '../../wire/json/json-text.js';

/**
 * The spellings of a text under which rules compare it: as it is; with other letter cases and forms of the same characters as
 * one; and as a path or a URL that names the same thing. A rule must decide alike for all of them, because a server may.
 */
type Spellings = readonly [asIs: string, folded: string, plain: string];

function spellingsOf(text: string): Spellings {
  return [text, fold(text), plain(fold(withoutCredentials(text)))];
}

/** Returns a text as readers compare it that ignore case, that take other forms of a character for the same, or that end at a NUL. */
export function fold(text: string): string {
  return foldKey(text.normalize('NFKC'));
}

/** Globs of one list, of which those that begin with `!` must not match. */
export class Globs {
  readonly #wanted: readonly Spellings[];
  readonly #unwanted: readonly Spellings[];

  constructor(globs: readonly string[]) {
    this.#wanted = globs.filter((glob) => !glob.startsWith('!')).flatMap(spellingsOfGlob);
    this.#unwanted = globs.flatMap((glob) => (glob.startsWith('!') ? spellingsOfGlob(glob.slice(1)) : []));
  }

  /**
   * Whether the text matches. With `inAll`, every spelling of it has to match; otherwise one is enough. `isName` says that it is
   * neither a path nor a URL.
   */
  matches(text: string, { inAll, isName = false }: { readonly inAll: boolean; readonly isName?: boolean }): boolean {
    const spellings = isName ? ([text, fold(text)] as const) : spellingsOf(text);
    const isMatch = (spelling: string, at: number) => {
      const fits = (glob: Spellings) => matchesGlob(glob[at] ?? '', spelling);
      const isWanted = this.#wanted.length === 0 ? this.#unwanted.length > 0 : this.#wanted.some(fits);
      return isWanted && !this.#unwanted.some(fits);
    };
    return inAll ? spellings.every(isMatch) : spellings.some(isMatch);
  }
}

/** The spellings of a glob. One that ends in `/*` or `/**` also stands for the folder itself. */
function spellingsOfGlob(glob: string): Spellings[] {
  const folder = /^(.+)\/\*{1,2}$/s.exec(glob)?.[1];
  const all = folder === undefined ? [glob] : [glob, folder];
  return all.map((each) => [each, fold(each), plain(fold(each))]);
}

/** A URL in its normal form, without a name and a password; any other text as it is. */
function withoutCredentials(text: string): string {
  if (!/^\s*[a-z][a-z\d+.-]+:/i.test(text) || !URL.canParse(text)) return text;
  const url = new URL(text);
  url.username = '';
  url.password = '';
  return url.href;
}

/** A path or a URL without escapes, `.` and `..`, and without the slash at its end. */
function plain(text: string): string {
  const decoded = fold(unescaped(text)).replaceAll('\\', '/');
  const head = /^[a-z*?][a-z\d+.*?-]*:\/\/[^/]*/.exec(decoded)?.[0] ?? '';
  return head + resolved(decoded.slice(head.length));
}

function unescaped(text: string): string {
  return text.replace(/(?:%[\da-f]{2})+/gi, (escaped) => {
    const bytes = escaped.split('%').slice(1);
    return UTF8.decode(Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 16)));
  });
}

const UTF8 = new TextDecoder();

/** A path that leaves its folder may lead anywhere, so the rest of it counts as a path from the root. */
function resolved(path: string): string {
  const steps: string[] = [];
  let isAbsolute = path.startsWith('/');
  for (const step of path.split('/')) {
    if (step === '' || step === '.') continue;
    if (step !== '..') steps.push(step);
    else if (steps.pop() === undefined) isAbsolute = true;
  }
  return (isAbsolute ? '/' : '') + steps.join('/');
}
