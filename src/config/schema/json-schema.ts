import * as z from 'zod/mini';
import { fileSchema } from './schema.js';

/** The text of `config/trunkline.schema.json`, with which editors complete and check a configuration. */
export function jsonSchemaText(): string {
  const schema = z.toJSONSchema(fileSchema, {
    target: 'draft-7',
    io: 'input',
    // zod omits the defaults of converted values. These defaults are in the notation of the file.
    override: ({ zodSchema, jsonSchema }) => {
      const standard = z.globalRegistry.get(zodSchema)?.default;
      if (standard !== undefined) jsonSchema.default = standard;
    },
  });
  return `${JSON.stringify(schema, null, 2)}\n`;
}
