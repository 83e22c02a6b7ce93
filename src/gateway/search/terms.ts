import { stemmer } from 'stemmer';

/** Returns the words of a text or of a name, in lower case and without accents: `createPR_v2` has `create`, `pr` and `v2`. */
export function wordsOf(text: string): string[] {
  return runsOf(text).flatMap(wordsOfRun);
}

/** Returns the runs of letters and digits of a text, without accents. */
export function runsOf(text: string): string[] {
  if (NOT_ASCII.test(text)) return text.normalize('NFKD').replace(ACCENTS, '').match(RUNS) ?? [];
  // Scans ASCII text by character code, because that is twice as fast as the regular expression `RUNS`. Nearly all texts are ASCII.
  const runs: string[] = [];
  let start = -1;
  for (let at = 0; at <= text.length; at += 1) {
    const isInside = at < text.length && IN_WORD[text.charCodeAt(at)] === 1;
    if (isInside === start >= 0) continue;
    if (!isInside) runs.push(text.slice(start, at));
    start = isInside ? at : -1;
  }
  return runs;
}

/**
 * Returns the words of a run of letters and digits, in lower case. A run that has a character of Han, kana, Hangul or Thai gives
 * the pairs of its characters with their case unchanged, because these scripts have few or no spaces between words.
 */
export function wordsOfRun(run: string): string[] {
  if (UNSPACED.test(run)) return pairsOf(run);
  const parts = INNER_CAPITAL.test(run) ? (run.match(PARTS) ?? []) : [run];
  return parts.map((part) => part.toLowerCase());
}

/** Flags by ASCII code: 1 for letters and digits. */
const IN_WORD = Uint8Array.from({ length: 128 }, (_, code) => Number(/[A-Za-z0-9]/.test(String.fromCharCode(code))));
const NOT_ASCII = /[^\0-\x7f]/;
const ACCENTS = /\p{M}+/gu;
const RUNS = /[\p{L}\p{N}]+/gu;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u;
const INNER_CAPITAL = /[\p{Ll}\p{N}]\p{Lu}|\p{Lu}\p{Lu}\p{Ll}/u;
/**
 * Parts of a name such as `getHTTPStatus2`: capitals; small letters, with the capital before them if there is one; digits. Digits after
 * letters belong to the part of the letters.
 */
const PARTS = /\p{Lu}+(?!\p{Ll})\p{N}*|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}]+\p{N}*|\p{N}+/gu;

function pairsOf(run: string): string[] {
  const characters = [...run];
  if (characters.length < 2) return characters;
  return characters.slice(1).map((character, at) => `${characters[at]}${character}`);
}

/** Returns the stem of a word, which its other forms share. */
export function stemOf(word: string): string {
  return stemmer(word);
}

/** Whether a word says nothing about the tool that is meant. */
export function isStopWord(word: string): boolean {
  return STOP_WORDS.has(word);
}

/** Function words of English, and words with which people begin a request. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a able about above actually after again also am an and anyone anything are as at away be because been before being
  below both but by came can cannot could currently did do does doing don done down during each either else etc ever
  every few for from further gets getting gimme give given gonna got had has have having he help her here hers him
  his hope i if in instead into is it its itself just kind let like lot make maybe me might mine more most much must
  my myself need needs neither no nor not of off on once one ones only onto or other our ours out over own per please
  possible quick quickly quite rather really same shall she should since so some somehow someone something sort still
  such sure tell than thank thanks that the their theirs them then there they thing things this those through to
  together tool tools too under up upon us use used using very via wanna want wanted wants was way we were whatever
  while whose will wish with within without would you your yours yourself`
    .split(/\s+/)
    .filter((word) => word !== ''),
);
