/** The value that the share `share` (0 to 1) of the values does not exceed. */
export function quantile(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

export function median(values) {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length / 2;
  return Number.isInteger(middle) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[Math.floor(middle)];
}

/** The median with the smallest and the largest value. */
export function spread(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/** Each round of a way against the baseline in the same round, so that a busy machine counts on both sides. */
export function ratios(results, name, measure, baseline) {
  const ofBaseline = results.get(baseline);
  return results.get(name).map((ofRound, round) => ofRound[measure] / ofBaseline[round][measure]);
}

/** The ratio as a cell of a table: its median, smallest and largest; nothing where it was not measured. */
export function shownRatio(results, name, measure, baseline) {
  if (name === baseline) return '1';
  const values = ratios(results, name, measure, baseline);
  if (!values.every(Number.isFinite)) return '';
  const { median: middle, min, max } = spread(values);
  return `${middle.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`;
}
