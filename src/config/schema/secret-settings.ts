import * as z from 'zod/mini';
import { wordsOf } from './command-words.js';
import { described, expects } from './fields.js';

const EXPECTED = expects('a command with all quotes closed, or a list of its words');

const written = z.string(EXPECTED).check(z.refine((text) => (wordsOf(text) ?? []).length > 0, EXPECTED));

/** Parsing makes words of a command that is written as a text. */
const command = z.union(
  [
    z.pipe(
      written,
      z.transform((text: string) => wordsOf(text) ?? []),
    ),
    z.array(z.string(EXPECTED)).check(z.minLength(1, EXPECTED)),
  ],
  EXPECTED,
);

const name = z.string().check(
  z.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
    error: 'this is not a valid name of a secret; expected letters, digits and `_`',
  }),
);

export const secretCommand = described(
  z.record(name, command, expects('a map of secrets, each with its command')),
  'Commands that print secrets, by name, such as `op read op://vault/item/field`. They run without a shell. A value can refer to a secret by its name.',
);
