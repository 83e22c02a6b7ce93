/**
 * Parses the part of YAML in which nearly all configuration files are written: maps and lists, by indentation or in
 * brackets (so also JSON), with comments, and with texts, whole numbers and switches of one line each.
 *
 * Returns `undefined` for everything else, be it a mistake or a less usual notation. The YAML library decides then; loading
 * it takes many times as long as this. Whatever this returns is what the library would return.
 */
export function parsePlainYaml(text: string): unknown {
  if (text.length > MAX_LENGTH || UNUSUAL.test(text)) return undefined;
  try {
    return new PlainYaml(text.replaceAll('\r\n', '\n')).document();
  } catch (error) {
    if (error === NOT_PLAIN) return undefined;
    throw error;
  }
}

/** Calls wait meanwhile. */
const MAX_LENGTH = 64 * 1024;
const MAX_DEPTH = 16;
/** YAML allows 1,024 characters before the colon. */
const MAX_KEY_LENGTH = 1_000;

/** Control characters, tabs among them, and characters that some programs take for the end of a line or the mark of a file. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: It finds them.
const UNUSUAL = /[\0-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]|\r(?!\n)/;

/** Thrown at the first character that is not plain. It is no error, so it has no stack. */
const NOT_PLAIN = Symbol('not plain');

// Each of them matches at one place of the text. A text without quotes ends before `: ` and ` #`.
const BLOCK_KEY = /[A-Za-z_$][\w.-]*/y;
const BLOCK_TEXT = /(?:[\w./$~(\\+]|-(?=[^ \n]))(?:[^\n:#]|:(?![ \n]|$)|(?<! )#)*/y;
const FLOW_TEXT = /(?:[\w./$~+]|-(?=[\w-]))[\w./$~+=@*-]*/y;
const DOUBLE_QUOTED = /"(?:[^"\\\n]|\\.)*"/y;
const SINGLE_QUOTED = /'(?:[^'\n]|'')*'/y;

const END = -1;

class PlainYaml {
  readonly #text: string;
  #at = 0;
  /** The indentation of the line that begins at `#at`, or `END`. */
  #indent = 0;
  #depth = 0;

  constructor(text: string) {
    // So that the first line has one before it.
    this.#text = `\n${text}`;
  }

  document(): unknown {
    this.#nextLine();
    const value = this.#isFlow() ? this.#inline(0) : this.#block(END);
    return this.#indent === END ? value : notPlain();
  }

  /** A map or list whose first line begins here, below a key or an item with the indentation `above`. */
  #block(above: number): unknown {
    this.#descend();
    const value = this.#isItem() ? this.#list(this.#indent) : this.#map(this.#indent);
    this.#depth -= 1;
    return this.#indent > above ? notPlain() : value;
  }

  #map(indent: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    while (this.#indent === indent && !this.#isItem()) {
      const key = this.#quoted() ?? nameOf(this.#match(BLOCK_KEY));
      this.#expect(':');
      put(map, key, this.#valueOf(indent));
    }
    return map;
  }

  #list(indent: number): unknown[] {
    const list: unknown[] = [];
    while (this.#indent === indent && this.#isItem()) {
      this.#at += 1;
      list.push(this.#valueOf(indent, { isItem: true }));
    }
    return list;
  }

  /** What follows the colon of a key, or the dash of an item: a value on this line, or on the lines below. */
  #valueOf(indent: number, { isItem = false } = {}): unknown {
    const spaces = this.#skipSpaces();
    if (!this.#isLineEnd()) return spaces > 0 ? this.#inline(indent + 1) : notPlain();
    this.#nextLine();
    // The items of a list may have the indentation of its key.
    const isListOfKey = this.#indent === indent && !isItem && this.#isItem();
    if (isListOfKey) return this.#list(indent);
    return this.#indent > indent ? this.#block(indent) : null;
  }

  /** A value that begins on a line and whose end is the end of a line. Further lines have at least `indent`. */
  #inline(indent: number): unknown {
    const value = this.#isFlow() ? this.#flow(indent) : (this.#quoted() ?? toScalar(this.#match(BLOCK_TEXT)));
    this.#skipSpaces();
    if (!this.#isLineEnd()) notPlain();
    this.#nextLine();
    // Such a line would continue a text.
    return this.#indent >= indent ? notPlain() : value;
  }

  #flow(indent: number): unknown {
    if (!this.#isFlow()) return this.#quoted() ?? toScalar(this.#match(FLOW_TEXT));
    this.#descend();
    const value = this.#text[this.#at] === '{' ? this.#flowMap(indent) : this.#flowList(indent);
    this.#depth -= 1;
    return value;
  }

  #flowMap(indent: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    this.#eachIn('}', indent, () => {
      const quoted = this.#quoted();
      const key = quoted ?? nameOf(this.#match(FLOW_TEXT));
      this.#expect(':');
      const start = this.#at;
      this.#skipLines(indent);
      if (quoted === undefined && this.#at === start) notPlain();
      put(map, key, this.#flow(indent));
    });
    return map;
  }

  #flowList(indent: number): unknown[] {
    const list: unknown[] = [];
    this.#eachIn(']', indent, () => list.push(this.#flow(indent)));
    return list;
  }

  #eachIn(close: string, indent: number, readOne: () => void): void {
    this.#at += 1;
    this.#skipLines(indent);
    let isFirst = true;
    while (!(isFirst && this.#text[this.#at] === close)) {
      isFirst = false;
      readOne();
      this.#skipLines(indent);
      if (this.#text[this.#at] === close) break;
      this.#expect(',');
      this.#skipLines(indent);
    }
    this.#at += 1;
  }

  #quoted(): string | undefined {
    if (this.#text[this.#at] === "'") return this.#match(SINGLE_QUOTED).slice(1, -1).replaceAll("''", "'");
    if (this.#text[this.#at] !== '"') return undefined;
    const quoted = this.#match(DOUBLE_QUOTED);
    return quoted.includes('\\') ? unescaped(quoted) : quoted.slice(1, -1);
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const [matched] = pattern.exec(this.#text) ?? notPlain();
    const text = matched.replace(/ +$/, '');
    this.#at += text.length;
    return text;
  }

  #expect(character: string): void {
    if (this.#text[this.#at] !== character) notPlain();
    this.#at += 1;
  }

  #descend(): void {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) notPlain();
  }

  #isFlow(): boolean {
    return this.#text[this.#at] === '{' || this.#text[this.#at] === '[';
  }

  #isItem(): boolean {
    const next = this.#text[this.#at + 1];
    return this.#text[this.#at] === '-' && (next === ' ' || next === '\n' || next === undefined);
  }

  /** Whether nothing or only a comment follows on this line. */
  #isLineEnd(): boolean {
    const character = this.#text[this.#at];
    if (character === '#') return this.#text[this.#at - 1] === ' ' || this.#text[this.#at - 1] === '\n';
    return character === '\n' || character === undefined;
  }

  /** Returns how many there were. */
  #skipSpaces(): number {
    const start = this.#at;
    while (this.#text[this.#at] === ' ') this.#at += 1;
    return this.#at - start;
  }

  /** Skips spaces and line ends in brackets. */
  #skipLines(indent: number): void {
    this.#skipSpaces();
    while (this.#text[this.#at] === '\n') {
      this.#at += 1;
      const start = this.#at;
      const isTooFarLeft = this.#skipSpaces() < indent && this.#text[this.#at] !== '\n';
      // Three dashes or dots at the begin of a line separate documents.
      if (isTooFarLeft || this.#text.startsWith('---', start) || this.#text.startsWith('...', start)) notPlain();
    }
  }

  /** Goes from the end of a line to the next one that is neither empty nor a comment. */
  #nextLine(): void {
    do {
      const end = this.#text.indexOf('\n', this.#at);
      this.#at = end < 0 ? this.#text.length : end + 1;
      const spaces = this.#skipSpaces();
      this.#indent = end < 0 ? END : spaces;
    } while (this.#indent !== END && this.#isLineEnd());
  }
}

function put(map: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__' || key.length > MAX_KEY_LENGTH || Object.hasOwn(map, key)) notPlain();
  map[key] = value;
}

/** A key without quotes, which must not look like a value of another type. */
function nameOf(text: string): string {
  return toScalar(text) === text ? text : notPlain();
}

const NULLS: readonly string[] = ['~', 'null', 'Null', 'NULL'];
const SWITCHES = new Map(['true', 'True', 'TRUE', 'false', 'False', 'FALSE'].map((word) => [word, /^t/i.test(word)]));
const LIKE_NUMBER = /^[-+]?\.?(?:\d|inf|nan)/i;
const WHOLE_NUMBER = /^(?:0|[1-9]\d{0,14})$/;
/** A duration or a size, which is a text. */
const WITH_UNIT = /^\d+(?:\.\d+)?(?:ms|s|m|h|B|[kKMG]B|[KMG]iB)$/;

function toScalar(text: string): string | number | boolean | null {
  if (NULLS.includes(text)) return null;
  if (!LIKE_NUMBER.test(text) || WITH_UNIT.test(text)) return SWITCHES.get(text) ?? text;
  return WHOLE_NUMBER.test(text) ? Number(text) : notPlain();
}

/** JSON has fewer escape sequences than YAML, and they mean the same. */
function unescaped(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return notPlain();
  }
}

function notPlain(): never {
  throw NOT_PLAIN;
}
