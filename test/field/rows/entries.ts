// Entries of lists that the official schemas reject, or that only look odd.
import type { Row } from '../row.js';

export const ENTRIES: readonly Row[] = [
  { quirk: 'A sound server', right: 'Its tools are listed and answer.' },
  { quirk: 'A sound server', right: 'Its tools are listed and answer.', sdk: 2 },
];
