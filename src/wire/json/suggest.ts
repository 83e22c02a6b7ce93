/**
 * The candidate most similar to `word`, or else the only one that begins with it. `undefined` if no candidate is similar enough to suggest.
 */
export function suggest(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase();
  let nearest: string | undefined;
  // One typing error in three letters is still the same word; with more errors it is another word.
  let allowed = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  const longer: string[] = [];
  for (const candidate of candidates) {
    if (wanted.length >= MIN_BEGINNING && candidate.toLowerCase().startsWith(wanted)) longer.push(candidate);
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (distance >= allowed) continue;
    allowed = distance;
    nearest = candidate;
  }
  return nearest ?? (longer.length === 1 ? longer[0] : undefined);
}

/** Shortest word that counts as the beginning of a candidate, because many candidates begin with a shorter one. */
const MIN_BEGINNING = 4;

/** The hint for an unknown word: the known one that was most likely meant, or else `otherwise`. */
export function hintFor(word: string, known: Iterable<string>, otherwise: string): string {
  const nearest = suggest(word, known);
  return nearest === undefined ? otherwise : didYouMean(nearest);
}

/** The hint that names the suggested word. */
export function didYouMean(word: string): string {
  return `did you mean \`${word}\`?`;
}

/** Number of insertions, deletions, replacements and swaps of adjacent letters that turn `from` into `to`. */
function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = at(previous, column - 1) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const swapped =
        from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]
          ? at(beforePrevious, column - 2) + 1
          : Number.POSITIVE_INFINITY;
      current.push(Math.min(replaced, swapped, at(previous, column) + 1, at(current, column - 1) + 1));
    }
    beforePrevious = previous;
    previous = current;
  }
  return at(previous, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
