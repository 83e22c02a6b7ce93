import { firstSentence } from '../../wire/json/printable.js';
import { SHAPES, SYNONYMS } from './synonyms.js';
import { isStopWord, runsOf, stemOf, wordsOf, wordsOfRun } from './terms.js';

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
 * Weight of a word in each part of a tool, and the usual number of words in that part. In a part that is longer than usual,
 * each word counts less.
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

/** Saturation of repeated words, and weight of the length of a part (`k1` and `b` of BM25). */
const K1 = 1.8;
const B = 0.6;

/** Weights as shares of the word itself: of its synonyms, of synonyms if no tool has the word, of similar and of longer words. */
const SYNONYM = 0.7;
const ONLY_SYNONYM = 0.85;
const SIMILAR = 0.6;
const LONGER = 0.5;

/** Weight of the share of the request that a tool matches. */
const COVERAGE = 0.5;

/** Number of characters that are read of a description, and of a parameter's, because servers may write texts of any length. */
const MAX_DESCRIPTION = 500;
const MAX_PARAM = 60;
const MAX_PARAMS = 40;
/** Number of words that are read of a request. Each costs up to a tenth of a millisecond among 10,000 tools. */
const MAX_WORDS = 40;

/** A phrase that stands for a part of a request, as stems, and the share that it counts. */
interface Alternative {
  readonly words: readonly string[];
  readonly share: number;
}

/** A full-text index of tools: BM25 over weighted parts (BM25F) with stems, and with synonyms and similar words of the request. */
export class ToolIndex {
  readonly #vocabulary: Vocabulary;
  readonly #count: number;

  constructor(tools: readonly SearchedTool[]) {
    const postings = new Map<string, Postings>();
    /** Makes the postings of a word. A stop word has `NONE`. */
    const postingsOf = (word: string) => {
      if (isStopWord(word)) return NONE;
      const stem = stemOf(word);
      const ofStem = postings.get(stem) ?? { tools: [], weights: [] };
      postings.set(stem, ofStem);
      return ofStem;
    };
    /** The postings of the words of a run, kept because words and stems take long to find. */
    const ofRuns = new Map<string, readonly Postings[]>();
    for (const [at, tool] of tools.entries()) {
      for (const [text, { weight, length }] of partsOf(tool)) {
        const words: Postings[] = [];
        for (const run of runsOf(text)) {
          let ofRun = ofRuns.get(run);
          if (ofRun === undefined) {
            ofRun = wordsOfRun(run).map(postingsOf);
            ofRuns.set(run, ofRun);
          }
          words.push(...ofRun);
        }
        const each = weight / (1 - B + (B * Math.max(words.length, 1)) / length);
        for (const word of words) {
          if (word === NONE) continue;
          const last = word.tools.length - 1;
          if (word.tools[last] === at) word.weights[last] = (word.weights[last] ?? 0) + each;
          else {
            word.tools.push(at);
            word.weights.push(each);
          }
        }
      }
    }
    this.#vocabulary = { postings, sorted: [...postings.keys()].sort() };
    this.#count = tools.length;
  }

  /** Returns the positions of the tools that match, best first, and only those that `accepts` allows. */
  find(request: string, limit: number, accepts: (tool: number) => boolean = () => true): number[] {
    const scores = new Float64Array(this.#count);
    const met = new Float64Array(this.#count);
    let asked = 0;
    for (const alternatives of conceptsIn(request, this.#vocabulary)) {
      const best = new Float64Array(this.#count);
      const idf = this.#meet(alternatives, best);
      asked += idf;
      for (let tool = 0; tool < best.length; tool += 1) {
        const score = best[tool] ?? 0;
        scores[tool] = (scores[tool] ?? 0) + score;
        met[tool] = (met[tool] ?? 0) + Math.min(idf, score);
      }
    }
    const found: number[] = [];
    for (let tool = 0; tool < scores.length; tool += 1) {
      if (scores[tool] === 0 || !accepts(tool)) continue;
      scores[tool] = (scores[tool] ?? 0) * (1 + COVERAGE * ((met[tool] ?? 0) / asked));
      found.push(tool);
    }
    return found.sort((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0) || one - other).slice(0, limit);
  }

  /** Puts the best score of the alternatives into `best` by tool. Returns the weight of the part of the request: its largest idf. */
  #meet(alternatives: readonly Alternative[], best: Float64Array): number {
    let largest = 0;
    for (const { words, share } of alternatives) {
      const stems = [...new Set(words)].map((word) => this.#vocabulary.postings.get(word) ?? NONE);
      const idfs = stems.map(({ tools: { length } }) => Math.log(1 + (this.#count - length + 0.5) / (length + 0.5)));
      // A phrase counts only as a whole.
      if (stems.includes(NONE)) continue;
      largest = Math.max(largest, share * Math.max(...idfs));
      // Reads the lists of the stems side by side, because each is in the order of the tools.
      const places = stems.map(() => 0);
      for (const tool of stems[0]?.tools ?? []) {
        let score = 0;
        for (let index = 0; index < stems.length; index += 1) {
          const { tools, weights } = stems[index] ?? NONE;
          let place = places[index] ?? 0;
          while ((tools[place] ?? tool) < tool) place += 1;
          places[index] = place;
          const weight = tools[place] === tool ? (weights[place] ?? 0) : Number.NaN;
          score += ((share / stems.length) * (idfs[index] ?? 0) * weight * (K1 + 1)) / (K1 + weight);
        }
        if (score > (best[tool] ?? 0)) best[tool] = score;
      }
    }
    return largest;
  }
}

/** The tools that have a stem, and the weight that it has in each. */
interface Postings {
  readonly tools: number[];
  readonly weights: number[];
}

const NONE: Postings = { tools: [], weights: [] };

/** The stems of all tools. */
interface Vocabulary {
  readonly postings: ReadonlyMap<string, Postings>;
  readonly sorted: readonly string[];
}

function partsOf(tool: SearchedTool): [text: string, part: { readonly weight: number; readonly length: number }][] {
  const { name, server, title, keywords } = tool;
  const description = tool.description.slice(0, MAX_DESCRIPTION);
  const summary = firstSentence(description);
  const params = tool.params.slice(0, MAX_PARAMS);
  return [
    [name, FIELDS.name],
    [keywords.join(' '), FIELDS.keywords],
    [title, FIELDS.title],
    [server, FIELDS.server],
    [summary, FIELDS.summary],
    [description.slice(summary.length), FIELDS.description],
    [params.map((param) => param.name).join(' '), FIELDS.paramNames],
    [params.map((param) => param.description.slice(0, MAX_PARAM)).join(' '), FIELDS.params],
  ];
}

/** Length of the shortest word that has similar words, because a shorter one is similar to too many. */
const MIN_SIMILAR = 4;

/**
 * Returns the parts of a request, each with the phrases that stand for it: the word itself, its synonyms and longer words. If
 * no tool has the word, also the words that are similar, or that it is made of.
 */
function conceptsIn(request: string, vocabulary: Vocabulary): Alternative[][] {
  const named = SHAPES.reduce((text, [thing, words]) => text.replace(thing, ` ${words} `), request);
  const words = wordsOf(named).slice(0, MAX_WORDS);
  const stems = words.map(stemOf);
  const isKnown = (stem: string) => vocabulary.postings.has(stem);
  const concepts = new Map<string, Alternative[]>();
  for (const [at, word] of words.entries()) {
    const stem = stems[at] ?? '';
    const isStop = isStopWord(word);
    for (const phrase of SYNONYM_PHRASES.get(stem) ?? []) {
      if (!phrase.words.every((each, offset) => each === stems[at + offset])) continue;
      // A stop word can begin a phrase, but is no phrase by itself.
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
  let from = 0;
  let to = sorted.length;
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

/** The two stems of a compound word, or else the stems that are one edit away from the word. */
function similarTo(word: string, { postings, sorted }: Vocabulary): Alternative[] {
  if (word.length < MIN_SIMILAR) return [];
  for (let at = 3; at <= word.length - 3; at += 1) {
    const parts = [stemOf(word.slice(0, at)), stemOf(word.slice(at))];
    if (parts.every((part) => postings.has(part))) return [{ words: parts, share: SIMILAR }];
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
