/** How bad a finding is: `warn` is worth a look, `fail` keeps something from working. */
export type Level = 'ok' | 'warn' | 'fail';

/** What one code stands for. Codes are stable: an entry may get other words, but no other meaning. */
export interface CodeEntry {
  readonly level: Level;
  /** One sentence. */
  readonly means: string;
  /** What to do about it, as one or two sentences. */
  readonly remedy: string;
}

export type CodeTable = Readonly<Record<`TL-${string}`, CodeEntry>>;
