import { firstSentence } from '../../json/printable.js';
import { SYNONYMS } from './synonyms.js';
import { isStopWord, stemOf, wordsOf } from './terms.js';

/** The texts of a tool that are searched. */
export interface SearchedTool {
  /** The name, without the prefix of the server. */
  readonly name: string;
  readonly server: string;
  readonly title: string;
  readonly description: string;
  readonly params: readonly { readonly name: string; readonly description: string }[];
  /** Words of the configuration. */
  readonly keywords: readonly string[];
}

/**
 * How much a word counts in each part of a tool, and the usual number of words in that part. A part that is longer than
 * usual counts less for each word.
 */
const FIELDS = {
  name: { weight: 3, length: 3 },
  keywords: { weight: 3, length: 4 },
  title: { weight: 1, length: 4 },
  server: { weight: 1, length: 1 },
  summary: { weight: 1.5, length: 12 },
  description: { weight: 0.6, length: 40 },
  paramNames: { weight: 0.6, length: 5 },
  params: { weight: 0.2, length: 40 },
} as const;

/** Saturation of repeated words, and how much the length of a part counts (`k1` and `b` of BM25). */
const K1 = 1.2;
const B = 0.4;

/** How much a synonym counts, and how much a similar word does, as shares of the word itself. */
const SYNONYM = 0.5;
const SIMILAR = 0.6;

/** How much the share of the request that a tool meets counts. */
const COVERAGE = 1;

/** Characters that are read of a description, and of a parameter's. The texts of servers have no limit. */
const MAX_DESCRIPTION = 1_000;
const MAX_PARAM = 120;
const MAX_PARAMS = 40;
/** Words that are read of a request. Each costs up to a tenth of a millisecond among 10,000 tools. */
const MAX_WORDS = 40;

/** Weights are kept in bytes, as multiples of this. */
const STEP = 1 / 20;

/** Phrases that stand for a part of a request, with the share that each counts. Phrases are stems. */
interface Alternative {
  readonly words: readonly string[];
  readonly share: number;
}

/**
 * A full-text index of tools: BM25 over weighted parts (BM25F) with stems, and with synonyms and similar words of the request.
 *
 * The postings of a word are in typed arrays, because an index of objects needs many times the memory for 10,000 tools.
 */
export class ToolIndex {
  /** Number of the stem by its text. */
  readonly #stems: ReadonlyMap<string, number>;
  /** Position of the first posting by the number of the stem. */
  readonly #starts: Uint32Array;
  readonly #tools: Uint32Array;
  readonly #weights: Uint8Array;
  readonly #count: number;

  constructor(tools: readonly SearchedTool[]) {
    const builder = new PostingsBuilder();
    for (const [at, tool] of tools.entries()) addTool(builder, tool, at);
    const { stems, starts, tools: found, weights } = builder.build();
    this.#stems = stems;
    this.#starts = starts;
    this.#tools = found;
    this.#weights = weights;
    this.#count = tools.length;
  }

  /** Returns the positions of the tools that match, best first. `accepts` leaves out others. */
  find(request: string, limit: number, accepts: (tool: number) => boolean = () => true): number[] {
    const total = new Float64Array(this.#count);
    const met = new Float64Array(this.#count);
    const best = new Float64Array(this.#count);
    let asked = 0;
    for (const alternatives of conceptsIn(request, (stem) => this.#stems.has(stem), this.#stems)) {
      const idf = this.#meet(alternatives, best);
      asked += idf;
      if (idf === 0) continue;
      for (let tool = 0; tool < this.#count; tool += 1) {
        const score = best[tool] ?? 0;
        if (score === 0) continue;
        total[tool] = (total[tool] ?? 0) + score;
        met[tool] = (met[tool] ?? 0) + idf * Math.min(1, score / idf);
        best[tool] = 0;
      }
    }
    const ranked: number[] = [];
    for (let tool = 0; tool < this.#count; tool += 1) {
      const score = total[tool] ?? 0;
      if (score === 0 || !accepts(tool)) continue;
      total[tool] = score * (1 + COVERAGE * ((met[tool] ?? 0) / asked));
      ranked.push(tool);
    }
    return ranked.sort((one, other) => (total[other] ?? 0) - (total[one] ?? 0) || one - other).slice(0, limit);
  }

  /** Writes the best score of the alternatives into `best`. Returns the weight of the part of the request: its largest idf. */
  #meet(alternatives: readonly Alternative[], best: Float64Array): number {
    let largest = 0;
    for (const { words, share } of alternatives) {
      const known = words.flatMap((word) => this.#stems.get(word) ?? []);
      // A phrase counts only as a whole.
      if (known.length < words.length) continue;
      const [first = 0, ...others] = known;
      if (others.length === 0) {
        largest = Math.max(largest, share * this.#idf(first));
        this.#visit(first, (tool, score) => {
          if (score * share > (best[tool] ?? 0)) best[tool] = score * share;
        });
        continue;
      }
      largest = Math.max(largest, share * Math.max(...known.map((stem) => this.#idf(stem))));
      const sums = new Map<number, { sum: number; count: number }>();
      for (const stem of new Set(known)) {
        this.#visit(stem, (tool, score) => {
          const { sum, count } = sums.get(tool) ?? { sum: 0, count: 0 };
          sums.set(tool, { sum: sum + score, count: count + 1 });
        });
      }
      const wanted = new Set(known).size;
      for (const [tool, { sum, count }] of sums) {
        const score = (sum / wanted) * share;
        if (count === wanted && score > (best[tool] ?? 0)) best[tool] = score;
      }
    }
    return largest;
  }

  #visit(stem: number, visit: (tool: number, score: number) => void): void {
    const idf = this.#idf(stem);
    const end = this.#starts[stem + 1] ?? 0;
    for (let at = this.#starts[stem] ?? 0; at < end; at += 1) {
      const weight = (this.#weights[at] ?? 0) * STEP;
      visit(this.#tools[at] ?? 0, (idf * weight * (K1 + 1)) / (K1 + weight));
    }
  }

  #idf(stem: number): number {
    const having = (this.#starts[stem + 1] ?? 0) - (this.#starts[stem] ?? 0);
    return Math.log(1 + (this.#count - having + 0.5) / (having + 0.5));
  }
}

function addTool(builder: PostingsBuilder, tool: SearchedTool, at: number): void {
  const { name, server, title, keywords, params } = tool;
  const description = tool.description.slice(0, MAX_DESCRIPTION);
  const summary = firstSentence(description);
  const read = params.slice(0, MAX_PARAMS);
  builder.begin();
  builder.add(name, FIELDS.name);
  builder.add(keywords.join(' '), FIELDS.keywords);
  builder.add(title, FIELDS.title);
  builder.add(server, FIELDS.server);
  builder.add(summary, FIELDS.summary);
  builder.add(description.slice(summary.length), FIELDS.description);
  builder.add(read.map((param) => param.name).join(' '), FIELDS.paramNames);
  builder.add(read.map((param) => param.description.slice(0, MAX_PARAM)).join(' '), FIELDS.params);
  builder.end(at);
}

/** Collects the weights of the stems of one tool after the other. */
class PostingsBuilder {
  readonly #stems = new Map<string, number>();
  /** Number of the stem by each form of the word; -1 for a stop word. */
  readonly #words = new Map<string, number>();
  /** Weight of each stem in the present tool. */
  #present: number[] = [];
  #touched: number[] = [];
  /** Stem, tool and weight of all postings. */
  #postings = new Uint32Array(3 * 1_024);
  #length = 0;

  begin(): void {
    this.#touched = [];
  }

  add(text: string, { weight, length }: { readonly weight: number; readonly length: number }): void {
    const words = wordsOf(text);
    const each = weight / (1 - B + (B * Math.max(words.length, 1)) / length);
    for (const word of words) {
      const stem = this.#stemOf(word);
      if (stem < 0) continue;
      const before = this.#present[stem] ?? 0;
      if (before === 0) this.#touched.push(stem);
      this.#present[stem] = before + each;
    }
  }

  end(tool: number): void {
    for (const stem of this.#touched) {
      if (this.#length + 3 > this.#postings.length) {
        const larger = new Uint32Array(2 * this.#postings.length);
        larger.set(this.#postings);
        this.#postings = larger;
      }
      const weight = Math.min(255, Math.max(1, Math.round((this.#present[stem] ?? 0) / STEP)));
      this.#postings.set([stem, tool, weight], this.#length);
      this.#length += 3;
      this.#present[stem] = 0;
    }
  }

  /** Sorts the postings by stem. */
  build() {
    const starts = new Uint32Array(this.#stems.size + 1);
    for (let at = 0; at < this.#length; at += 3) {
      const next = (this.#postings[at] ?? 0) + 1;
      starts[next] = (starts[next] ?? 0) + 1;
    }
    for (let stem = 1; stem < starts.length; stem += 1) starts[stem] = (starts[stem] ?? 0) + (starts[stem - 1] ?? 0);
    const ends = starts.slice();
    const tools = new Uint32Array(this.#length / 3);
    const weights = new Uint8Array(this.#length / 3);
    for (let at = 0; at < this.#length; at += 3) {
      const stem = this.#postings[at] ?? 0;
      const end = ends[stem] ?? 0;
      tools[end] = this.#postings[at + 1] ?? 0;
      weights[end] = this.#postings[at + 2] ?? 0;
      ends[stem] = end + 1;
    }
    return { stems: this.#stems as ReadonlyMap<string, number>, starts, tools, weights };
  }

  #stemOf(word: string): number {
    const known = this.#words.get(word);
    if (known !== undefined) return known;
    const number = isStopWord(word) ? -1 : this.#numberOf(stemOf(word));
    this.#words.set(word, number);
    return number;
  }

  #numberOf(stem: string): number {
    const known = this.#stems.get(stem);
    if (known !== undefined) return known;
    this.#stems.set(stem, this.#stems.size);
    return this.#stems.size - 1;
  }
}

/** Shortest word that has similar words: a shorter one is similar to too many. */
const MIN_SIMILAR = 4;

/**
 * Returns the parts of a request, each with the phrases that stand for it: the word itself, its synonyms and, if no tool has
 * the word, the words that are similar or that it is made of.
 */
function conceptsIn(
  request: string,
  isKnown: (stem: string) => boolean,
  all: ReadonlyMap<string, number>,
): Alternative[][] {
  const words = wordsOf(request).slice(0, MAX_WORDS);
  const stems = words.map(stemOf);
  const concepts = new Map<string, Alternative[]>();
  for (let at = 0; at < words.length; at += 1) {
    const stem = stems[at] ?? '';
    const isStop = isStopWord(words[at] ?? '');
    for (const phrase of SYNONYM_PHRASES.get(stem) ?? []) {
      if (!phrase.words.every((word, offset) => word === stems[at + offset])) continue;
      // A single word that is a stop word starts a phrase only.
      if (isStop && phrase.words.length === 1) continue;
      const key = phrase.words.join(' ');
      const concept = concepts.get(key) ?? [{ words: phrase.words, share: 1 }];
      concepts.set(key, concept);
      concept.push(...phrase.others.map((others) => ({ words: others, share: SYNONYM })));
    }
    if (isStop) continue;
    const concept = concepts.get(stem) ?? [{ words: [stem], share: 1 }];
    concepts.set(stem, concept);
    const joined = `${words[at]}${words[at + 1] ?? ''}`;
    if (at + 1 < words.length && isKnown(stemOf(joined))) concept.push({ words: [stemOf(joined)], share: SIMILAR });
    if (!isKnown(stem)) concept.push(...similarTo(words[at] ?? '', isKnown, all));
  }
  return [...concepts.values()];
}

function similarTo(word: string, isKnown: (stem: string) => boolean, all: ReadonlyMap<string, number>): Alternative[] {
  if (word.length < MIN_SIMILAR) return [];
  for (let at = 2; at <= word.length - 2; at += 1) {
    const parts = [stemOf(word.slice(0, at)), stemOf(word.slice(at))];
    if (Math.min(at, word.length - at) >= 3 && parts.every(isKnown)) return [{ words: parts, share: SIMILAR }];
  }
  const stem = stemOf(word);
  const found: Alternative[] = [];
  for (const other of all.keys()) {
    const isLonger = other.length > stem.length && other.startsWith(stem);
    if (isLonger || isOneEditAway(stem, other)) found.push({ words: [other], share: SIMILAR });
  }
  return found;
}

/** Whether one character is missing, added, different or swapped with the next. The first one must be the same. */
function isOneEditAway(one: string, other: string): boolean {
  if (Math.abs(one.length - other.length) > 1 || one[0] !== other[0] || one.length < MIN_SIMILAR) return false;
  let start = 0;
  while (start < one.length && one[start] === other[start]) start += 1;
  const rest = one.slice(start);
  const otherRest = other.slice(start);
  const isSwapped = rest[0] === otherRest[1] && rest[1] === otherRest[0] && rest.slice(2) === otherRest.slice(2);
  return (
    isSwapped || rest.slice(1) === otherRest.slice(1) || rest.slice(1) === otherRest || rest === otherRest.slice(1)
  );
}

interface SynonymPhrase {
  readonly words: readonly string[];
  /** The phrases that it finds. */
  readonly others: readonly (readonly string[])[];
}

/** The phrases of the synonyms by their first stems. */
const SYNONYM_PHRASES: ReadonlyMap<string, readonly SynonymPhrase[]> = readSynonyms();

function readSynonyms(): Map<string, SynonymPhrase[]> {
  const phrases = new Map<string, SynonymPhrase[]>();
  const toPhrases = (text: string) => text.split(',').map((phrase) => wordsOf(phrase).map(stemOf));
  for (const line of SYNONYMS.trim().split('\n')) {
    const [left = '', right] = line.split('>');
    const from = toPhrases(left);
    for (const words of from) {
      const others = right === undefined ? from.filter((each) => each !== words) : toPhrases(right);
      const [first = ''] = words;
      phrases.set(first, [...(phrases.get(first) ?? []), { words, others }]);
    }
  }
  return phrases;
}
