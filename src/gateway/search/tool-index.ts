import { firstSentence } from '../../wire/json/printable.js';
import { SHAPES, SYNONYMS } from './synonyms.js';
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
  title: { weight: 0.5, length: 4 },
  server: { weight: 3, length: 1 },
  summary: { weight: 1.5, length: 12 },
  description: { weight: 0.6, length: 40 },
  paramNames: { weight: 0.4, length: 5 },
  params: { weight: 0.3, length: 40 },
} as const;

/** Saturation of repeated words, and how much the length of a part counts (`k1` and `b` of BM25). */
const K1 = 1.8;
const B = 0.6;

/** How much other words count, as shares of the word itself: synonyms, those of a word that no tool has, and similar words. */
const SYNONYM = 0.7;
const ONLY_SYNONYM = 0.85;
const SIMILAR = 0.6;
const LONGER = 0.5;

/** How much the share of the request that a tool meets counts. */
const COVERAGE = 0.5;

/** Characters that are read of a description, and of a parameter's. The texts of servers have no limit. */
const MAX_DESCRIPTION = 500;
const MAX_PARAM = 60;
const MAX_PARAMS = 40;
/** Words that are read of a request. Each costs up to a tenth of a millisecond among 10,000 tools. */
const MAX_WORDS = 40;

/** Weights are kept in bytes, as multiples of this. */
const STEP = 1 / 20;

/** The saturated count for each weight. */
const SATURATED = Float64Array.from({ length: 256 }, (_, byte) => (byte * STEP * (K1 + 1)) / (K1 + byte * STEP));

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
  readonly #vocabulary: Vocabulary;
  /** Position of the first posting by the number of the stem. */
  readonly #starts: Uint32Array;
  readonly #tools: Uint32Array;
  readonly #weights: Uint8Array;
  readonly #count: number;

  constructor(tools: readonly SearchedTool[]) {
    const builder = new PostingsBuilder();
    for (const [at, tool] of tools.entries()) addTool(builder, tool, at);
    const { stems, starts, tools: found, weights } = builder.build();
    this.#vocabulary = { numbers: stems, sorted: [...stems.keys()].sort() };
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
    for (const alternatives of conceptsIn(request, this.#vocabulary)) {
      const idf = this.#meet(alternatives, best);
      asked += idf;
      if (idf === 0) continue;
      for (let tool = 0; tool < this.#count; tool += 1) {
        const score = best[tool] ?? 0;
        if (score === 0) continue;
        total[tool] = (total[tool] ?? 0) + score;
        met[tool] = (met[tool] ?? 0) + Math.min(idf, score);
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
      const stems = new Set(words.map((word) => this.#vocabulary.numbers.get(word)));
      // A phrase counts only as a whole.
      const known = [...stems].filter((stem) => stem !== undefined);
      if (known.length < stems.size || known.length === 0) continue;
      largest = Math.max(largest, share * Math.max(...known.map((stem) => this.#idf(stem))));
      const scores = known.length === 1 ? best : new Float64Array(this.#count);
      const counts = known.length === 1 ? undefined : new Uint8Array(this.#count);
      for (const stem of known) this.#score(stem, share / known.length, scores, counts);
      for (let tool = 0; counts !== undefined && tool < this.#count; tool += 1)
        if (counts[tool] === known.length) best[tool] = Math.max(best[tool] ?? 0, scores[tool] ?? 0);
    }
    return largest;
  }

  /** Writes the scores of one stem: the larger one into `scores` or, with `counts`, their sum and their number. */
  #score(stem: number, share: number, scores: Float64Array, counts: Uint8Array | undefined): void {
    const factor = this.#idf(stem) * share;
    const end = this.#starts[stem + 1] ?? 0;
    for (let at = this.#starts[stem] ?? 0; at < end; at += 1) {
      const tool = this.#tools[at] ?? 0;
      const score = factor * (SATURATED[this.#weights[at] ?? 0] ?? 0);
      const before = scores[tool] ?? 0;
      if (counts === undefined) {
        if (score > before) scores[tool] = score;
      } else {
        scores[tool] = before + score;
        counts[tool] = (counts[tool] ?? 0) + 1;
      }
    }
  }

  #idf(stem: number): number {
    const having = (this.#starts[stem + 1] ?? 0) - (this.#starts[stem] ?? 0);
    return Math.log(1 + (this.#count - having + 0.5) / (having + 0.5));
  }
}

/** The stems of all tools. */
interface Vocabulary {
  /** Number of the stem by its text. */
  readonly numbers: ReadonlyMap<string, number>;
  readonly sorted: readonly string[];
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
      this.#postings[this.#length] = stem;
      this.#postings[this.#length + 1] = tool;
      this.#postings[this.#length + 2] = weight;
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
 * Returns the parts of a request, each with the phrases that stand for it: the word itself, its synonyms and longer words. If
 * no tool has the word, also the words that are similar, or that it is made of.
 */
function conceptsIn(request: string, vocabulary: Vocabulary): Alternative[][] {
  const named = SHAPES.reduce((text, [thing, words]) => text.replace(thing, ` ${words} `), request);
  const words = wordsOf(named).slice(0, MAX_WORDS);
  const stems = words.map(stemOf);
  const isKnown = (stem: string) => vocabulary.numbers.has(stem);
  const concepts = new Map<string, Alternative[]>();
  for (const [at, word] of words.entries()) {
    const stem = stems[at] ?? '';
    const isStop = isStopWord(word);
    for (const phrase of SYNONYM_PHRASES.get(stem) ?? []) {
      if (!phrase.words.every((each, offset) => each === stems[at + offset])) continue;
      // A stop word can begin a phrase, but it is none.
      if (isStop && phrase.words.length === 1) continue;
      const key = phrase.words.join(' ');
      const concept = concepts.get(key) ?? [{ words: phrase.words, share: 1 }];
      concepts.set(key, concept);
      const share = phrase.words.every(isKnown) ? SYNONYM : ONLY_SYNONYM;
      concept.push(...phrase.others.map((others) => ({ words: others, share })));
    }
    if (isStop) continue;
    const concept = concepts.get(stem) ?? [{ words: [stem], share: 1 }];
    concepts.set(stem, concept);
    const joined = stemOf(`${word}${words[at + 1] ?? ''}`);
    if (at + 1 < words.length && isKnown(joined)) concept.push({ words: [joined], share: SIMILAR });
    concept.push(...longerThan(stem, vocabulary));
    if (!isKnown(stem)) concept.push(...similarTo(word, vocabulary));
  }
  return [...concepts.values()];
}

/** Stems that begin with this one, as `todoist` does with `todo`. */
function longerThan(stem: string, { sorted }: Vocabulary): Alternative[] {
  if (stem.length < MIN_SIMILAR) return [];
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((sorted[middle] ?? '') <= stem) from = middle + 1;
    else to = middle;
  }
  const found: Alternative[] = [];
  for (let at = from; sorted[at]?.startsWith(stem) === true; at += 1)
    found.push({ words: [sorted[at] ?? ''], share: LONGER });
  return found;
}

/** Two stems of which the word is made, or stems with one other character. */
function similarTo(word: string, { numbers, sorted }: Vocabulary): Alternative[] {
  if (word.length < MIN_SIMILAR) return [];
  for (let at = 3; at <= word.length - 3; at += 1) {
    const parts = [stemOf(word.slice(0, at)), stemOf(word.slice(at))];
    if (parts.every((part) => numbers.has(part))) return [{ words: parts, share: SIMILAR }];
  }
  const stem = stemOf(word);
  return sorted.filter((other) => isOneEditAway(stem, other)).map((other) => ({ words: [other], share: SIMILAR }));
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
